//! The real binary is killed at every call that it makes, before the request and before the reply.

use perennial_core::record::State;
use perennial_testkit::proxy::{Matcher, Moment, Stop, Stopped};

use crate::through::first_for;
use crate::world::{World, pairs};

/// What the scenario is made of: all but the Leases, which come and go by the clock, and Events.
fn calls() -> Matcher {
    Matcher::any().when(|call| call.resource != "leases" && call.resource != "events")
}

const MOMENTS: [Moment; 2] = [Moment::BeforeRequest, Moment::BeforeReply];
/// More calls than any of the scenarios makes: a test that gets there does not end.
const MANY: u64 = 60;

/// Does what happens to the node until it stands still, or until all of it happened.
async fn until_stopped(stop: Stop, story: impl Future<Output = ()>) -> Option<Stopped> {
    tokio::select! {
        stopped = stop.reached() => Some(stopped.unwrap()),
        () = story => None,
    }
}

/// A label changes, the node goes, comes back bare, gets its own, and is changed again.
async fn life(world: &World, node: &str) {
    world.label(node, "team", Some("green")).await;
    world.recorded(node, &pairs([("team", "green")])).await;
    world.delete(node).await;
    world.register(node, &pairs([])).await;
    world.labels_become(node, &pairs([("team", "green")])).await;
    world.record_becomes(node, "is open", |record| record.given && record.state == State::Open).await;
    world.label(node, "team", Some("red")).await;
    world.recorded(node, &pairs([("team", "red")])).await;
}

#[tokio::test]
async fn a_replica_killed_at_any_call_is_taken_over_and_everything_is_right() {
    let mut world = World::without_keeper("").await;
    world.start_member("b").await;
    let nodes = first_for("a", &["a", "b"], usize::try_from(MANY).unwrap());
    let mut lived = Vec::new();
    for moment in MOMENTS {
        let mut at = 0;
        loop {
            let node = nodes[lived.len()].clone();
            world.begin_with(std::slice::from_ref(&node), "blue").await;
            lived.push(node.clone());
            let proxy = world.proxy().await;
            let killed = world.process(&proxy, "a").start().await.unwrap();
            world.sees("b", 2).await;
            let mut story = Box::pin(life(&world, &node));
            let Some(stopped) = until_stopped(proxy.stop(calls(), at, moment), &mut story).await else {
                killed.kill9().await.unwrap();
                break;
            };
            killed.kill9().await.unwrap();
            drop(stopped);
            story.await;
            at += 1;
            assert!(at < MANY, "it never ends");
        }
        assert!(at >= 5, "a save, an end, a give, a patch, an opening: {at}");
    }
    world.silence().await;
    for node in &lived {
        assert_eq!(world.labels(node).await, pairs([("team", "red")]), "{node}");
        assert_eq!(world.record(node).await.unwrap().kept.labels, pairs([("team", "red")]), "{node}");
    }
    world.given_once(&lived, 1);
    world.nothing_is_in_doubt(&lived).await;
}

#[tokio::test]
async fn a_replica_killed_at_any_call_of_its_start_and_started_again_proves_and_gives_all_the_same() {
    let world = World::without_keeper("").await;
    let proxy = world.proxy().await;
    let keeper = world.process(&proxy, "a").start().await.unwrap();
    let mut nodes = Vec::new();
    for moment in MOMENTS {
        let mut at = 0;
        loop {
            let node = format!("worker-{}", nodes.len());
            world.begin_with(std::slice::from_ref(&node), "blue").await;
            nodes.push(node.clone());
            keeper.kill9().await.unwrap();
            // Nobody sees how it ends.
            world.return_with(&node, "green").await;
            let stop = proxy.stop(calls(), at, moment);
            let back = world.all_are_back(std::slice::from_ref(&node), "green");
            let mut story = Box::pin(async {
                keeper.start_again().await.unwrap();
                back.await;
            });
            let Some(stopped) = until_stopped(stop, &mut story).await else { break };
            drop(story);
            keeper.kill9().await.unwrap();
            drop(stopped);
            keeper.start_again().await.unwrap();
            world.all_are_back(std::slice::from_ref(&node), "green").await;
            at += 1;
            assert!(at < MANY, "it never ends");
        }
        assert!(at >= 9, "lists, heads, a proof, a give, a patch, an opening: {at}");
    }
    world.given_once(&nodes, 1);
    for node in &nodes {
        assert_eq!(world.record(node).await.unwrap().unproved, None, "{node}");
    }
}
