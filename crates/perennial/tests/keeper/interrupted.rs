//! The keeper dies between the record's giving and the Node's patch, or right after it.

use std::time::Duration;

use perennial_core::record::{Record, State};

use crate::world::{World, pairs};

/// Longer than any test runs.
const NEVER: Duration = Duration::from_hours(1);

/// A node that bore two labels is back and bare, its record says giving, and the keeper died before it could
/// patch the Node.
async fn killed_before_the_patch() -> (World, Record) {
    let mut world = World::start().await;
    let labels = pairs([("rack", "r1"), ("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.refuse_node_patches("worker-1").await;
    world.delete("worker-1").await;
    let newborn = world.register("worker-1", &pairs([])).await;
    let giving = world.record_becomes("worker-1", "is giving", |record| record.state == State::Giving).await;
    world.metric_reaches("errors_total{kind=\"invalid\"}", 1.0).await;
    world.crash_keeper().await;
    assert_eq!(giving.incarnation.uid.to_string(), newborn.metadata.uid.unwrap());
    assert_eq!(world.labels("worker-1").await, pairs([]));
    world.allow_node_patches("worker-1").await;
    (world, giving)
}

#[tokio::test]
async fn a_kill_between_the_records_giving_and_the_nodes_patch_loses_nothing() {
    let (mut world, giving) = killed_before_the_patch().await;

    world.start_keeper().await;

    world.labels_become("worker-1", &pairs([("rack", "r1"), ("team", "blue")])).await;
    let open = world.record_becomes("worker-1", "is open", |record| record.state == State::Open).await;
    assert_eq!(open.sequence, giving.sequence + 1, "what was given once is not given anew");
    assert!(open.given);
}

#[tokio::test]
async fn what_a_hand_set_between_giving_and_patch_stands() {
    let (mut world, _) = killed_before_the_patch().await;
    world.label("worker-1", "team", Some("green")).await;

    world.start_keeper().await;

    world.labels_become("worker-1", &pairs([("rack", "r1"), ("team", "green")])).await;
    let open = world.record_becomes("worker-1", "is open", |record| record.state == State::Open).await;
    assert_eq!(open.kept.labels, pairs([("rack", "r1"), ("team", "green")]));
}

#[tokio::test]
async fn a_newborn_that_dies_between_giving_and_patch_leaves_everything_to_the_next() {
    let (mut world, _) = killed_before_the_patch().await;
    world.label("worker-1", "own", Some("yes")).await;
    world.delete("worker-1").await;
    world.register("worker-1", &pairs([])).await;

    world.start_keeper().await;

    world.labels_become("worker-1", &pairs([("own", "yes"), ("rack", "r1"), ("team", "blue")])).await;
}

#[tokio::test]
async fn a_newborn_that_dies_between_giving_and_patch_is_closed_with_everything() {
    let (mut world, giving) = killed_before_the_patch().await;
    world.delete("worker-1").await;

    world.start_keeper().await;

    let closed = world.closed("worker-1", &pairs([("rack", "r1"), ("team", "blue")])).await;
    assert_eq!(closed.incarnation.uid, giving.incarnation.uid);
}

#[tokio::test]
async fn a_label_removed_after_the_patch_is_not_given_again_though_the_keeper_died_before_it_knew() {
    let mut world = World::without_keeper("").await;
    world.configure(|config| config.open_after = NEVER);
    world.start_keeper().await;
    let labels = pairs([("rack", "r1"), ("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;
    world.register("worker-1", &pairs([])).await;
    world.is_marked("worker-1").await;
    world.crash_keeper().await;
    assert_eq!(world.record("worker-1").await.unwrap().state, State::Giving);
    world.label("worker-1", "team", None).await;

    world.start_keeper().await;

    let record = world.recorded("worker-1", &pairs([("rack", "r1")])).await;
    assert_eq!((record.state, record.given), (State::Open, true));
    world.caught_up().await;
    assert_eq!(world.labels("worker-1").await, pairs([("rack", "r1")]));
}

#[tokio::test]
async fn the_end_of_a_marked_newborn_counts_though_its_record_still_says_giving() {
    let mut world = World::without_keeper("").await;
    world.configure(|config| config.open_after = NEVER);
    world.start_keeper().await;
    let labels = pairs([("rack", "r1"), ("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;
    world.register("worker-1", &pairs([])).await;
    world.is_marked("worker-1").await;
    world.crash_keeper().await;
    assert_eq!(world.record("worker-1").await.unwrap().state, State::Giving);
    world.label("worker-1", "team", None).await;
    world.delete("worker-1").await;

    world.start_keeper().await;

    world.closed("worker-1", &pairs([("rack", "r1")])).await;
}
