//! Who does what: each its share, the next in line for the dead, and nothing twice.

use std::collections::BTreeMap;
use std::time::Duration;

use perennial_core::ranks::Ranks;
use perennial_testkit::eventually;

use crate::members::{NEVER, patient};
use crate::world::{Labels, SOON, World, pairs};

fn labels() -> Labels {
    pairs([("team", "blue")])
}

fn nodes(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("worker-{number}")).collect()
}

/// How many of these nodes each member comes first for.
pub(crate) fn shares<'a>(members: &[&'a str], nodes: &[String]) -> BTreeMap<&'a str, usize> {
    let first = |me: &str| {
        let ranks = Ranks::new(me, members.iter().copied());
        nodes.iter().filter(|node| ranks.rank(node) == 0).count()
    };
    members.iter().map(|me| (*me, first(me))).collect()
}

impl World {
    async fn register_all(&self, nodes: &[String], labels: &Labels) {
        for node in nodes {
            self.register(node, labels).await;
        }
    }

    async fn all_recorded(&self, nodes: &[String], labels: &Labels) {
        for node in nodes {
            self.recorded(node, labels).await;
        }
    }

    /// Waits until no member has anything to do.
    pub(crate) async fn all_rest(&self) {
        eventually(SOON, "nothing is pending anywhere", || async {
            let pending = self.metric_of_all("pending") + self.metric_of_all("inflight");
            if pending == 0.0 { Ok(Some(())) } else { Err(anyhow::anyhow!("{pending}")) }
        })
        .await
        .unwrap();
    }
}

#[tokio::test]
async fn each_of_three_does_its_share_and_nothing_is_done_twice() {
    let mut world = World::without_keeper("").await;
    let members = ["a", "b", "c"];
    world.start_members(&members, patient).await;
    let nodes = nodes(30);
    world.register_all(&nodes, &labels()).await;
    world.all_recorded(&nodes, &labels()).await;
    for node in &nodes {
        world.delete(node).await;
        world.register(node, &pairs([])).await;
    }
    for node in &nodes {
        world.labels_become(node, &labels()).await;
    }
    world.all_rest().await;
    for (member, share) in shares(&members, &nodes) {
        let share = f64::from(u32::try_from(share).unwrap());
        assert!(share > 0.0, "a share of the test's own making");
        assert_eq!(world.metric_of(member, "restores_total"), share, "{member}");
        let given = world.metric_of(member, "saves_total{kind=\"give\"}");
        assert_eq!(given, share, "{member}");
        assert_eq!(world.metric_of(member, "member_share"), share / 30.0, "{member}");
    }
    for nothing in ["member_duplicates_total", "member_takeovers_total", "proofs_total{kind=\"proved\"}"] {
        assert_eq!(world.metric_of_all(nothing), 0.0, "{nothing}");
    }
    assert!(world.patches().values().all(|patches| *patches == 1), "{:?}", world.patches());
}

#[tokio::test]
async fn a_dead_replica_is_covered_without_waiting_for_its_lease() {
    let mut world = World::without_keeper("").await;
    world.start_members(&["a", "b"], |members| members.lease = NEVER).await;
    let nodes = nodes(12);
    world.register_all(&nodes[..6], &labels()).await;
    world.all_recorded(&nodes[..6], &labels()).await;
    world.crash_member("b").await;
    world.register_all(&nodes[6..], &labels()).await;
    for node in &nodes[..6] {
        world.delete(node).await;
        world.register(node, &pairs([])).await;
    }
    world.all_recorded(&nodes, &labels()).await;
    for node in &nodes {
        world.labels_become(node, &labels()).await;
    }
    assert_eq!(world.metric_of("a", "member_live"), 2.0, "its Lease has not run out");
    assert!(world.metric_of("a", "member_takeovers_total") > 0.0);
}

#[tokio::test]
async fn a_replica_that_leaves_is_waited_for_by_nobody() {
    let mut world = World::without_keeper("").await;
    world.start_members(&["a", "b"], patient).await;
    let nodes = nodes(10);
    world.register_all(&nodes, &labels()).await;
    world.all_recorded(&nodes, &labels()).await;
    world.stop_member("b").await;
    for node in &nodes {
        world.label(node, "team", Some("red")).await;
    }
    world.all_recorded(&nodes, &pairs([("team", "red")])).await;
    assert_eq!(world.metric_of("a", "member_share"), 1.0);
}

#[tokio::test]
async fn a_replica_that_joins_takes_its_share() {
    let mut world = World::without_keeper("").await;
    let members = ["a", "b"];
    world.start_members(&members[..1], patient).await;
    let nodes = nodes(10);
    world.register_all(&nodes, &labels()).await;
    world.all_recorded(&nodes, &labels()).await;
    world.start_member_with("b", |_, members| patient(members)).await;
    world.sees("a", 2).await;
    world.sees("b", 2).await;
    for node in &nodes {
        world.label(node, "team", Some("red")).await;
    }
    world.all_recorded(&nodes, &pairs([("team", "red")])).await;
    let share = f64::from(u32::try_from(shares(&members, &nodes)["b"]).unwrap());
    world.metric_of_reaches("b", "saves_total{kind=\"save\"}", share).await;
    assert_eq!(world.metric_of("b", "saves_total{kind=\"save\"}"), share);
}

#[tokio::test]
async fn replicas_may_outnumber_the_nodes() {
    let mut world = World::without_keeper("").await;
    let members: Vec<String> = (0..8).map(|number| format!("replica-{number}")).collect();
    let members: Vec<&str> = members.iter().map(String::as_str).collect();
    world.start_members(&members, patient).await;
    world.register("worker-1", &labels()).await;
    world.recorded("worker-1", &labels()).await;
    world.all_rest().await;
    assert_eq!(world.metric_of_all("saves_total{kind=\"save\"}"), 1.0);
    assert_eq!(world.metric_of_all("member_duplicates_total"), 0.0);
}

#[tokio::test]
async fn joining_leaving_and_dying_under_load_loses_nothing_and_gives_once() {
    let mut world = World::without_keeper("").await;
    world.start_members(&["a", "b", "c"], |_| {}).await;
    let nodes = nodes(20);
    world.register_all(&nodes, &labels()).await;
    world.all_recorded(&nodes, &labels()).await;
    for (round, (leaves, joins)) in [("a", "d"), ("b", "e"), ("c", "f")].into_iter().enumerate() {
        for (at, node) in nodes.iter().enumerate() {
            world.label(node, "round", Some(&round.to_string())).await;
            world.delete(node).await;
            world.register(node, &pairs([])).await;
            if at == 5 {
                world.start_member(joins).await;
            }
            if at == 10 && round == 1 {
                world.stop_member(leaves).await;
            } else if at == 10 {
                world.crash_member(leaves).await;
            }
        }
        let expected = pairs([("team", "blue"), ("round", &round.to_string())]);
        for node in &nodes {
            world.labels_become(node, &expected).await;
        }
        world.all_rest().await;
    }
    world.all_recorded(&nodes, &pairs([("team", "blue"), ("round", "2")])).await;
    assert!(world.patches().values().all(|patches| *patches == 3), "{:?}", world.patches());
}

#[tokio::test]
async fn replicas_that_disagree_about_the_members_are_harmless() {
    let mut world = World::without_keeper("").await;
    // Each of the two believes that it is alone, and the third that it is the second of two.
    world.start_keeper().await;
    world.start_keeper_beside(|_| {}).await;
    world.start_member_with("third", |_, members| members.takeover = Duration::from_millis(50)).await;
    let nodes = nodes(10);
    world.register_all(&nodes, &labels()).await;
    world.all_recorded(&nodes, &labels()).await;
    for node in &nodes {
        world.label(node, "team", Some("red")).await;
        world.delete(node).await;
        world.register(node, &pairs([])).await;
    }
    for node in &nodes {
        world.labels_become(node, &pairs([("team", "red")])).await;
        world.record_becomes(node, "is open", |record| record.given).await;
    }
    world.caught_up().await;
    assert!(world.patches().values().all(|patches| *patches == 1), "{:?}", world.patches());
}
