//! Servers that go away in the middle of things, and come back.

use std::time::Duration;

use perennial_core::record::record_name;
use perennial_testkit::{Fleet, eventually};

use crate::fleet::{all_recorded, all_restored};
use crate::history::{move_in, records_of_an_old_cluster};
use crate::wire::{Bend, Call, Wire};
use crate::world::{SOON, World, pairs};

const NODES: usize = 200;

/// A fleet is deleted and comes back, and something happens while the first are being restored.
async fn a_return_during(outage: impl AsyncFnOnce(&World) -> anyhow::Result<()>) {
    let world = World::started_alone().await;
    let fleet = Fleet::new(world.plane.admin());
    fleet.create(0..NODES).await.unwrap();
    all_recorded(&world, NODES).await;
    let returns = async {
        fleet.delete(0..NODES).await?;
        fleet.register(0..NODES).await
    };
    let middle = async {
        world.metric_reaches("restores_total", 5.0).await;
        outage(&world).await
    };
    tokio::try_join!(returns, middle).unwrap();
    all_recorded(&world, NODES).await;
    all_restored(&world.plane, NODES).await;
    world.caught_up().await;
    // A server that dies or freezes may not have logged what it did for a few.
    let patches = world.patches();
    assert!(patches.values().all(|times| *times == 1), "given once: {patches:?}");
}

#[tokio::test]
async fn the_api_server_is_restarted_in_the_middle_and_all_labels_come_back() {
    a_return_during(async |world| world.plane.restart_apiserver().await).await;
}

#[tokio::test]
async fn the_api_server_is_killed_in_the_middle_and_all_labels_come_back() {
    a_return_during(async |world| {
        world.plane.kill_apiserver().await?;
        world.plane.start_apiserver().await
    })
    .await;
}

#[tokio::test]
async fn etcd_is_restarted_in_the_middle_and_all_labels_come_back() {
    a_return_during(async |world| world.plane.restart_etcd().await).await;
}

#[tokio::test]
async fn the_api_server_freezes_in_the_middle_and_all_labels_come_back() {
    a_return_during(async |world| {
        world.plane.pause_apiserver().await?;
        world.metric_reaches(r#"errors_total{kind="timeout"}"#, 1.0).await;
        world.plane.resume_apiserver().await
    })
    .await;
}

/// The alerts on it must not fall silent between two attempts.
#[tokio::test]
async fn a_restore_that_fails_while_etcd_is_full_waits_longer_and_longer_until_it_is_made() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let mut world = World::started_alone().await;
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;
    world.closed("worker-1", &labels).await;
    world.stop_keeper().await;
    world.register("worker-1", &pairs([])).await;
    world.plane.fill_etcd(true).await.unwrap();

    world.start_keeper().await;
    world.metric_reaches("restore_failing", 1.0).await;
    let server = r#"errors_total{kind="server"}"#;
    let now =
        || ["unrestored_oldest_seconds", "pending_oldest_seconds", server].map(|name| world.metric(name));
    let [_, _, failed] = now();
    let mut before = [0.0; 3];
    eventually(SOON, "it is tried three times more", || {
        let (counts, seen) = (["unrestored", "restore_failing"].map(|name| world.metric(name)), now());
        assert!(counts.iter().all(|count| *count > 0.5), "{counts:?} after {seen:?}");
        assert!(seen.iter().zip(&before).all(|(now, before)| now >= before), "{before:?}, then {seen:?}");
        before = seen;
        let [unrestored, pending, errors] = seen;
        let enough = unrestored > 2.5 && pending > 2.5 && errors > failed + 2.5;
        std::future::ready(if enough { Ok(Some(())) } else { Err(anyhow::anyhow!("{seen:?}")) })
    })
    .await
    .unwrap();

    world.plane.fill_etcd(false).await.unwrap();
    world.labels_become("worker-1", &labels).await;
    world.caught_up().await;
    for name in ["restore_failing", "unrestored", "unrestored_oldest_seconds", "pending_oldest_seconds"] {
        assert!(world.metric(name) < 0.5, "{name}");
    }
}

#[tokio::test]
async fn events_are_folded_while_the_comparison_with_the_cluster_hangs() {
    let mut world = World::without_keeper("").await;
    let wire = world.interpose(Wire::before);
    world.configure(|config| config.resync = Duration::from_millis(100));
    world.start_keeper().await;
    wire.bend(Call::Head, 1, Bend::Hang);
    eventually(SOON, "the comparison hangs", || async { Ok(wire.unmet().is_empty().then_some(())) })
        .await
        .unwrap();

    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;
    world.register("worker-1", &pairs([])).await;
    world.labels_become("worker-1", &labels).await;
    assert!(world.metric(r#"errors_total{kind="timeout"}"#) < 0.5, "it still hangs");
}

/// A start compares itself with the cluster only where a record claims to be of later: here is one, and nothing else is to
/// be done about it.
async fn with_something_to_compare() -> World {
    let (world, mut records) = (World::alone("").await, records_of_an_old_cluster().await);
    records.retain(|record| record.metadata.name == Some(record_name("leaves")));
    move_in(&world, &records).await;
    world
}

#[tokio::test]
async fn a_stop_is_not_held_up_by_a_comparison_that_hangs() {
    let mut world = with_something_to_compare().await;
    let wire = world.interpose(Wire::before);
    wire.bend(Call::Head, 1, Bend::Hang);
    world.spawn_keeper();
    eventually(SOON, "the comparison hangs", || async { Ok(wire.unmet().is_empty().then_some(())) })
        .await
        .unwrap();
    let asked = wire.made().len();
    world.stop_keeper().await;
    assert_eq!(wire.made().len(), asked, "it stopped without asking anything more");
}

#[tokio::test]
async fn a_comparison_that_failed_is_made_again() {
    let mut world = with_something_to_compare().await;
    let wire = world.interpose(Wire::before);
    wire.bend(Call::Head, 3, Bend::Refuse(500));
    world.start_keeper().await;
    assert_eq!(wire.unmet(), []);
}
