//! Far more replicas than nodes: everybody knows everybody, each node has one that sees to it, and half of them go.

use perennial_testkit::eventually;

use crate::members::patient;
use crate::sharing::shares;
use crate::world::{SOON, World};

const REPLICAS: usize = 50;
const NODES: usize = 20;

impl World {
    /// Waits until each of these sees all of them and nobody else, and comes first for the nodes that are its own:
    /// together they are responsible for every node, once.
    async fn they_share(&self, members: &[&str], nodes: &[String]) {
        let live = u32::try_from(members.len()).unwrap();
        let all = f64::from(u32::try_from(nodes.len()).unwrap());
        let mut responsible = 0;
        for (member, share) in shares(members, nodes) {
            self.sees(member, live).await;
            responsible += share;
            let share = f64::from(u32::try_from(share).unwrap()) / all;
            eventually(SOON, &format!("the share of {member} is {share}"), || async {
                let said = self.metric_of(member, "member_share");
                if said == share { Ok(Some(())) } else { Err(anyhow::anyhow!("{said}")) }
            })
            .await
            .unwrap();
        }
        assert_eq!(responsible, nodes.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_replicas_share_twenty_nodes_and_the_rest_take_over_when_half_of_them_leave() {
    let mut world = World::without_keeper("").await;
    let members: Vec<String> = (0..REPLICAS).map(|number| format!("replica-{number}")).collect();
    let members: Vec<&str> = members.iter().map(String::as_str).collect();
    let nodes: Vec<String> = (0..NODES).map(|number| format!("worker-{number}")).collect();
    world.start_members(&members, patient).await;
    world.begin_with(&nodes, "blue").await;
    world.they_share(&members, &nodes).await;
    assert_eq!(world.metric_of_all("saves_total{kind=\"save\"}"), 20.0, "each was recorded once");
    assert_eq!(world.metric_of_all("member_duplicates_total"), 0.0);

    // Each that leaves has nodes to see to, or sees others at it, while it drains. Nobody takes over but because
    // of whom it sees leave.
    let (leave, stay) = members.split_at(REPLICAS / 2);
    let mut returns = nodes.iter();
    for member in leave {
        if let Some(node) = returns.next() {
            world.return_with(node, "green").await;
        }
        world.stop_member(member).await;
    }
    assert_eq!(returns.next(), None, "all nodes went and came back meanwhile");
    world.all_are_back(&nodes, "green").await;
    world.they_share(stay, &nodes).await;
    world.silence().await;
    world.given_once(&nodes, 1);

    let before = world.metric_of_all("restores_total");
    for node in &nodes {
        world.return_with(node, "red").await;
    }
    world.all_are_back(&nodes, "red").await;
    world.silence().await;
    world.given_once(&nodes, 2);
    assert_eq!(world.metric_of_all("restores_total") - before, 20.0, "those that stayed did it");
    world.nothing_is_in_doubt(&nodes).await;
}
