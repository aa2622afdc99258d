//! What happened while no keeper ran is proved from etcd's history, or given with the doubt told.

use std::time::Duration;

use perennial_core::record::{State, Unproved};

use crate::world::{World, pairs};

/// Longer than any test runs.
const NEVER: Duration = Duration::from_hours(1);

/// A node whose record says blue. Then the keeper dies, and the node turns green. Returns the node's uid.
async fn changed_unseen() -> (World, String) {
    let mut world = World::start().await;
    let node = world.register("worker-1", &pairs([("team", "blue")])).await;
    world.recorded("worker-1", &pairs([("team", "blue")])).await;
    world.crash_keeper().await;
    world.label("worker-1", "team", Some("green")).await;
    (world, node.metadata.uid.unwrap())
}

/// Cuts history off right now.
async fn compact(world: &World) {
    let now = world.plane.revision().await.unwrap();
    world.plane.compact(now).await.unwrap();
}

#[tokio::test]
async fn changes_on_a_living_node_while_the_keeper_is_down_are_recorded_at_its_start() {
    let (mut world, _) = changed_unseen().await;
    world.start_keeper().await;
    let record = world.recorded("worker-1", &pairs([("team", "green")])).await;
    assert_eq!((record.state, record.sequence), (State::Open, 2));
}

#[tokio::test]
async fn a_node_changed_deleted_and_reborn_while_the_keeper_is_down_gets_its_last_state() {
    let (mut world, _) = changed_unseen().await;
    world.delete("worker-1").await;
    world.register("worker-1", &pairs([])).await;

    world.configure(|config| config.open_after = NEVER);
    world.start_keeper().await;

    world.labels_become("worker-1", &pairs([("team", "green")])).await;
    world.metric_reaches("proofs_total{kind=\"proved\"}", 1.0).await;
    let record = world.record("worker-1").await.unwrap();
    assert_eq!((record.state, record.unproved), (State::Giving, None));
}

#[tokio::test]
async fn a_node_changed_and_deleted_while_the_keeper_is_down_is_closed_with_its_last_state() {
    let (mut world, uid) = changed_unseen().await;
    let last = world.node("worker-1").await.metadata.resource_version.unwrap().parse::<u64>().unwrap();
    world.delete("worker-1").await;
    let deleted = world.plane.revision().await.unwrap();

    world.start_keeper().await;

    let record = world.closed("worker-1", &pairs([("team", "green")])).await;
    assert_eq!(record.incarnation.uid.to_string(), uid);
    assert!(record.version > last && record.version <= deleted, "{} in {last}..={deleted}", record.version);
    assert_eq!(record.unproved, None);
    world.register("worker-1", &pairs([])).await;
    world.labels_become("worker-1", &pairs([("team", "green")])).await;
}

#[tokio::test]
async fn a_label_removed_before_an_unseen_deletion_does_not_come_back() {
    let mut world = World::start().await;
    world.register("worker-1", &pairs([("rack", "r1"), ("team", "blue")])).await;
    world.recorded("worker-1", &pairs([("rack", "r1"), ("team", "blue")])).await;
    world.crash_keeper().await;
    world.label("worker-1", "team", None).await;
    world.delete("worker-1").await;
    world.register("worker-1", &pairs([])).await;

    world.start_keeper().await;

    world.is_marked("worker-1").await;
    assert_eq!(world.labels("worker-1").await, pairs([("rack", "r1")]));
}

#[tokio::test]
async fn a_newborn_that_lived_and_died_while_the_keeper_is_down_takes_nothing_along() {
    let (mut world, _) = changed_unseen().await;
    for _ in 0..3 {
        world.delete("worker-1").await;
        world.register("worker-1", &pairs([])).await;
    }
    world.start_keeper().await;
    world.labels_become("worker-1", &pairs([("team", "green")])).await;
}

#[tokio::test]
async fn a_value_that_goes_from_a_to_b_to_a_while_the_keeper_is_down_costs_nothing() {
    let (mut world, _) = changed_unseen().await;
    let before = world.record("worker-1").await.unwrap();
    world.label("worker-1", "team", Some("blue")).await;
    world.start_keeper().await;
    world.caught_up().await;
    assert_eq!(world.record("worker-1").await, Some(before));
}

#[tokio::test]
async fn a_value_that_went_back_unseen_before_the_deletion_is_given_as_it_was_at_the_last() {
    let mut world = World::start().await;
    world.register("worker-1", &pairs([("value", "a")])).await;
    world.recorded("worker-1", &pairs([("value", "a")])).await;
    world.label("worker-1", "value", Some("b")).await;
    world.recorded("worker-1", &pairs([("value", "b")])).await;
    world.crash_keeper().await;
    world.label("worker-1", "value", Some("a")).await;
    world.delete("worker-1").await;
    world.register("worker-1", &pairs([])).await;

    world.start_keeper().await;

    world.is_marked("worker-1").await;
    assert_eq!(world.labels("worker-1").await, pairs([("value", "a")]));
    world.metric_reaches("churn_total", 1.0).await;
}

#[tokio::test]
async fn an_end_older_than_history_is_given_as_it_was_recorded_and_the_doubt_is_told() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let (mut world, uid) = changed_unseen().await;
    world.delete("worker-1").await;
    world.register("worker-1", &pairs([])).await;
    compact(&world).await;

    world.configure(|config| config.open_after = NEVER);
    world.start_keeper().await;

    world.labels_become("worker-1", &pairs([("team", "blue")])).await;
    let record = world.record("worker-1").await.unwrap();
    assert_eq!(record.state, State::Giving);
    assert_eq!(record.unproved, Some(Unproved::new(uid.parse().unwrap(), State::Open)));
    world.event("worker-1", "EndUnproved").await;
    world.metric_reaches("notices_total{kind=\"EndUnproved\"}", 1.0).await;
    world.metric_reaches("proofs_total{kind=\"lost\"}", 1.0).await;
}

#[tokio::test]
async fn an_absent_node_whose_end_is_older_than_history_is_closed_as_it_was_recorded_and_the_doubt_is_told() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let (mut world, uid) = changed_unseen().await;
    world.delete("worker-1").await;
    compact(&world).await;

    world.start_keeper().await;

    let record = world.closed("worker-1", &pairs([("team", "blue")])).await;
    assert_eq!(record.unproved, Some(Unproved::new(uid.parse().unwrap(), State::Open)));
    world.event("worker-1", "EndUnproved").await;
    world.metric_reaches("notices_total{kind=\"EndUnproved\"}", 1.0).await;

    world.register("worker-1", &pairs([])).await;
    world.labels_become("worker-1", &pairs([("team", "blue")])).await;
    let open = world.record_becomes("worker-1", "is open", |record| record.state == State::Open).await;
    assert_eq!(open.unproved, None, "the node is the authority again");
}

#[tokio::test]
async fn an_end_within_what_a_compaction_left_is_proved() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let (mut world, _) = changed_unseen().await;
    compact(&world).await;
    world.delete("worker-1").await;
    world.register("worker-1", &pairs([])).await;

    world.start_keeper().await;

    world.labels_become("worker-1", &pairs([("team", "green")])).await;
    world.metric_reaches("proofs_total{kind=\"proved\"}", 1.0).await;
}
