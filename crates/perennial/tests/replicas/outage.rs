//! etcd is killed, full, or turned back under two replicas.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, ObjectMeta, PostParams};
use perennial_testkit::eventually;

use crate::through::first_for;
use crate::world::{SOON, World, pairs};

const MEMBERS: [&str; 2] = ["a", "b"];
/// More revisions than a starting API server writes by itself.
const MANY: usize = 400;

fn names(count: usize) -> Vec<String> {
    MEMBERS.iter().flat_map(|member| first_for(member, &MEMBERS, count)).collect()
}

/// Something to write.
fn unnamed() -> ConfigMap {
    let metadata = ObjectMeta { generate_name: Some("tick-".to_owned()), ..ObjectMeta::default() };
    ConfigMap { metadata, ..ConfigMap::default() }
}

#[tokio::test]
async fn etcd_is_killed_and_then_full_under_two_replicas_and_nothing_is_lost() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let mut world = World::alone("").await;
    world.start_members(&MEMBERS, |_| {}).await;
    let nodes = names(4);
    world.begin_with(&nodes, "blue").await;
    for node in &nodes {
        world.return_with(node, "green").await;
    }
    world.plane.kill_etcd().await.unwrap();
    world.plane.start_etcd().await.unwrap();
    eventually(SOON, "the API server works again", || async {
        Ok(Some(world.nodes().list(&ListParams::default().limit(1)).await?))
    })
    .await
    .unwrap();
    world.all_are_back(&nodes, "green").await;

    for node in &nodes {
        world.label(node, "team", Some("red")).await;
    }
    world.plane.fill_etcd(true).await.unwrap();
    // Nothing can be written, but nodes can be deleted all the same.
    let maps: Api<ConfigMap> = Api::namespaced(world.plane.admin(), "default");
    let (more, params) = (unnamed(), PostParams::default());
    assert!(maps.create(&params, &more).await.is_err(), "etcd is full");
    for node in &nodes {
        world.delete(node).await;
    }
    world.metric_of_reaches("a", "errors_total{kind=\"server\"}", 1.0).await;
    world.metric_of_reaches("b", "errors_total{kind=\"server\"}", 1.0).await;
    world.plane.fill_etcd(false).await.unwrap();
    for node in &nodes {
        world.closed(node, &pairs([("team", "red")])).await;
        world.register(node, &pairs([])).await;
    }
    world.all_are_back(&nodes, "red").await;
    world.silence().await;
    world.given_once(&nodes, 2);
    world.nothing_is_in_doubt(&nodes).await;
}

#[tokio::test]
async fn etcd_is_turned_back_under_two_replicas_and_both_work_on() {
    let mut world = World::alone("").await;
    world.start_members(&MEMBERS, |_| {}).await;
    let nodes = names(2);
    world.begin_with(&nodes, "blue").await;
    world.delete(&nodes[0]).await;
    world.closed(&nodes[0], &pairs([("team", "blue")])).await;
    world.silence().await;
    let snapshot = world.plane.snapshot_etcd().await.unwrap();
    // What follows will not have happened.
    world.register(&nodes[0], &pairs([])).await;
    for node in &nodes[1..] {
        world.return_with(node, "green").await;
    }
    world.all_are_back(&nodes[..1], "blue").await;
    world.all_are_back(&nodes[1..], "green").await;
    let maps: Api<ConfigMap> = Api::namespaced(world.plane.admin(), "default");
    let (tick, params) = (unnamed(), PostParams::default());
    let ticks = stream::iter(0..MANY).map(|_| maps.create(&params, &tick));
    ticks.buffer_unordered(16).try_for_each(|_| std::future::ready(Ok(()))).await.unwrap();
    world.silence().await;

    world.plane.restore_etcd(&snapshot).await.unwrap();
    for member in MEMBERS {
        world.metric_of_reaches(member, "histories_total", 1.0).await;
        world.member_is_ready(member).await;
        world.sees(member, 2).await;
    }
    // The one that was away comes back again, the others change, go and come back.
    world.register(&nodes[0], &pairs([])).await;
    world.all_are_back(&nodes[..1], "blue").await;
    for node in &nodes[1..] {
        assert_eq!(world.labels(node).await, pairs([("team", "blue")]), "as it was");
        world.return_with(node, "red").await;
    }
    world.all_are_back(&nodes[1..], "red").await;
    world.silence().await;
    world.nothing_is_in_doubt(&nodes).await;
    // Two lives of each name were given something, one of them in a history that is no more.
    world.given_once(&nodes, 2);
}
