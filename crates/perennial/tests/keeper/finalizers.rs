//! Nodes that are being deleted and wait for somebody's finalizer: saved until the end, never given to.

use perennial_core::record::State;
use serde_json::json;

use crate::world::{Labels, MARK, World, pairs};

const FINALIZER: &str = "example.com/drain-storage";

/// Registers a node whose deletion has to wait.
async fn register_held(world: &World, name: &str, labels: &Labels) {
    let metadata = json!({ "name": name, "labels": labels, "finalizers": [FINALIZER] });
    world.create(json!({ "metadata": metadata })).await;
}

/// Lets go of a node: it vanishes.
async fn release(world: &World, name: &str) {
    world.patch(name, json!({ "metadata": { "finalizers": null } })).await;
}

#[tokio::test]
async fn a_terminating_node_is_saved_until_its_end() {
    let world = World::start().await;
    register_held(&world, "worker-1", &pairs([("rack", "r1"), ("team", "blue")])).await;
    world.recorded("worker-1", &pairs([("rack", "r1"), ("team", "blue")])).await;
    world.delete("worker-1").await;
    assert!(world.node("worker-1").await.metadata.deletion_timestamp.is_some());

    world.label("worker-1", "team", Some("green")).await;
    world.label("worker-1", "rack", None).await;
    let record = world.recorded("worker-1", &pairs([("team", "green")])).await;
    assert_eq!(record.state, State::Open, "it still lives");

    world.label("worker-1", "last", Some("word")).await;
    release(&world, "worker-1").await;
    world.closed("worker-1", &pairs([("last", "word"), ("team", "green")])).await;
    world.register("worker-1", &pairs([])).await;
    world.labels_become("worker-1", &pairs([("last", "word"), ("team", "green")])).await;
}

#[tokio::test]
async fn a_terminating_newborn_is_never_given_to_and_its_own_is_added() {
    let mut world = World::start().await;
    world.register("worker-1", &pairs([("team", "blue")])).await;
    world.recorded("worker-1", &pairs([("team", "blue")])).await;
    world.crash_keeper().await;
    world.delete("worker-1").await;
    register_held(&world, "worker-1", &pairs([("own", "yes")])).await;
    world.delete("worker-1").await;

    world.start_keeper().await;
    world.label("worker-1", "late", Some("yes")).await;
    world.caught_up_but(1).await;

    let node = world.node("worker-1").await.metadata;
    assert_eq!(node.labels.unwrap(), pairs([("late", "yes"), ("own", "yes")]));
    assert_eq!(node.annotations.unwrap_or_default().get(MARK), None);

    release(&world, "worker-1").await;
    let all = pairs([("late", "yes"), ("own", "yes"), ("team", "blue")]);
    world.closed("worker-1", &all).await;
    world.register("worker-1", &pairs([])).await;
    world.labels_become("worker-1", &all).await;
}

#[tokio::test]
async fn a_newborn_that_began_to_terminate_is_not_patched_though_its_record_says_giving() {
    let mut world = World::start().await;
    world.register("worker-1", &pairs([("team", "blue")])).await;
    world.recorded("worker-1", &pairs([("team", "blue")])).await;
    world.refuse_node_patches("worker-1").await;
    world.delete("worker-1").await;
    register_held(&world, "worker-1", &pairs([("own", "yes")])).await;
    world.record_becomes("worker-1", "is giving", |record| record.state == State::Giving).await;
    world.crash_keeper().await;
    world.delete("worker-1").await;
    world.allow_node_patches("worker-1").await;

    world.start_keeper().await;
    world.caught_up_but(1).await;
    assert_eq!(world.labels("worker-1").await, pairs([("own", "yes")]));

    release(&world, "worker-1").await;
    world.closed("worker-1", &pairs([("own", "yes"), ("team", "blue")])).await;
    world.register("worker-1", &pairs([])).await;
    world.labels_become("worker-1", &pairs([("own", "yes"), ("team", "blue")])).await;
}
