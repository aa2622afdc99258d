//! Lists that lack what is there, end early or say too much: absence is not removal.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kube::api::ListParams;
use perennial_core::record::State;
use perennial_testkit::eventually;
use serde_json::{Value, json};

use crate::wire::{Bend, Call, Wire};
use crate::world::{Labels, SOON, World, pairs};

const LIVING: [&str; 6] = ["living-0", "living-1", "living-2", "living-3", "living-4", "living-5"];
const AWAY: [&str; 2] = ["away-0", "away-1"];

/// A cluster in which some nodes live and some are away, all of them recorded, and the keeper in step.
async fn town() -> (World, Wire) {
    let mut world = World::without_keeper("").await;
    let wire = world.interpose(Wire::before);
    world.start_keeper().await;
    for name in LIVING.iter().chain(&AWAY) {
        world.register(name, &labels(name)).await;
    }
    for name in LIVING.iter().chain(&AWAY) {
        world.recorded(name, &labels(name)).await;
    }
    for name in AWAY {
        world.delete(name).await;
        world.closed(name, &labels(name)).await;
    }
    world.caught_up().await;
    (world, wire)
}

fn labels(name: &str) -> Labels {
    pairs([("team", "blue"), ("example.com/serves", name)])
}

/// The version of every record, but for the probe's: equal means that none was written.
async fn versions(world: &World) -> BTreeMap<String, String> {
    let all = world.config_maps().list(&ListParams::default()).await.unwrap();
    let named = all.items.into_iter().map(|map| (map.metadata.name.unwrap(), map.metadata.resource_version));
    let records = named.filter(|(name, _)| name.contains("living-") || name.contains("away-"));
    records.map(|(name, version)| (name, version.unwrap())).collect()
}

/// Whoever was away comes back, whoever lives goes and comes back: all have their own again, given once.
async fn everybody_is_known(world: &World) {
    for name in LIVING {
        world.delete(name).await;
    }
    for name in LIVING.iter().chain(&AWAY) {
        world.register(name, &pairs([])).await;
    }
    for name in LIVING.iter().chain(&AWAY) {
        world.labels_become(name, &labels(name)).await;
    }
    world.caught_up().await;
    for name in LIVING.iter().chain(&AWAY) {
        assert_eq!(world.patches_of(name), 1, "{name}");
    }
}

/// Whether this is the bookmark that ends a streamed list.
fn ends_list(event: &Value) -> bool {
    event["type"] == "BOOKMARK"
        && event["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true"
}

/// A streamed list that lacks objects; what follows the list is untouched.
fn lacking(lacks: impl Fn(usize) -> bool + Send + Sync + 'static) -> Bend {
    let (listed, count) = (AtomicBool::new(false), AtomicUsize::new(0));
    Bend::edit(move |event| {
        if listed.load(Ordering::Relaxed) || ends_list(&event) {
            listed.store(true, Ordering::Relaxed);
            return Some(vec![event]);
        }
        let lacked = lacks(count.fetch_add(1, Ordering::Relaxed));
        Some(if lacked { Vec::new() } else { vec![event] })
    })
}

fn empty() -> Bend {
    lacking(|_| true)
}

fn half() -> Bend {
    lacking(|index| index.is_multiple_of(2))
}

/// Has the keeper list anew while it runs, with this list, and waits until it looked for whatever that lacked.
async fn relist(world: &World, wire: &Wire, watch: Call, list: Bend, reads: usize) {
    let (listing, reading) = match watch {
        Call::NodeWatch => (Call::NodeList, Call::NodeRead),
        _ => (Call::RecordList, Call::RecordRead),
    };
    let count = |call| wire.made().iter().filter(|made| made.call == call).count();
    let before = count(reading);
    wire.bend(watch, 1, Bend::Refuse(410));
    wire.bend(listing, 1, list);
    wire.cut();
    eventually(SOON, "what the list lacked is read", || async {
        let made = count(reading) - before;
        if made >= reads { Ok(Some(())) } else { Err(anyhow::anyhow!("{made} reads")) }
    })
    .await
    .unwrap();
    world.metric_reaches("relists_total", 1.0).await;
    world.caught_up().await;
    assert_eq!(wire.unmet(), []);
    let of_nodes = if watch == Call::NodeWatch { 1.0 } else { 0.0 };
    assert!(
        (world.metric("unobserved_total") - of_nodes).abs() < 0.5,
        "windows in which nodes were not watched"
    );
    assert!(world.metric("unobserved_seconds_total") < 60.0, "from when the watch broke until the list");
}

/// Starts the keeper anew with these lists, and finds every record untouched and everybody known.
async fn a_start_with(bends: impl IntoIterator<Item = (Call, Bend)>) {
    let (mut world, wire) = town().await;
    let before = versions(&world).await;
    world.crash_keeper().await;
    for (call, bend) in bends {
        wire.bend(call, 1, bend);
    }
    world.start_keeper().await;
    world.caught_up().await;
    assert_eq!(wire.unmet(), []);
    assert_eq!(versions(&world).await, before, "no record was written");
    everybody_is_known(&world).await;
}

#[tokio::test]
async fn an_empty_list_of_nodes_at_the_start_removes_nothing() {
    a_start_with([(Call::NodeList, empty())]).await;
}

#[tokio::test]
async fn a_partial_list_of_nodes_at_the_start_removes_nothing() {
    a_start_with([(Call::NodeList, half())]).await;
}

#[tokio::test]
async fn lists_that_end_before_they_are_complete_are_made_again() {
    let cut_short = || {
        let count = AtomicUsize::new(0);
        Bend::edit(move |event| (count.fetch_add(1, Ordering::Relaxed) < 3).then(|| vec![event]))
    };
    let both = [(Call::NodeList, cut_short()), (Call::RecordList, cut_short())];
    let again = [(Call::NodeList, cut_short()), (Call::RecordList, cut_short())];
    a_start_with(both.into_iter().chain(again)).await;
}

#[tokio::test]
async fn lists_that_are_called_complete_too_early_remove_nothing() {
    let early = || {
        let first = AtomicBool::new(true);
        Bend::edit(move |event| {
            if !first.swap(false, Ordering::Relaxed) {
                return Some(vec![event]);
            }
            let mut bookmark = event.clone();
            bookmark["type"] = json!("BOOKMARK");
            let version = &event["object"]["metadata"]["resourceVersion"];
            let annotations = json!({ "k8s.io/initial-events-end": "true" });
            bookmark["object"]["metadata"] =
                json!({ "resourceVersion": version, "annotations": annotations });
            Some(vec![event, bookmark])
        })
    };
    a_start_with([(Call::NodeList, early()), (Call::RecordList, early())]).await;
}

#[tokio::test]
async fn an_empty_list_of_nodes_while_the_keeper_runs_removes_nothing() {
    let (world, wire) = town().await;
    let before = versions(&world).await;
    relist(&world, &wire, Call::NodeWatch, empty(), LIVING.len()).await;
    assert_eq!(versions(&world).await, before, "no record was written");
    everybody_is_known(&world).await;
}

#[tokio::test]
async fn a_partial_list_of_nodes_while_the_keeper_runs_removes_nothing() {
    let (world, wire) = town().await;
    let before = versions(&world).await;
    relist(&world, &wire, Call::NodeWatch, half(), LIVING.len() / 2).await;
    assert_eq!(versions(&world).await, before, "no record was written");
    everybody_is_known(&world).await;
}

#[tokio::test]
async fn an_empty_list_of_records_while_the_keeper_runs_removes_nothing() {
    let (world, wire) = town().await;
    let before = versions(&world).await;
    // The closed ones are fetched together.
    relist(&world, &wire, Call::RecordWatch, empty(), LIVING.len()).await;
    assert_eq!(versions(&world).await, before, "no record was written");
    everybody_is_known(&world).await;
}

#[tokio::test]
async fn an_empty_list_of_records_at_the_start_has_none_written_over_and_the_next_list_mends_it() {
    let (mut world, wire) = town().await;
    let before = versions(&world).await;
    world.crash_keeper().await;
    wire.bend(Call::RecordList, 1, empty());
    wire.bend(Call::ClosedRecords, 1, Bend::Refuse(500));
    world.start_keeper().await;
    world.caught_up().await;
    assert_eq!(versions(&world).await, before, "no record was written");

    wire.bend(Call::RecordWatch, 1, Bend::Refuse(410));
    wire.cut();
    world.metric_reaches("relists_total", 1.0).await;
    everybody_is_known(&world).await;
    assert_eq!(wire.unmet(), []);
}

#[tokio::test]
async fn events_that_come_twice_change_nothing() {
    let (mut world, wire) = town().await;
    world.crash_keeper().await;
    for call in [Call::NodeList, Call::RecordList] {
        wire.bend(call, 1, Bend::edit(|event| Some(vec![event.clone(), event])));
    }
    world.start_keeper().await;
    world.label(LIVING[0], "team", Some("green")).await;
    let record = world.record_becomes(LIVING[0], "is green", |r| r.kept.labels["team"] == "green").await;
    assert_eq!(record.sequence, 2);
    world.label(LIVING[0], "team", Some("blue")).await;
    world.recorded(LIVING[0], &labels(LIVING[0])).await;
    everybody_is_known(&world).await;
    assert_eq!(wire.unmet(), []);
}

#[tokio::test]
async fn events_that_were_dropped_are_made_up_for_by_the_next_list() {
    let (mut world, wire) = town().await;
    world.crash_keeper().await;
    let listed = AtomicBool::new(false);
    wire.bend(
        Call::NodeList,
        1,
        Bend::edit(move |event| {
            let dropped = listed.load(Ordering::Relaxed);
            listed.fetch_or(ends_list(&event), Ordering::Relaxed);
            Some(if dropped { Vec::new() } else { vec![event] })
        }),
    );
    world.start_keeper().await;
    let [changed, back, gone, ..] = LIVING;
    for name in [changed, back, gone] {
        world.label(name, "team", Some("green")).await;
    }
    world.delete(back).await;
    world.register(back, &pairs([])).await;
    world.delete(gone).await;

    wire.bend(Call::NodeWatch, 1, Bend::Refuse(410));
    wire.cut();
    let green = |name: &str| pairs([("team", "green"), ("example.com/serves", name)]);
    world.recorded(changed, &green(changed)).await;
    world.labels_become(back, &green(back)).await;
    let record = world.closed(gone, &green(gone)).await;
    assert_eq!(record.unproved, None);
    world.caught_up().await;
    assert_eq!(world.record(changed).await.unwrap().state, State::Open);
    assert_eq!(world.patches_of(back), 1);
    assert_eq!(wire.unmet(), []);
}
