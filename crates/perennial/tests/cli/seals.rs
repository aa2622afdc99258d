//! Where records are sealed, whoever writes one needs the key, and seals it.

use std::sync::Arc;

use perennial_core::record::{DATA_KEY, Seals};

use crate::world::{Labels, World, pairs};

const KEY: &str = "0123456789abcdef0123456789abcdef";
const NODE: &str = "worker-1";

fn labels() -> Labels {
    pairs([("team", "blue")])
}

fn seals() -> Seals {
    Seals::parse(KEY, false).unwrap()
}

async fn sealed() -> (World, String) {
    let mut world = World::without_keeper("").await;
    world.configure(|config| config.seals = Some(Arc::new(seals())));
    world.start_keeper().await;
    let file = world.file("record-key");
    std::fs::write(&file, KEY).unwrap();
    (world, format!("--record-key={}", file.display()))
}

async fn is_sealed(world: &World, node: &str) {
    let map = world.config_map(node).await.unwrap();
    let text = &map.data.as_ref().unwrap()[DATA_KEY];
    assert_eq!(seals().check(node, text, map.metadata.annotations.as_ref()), Ok(()));
}

#[tokio::test]
async fn without_the_key_a_sealed_record_is_seen_and_not_written() {
    let (world, key) = sealed().await;
    world.register(NODE, &labels()).await;
    world.recorded(NODE, &labels()).await;
    world.delete(NODE).await;
    world.closed(NODE, &labels()).await;
    let before = world.config_map(NODE).await;
    assert!(world.hand().says(&format!("show {NODE}")).await.good().contains("team"));
    let told = world.hand().says(&format!("pause {NODE}")).await;
    assert!(told.code != 0 && told.err.contains("--record-key"), "{told:?}");
    assert_eq!(world.config_map(NODE).await, before);
    world.hand().says(&format!("pause {NODE} {key}")).await.good();
    assert!(world.record(NODE).await.unwrap().paused);
    is_sealed(&world, NODE).await;
}

#[tokio::test]
async fn what_is_imported_with_the_key_is_sealed_and_given() {
    let old = World::start().await;
    old.register(NODE, &labels()).await;
    old.recorded(NODE, &labels()).await;
    let (new, key) = sealed().await;
    let file = new.file("records.jsonl");
    old.hand().says(&format!("export -f {}", file.display())).await;
    new.hand().says(&format!("import {} {key}", file.display())).await.good();
    is_sealed(&new, NODE).await;
    new.register(NODE, &pairs([])).await;
    new.labels_become(NODE, &labels()).await;
}
