//! Restarts, compaction and snapshots of a real control plane.

use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams, PostParams, VersionMatch},
};
use perennial_testkit::{ControlPlane, Fleet, Pids};
use serde_json::json;

async fn create(nodes: &Api<Node>, name: &str) -> kube::Result<Node> {
    let mut node = Node::default();
    node.metadata.name = Some(name.to_owned());
    nodes.create(&PostParams::default(), &node).await
}

async fn names(controlplane: &ControlPlane) -> kube::Result<Vec<String>> {
    let nodes = Api::<Node>::all(controlplane.admin()).list(&ListParams::default()).await?;
    Ok(nodes.items.into_iter().filter_map(|node| node.metadata.name).collect())
}

/// The node as it was at a version.
async fn at(nodes: &Api<Node>, name: &str, version: &str) -> kube::Result<Vec<Node>> {
    let exactly = ListParams::default()
        .fields(&format!("metadata.name={name}"))
        .at(version)
        .matching(VersionMatch::Exact);
    Ok(nodes.list(&exactly).await?.items)
}

#[tokio::test]
async fn a_restart_keeps_the_address_and_the_data() {
    let controlplane = ControlPlane::start().await.unwrap();
    let nodes: Api<Node> = Api::all(controlplane.admin());
    create(&nodes, "a").await.unwrap();
    let before = controlplane.pids().await;

    controlplane.restart_apiserver().await.unwrap();
    // The same client, over a new connection.
    nodes.get("a").await.unwrap();
    controlplane.restart_etcd().await.unwrap();
    nodes.get("a").await.unwrap();
    let after = controlplane.pids().await;
    assert_ne!(before.apiserver, after.apiserver);
    assert_ne!(before.etcd, after.etcd);

    controlplane.stop_apiserver().await.unwrap();
    assert!(nodes.get("a").await.is_err());
    assert!(controlplane.stop_apiserver().await.unwrap_err().to_string().contains("is not running"));
    assert_eq!(controlplane.pids().await, Pids { apiserver: None, ..after });
    controlplane.start_apiserver().await.unwrap();
    assert!(controlplane.start_apiserver().await.unwrap_err().to_string().contains("runs already"));
    controlplane.pause_apiserver().await.unwrap();
    controlplane.resume_apiserver().await.unwrap();
    assert_eq!(names(&controlplane).await.unwrap(), ["a"]);
}

#[tokio::test]
async fn an_old_version_is_gone_after_compaction() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let controlplane = ControlPlane::start().await.unwrap();
    let nodes: Api<Node> = Api::all(controlplane.admin());
    let old = create(&nodes, "a").await.unwrap().metadata.resource_version.unwrap();
    let label = json!({"metadata": {"labels": {"team": "search"}}});
    nodes.patch("a", &PatchParams::default(), &Patch::Merge(label)).await.unwrap();
    nodes.delete("a", &kube::api::DeleteParams::default()).await.unwrap();

    let was = at(&nodes, "a", &old).await.unwrap();
    assert_eq!(was.len(), 1, "history still has it");
    assert_eq!(was[0].metadata.labels, None);

    controlplane.compact(controlplane.revision().await.unwrap()).await.unwrap();
    match at(&nodes, "a", &old).await {
        Err(kube::Error::Api(status)) => assert_eq!((status.code, status.reason.as_str()), (410, "Expired")),
        other => panic!("still served: {other:?}"),
    }
}

#[tokio::test]
async fn a_restored_snapshot_runs_the_revision_backwards() {
    let controlplane = ControlPlane::start().await.unwrap();
    let nodes: Api<Node> = Api::all(controlplane.admin());
    create(&nodes, "a").await.unwrap();
    let snapshot = controlplane.snapshot_etcd().await.unwrap();
    // More than the API server writes by itself when it starts.
    Fleet::new(controlplane.admin()).register(0..300).await.unwrap();
    let later = controlplane.revision().await.unwrap();

    controlplane.restore_etcd(&snapshot).await.unwrap();
    assert_eq!(names(&controlplane).await.unwrap(), ["a"]);
    let now = controlplane.revision().await.unwrap();
    assert!((snapshot.revision..later).contains(&now), "{} then {later}, now {now}", snapshot.revision);
}

#[tokio::test]
async fn a_full_etcd_takes_nothing_until_there_is_room() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let controlplane = ControlPlane::start().await.unwrap();
    let nodes: Api<Node> = Api::all(controlplane.admin());
    controlplane.fill_etcd(true).await.unwrap();
    let error = create(&nodes, "a").await.unwrap_err().to_string();
    assert!(error.contains("space exceeded"), "{error}");
    controlplane.fill_etcd(false).await.unwrap();
    create(&nodes, "a").await.unwrap();
}
