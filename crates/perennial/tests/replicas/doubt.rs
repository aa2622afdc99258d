//! One of two replicas missed what the other saw: past the watch cache, past all history.

use std::time::Duration;

use kube::api::ListParams;
use perennial_testkit::proxy::{Fault, Matcher, Verb};
use serde_json::json;

use crate::members::NEVER;
use crate::through::first_for;
use crate::world::{World, pairs};

const MEMBERS: [&str; 2] = ["a", "b"];

fn names(count: usize) -> Vec<String> {
    MEMBERS.iter().flat_map(|member| first_for(member, &MEMBERS, count)).collect()
}

#[tokio::test]
async fn what_one_of_two_missed_past_the_watch_cache_needs_no_proof_while_the_other_saw_it() {
    let mut world = World::without_keeper("").await;
    let proxies = [world.proxy().await, world.proxy().await];
    let [missed, saw] = &proxies;
    // The one that did not see it has patience; the one that did, none.
    world.spawn_through(missed, "a", |_, members| members.takeover = Duration::from_secs(5)).await;
    world.spawn_through(saw, "b", |_, members| members.takeover = Duration::ZERO).await;
    for member in MEMBERS {
        world.member_is_ready(member).await;
        world.sees(member, 2).await;
    }
    let nodes = first_for("a", &MEMBERS, 4);
    world.begin_with(&nodes, "blue").await;
    world.silence().await;
    let gap = missed.partition(&Matcher::watches("nodes"));
    let hindered = saw.inject(Matcher::on("configmaps").verbs([Verb::Update]), Fault::Hang);
    for node in &nodes {
        world.return_with(node, "green").await;
    }
    let expired = missed.inject(Matcher::watches("nodes"), Fault::Expire.once());
    gap.lift();
    world.metric_of_reaches("a", "relists_total", 1.0).await;
    drop(expired);
    // It sees the newborns, and an open record of those before them. It leaves them to who may know more.
    world.metric_of_reaches("a", "pending", 4.0).await;
    hindered.lift();
    world.all_are_back(&nodes, "green").await;
    world.silence().await;
    world.given_once(&nodes, 1);
    for kind in ["proved", "lost"] {
        assert_eq!(world.metric_of_all(&format!("proofs_total{{kind=\"{kind}\"}}")), 0.0, "{kind}");
    }
}

#[tokio::test]
async fn what_one_of_two_missed_past_all_history_is_not_in_doubt_while_the_other_saw_it() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let mut world = World::without_keeper("").await;
    let [missed, saw] = world.two_members(|members| members.takeover = Duration::from_secs(1)).await;
    let nodes = first_for("a", &MEMBERS, 4);
    world.begin_with(&nodes, "blue").await;
    world.silence().await;
    let gap = missed.partition(&Matcher::watches("nodes"));
    let hindered = saw.inject(Matcher::on("configmaps").verbs([Verb::Update]), Fault::Hang);
    for node in &nodes[..2] {
        world.return_with(node, "green").await;
    }
    for node in &nodes[2..] {
        world.label(node, "team", Some("green")).await;
        world.delete(node).await;
    }
    world.plane.compact(world.plane.revision().await.unwrap()).await.unwrap();
    let expired = missed.inject(Matcher::watches("nodes"), Fault::Expire.once());
    gap.lift();
    // It asks history after one takeover, in vain, and gives up after two: meanwhile the other acts.
    world.metric_of_reaches("a", "proofs_total{kind=\"lost\"}", 1.0).await;
    hindered.lift();
    drop(expired);
    for node in &nodes[2..] {
        world.closed(node, &pairs([("team", "green")])).await;
        world.register(node, &pairs([])).await;
    }
    world.all_are_back(&nodes, "green").await;
    world.silence().await;
    world.given_once(&nodes, 1);
    world.nothing_is_in_doubt(&nodes).await;
}

#[tokio::test]
async fn an_end_that_was_closed_in_doubt_is_put_right_by_the_one_who_saw_it() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let mut world = World::without_keeper("").await;
    let [missed, saw] = world.two_members(|_| {}).await;
    let nodes = names(1);
    world.begin_with(&nodes, "blue").await;
    world.silence().await;
    let gap = missed.partition(&Matcher::watches("nodes"));
    let hindered = saw.partition(&Matcher::on("configmaps"));
    for node in &nodes {
        world.label(node, "team", Some("green")).await;
        world.delete(node).await;
    }
    world.plane.compact(world.plane.revision().await.unwrap()).await.unwrap();
    gap.lift();
    world.expire(&missed, "a").await;
    for node in &nodes {
        assert!(world.closed(node, &pairs([("team", "blue")])).await.unproved.is_some());
    }
    hindered.lift();
    for node in &nodes {
        assert_eq!(world.closed(node, &pairs([("team", "green")])).await.unproved, None);
        world.register(node, &pairs([])).await;
    }
    world.all_are_back(&nodes, "green").await;
    world.silence().await;
    world.given_once(&nodes, 1);
}

#[tokio::test]
async fn the_end_before_a_paused_life_is_recorded_and_given_when_the_pause_ends() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let mut world = World::without_keeper("").await;
    let [first, second] = world.two_members(|members| members.lease = NEVER).await;
    let nodes = first_for("a", &MEMBERS, 4);
    let (recorded, unrecorded) = nodes.split_at(2);
    world.begin_with(recorded, "blue").await;
    world.silence().await;
    world.crash_member("a").await;
    drop(first);
    let hindered =
        second.inject(Matcher::on("configmaps").verbs([Verb::Create, Verb::Update]), Fault::Refuse(500));
    for node in unrecorded {
        world.register(node, &pairs([("team", "blue")])).await;
    }
    for node in &nodes {
        world.label(node, "team", Some("green")).await;
        world.delete(node).await;
        let paused =
            json!({ "metadata": { "name": node, "annotations": { "perennial.dev/pause": "true" } } });
        world.create(paused).await;
    }
    // The second in line knows that the nodes are back by the time that it may write.
    let known = world.nodes().list_metadata(&ListParams::default()).await.unwrap().items.len() + 1;
    world.register("beside", &pairs([])).await;
    world.metric_becomes("b", "nodes", f64::from(u32::try_from(known).unwrap())).await;
    hindered.lift();
    for node in &nodes {
        world.closed(node, &pairs([("team", "green")])).await;
    }
    world.stop_member("b").await;
    world.plane.compact(world.plane.revision().await.unwrap()).await.unwrap();
    world.start_members(&MEMBERS, |_| {}).await;
    world.silence().await;
    world.given_once(&nodes, 0);
    for node in &nodes {
        assert_eq!(world.labels(node).await, pairs([]), "{node} is paused");
        world.annotate(node, "perennial.dev/pause", None).await;
    }
    world.all_are_back(&nodes, "green").await;
    world.silence().await;
    world.given_once(&nodes, 1);
    world.nothing_is_in_doubt(&nodes).await;
}
