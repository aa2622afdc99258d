//! pause, resume, forget: a person's word, on nodes that live and on nodes that are away.

use perennial_core::record::{SCHEMA, State};

use crate::world::{Labels, World, pairs};

const NODE: &str = "worker-1";

fn labels() -> Labels {
    pairs([("team", "blue")])
}

#[tokio::test]
async fn a_living_node_is_paused_and_resumed_and_the_keeper_listens() {
    let world = World::start().await;
    world.register(NODE, &labels()).await;
    world.recorded(NODE, &labels()).await;
    let person = world.person();
    assert_eq!(person.says("pause worker-1").await.good(), "node/worker-1 paused\n");
    assert_eq!(person.says("pause worker-1").await.good(), "node/worker-1 is paused already\n");
    world.record_becomes(NODE, "is paused", |record| record.paused).await;
    world.label(NODE, "team", Some("red")).await;
    world.caught_up().await;
    assert_eq!(world.record(NODE).await.unwrap().kept.labels, labels());
    assert_eq!(person.says("resume worker-1").await.good(), "node/worker-1 resumed\n");
    world.recorded(NODE, &pairs([("team", "red")])).await;
    assert_eq!(person.says("resume worker-1").await.good(), "node/worker-1 is not paused\n");
}

#[tokio::test]
async fn a_node_that_is_away_is_paused_in_its_record_and_gets_nothing_until_it_is_resumed() {
    let world = World::start().await;
    world.register(NODE, &labels()).await;
    world.recorded(NODE, &labels()).await;
    world.delete(NODE).await;
    let closed = world.closed(NODE, &labels()).await;
    let person = world.person();
    assert_eq!(person.says("pause worker-1").await.good(), "node/worker-1 paused (it is away)\n");
    let paused = world.record(NODE).await.unwrap();
    assert_eq!((paused.sequence, paused.paused, paused.state), (closed.sequence + 1, true, State::Closed));
    assert_eq!(person.says("resume worker-1").await.good(), "node/worker-1 resumed (it is away)\n");
    person.says("pause worker-1").await.good();

    world.register(NODE, &pairs([])).await;
    world.caught_up().await;
    assert_eq!(world.labels(NODE).await, pairs([]));
    let seen = person.says("nodes worker-1 --no-headers").await.good();
    assert!(seen.starts_with("worker-1   paused"), "{seen}");
    assert_eq!(person.says("resume worker-1").await.good(), "node/worker-1 resumed\n");
    world.labels_become(NODE, &labels()).await;
}

#[tokio::test]
async fn nodes_are_forgotten_after_a_question() {
    let world = World::start().await;
    for name in [NODE, "worker-2"] {
        world.register(name, &labels()).await;
        world.recorded(name, &labels()).await;
    }
    world.delete("worker-2").await;
    world.closed("worker-2", &labels()).await;
    let person = world.person();
    let told = person.says("forget worker-1 worker-2").await.bad();
    assert!(told.contains("nobody is there to ask"), "{told}");
    let told = person.answering("n").says("forget worker-1 worker-2").await.bad();
    assert!(told.contains("Forget worker-1, worker-2?") && told.contains("Nothing was changed."), "{told}");
    assert!(world.record("worker-2").await.is_some());
    let told = person.answering("y").says("forget worker-1 worker-2").await.good();
    assert!(told.contains("node/worker-2 forgotten (it is away)"), "{told}");
    assert!(world.config_map("worker-2").await.is_none());
    world.record_goes(NODE).await;
    let told = person.says("forget worker-1 --yes").await.good();
    assert_eq!(told, "node/worker-1 is to be forgotten already\n");
    world.register("worker-2", &pairs([])).await;
    world.caught_up().await;
    assert_eq!(world.labels("worker-2").await, pairs([]));
}

#[tokio::test]
async fn what_a_newer_version_wrote_is_changed_by_no_command() {
    let world = World::start().await;
    world.register(NODE, &labels()).await;
    world.recorded(NODE, &labels()).await;
    world.delete(NODE).await;
    let mut record = serde_json::json!(world.closed(NODE, &labels()).await);
    let person = world.hand();
    let backup = world.file("backup.jsonl");
    person.says(&format!("export -f {}", backup.display())).await.good();
    record["schema"] = (SCHEMA + 1).into();
    record["invention"] = "of the future".into();
    world.edit_record(NODE, &record.to_string()).await;
    let newer = world.config_map(NODE).await;

    for line in ["rollback worker-1 --to 1s --exact --yes", "pause worker-1", "forget worker-1 --yes"] {
        let told = person.says(line).await.bad();
        assert!(told.contains("newer") || told.contains("cannot be read"), "{line}: {told}");
    }
    let told = person.says(&format!("import {} --overwrite --yes", backup.display())).await.bad();
    assert!(told.contains("left alone: a newer perennial wrote its record"), "{told}");
    assert_eq!(world.config_map(NODE).await, newer);
}
