//! A whole fleet at once.

use perennial_testkit::{Fleet, eventually, node_name};

use crate::fleet::all_restored;
use crate::world::{SOON, World};

const NODES: usize = 200;

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_nodes_go_and_come_back_at_once_while_one_of_three_replicas_dies() {
    let mut world = World::without_keeper("").await;
    world.start_members(&["a", "b", "c"], |_| {}).await;
    let fleet = Fleet::new(world.plane.admin());
    fleet.create(0..NODES).await.unwrap();
    let all = f64::from(u32::try_from(NODES).unwrap());
    for member in ["a", "b", "c"] {
        world.metric_of_reaches(member, "nodes_current", all).await;
    }
    let returns = async {
        fleet.delete(0..NODES).await.unwrap();
        fleet.register(0..NODES).await.unwrap();
    };
    let dies = async {
        let begun = || async {
            let [given, done] = ["restores_total", "inflight"].map(|name| world.metric_of("b", name));
            if given >= 3.0 { Ok(Some(())) } else { Err(anyhow::anyhow!("{given}, {done} under way")) }
        };
        eventually(SOON, "it is in the middle of it", begun).await.unwrap();
    };
    tokio::join!(returns, dies);
    world.crash_member("b").await;
    all_restored(&world.plane, NODES).await;
    world.all_rest().await;
    let nodes: Vec<String> = (0..NODES).map(node_name).collect();
    world.given_at_most_once(&nodes);
    world.nothing_is_in_doubt(&nodes).await;
}
