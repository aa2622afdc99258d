//! Replicas whose wall clock is wrong: retention is counted by the API server's clock.

use std::fs;

use jiff::SignedDuration;
use perennial_core::record::State;
use perennial_testkit::KeeperProcess;

use crate::world::{World, pairs};

/// Longer than a record is kept by default.
const FAR: i64 = 40 * 24;

impl World {
    /// Starts the binary with a wall clock that is wrong by so many hours, and waits until it is ready.
    pub(crate) async fn start_keeper_with_clock(&self, hours: i64, policy: &str) -> KeeperProcess {
        let file = self.plane.logs().join(format!("{}-{hours}.yaml", self.namespace()));
        fs::write(&file, policy).unwrap();
        let keeper = KeeperProcess::builder(env!("CARGO_BIN_EXE_perennial"), self.plane.logs())
            .kubeconfig(self.kubeconfig())
            .namespace(self.namespace())
            .policy(&file)
            .arg("--installation=perennial")
            .arg("--close-after=200ms")
            .arg("--open-after=200ms")
            .arg("--collect-every=1s")
            .clock_wrong_by(hours)
            .unwrap()
            .start()
            .await
            .unwrap();
        let log = keeper.log().unwrap();
        assert!(log.contains("this machine's clock differs"), "its clock is not wrong: {log}");
        keeper
    }
}

#[tokio::test]
async fn a_record_closed_by_a_replica_whose_clock_is_behind_is_kept_for_its_retention() {
    let mut world = World::without_keeper("").await;
    let labels = pairs([("team", "blue")]);
    let behind = world.start_keeper_with_clock(-FAR, "").await;
    let born = world.register("leaves", &labels).await;
    world.recorded("leaves", &labels).await;
    world.delete("leaves").await;
    let record = world.closed("leaves", &labels).await;
    assert!(behind.stop().await.unwrap().success());

    world.start_keeper().await;
    world.caught_up().await;
    assert!(world.record("leaves").await.is_some(), "a replica with the right time erased {record:?}");
    let created = born.metadata.creation_timestamp.unwrap().0;
    for written in [Some(record.captured_at), record.deleted_at] {
        let since = written.unwrap().duration_since(created);
        assert!(
            since.abs() < SignedDuration::from_hours(1),
            "{since:#} after the node was created: {record:?}"
        );
    }
    world.register("leaves", &pairs([])).await;
    world.labels_become("leaves", &labels).await;
}

#[tokio::test]
async fn a_replica_whose_clock_is_ahead_erases_only_records_that_are_due() {
    let mut world = World::with_policy("").await;
    let labels = pairs([("team", "blue")]);
    for name in ["leaves", "stays-bare"] {
        world.register(name, &labels).await;
        world.recorded(name, &labels).await;
    }
    world.label("stays-bare", "team", None).await;
    world.recorded("stays-bare", &pairs([])).await;
    world.delete("leaves").await;
    world.closed("leaves", &labels).await;
    world.stop_keeper().await;

    // One pass over all records finds whatever is due, and a replica that stops finishes what it has begun.
    let ahead = world.start_keeper_with_clock(FAR, "emptyRetention: 1s").await;
    world.record_goes("stays-bare").await;
    assert!(ahead.stop().await.unwrap().success());
    let record = world.record("leaves").await;
    assert_eq!(record.map(|record| record.state), Some(State::Closed));
}
