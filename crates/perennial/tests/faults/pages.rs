//! A server that does not stream lists.

use perennial_testkit::{ControlPlane, Fleet};

use crate::fleet::{all_recorded, all_restored};
use crate::world::World;

/// More than one page of nodes, and of records.
const NODES: usize = 600;

#[tokio::test(flavor = "multi_thread")]
async fn where_lists_are_not_streamed_they_are_read_in_pages() {
    let flag = "--feature-gates=WatchList=false";
    let plane = ControlPlane::builder().apiserver_flag(flag).start().await.unwrap();
    let mut world = World::on(plane, "").await;
    let fleet = Fleet::new(world.plane.admin());
    fleet.create(0..NODES).await.unwrap();
    world.start_keeper().await;
    all_recorded(&world, NODES).await;
    world.crash_keeper().await;
    fleet.recreate(0..NODES).await.unwrap();
    world.start_keeper().await;
    all_recorded(&world, NODES).await;
    all_restored(&world.plane, NODES).await;

    let asked = world.plane.audit().unwrap();
    let pages = |resource: &str| {
        let listed = asked.iter().filter(|entry| entry.verb == "list" && entry.resource == resource);
        listed.filter(|entry| entry.uri.contains("limit=500") && entry.uri.contains("continue=")).count()
    };
    assert!(pages("nodes") >= 2, "both starts read a second page of nodes");
    assert!(pages("configmaps") >= 1, "the second start read a second page of records");
    assert!(world.patches().values().all(|times| *times == 1), "given once");
}
