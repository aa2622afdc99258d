//! Seals: what somebody without the key wrote or edited is copied aside, told of, and not given.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, PostParams};
use perennial_core::record::{DATA_KEY, Record, SEAL, Seals, State, record_name};
use perennial_testkit::eventually;

use crate::world::{Labels, SOON, World, pairs};

const KEY: &str = "0123456789abcdef0123456789abcdef";
const NEW_KEY: &str = "fedcba9876543210fedcba9876543210";
const NODE: &str = "worker-1";

fn seals(keys: &str, accept_unsealed: bool) -> Arc<Seals> {
    Arc::new(Seals::parse(keys, accept_unsealed).unwrap())
}

async fn sealed_with(keys: &str, accept_unsealed: bool) -> World {
    let mut world = World::without_keeper("").await;
    world.configure(|config| config.seals = Some(seals(keys, accept_unsealed)));
    world.start_keeper().await;
    world
}

/// The same with a keeper that has these keys.
async fn restarted_with(world: &mut World, seals: Arc<Seals>) {
    world.stop_keeper().await;
    world.configure(|config| config.seals = Some(seals));
    world.start_keeper().await;
}

fn labels() -> Labels {
    pairs([("team", "blue")])
}

/// The seal is there and holds, by this key.
async fn is_sealed(world: &World, key: &str) {
    let seals = Seals::parse(key, false).unwrap();
    eventually(SOON, "the record is sealed", || async {
        let map = world.config_map(NODE).await.unwrap();
        let text = map.data.unwrap().remove(DATA_KEY).unwrap();
        let checked = seals.check(NODE, &text, map.metadata.annotations.as_ref());
        checked.map(Some).map_err(|why| anyhow::anyhow!(why))
    })
    .await
    .unwrap();
}

/// What the record says, with another team in it.
async fn edited(world: &World) -> String {
    let record = world.record(NODE).await.unwrap();
    record.to_json().replace("blue", "red")
}

/// It came back, somebody looked at its record, and it was given nothing.
async fn is_given_nothing(world: &World) {
    world.register(NODE, &pairs([])).await;
    world.event(NODE, "RecordUnreadable").await;
    world.caught_up_but(1).await;
    assert_eq!(world.labels(NODE).await, pairs([]));
}

#[tokio::test]
async fn what_a_keeper_writes_is_sealed_and_given() {
    let world = sealed_with(KEY, false).await;
    world.register(NODE, &labels()).await;
    world.recorded(NODE, &labels()).await;
    is_sealed(&world, KEY).await;
    world.delete(NODE).await;
    world.closed(NODE, &labels()).await;
    is_sealed(&world, KEY).await;
    world.register(NODE, &pairs([])).await;
    world.labels_become(NODE, &labels()).await;
}

#[tokio::test]
async fn a_record_that_was_edited_while_its_node_was_away_is_not_given() {
    let mut world = sealed_with(KEY, false).await;
    world.register(NODE, &labels()).await;
    world.recorded(NODE, &labels()).await;
    world.delete(NODE).await;
    world.closed(NODE, &labels()).await;
    let text = edited(&world).await;
    world.edit_record(NODE, &text).await;
    // Neither by one that knew it before, nor by one that did not.
    world.replace_keeper().await;
    is_given_nothing(&world).await;
    let aside = world.set_aside().await;
    assert_eq!(aside.len(), 1);
    assert_eq!(aside[0].data.as_ref().unwrap()[DATA_KEY], text, "nothing is lost");
}

#[tokio::test]
async fn a_record_of_a_living_node_that_was_edited_follows_the_node_again() {
    let world = sealed_with(KEY, false).await;
    world.register(NODE, &labels()).await;
    world.recorded(NODE, &labels()).await;
    world.edit_record(NODE, &edited(&world).await).await;
    world.recorded(NODE, &labels()).await;
    is_sealed(&world, KEY).await;
    assert_eq!(world.labels(NODE).await, labels());
}

#[tokio::test]
async fn a_record_that_somebody_without_the_key_made_is_not_given() {
    let mut world = sealed_with(KEY, false).await;
    world.register(NODE, &labels()).await;
    world.recorded(NODE, &labels()).await;
    world.delete(NODE).await;
    world.closed(NODE, &labels()).await;
    let real = world.config_map(NODE).await.unwrap();
    // Under another name, with the real one's seal; and with one of their own making.
    let record = Record { node: "worker-2".to_owned(), ..world.record(NODE).await.unwrap() };
    let forged = Seals::parse(NEW_KEY, false).unwrap().seal("worker-2", &record.to_json());
    for seal in [real.metadata.annotations.as_ref().unwrap()[SEAL].clone(), forged] {
        let mut annotations = record.annotations();
        annotations.insert(SEAL.to_owned(), seal);
        let map = serde_json::json!({
            "metadata": { "name": record_name("worker-2"), "annotations": annotations },
            "data": { DATA_KEY: record.to_json() },
        });
        let map: ConfigMap = serde_json::from_value(map).unwrap();
        world.config_maps().create(&PostParams::default(), &map).await.unwrap();
        world.register("worker-2", &pairs([])).await;
        world.event("worker-2", "RecordUnreadable").await;
        assert_eq!(world.labels("worker-2").await, pairs([]));
        world.delete("worker-2").await;
        world.stop_keeper().await;
        world.config_maps().delete(&record_name("worker-2"), &DeleteParams::default()).await.unwrap();
        world.start_keeper().await;
    }
}

#[tokio::test]
async fn seals_are_brought_in_without_losing_anything() {
    let mut world = World::start().await;
    world.register(NODE, &labels()).await;
    world.recorded(NODE, &labels()).await;
    world.register("worker-2", &labels()).await;
    world.recorded("worker-2", &labels()).await;
    world.delete(NODE).await;
    world.closed(NODE, &labels()).await;
    restarted_with(&mut world, seals(KEY, true)).await;
    // The closed one and the open one are sealed as they are.
    for node in [NODE, "worker-2"] {
        eventually(SOON, "it is sealed", || async {
            let map = world.config_map(node).await.unwrap();
            Ok(map.metadata.annotations.unwrap().contains_key(SEAL).then_some(()))
        })
        .await
        .unwrap();
    }
    let record = world.record(NODE).await.unwrap();
    assert_eq!((record.state, record.kept.labels), (State::Closed, labels()));
    world.caught_up().await;
    restarted_with(&mut world, seals(KEY, false)).await;
    world.register(NODE, &pairs([])).await;
    world.labels_become(NODE, &labels()).await;
    assert!(world.set_aside().await.is_empty());
}

#[tokio::test]
async fn a_record_without_a_seal_is_not_given_where_all_must_have_one() {
    let mut world = World::start().await;
    world.register(NODE, &labels()).await;
    world.recorded(NODE, &labels()).await;
    world.delete(NODE).await;
    world.closed(NODE, &labels()).await;
    restarted_with(&mut world, seals(KEY, false)).await;
    is_given_nothing(&world).await;
    // Its bytes are all there: whoever believes it says so.
    restarted_with(&mut world, seals(KEY, true)).await;
    world.labels_become(NODE, &labels()).await;
}

#[tokio::test]
async fn keys_are_changed_one_after_the_other() {
    let mut world = sealed_with(KEY, false).await;
    world.register(NODE, &labels()).await;
    world.recorded(NODE, &labels()).await;
    world.delete(NODE).await;
    world.closed(NODE, &labels()).await;
    restarted_with(&mut world, seals(&format!("{NEW_KEY}\n{KEY}\n"), false)).await;
    world.register(NODE, &pairs([])).await;
    world.labels_become(NODE, &labels()).await;
    is_sealed(&world, NEW_KEY).await;
}

#[tokio::test]
async fn what_waits_for_its_machine_to_be_known_is_sealed_too() {
    let mut world = World::without_keeper("").await;
    world.start_keeper().await;
    let all = pairs([("team", "blue"), ("node-role.kubernetes.io/db", "")]);
    world.register(NODE, &all).await;
    world.recorded(NODE, &all).await;
    world.delete(NODE).await;
    world.register(NODE, &pairs([])).await;
    let waits = |record: &Record| record.state == State::Open && !record.waiting.is_empty();
    world.record_becomes(NODE, "the role waits", waits).await;
    restarted_with(&mut world, seals(KEY, true)).await;
    is_sealed(&world, KEY).await;
    let record = world.record(NODE).await.unwrap();
    assert!(waits(&record), "{record:?}");
}
