//! The mark says that an incarnation got its own back: given once, and never against a later hand.

use std::time::Duration;

use perennial_core::record::State;
use serde_json::json;

use crate::world::{MARK, World, pairs};

/// Longer than any test runs.
const NEVER: Duration = Duration::from_hours(1);

/// A world with a node that lost its labels and got them back. Its record is as given, or open already.
async fn restored(state: State) -> World {
    let mut world = World::without_keeper("").await;
    if state == State::Giving {
        world.configure(|config| config.open_after = NEVER);
    }
    world.start_keeper().await;
    let labels = pairs([("rack", "r1"), ("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;
    world.register("worker-1", &pairs([])).await;
    world.is_marked("worker-1").await;
    world.labels_become("worker-1", &labels).await;
    world.caught_up().await;
    world.record_becomes("worker-1", "is where it shall be", |record| record.state == state).await;
    world
}

#[tokio::test]
async fn a_label_removed_by_hand_after_the_restore_stays_removed() {
    let world = restored(State::Open).await;
    world.label("worker-1", "team", None).await;
    world.recorded("worker-1", &pairs([("rack", "r1")])).await;
    world.caught_up().await;
    assert_eq!(world.labels("worker-1").await, pairs([("rack", "r1")]));
}

#[tokio::test]
async fn a_mark_removed_by_hand_does_not_start_it_again() {
    let world = restored(State::Open).await;
    world.annotate("worker-1", MARK, None).await;
    world.label("worker-1", "team", None).await;

    world.recorded("worker-1", &pairs([("rack", "r1")])).await;
    world.caught_up().await;
    let node = world.node("worker-1").await.metadata;
    assert_eq!(node.labels.unwrap(), pairs([("rack", "r1")]));
    assert_eq!(node.annotations.unwrap_or_default().get(MARK), None, "nor is the mark set again");
}

#[tokio::test]
async fn a_mark_removed_by_hand_does_not_start_it_again_with_a_new_keeper() {
    let mut world = restored(State::Open).await;
    world.crash_keeper().await;
    world.annotate("worker-1", MARK, None).await;
    world.label("worker-1", "team", None).await;

    world.start_keeper().await;

    world.recorded("worker-1", &pairs([("rack", "r1")])).await;
    world.caught_up().await;
    assert_eq!(world.labels("worker-1").await, pairs([("rack", "r1")]));
}

#[tokio::test]
async fn a_mark_removed_by_hand_right_after_the_restore_does_not_start_it_again() {
    let world = restored(State::Giving).await;
    world.annotate("worker-1", MARK, None).await;
    world.label("worker-1", "team", None).await;

    let record = world.recorded("worker-1", &pairs([("rack", "r1")])).await;
    assert_eq!((record.state, record.given), (State::Open, true));
    world.caught_up().await;
    assert_eq!(world.labels("worker-1").await, pairs([("rack", "r1")]));
}

#[tokio::test]
async fn the_end_of_a_node_whose_mark_was_removed_by_hand_is_its_last_state() {
    let world = restored(State::Open).await;
    world
        .patch(
            "worker-1",
            json!({ "metadata": { "annotations": { MARK: null }, "labels": { "team": null } } }),
        )
        .await;
    world.delete("worker-1").await;
    world.closed("worker-1", &pairs([("rack", "r1")])).await;
}

#[tokio::test]
async fn a_mark_copied_onto_another_incarnation_does_not_count() {
    let world = World::start().await;
    let labels = pairs([("team", "blue")]);
    let first = world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;

    // As a backup tool would bring it back: with the annotations of a former life.
    let copied = first.metadata.uid.unwrap();
    let metadata = json!({ "name": "worker-1", "annotations": { MARK: copied } });
    world.create(json!({ "metadata": metadata })).await;

    world.labels_become("worker-1", &labels).await;
    world.is_marked("worker-1").await;
}

#[tokio::test]
async fn the_mark_of_a_restored_life_does_not_count_for_the_next() {
    let world = restored(State::Open).await;
    let mark = world.node("worker-1").await.metadata.annotations.unwrap().remove(MARK).unwrap();
    world.delete("worker-1").await;
    world.create(json!({ "metadata": { "name": "worker-1", "annotations": { MARK: mark } } })).await;
    world.labels_become("worker-1", &pairs([("rack", "r1"), ("team", "blue")])).await;
    world.is_marked("worker-1").await;
}

#[tokio::test]
async fn another_installations_mark_does_not_count() {
    let world = World::start().await;
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;
    world.refuse_record_writes().await;
    let node = world.register("worker-1", &pairs([])).await;
    let uid = node.metadata.uid.unwrap();
    world.annotate("worker-1", "restored.perennial.dev/elsewhere", Some(&uid)).await;
    world.allow_record_writes().await;
    world.labels_become("worker-1", &labels).await;
}
