//! Nothing is written that need not be.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use perennial_core::record::State;
use serde_json::json;

use crate::world::{World, pairs};

/// Longer than any test runs.
const NEVER: Duration = Duration::from_hours(1);

#[tokio::test]
async fn fast_heartbeats_cause_no_request_at_all() {
    let world = World::start().await;
    let node = world.register("worker-1", &pairs([("team", "blue")])).await;
    world.recorded("worker-1", &pairs([("team", "blue")])).await;
    world.caught_up().await;
    let about = async || {
        let requests = world.keeper_requests().await.into_iter();
        requests.filter(|entry| entry.uri.contains("worker-1") || entry.name.contains("worker-1")).count()
    };
    let before = about().await;

    for beat in 0..300 {
        let time = format!("2026-01-01T{:02}:{:02}:00Z", beat / 60, beat % 60);
        let ready = json!({ "type": "Ready", "status": "True", "lastHeartbeatTime": time });
        let patch = Patch::Strategic(json!({ "status": { "conditions": [ready] } }));
        world.nodes().patch_status("worker-1", &PatchParams::default(), &patch).await.unwrap();
    }
    world.caught_up().await;

    let version = |text: Option<String>| text.unwrap().parse::<u64>().unwrap();
    let now = version(world.node("worker-1").await.metadata.resource_version);
    assert!(now >= version(node.metadata.resource_version) + 300, "every heartbeat was a change");
    assert_eq!(about().await, before);
    assert_eq!(world.keeper_writes().await, ["create configmaps node-record.worker-1"]);
}

#[tokio::test]
async fn nothing_is_written_when_nothing_kept_changes() {
    let world = World::start().await;
    world.register("worker-1", &pairs([("team", "blue")])).await;
    let record = world.recorded("worker-1", &pairs([("team", "blue")])).await;

    world.label("worker-1", "node.kubernetes.io/instance-type", Some("m7.large")).await;
    world.label("worker-1", "topology.kubernetes.io/zone", Some("b")).await;
    world.annotate("worker-1", "example.com/note", Some("hello")).await;
    world.patch("worker-1", json!({ "spec": { "unschedulable": true } })).await;
    let taints = json!([{ "key": "maintenance", "effect": "NoSchedule" }]);
    world.patch("worker-1", json!({ "spec": { "taints": taints, "providerID": "metal://m1" } })).await;
    world.label("worker-1", "team", Some("blue")).await;
    world.caught_up().await;

    assert_eq!(world.keeper_writes().await, ["create configmaps node-record.worker-1"]);
    assert_eq!(world.record("worker-1").await, Some(record));
}

#[tokio::test]
async fn a_keeper_that_starts_writes_nothing_where_records_are_current() {
    let mut world = World::start().await;
    for name in ["living", "restored", "away"] {
        world.register(name, &pairs([("node", name)])).await;
        world.recorded(name, &pairs([("node", name)])).await;
    }
    world.register("bare", &pairs([])).await;
    world.delete("away").await;
    world.closed("away", &pairs([("node", "away")])).await;
    world.delete("restored").await;
    world.register("restored", &pairs([])).await;
    world
        .record_becomes("restored", "is open again", |record| record.state == State::Open && record.given)
        .await;
    world.caught_up().await;
    let before = world.keeper_writes().await;

    world.stop_keeper().await;
    world.start_keeper().await;
    world.caught_up().await;

    assert_eq!(world.keeper_writes().await, before);
}

#[tokio::test]
async fn an_ordinary_return_costs_one_record_write_and_one_node_patch() {
    let mut world = World::without_keeper("").await;
    world.configure(|config| (config.close_after, config.open_after) = (NEVER, NEVER));
    world.start_keeper().await;
    world.register("worker-1", &pairs([("team", "blue")])).await;
    world.recorded("worker-1", &pairs([("team", "blue")])).await;

    world.delete("worker-1").await;
    world.register("worker-1", &pairs([])).await;
    world.is_marked("worker-1").await;
    world.caught_up().await;

    let expected = [
        "create configmaps node-record.worker-1",
        "update configmaps node-record.worker-1",
        "patch nodes worker-1",
    ];
    assert_eq!(world.keeper_writes().await, expected);
    assert_eq!(world.record("worker-1").await.unwrap().state, State::Giving);
}

#[tokio::test]
async fn a_restored_node_is_opened_with_one_more_write_and_then_left_alone() {
    let mut world = World::without_keeper("").await;
    world.configure(|config| config.close_after = NEVER);
    world.start_keeper().await;
    world.register("worker-1", &pairs([("team", "blue")])).await;
    world.recorded("worker-1", &pairs([("team", "blue")])).await;
    world.delete("worker-1").await;
    world.register("worker-1", &pairs([])).await;
    world
        .record_becomes("worker-1", "is open again", |record| record.state == State::Open && record.given)
        .await;
    world.caught_up().await;

    let expected = [
        "create configmaps node-record.worker-1",
        "update configmaps node-record.worker-1",
        "patch nodes worker-1",
        "update configmaps node-record.worker-1",
    ];
    assert_eq!(world.keeper_writes().await, expected);
}

#[tokio::test]
async fn a_bare_node_costs_nothing() {
    let world = World::start().await;
    world.register("worker-1", &pairs([("kubernetes.io/os", "linux")])).await;
    world.caught_up().await;
    world.delete("worker-1").await;
    world.register("worker-1", &pairs([("kubernetes.io/os", "linux")])).await;
    world.caught_up().await;
    assert_eq!(world.keeper_writes().await, Vec::<String>::new());
}
