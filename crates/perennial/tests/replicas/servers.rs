//! Three API servers behind a balancer over three etcd members: a server is frozen and another is killed under three
//! replicas whose watches are spread over all of them.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use perennial_testkit::ControlPlane;
use serde_json::json;

use crate::world::{World, connect, pairs};

const MEMBERS: [&str; 3] = ["a", "b", "c"];
/// The one that people and kubelets are connected to; nothing happens to it.
const WELL: usize = 0;
const FROZEN: usize = 1;
const KILLED: usize = 2;
/// How long a server is frozen.
const FOR: Duration = Duration::from_secs(8);

/// What people and kubelets do, at the server that is well.
struct People(Api<Node>);

impl People {
    async fn label(&self, node: &str, value: &str) {
        let patch = json!({ "metadata": { "labels": { "team": value } } });
        self.0.patch(node, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    async fn delete(&self, node: &str) {
        self.0.delete(node, &DeleteParams::default()).await.unwrap();
    }

    async fn register(&self, node: &str) {
        let node = serde_json::from_value(json!({ "metadata": { "name": node } })).unwrap();
        self.0.create(&PostParams::default(), &node).await.unwrap();
    }

    /// Each of them gets another label, is deleted, and joins again bare.
    async fn return_with(&self, nodes: &[String], value: &str) {
        for node in nodes {
            self.label(node, value).await;
            self.delete(node).await;
            self.register(node).await;
        }
    }
}

fn names(group: &str) -> Vec<String> {
    (0..6).map(|number| format!("{group}-{number}")).collect()
}

#[tokio::test]
async fn a_server_is_frozen_and_another_killed_under_three_replicas_and_every_node_gets_its_labels() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let plane = ControlPlane::builder().api_servers(3).etcd_members(3).start().await.unwrap();
    let mut world = World::on(plane, "").await;
    for name in MEMBERS {
        // Each has connections of its own.
        let account = connect(world.kubeconfig()).await;
        world.spawn_member(name, account, |_, _| {});
    }
    for name in MEMBERS {
        world.member_is_ready(name).await;
        world.sees(name, 3).await;
    }
    let people = People(Api::all(world.plane.api_server(WELL).admin()));
    let (returning, away, staying) = (names("returning"), names("away"), names("staying"));
    for nodes in [&returning, &away, &staying] {
        world.begin_with(nodes, "blue").await;
    }

    world.plane.api_server(FROZEN).pause().await.unwrap();
    let frozen = Instant::now();
    people.return_with(&returning, "green").await;
    for node in &away {
        people.label(node, "green").await;
        people.delete(node).await;
    }
    let mut changes = 0;
    while frozen.elapsed() < FOR {
        changes += 1;
        for node in &staying {
            people.label(node, &format!("change-{changes}")).await;
        }
    }
    world.plane.api_server(FROZEN).resume().await.unwrap();

    world.plane.api_server(KILLED).kill().await.unwrap();
    for node in &away {
        people.register(node).await;
    }
    people.return_with(&staying, "red").await;
    world.all_are_back(&returning, "green").await;
    world.all_are_back(&away, "green").await;
    world.all_are_back(&staying, "red").await;

    world.plane.api_server(KILLED).start().await.unwrap();
    people.return_with(&returning, "red").await;
    world.all_are_back(&returning, "red").await;
    world.silence().await;
    for nodes in [&returning, &away, &staying] {
        world.nothing_is_in_doubt(nodes).await;
    }
    assert_eq!(world.labels(&away[0]).await, pairs([("team", "green")]), "and nobody touched it again");
}
