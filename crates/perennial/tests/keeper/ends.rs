//! The last word of a life is never lost, however quickly lives follow each other.

use std::time::Duration;

use futures::future::join_all;
use kube::api::{DeleteParams, Patch, PatchParams};
use perennial_core::record::State;
use serde_json::json;

use crate::world::{Labels, World, pairs};

/// Longer than any test runs.
const NEVER: Duration = Duration::from_hours(1);

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}-{number}")).collect()
}

#[tokio::test]
async fn a_label_changed_right_before_the_deletion_comes_back() {
    let world = World::start().await;
    join_all(names("worker", 10).iter().map(async |name| {
        world.register(name, &pairs([("value", "first")])).await;
        for round in 0..10 {
            let value = format!("{round}");
            world.label(name, "value", Some(&value)).await;
            world.delete(name).await;
            world.register(name, &pairs([])).await;
            world.labels_become(name, &pairs([("value", &value)])).await;
        }
    }))
    .await;
}

#[tokio::test]
async fn a_label_changed_in_the_very_moment_of_the_deletion_comes_back() {
    let world = World::start().await;
    join_all(names("worker", 10).iter().map(async |name| {
        let mut last = "first".to_owned();
        world.register(name, &pairs([("value", &last)])).await;
        for round in 0..10 {
            let value = format!("{round}");
            let patch = Patch::Merge(json!({ "metadata": { "labels": { "value": value } } }));
            let (params, nodes) = (PatchParams::default(), world.nodes());
            let gone = DeleteParams::default();
            let (changed, deleted) =
                tokio::join!(nodes.patch(name, &params, &patch), nodes.delete(name, &gone));
            deleted.unwrap();
            // Whether the change came first is up to the API server, and its answer tells.
            if changed.is_ok() {
                last = value;
            }
            world.register(name, &pairs([])).await;
            world.labels_become(name, &pairs([("value", &last)])).await;
        }
    }))
    .await;
}

#[tokio::test]
async fn every_life_counts_when_a_node_comes_and_goes_faster_than_the_keeper_can_follow() {
    let world = World::start().await;
    let mut all = pairs([("team", "blue")]);
    world.register("worker-1", &all).await;
    world.recorded("worker-1", &all).await;
    for life in 0..20 {
        world.delete("worker-1").await;
        let key = format!("life-{life}");
        world.register("worker-1", &pairs([(&key, "lived")])).await;
        all.insert(key, "lived".to_owned());
    }
    world.labels_become("worker-1", &all).await;
}

#[tokio::test]
async fn every_life_counts_that_passes_while_no_record_can_be_written() {
    let world = World::start().await;
    let mut all = pairs([("team", "blue")]);
    world.register("worker-1", &all).await;
    let before = world.recorded("worker-1", &all).await;
    world.refuse_record_writes().await;
    for life in 0..5 {
        world.delete("worker-1").await;
        let key = format!("life-{life}");
        world.register("worker-1", &pairs([(&key, "lived")])).await;
        all.insert(key, "lived".to_owned());
    }
    assert_eq!(world.record("worker-1").await, Some(before));

    world.allow_record_writes().await;

    world.labels_become("worker-1", &all).await;
}

#[tokio::test]
async fn a_life_that_no_record_ever_named_counts_if_the_keeper_saw_its_end() {
    let world = World::start().await;
    world.refuse_record_writes().await;
    world.register("worker-1", &pairs([("team", "blue")])).await;
    world.delete("worker-1").await;
    world.register("worker-1", &pairs([])).await;

    world.allow_record_writes().await;

    world.labels_become("worker-1", &pairs([("team", "blue")])).await;
}

#[tokio::test]
async fn bare_newborns_that_die_at_once_leave_the_record_whole() {
    let world = World::start().await;
    let labels = pairs([("rack", "r1"), ("team", "blue")]);
    join_all(names("worker", 20).iter().map(async |name| {
        world.register(name, &labels).await;
        world.recorded(name, &labels).await;
        for _ in 0..3 {
            world.delete(name).await;
            world.register(name, &pairs([])).await;
        }
        world.labels_become(name, &labels).await;
    }))
    .await;
}

#[tokio::test]
async fn a_bare_newborn_that_dies_before_it_is_restored_leaves_the_record_whole() {
    let mut world = World::without_keeper("").await;
    world.configure(|config| config.restore = false);
    world.start_keeper().await;
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;
    let newborn = world.register("worker-1", &pairs([])).await;
    world.closed("worker-1", &labels).await;

    world.delete("worker-1").await;

    let uid = newborn.metadata.uid.unwrap();
    let record = world
        .record_becomes("worker-1", "names the newborn", |record| record.incarnation.uid.to_string() == uid)
        .await;
    assert_eq!((record.state, record.kept.labels), (State::Closed, labels.clone()));
    world.stop_keeper().await;
    world.configure(|config| config.restore = true);
    world.start_keeper().await;
    world.register("worker-1", &pairs([])).await;
    world.labels_become("worker-1", &labels).await;
}

#[tokio::test]
async fn what_a_newborn_bore_when_it_died_before_it_was_restored_is_added_to_the_record() {
    let mut world = World::without_keeper("").await;
    world.configure(|config| config.restore = false);
    world.start_keeper().await;
    world.register("worker-1", &pairs([("rack", "r1"), ("team", "blue")])).await;
    world.recorded("worker-1", &pairs([("rack", "r1"), ("team", "blue")])).await;
    world.delete("worker-1").await;
    world.register("worker-1", &pairs([("own", "yes"), ("team", "green")])).await;

    world.delete("worker-1").await;

    // As a restore would have left it: the newborn's own value stands.
    let merged = pairs([("own", "yes"), ("rack", "r1"), ("team", "green")]);
    world.closed("worker-1", &merged).await;
    world.stop_keeper().await;
    world.configure(|config| config.restore = true);
    world.start_keeper().await;
    world.register("worker-1", &pairs([])).await;
    world.labels_become("worker-1", &merged).await;
}

#[tokio::test]
async fn a_keeper_that_is_stopped_records_the_ends_it_holds() {
    let mut world = World::without_keeper("").await;
    world.configure(|config| config.close_after = NEVER);
    world.start_keeper().await;
    let nodes = names("worker", 10);
    for name in &nodes {
        world.register(name, &pairs([("node", name)])).await;
        world.recorded(name, &pairs([("node", name)])).await;
    }
    let mut ends: Vec<Labels> = Vec::new();
    for name in &nodes {
        world.label(name, "last", Some("word")).await;
        world.delete(name).await;
        ends.push(pairs([("last", "word"), ("node", name)]));
    }
    world.caught_up().await;
    for name in &nodes {
        assert_eq!(world.record(name).await.unwrap().state, State::Open, "its end waits for a quick return");
    }

    world.stop_keeper().await;

    for (name, end) in nodes.iter().zip(ends) {
        let record = world.record(name).await.unwrap();
        assert_eq!((record.state, record.kept.labels, record.unproved), (State::Closed, end, None));
    }
}
