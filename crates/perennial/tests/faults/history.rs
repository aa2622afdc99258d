//! History that is gone, turned back, or another cluster's.

use std::future::ready;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, ObjectMeta, PostParams};
use perennial_core::record::{State, record_name};

use crate::wire::Wire;
use crate::world::{World, pairs};

/// More revisions than a starting API server writes by itself.
const MANY: usize = 400;

/// Lets history go on by [`MANY`] revisions and more, and has the keeper see it.
async fn time_passes(world: &World) {
    let maps: Api<ConfigMap> = Api::namespaced(world.plane.admin(), "default");
    let metadata = ObjectMeta { generate_name: Some("tick-".to_owned()), ..ObjectMeta::default() };
    let (tick, params) = (ConfigMap { metadata, ..ConfigMap::default() }, PostParams::default());
    let ticks = stream::iter(0..MANY).map(|_| maps.create(&params, &tick));
    ticks.buffer_unordered(16).try_for_each(|_| ready(Ok(()))).await.unwrap();
    world.caught_up().await;
}

#[tokio::test]
async fn when_etcd_is_turned_back_the_keeper_notices_and_works_on() {
    let world = World::started_alone().await;
    let (old, new) = (pairs([("team", "blue")]), pairs([("team", "green")]));
    for name in ["changes", "returns"] {
        world.register(name, &old).await;
        world.recorded(name, &old).await;
    }
    world.caught_up().await;
    let snapshot = world.plane.snapshot_etcd().await.unwrap();
    world.label("returns", "team", Some("green")).await;
    world.recorded("returns", &new).await;
    world.register("lost", &new).await;
    world.recorded("lost", &new).await;
    time_passes(&world).await;

    world.plane.restore_etcd(&snapshot).await.unwrap();
    world.metric_reaches("histories_total", 1.0).await;
    world.keeper_is_ready().await;

    world.label("changes", "team", Some("green")).await;
    let record = world.recorded("changes", &new).await;
    assert!(record.version > snapshot.revision);
    world.delete("returns").await;
    world.register("returns", &pairs([])).await;
    world.labels_become("returns", &old).await;
    world.caught_up().await;
    assert!(world.record("lost").await.is_none(), "what no longer happened is not recorded again");
    assert!((world.metric("histories_total") - 1.0).abs() < f64::EPSILON);
    assert!(world.metric(r#"notices_total{kind="EndUnproved"}"#) < 0.5, "nothing was in doubt");
}

#[tokio::test]
async fn a_node_whose_return_was_turned_back_is_restored_when_it_returns_again() {
    let world = World::started_alone().await;
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;
    world.closed("worker-1", &labels).await;
    let snapshot = world.plane.snapshot_etcd().await.unwrap();
    world.register("worker-1", &pairs([])).await;
    world.labels_become("worker-1", &labels).await;
    time_passes(&world).await;

    world.plane.restore_etcd(&snapshot).await.unwrap();
    world.metric_reaches("histories_total", 1.0).await;
    assert_eq!(world.record("worker-1").await.unwrap().state, State::Closed);
    world.register("worker-1", &pairs([])).await;
    world.labels_become("worker-1", &labels).await;
    let opened = |record: &perennial_core::record::Record| record.state == State::Open;
    assert!(world.record_becomes("worker-1", "is open", opened).await.given);
}

/// A cluster with a history, its records as they are moved elsewhere: one open, one closed.
pub(crate) async fn records_of_an_old_cluster() -> Vec<ConfigMap> {
    let world = World::started_alone().await;
    time_passes(&world).await;
    for name in ["stays", "leaves"] {
        let labels = pairs([("team", "blue"), ("name", name)]);
        world.register(name, &labels).await;
        world.recorded(name, &labels).await;
    }
    world.delete("leaves").await;
    world.closed("leaves", &pairs([("team", "blue"), ("name", "leaves")])).await;
    let all = world.config_maps().list(&ListParams::default()).await.unwrap().items;
    let moved = all.into_iter().filter(|map| {
        let name = map.metadata.name.as_deref().unwrap_or_default();
        ["stays", "leaves"].map(record_name).iter().any(|record| record == name)
    });
    let moved = moved.map(|map| ConfigMap {
        metadata: ObjectMeta {
            name: map.metadata.name,
            labels: map.metadata.labels,
            annotations: map.metadata.annotations,
            ..ObjectMeta::default()
        },
        ..map
    });
    let moved: Vec<_> = moved.collect();
    assert_eq!(moved.len(), 2);
    moved
}

pub(crate) async fn move_in(world: &World, records: &[ConfigMap]) {
    for record in records {
        world.config_maps().create(&PostParams::default(), record).await.unwrap();
    }
}

/// Both nodes have their labels from elsewhere, the doubt about the open one is told, and their lives go on.
async fn settled_in(world: &World) {
    let labels = |name| pairs([("team", "blue"), ("name", name)]);
    for name in ["stays", "leaves"] {
        world.labels_become(name, &labels(name)).await;
    }
    world.event("stays", "EndUnproved").await;
    for name in ["stays", "leaves"] {
        let changed = pairs([("team", "green"), ("name", name)]);
        world.label(name, "team", Some("green")).await;
        let record = world.recorded(name, &changed).await;
        assert!(record.version <= world.plane.revision().await.unwrap());
        world.delete(name).await;
        world.register(name, &pairs([])).await;
        world.labels_become(name, &changed).await;
    }
}

#[tokio::test]
async fn records_that_were_moved_to_another_cluster_are_given_there_and_followed() {
    let records = records_of_an_old_cluster().await;
    let mut world = World::alone("").await;
    move_in(&world, &records).await;
    for name in ["stays", "leaves"] {
        world.register(name, &pairs([])).await;
    }
    world.start_keeper().await;
    settled_in(&world).await;
}

#[tokio::test]
async fn a_start_asks_where_history_stands_only_if_a_record_claims_to_be_of_later() {
    let records = records_of_an_old_cluster().await;
    let mut world = World::started_alone().await;
    let labels = pairs([("team", "blue")]);
    world.register("worker", &labels).await;
    world.recorded("worker", &labels).await;
    let asked = |world: &World| {
        let all = world.plane.audit().unwrap();
        all.iter().filter(|entry| entry.resource == "nodes" && entry.uri.contains("limit=1")).count()
    };
    world.stop_keeper().await;
    world.start_keeper().await;
    assert_eq!(asked(&world), 0);

    world.stop_keeper().await;
    move_in(&world, &records).await;
    world.start_keeper().await;
    assert_eq!(asked(&world), 1);
}

#[tokio::test]
async fn records_that_are_moved_in_while_the_keeper_runs_count_after_a_resync() {
    let records = records_of_an_old_cluster().await;
    let mut world = World::alone("").await;
    world.configure(|config| config.resync = std::time::Duration::from_millis(300));
    world.start_keeper().await;
    for name in ["stays", "leaves"] {
        world.register(name, &pairs([])).await;
    }
    world.caught_up().await;
    move_in(&world, &records).await;
    settled_in(&world).await;
}

/// What happens while the keeper is cut off, until the watch cache has forgotten it.
async fn cut_off() -> (World, Wire) {
    let mut world = World::alone("").await;
    let wire = world.interpose(Wire::before);
    world.start_keeper().await;
    let labels = pairs([("team", "blue"), ("zone", "a")]);
    for name in ["untouched", "changes", "returns", "leaves"] {
        world.register(name, &labels).await;
    }
    for name in ["untouched", "changes", "returns", "leaves"] {
        world.recorded(name, &labels).await;
    }
    world.caught_up().await;
    wire.unplug();
    world.label("changes", "zone", None).await;
    for name in ["changes", "returns", "leaves"] {
        world.label(name, "team", Some("green")).await;
    }
    world.delete("returns").await;
    world.delete("leaves").await;
    world.register("returns", &pairs([])).await;
    world.plane.restart_apiserver().await.unwrap();
    (world, wire)
}

#[tokio::test]
async fn what_happened_past_the_watch_cache_is_proved_from_history() {
    let (world, wire) = cut_off().await;
    let untouched = world.config_map("untouched").await;
    wire.plug_in();
    world.metric_reaches("relists_total", 1.0).await;

    let green = pairs([("team", "green"), ("zone", "a")]);
    world.labels_become("returns", &green).await;
    assert_eq!(world.closed("leaves", &green).await.unproved, None);
    world.recorded("changes", &pairs([("team", "green")])).await;
    world.caught_up().await;
    assert_eq!(world.labels("changes").await, pairs([("team", "green")]));
    assert_eq!(world.labels("untouched").await, pairs([("team", "blue"), ("zone", "a")]));
    assert_eq!(world.config_map("untouched").await, untouched);
    assert_eq!(world.patches().len(), 1, "only the one that returned was touched");
}

#[tokio::test]
async fn past_all_history_what_is_recorded_is_given_and_nothing_is_removed() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let (world, wire) = cut_off().await;
    let untouched = world.config_map("untouched").await;
    world.plane.compact(world.plane.revision().await.unwrap()).await.unwrap();
    wire.plug_in();
    world.metric_reaches("relists_total", 1.0).await;

    let blue = pairs([("team", "blue"), ("zone", "a")]);
    world.labels_become("returns", &blue).await;
    world.event("returns", "EndUnproved").await;
    assert!(world.closed("leaves", &blue).await.unproved.is_some());
    world.recorded("changes", &pairs([("team", "green")])).await;
    world.caught_up().await;
    assert_eq!(world.labels("changes").await, pairs([("team", "green")]));
    assert_eq!(world.config_map("untouched").await, untouched);
    assert_eq!(world.patches().len(), 1, "only the one that returned was touched");
}
