//! A replica joins, or comes back, and is told old or incomplete things, beside one that knows better.

use std::collections::BTreeMap;
use std::time::Duration;

use perennial_testkit::proxy::{Fault, Matcher, Verb};

use crate::members::NEVER;
use crate::through::first_for;
use crate::world::{World, pairs};

const MEMBERS: [&str; 2] = ["a", "b"];

fn names(count: usize) -> Vec<String> {
    MEMBERS.iter().flat_map(|member| first_for(member, &MEMBERS, count)).collect()
}

/// The writes of records that are there.
fn record_writes() -> Matcher {
    Matcher::on("configmaps").verbs([Verb::Update])
}

#[tokio::test]
async fn a_joiner_that_sees_only_a_bare_newborn_and_an_old_record_leaves_it_to_the_one_who_saw_the_end() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let mut world = World::without_keeper("").await;
    let witness = world.proxy().await;
    world.start_through(&witness, "a").await;
    let nodes = names(2);
    world.begin_with(&nodes, "blue").await;
    // The one who saw the end cannot write, and nobody else can prove it any more.
    let hindered = witness.inject(record_writes(), Fault::Refuse(500));
    for node in &nodes {
        world.return_with(node, "green").await;
    }
    world.metric_of_reaches("a", "errors_total{kind=\"server\"}", 1.0).await;
    world.plane.compact(world.plane.revision().await.unwrap()).await.unwrap();
    let joiner = world.proxy().await;
    world.spawn_through(&joiner, "b", |_, members| members.takeover = NEVER).await;
    world.member_is_ready("b").await;
    hindered.lift();
    world.all_are_back(&nodes, "green").await;
    world.silence().await;
    world.given_once(&nodes, 1);
    world.nothing_is_in_doubt(&nodes).await;
}

#[tokio::test]
async fn a_joiner_that_sees_only_a_bare_newborn_and_an_old_record_proves_the_end_if_nobody_acts() {
    let mut world = World::without_keeper("").await;
    let witness = world.proxy().await;
    world.start_through(&witness, "a").await;
    let nodes = names(2);
    world.begin_with(&nodes, "blue").await;
    let hindered = witness.inject(record_writes(), Fault::Refuse(500));
    for node in &nodes {
        world.return_with(node, "green").await;
    }
    let joiner = world.proxy().await;
    world.start_through(&joiner, "b").await;
    world.all_are_back(&nodes, "green").await;
    assert_eq!(world.metric_of("b", "proofs_total{kind=\"proved\"}"), 4.0);
    assert_eq!(world.metric_of("b", "saves_total{kind=\"give\"}"), 4.0);
    hindered.lift();
    world.silence().await;
    world.given_once(&nodes, 1);
    world.nothing_is_in_doubt(&nodes).await;
}

/// A replica comes back and its lists of `stale` are from before everything that happened meanwhile; its watch
/// of them says nothing of it either, until it is let go.
async fn comes_back_with_stale(stale: &str, other: &str) {
    let mut world = World::without_keeper("").await;
    world.start_member("a").await;
    let late = world.proxy().await;
    world.start_through(&late, "b").await;
    let nodes = names(3);
    world.begin_with(&nodes, "blue").await;
    world.silence().await;
    world.crash_member("b").await;
    let before = world.plane.revision().await.unwrap();
    for node in &nodes {
        world.return_with(node, "green").await;
    }
    world.all_are_back(&nodes, "green").await;
    // Two more that stay in between: one is away, one is changed by hand after its restore.
    world.delete(&nodes[0]).await;
    world.closed(&nodes[0], &pairs([("team", "green")])).await;
    world.label(&nodes[1], "team", Some("red")).await;
    world.recorded(&nodes[1], &pairs([("team", "red")])).await;
    let records = versions(&world, &nodes).await;

    let lists = late.inject(Matcher::lists(stale), Fault::Stale(before).once());
    let watches = ["MODIFIED", "DELETED"]
        .map(|kind| late.inject(Matcher::watches(stale).no_query("limit=1").event(kind), Fault::Hold));
    world.spawn_through(&late, "b", |_, members| members.takeover = Duration::ZERO).await;
    world.member_is_ready("b").await;
    assert_eq!(lists.met(), 1, "{stale}");
    // It is in step with the past, and tries what it thinks right: nothing of it may come to pass.
    world.annotate(&nodes[2], "example.com/now", Some("yes")).await;
    world.label(&nodes[4], "team", Some("new")).await;
    world.recorded(&nodes[4], &pairs([("team", "new")])).await;
    for watch in watches {
        watch.lift();
    }
    world.silence().await;
    let mut expected = versions(&world, &nodes).await;
    expected.insert(nodes[4].clone(), records[&nodes[4]].clone());
    assert_eq!(expected, records, "no record was written again ({stale} stale, {other} fresh)");
    world.given_once(&nodes, 1);
}

/// The records' versions.
async fn versions(world: &World, nodes: &[String]) -> BTreeMap<String, String> {
    let mut versions = BTreeMap::new();
    for node in nodes {
        let map = world.config_map(node).await.unwrap();
        versions.insert(node.clone(), map.metadata.resource_version.unwrap());
    }
    versions
}

#[tokio::test]
async fn a_replica_that_comes_back_to_a_stale_list_of_nodes_undoes_nothing() {
    comes_back_with_stale("nodes", "records").await;
}

#[tokio::test]
async fn a_replica_that_comes_back_to_a_stale_list_of_records_undoes_nothing() {
    comes_back_with_stale("configmaps", "nodes").await;
}

#[tokio::test]
async fn lists_that_are_empty_thin_cut_or_slow_for_a_joiner_change_nothing() {
    let mut world = World::without_keeper("").await;
    world.start_member("a").await;
    let nodes = names(4);
    world.begin_with(&nodes, "blue").await;
    for node in &nodes[..2] {
        world.return_with(node, "blue").await;
    }
    world.all_are_back(&nodes[..2], "blue").await;
    world.delete(&nodes[2]).await;
    world.closed(&nodes[2], &pairs([("team", "blue")])).await;
    world.silence().await;
    let before = versions(&world, &nodes).await;
    let slow = Fault::Dribble(512, Duration::from_millis(20));
    for fault in [Fault::Empty, Fault::Thin(0.5), Fault::Break, slow] {
        for resource in ["nodes", "configmaps"] {
            let said = format!("{fault:?} {resource}");
            let proxy = world.proxy().await;
            let lists = Matcher::lists(resource).no_query("limit=1").no_query("fieldSelector");
            let bent = proxy.inject(lists, fault.clone().once());
            world.spawn_through(&proxy, "b", |_, m| m.takeover = Duration::ZERO).await;
            world.member_is_ready("b").await;
            assert_eq!(bent.met(), 1, "{said}");
            for node in &nodes[3..5] {
                world.annotate(node, "example.com/now", Some(&said)).await;
            }
            bent.lift();
            world.stop_member("b").await;
            assert_eq!(versions(&world, &nodes).await, before, "{said}");
        }
    }
    world.silence().await;
    // The one that was away returns, and the others go on.
    world.register(&nodes[2], &pairs([])).await;
    world.labels_become(&nodes[2], &pairs([("team", "blue")])).await;
    world.given_once(&nodes[..3], 1);
    assert_eq!(world.patches().len(), 3, "{:?}", world.patches());
}
