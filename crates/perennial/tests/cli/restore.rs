//! restore: what a node is owed, given at a person's word.

use perennial_core::record::State;
use serde_json::json;

use crate::person::compare;
use crate::world::{Labels, World, pairs};

const NODE: &str = "worker-1";

fn labels() -> Labels {
    pairs([("team", "blue"), ("pool", "web")])
}

/// A node that is back while nobody gives anything back.
async fn owed() -> World {
    let mut world = World::without_keeper("").await;
    world.configure(|config| config.restore = false);
    world.start_keeper().await;
    world.register(NODE, &labels()).await;
    world.recorded(NODE, &labels()).await;
    world.delete(NODE).await;
    world.closed(NODE, &labels()).await;
    world
}

#[tokio::test]
async fn a_node_gets_its_own_where_replicas_do_not_give() {
    let world = owed().await;
    let person = world.hand();
    let told = person.says("restore worker-1").await.bad();
    assert!(told.contains("is away"), "{told}");
    world.register(NODE, &pairs([("pool", "other")])).await;
    compare("restore-dry-run", &person.says("restore worker-1 --dry-run").await.all());
    assert_eq!(world.labels(NODE).await, pairs([("pool", "other")]));
    assert_eq!(world.record(NODE).await.unwrap().state, State::Closed);
    compare("restore", &person.says("restore worker-1").await.all());
    let back = pairs([("team", "blue"), ("pool", "other")]);
    assert_eq!(world.labels(NODE).await, back);
    world.is_marked(NODE).await;
    world.record_becomes(NODE, "is open again", |record| record.state == State::Open).await;
    world.recorded(NODE, &back).await;
    let told = person.says("restore worker-1").await.good();
    assert!(told.contains("lacks nothing that is recorded"), "{told}");
}

#[tokio::test]
async fn a_paused_node_gets_its_own_and_stays_paused() {
    let mut world = World::start().await;
    world.register(NODE, &labels()).await;
    world.recorded(NODE, &labels()).await;
    world.delete(NODE).await;
    world.closed(NODE, &labels()).await;
    let person = world.hand();
    person.says("pause worker-1").await.good();
    world.register(NODE, &pairs([])).await;
    world.caught_up().await;
    assert_eq!(world.labels(NODE).await, pairs([]));
    person.says("restore worker-1").await.good();
    assert_eq!(world.labels(NODE).await, labels());
    let annotations = world.is_marked(NODE).await.metadata.annotations.unwrap();
    assert_eq!(annotations.get("perennial.dev/pause").map(String::as_str), Some("true"));
    world.label(NODE, "team", Some("red")).await;
    world.caught_up().await;
    assert_eq!(world.record(NODE).await.unwrap().kept.labels, labels());
    world.stop_keeper().await;
}

#[tokio::test]
async fn an_end_that_nobody_saw_is_proved_before_anything_is_given() {
    let mut world = World::start().await;
    world.register(NODE, &labels()).await;
    world.recorded(NODE, &labels()).await;
    world.crash_keeper().await;
    world.label(NODE, "team", Some("red")).await;
    world.delete(NODE).await;
    world.register(NODE, &pairs([])).await;
    let person = world.hand();
    person.says("restore worker-1").await.good();
    assert_eq!(world.labels(NODE).await, pairs([("team", "red"), ("pool", "web")]));
    let record = world.record(NODE).await.unwrap();
    assert_eq!(record.state, State::Giving);
    assert_eq!(record.kept.labels["team"], "red");
}

#[tokio::test]
async fn what_was_taken_from_a_living_node_while_nobody_watched_comes_back() {
    let mut world = World::start().await;
    world.register(NODE, &labels()).await;
    world.recorded(NODE, &labels()).await;
    world.stop_keeper().await;
    world.patch(NODE, json!({ "metadata": { "labels": { "team": null, "pool": "other" } } })).await;
    let person = world.hand();
    compare("restore-living", &person.says("restore worker-1").await.all());
    assert_eq!(world.labels(NODE).await, pairs([("team", "blue"), ("pool", "other")]));
}

#[tokio::test]
async fn another_machine_of_the_same_name_gets_nothing_where_machines_are_told_apart() {
    let policy = "rules: [{ identity: provider }]";
    let mut world = World::without_keeper(policy).await;
    world.start_keeper().await;
    let node = |machine: &str, labels: &Labels| json!({ "metadata": { "name": NODE, "labels": labels }, "spec": { "providerID": machine } });
    world.create(node("test:///a", &labels())).await;
    world.recorded(NODE, &labels()).await;
    world.delete(NODE).await;
    world.closed(NODE, &labels()).await;
    world.stop_keeper().await;
    world.create(node("test:///b", &pairs([]))).await;
    let file = world.file("policy.yaml");
    std::fs::write(&file, policy).unwrap();
    let told = world.person().says(&format!("restore worker-1 --policy {}", file.display())).await.bad();
    assert!(told.contains("another machine bears its name"), "{told}");
    assert_eq!(world.labels(NODE).await, pairs([]));
    assert_eq!(world.record(NODE).await.unwrap().state, State::Closed);
}
