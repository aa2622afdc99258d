//! Whole fleets that go and come back.

use std::time::{Duration, Instant};

use perennial_testkit::{ControlPlane, Fleet, KeeperProcess, eventually};
use tokio::sync::oneshot;

use crate::fleet::{PATIENCE, all_recorded, all_restored};
use crate::process::keeper_for;
use crate::world::World;

/// Says how long a part took: for people, nothing is asserted.
fn tell(what: &str, since: Instant) {
    println!("{what}: {:.1} s", since.elapsed().as_secs_f64());
}

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_nodes_are_deleted_and_come_back_with_all_their_labels() {
    const NODES: usize = 5_000;
    let plane = ControlPlane::builder().without_audit().start().await.unwrap();
    let mut world = World::on(plane, "").await;
    // As it is shipped: with so many nodes the world's haste would be all that the keeper does.
    world.configure(|config| config.collect_every = Duration::from_mins(1));
    world.start_keeper().await;
    let fleet = Fleet::new(world.plane.admin());

    let since = Instant::now();
    fleet.create(0..NODES).await.unwrap();
    all_recorded(&world, NODES).await;
    tell("5,000 nodes created and recorded", since);
    let since = Instant::now();
    fleet.delete(0..NODES).await.unwrap();
    fleet.register(0..NODES).await.unwrap();
    tell("deleted and registered again", since);
    all_recorded(&world, NODES).await;
    all_restored(&world.plane, NODES).await;
    tell("with all their labels back", since);
    assert!(world.metric(r#"proofs_total{kind="lost"}"#) < 0.5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_that_is_killed_again_and_again_meanwhile_gives_everything_back_once() {
    const NODES: usize = 1_000;
    const KILLS: usize = 4;
    let world = World::alone("").await;
    let keeper = keeper_for(&world).await.start().await.unwrap();
    let fleet = Fleet::new(world.plane.admin());
    fleet.create(0..NODES).await.unwrap();
    reaches(&keeper, "perennial_nodes_current", NODES).await;

    // However fast nodes come and go here: once while they are away, then while they come back.
    let (killed, once) = oneshot::channel();
    let returns = async {
        fleet.delete(0..NODES).await.unwrap();
        once.await.unwrap();
        fleet.register(0..NODES).await.unwrap();
    };
    let kills = async {
        reaches(&keeper, "perennial_saves_total{kind=\"close\"}", 1).await;
        keeper.kill9().await.unwrap();
        killed.send(()).unwrap();
        keeper.start_again().await.unwrap();
        for _ in 1..KILLS {
            reaches(&keeper, "perennial_restores_total", 1).await;
            keeper.kill9().await.unwrap();
            keeper.start_again().await.unwrap();
        }
    };
    tokio::join!(returns, kills);
    reaches(&keeper, "perennial_nodes_current", NODES).await;
    all_restored(&world.plane, NODES).await;
    // What the keeper asked for as it died may be done all the same, and stands in the log as refused.
    let patches = world.patches();
    assert!(patches.values().all(|times| *times == 1), "given once: {patches:?}");
}

/// Waits until one of the keeper's metrics is at least this.
async fn reaches(keeper: &KeeperProcess, metric: &str, least: usize) {
    eventually(PATIENCE, &format!("{metric} reaches {least}"), || async {
        let value = keeper.metrics().await?.get(metric).copied().unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "some thousand")]
        let enough = value >= least as f64;
        if enough { Ok(Some(())) } else { Err(anyhow::anyhow!("{value}")) }
    })
    .await
    .unwrap();
}
