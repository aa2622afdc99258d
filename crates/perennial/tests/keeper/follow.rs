//! The record follows the living node.

use perennial_core::record::{Record, State};

use crate::world::{Labels, World, pairs};

/// The earlier states that a record remembers, newest first.
fn previous(record: &Record) -> Vec<Labels> {
    record.previous.iter().map(|previous| previous.kept.labels.clone()).collect()
}

#[tokio::test]
async fn a_changed_value_is_recorded() {
    let world = World::start().await;
    let before = pairs([("rack", "r1"), ("team", "blue")]);
    world.register("worker-1", &before).await;
    world.recorded("worker-1", &before).await;

    let node = world.label("worker-1", "team", Some("green")).await;

    let record = world.recorded("worker-1", &pairs([("rack", "r1"), ("team", "green")])).await;
    assert_eq!(record.state, State::Open);
    assert_eq!(record.version.to_string(), node.metadata.resource_version.unwrap());
    assert_eq!(record.sequence, 2);
    assert_eq!(previous(&record), [before]);
}

#[tokio::test]
async fn the_api_server_keeps_no_books_of_a_record_that_was_written_again() {
    let world = World::start().await;
    world.register("worker-1", &pairs([("team", "blue")])).await;
    world.recorded("worker-1", &pairs([("team", "blue")])).await;
    world.label("worker-1", "team", Some("green")).await;
    world.recorded("worker-1", &pairs([("team", "green")])).await;
    assert_eq!(world.config_map("worker-1").await.unwrap().metadata.managed_fields, None);
}

#[tokio::test]
async fn an_added_label_is_recorded() {
    let world = World::start().await;
    world.register("worker-1", &pairs([("team", "blue")])).await;
    world.recorded("worker-1", &pairs([("team", "blue")])).await;

    world.label("worker-1", "rack", Some("r1")).await;

    let record = world.recorded("worker-1", &pairs([("rack", "r1"), ("team", "blue")])).await;
    assert_eq!((record.state, record.sequence), (State::Open, 2));
}

#[tokio::test]
async fn a_label_removed_from_the_living_node_leaves_its_record_and_does_not_come_back() {
    let world = World::start().await;
    world.register("worker-1", &pairs([("rack", "r1"), ("team", "blue")])).await;
    world.recorded("worker-1", &pairs([("rack", "r1"), ("team", "blue")])).await;

    world.label("worker-1", "team", None).await;
    world.recorded("worker-1", &pairs([("rack", "r1")])).await;

    world.delete("worker-1").await;
    world.register("worker-1", &pairs([])).await;
    world.is_marked("worker-1").await;
    assert_eq!(world.labels("worker-1").await, pairs([("rack", "r1")]));
}

#[tokio::test]
async fn the_first_label_of_a_bare_node_is_recorded() {
    let world = World::start().await;
    world.register("worker-1", &pairs([])).await;
    world.caught_up().await;
    assert_eq!(world.config_map("worker-1").await, None);

    world.label("worker-1", "team", Some("blue")).await;

    let record = world.recorded("worker-1", &pairs([("team", "blue")])).await;
    assert_eq!((record.state, record.sequence), (State::Open, 1));
}

#[tokio::test]
async fn a_node_whose_last_kept_label_is_removed_has_an_empty_record() {
    let world = World::start().await;
    world.register("worker-1", &pairs([("team", "blue")])).await;
    world.recorded("worker-1", &pairs([("team", "blue")])).await;

    world.label("worker-1", "team", None).await;

    let record = world.recorded("worker-1", &pairs([])).await;
    assert!(record.is_empty());
    assert_eq!(record.state, State::Open);
    assert_eq!(previous(&record), [pairs([("team", "blue")])]);
}

#[tokio::test]
async fn an_empty_record_is_deleted_after_its_time_and_not_before() {
    let world = World::with_policy("retention: 1s").await;
    for name in ["worker-1", "worker-2"] {
        world.register(name, &pairs([("team", "blue")])).await;
        world.recorded(name, &pairs([("team", "blue")])).await;
    }
    world.label("worker-1", "team", None).await;
    let empty = world.recorded("worker-1", &pairs([])).await;

    // Another record goes, so the collector has passed. It left this one: its hour is not over.
    world.delete("worker-2").await;
    world.record_goes("worker-2").await;
    world.caught_up().await;
    assert_eq!(world.record("worker-1").await, Some(empty));

    world.change_policy("emptyRetention: 1s");
    world.record_goes("worker-1").await;
    world.metric_reaches("erases_total{kind=\"empty\"}", 1.0).await;
    world.caught_up().await;
    assert_eq!(world.config_map("worker-1").await, None, "nothing is kept, so nothing is recorded anew");
    assert_eq!(world.labels("worker-1").await, pairs([]));
}

#[tokio::test]
async fn a_node_that_dies_with_an_empty_record_is_forgotten_after_its_time() {
    let world = World::with_policy("emptyRetention: 1s").await;
    world.register("worker-1", &pairs([("team", "blue")])).await;
    world.recorded("worker-1", &pairs([("team", "blue")])).await;

    world.label("worker-1", "team", None).await;
    world.delete("worker-1").await;

    world.record_goes("worker-1").await;
    world.register("worker-1", &pairs([])).await;
    world.caught_up().await;
    assert_eq!(world.labels("worker-1").await, pairs([]));
    assert_eq!(world.config_map("worker-1").await, None);
}

#[tokio::test]
async fn a_value_that_goes_from_a_to_b_to_a_is_recorded_each_time_and_counted_as_churn() {
    let world = World::start().await;
    let [a, b] = ["a", "b"].map(|value| pairs([("value", value)]));
    world.register("worker-1", &a).await;
    world.recorded("worker-1", &a).await;
    world.label("worker-1", "value", Some("b")).await;
    world.recorded("worker-1", &b).await;
    world.caught_up().await;
    assert_eq!(world.metric("churn_total").to_string(), "0", "a new value is no churn");

    world.label("worker-1", "value", Some("a")).await;

    let record = world.recorded("worker-1", &a).await;
    assert_eq!(record.sequence, 3);
    assert_eq!(previous(&record), [b, a]);
    world.metric_reaches("churn_total", 1.0).await;
}

#[tokio::test]
async fn a_value_that_goes_from_a_to_b_to_a_is_given_back_as_a() {
    let world = World::start().await;
    let [a, b] = ["a", "b"].map(|value| pairs([("value", value)]));
    world.register("worker-1", &a).await;
    world.recorded("worker-1", &a).await;
    world.label("worker-1", "value", Some("b")).await;
    world.recorded("worker-1", &b).await;

    world.label("worker-1", "value", Some("a")).await;
    world.delete("worker-1").await;
    world.register("worker-1", &pairs([])).await;

    world.is_marked("worker-1").await;
    assert_eq!(world.labels("worker-1").await, a);
}
