//! The oracle on a real control plane: it misses nothing, whatever is restarted, and tells hands from keepers.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use perennial_core::policy::Policy;
use perennial_testkit::{
    ControlPlane, company_labels, node_name,
    oracle::{Breach, HAND, Judge, Oracle},
    registration,
};
use serde_json::{Value, json};

async fn start() -> (ControlPlane, Oracle, Api<Node>) {
    start_storing("application/vnd.kubernetes.protobuf").await
}

async fn start_storing(media_type: &str) -> (ControlPlane, Oracle, Api<Node>) {
    let stores = format!("--storage-media-type={media_type}");
    let plane = ControlPlane::builder().without_audit().apiserver_flag(&stores).start().await.unwrap();
    let oracle = Oracle::follow(&plane, Judge::new(Policy::default(), "perennial")).await.unwrap();
    let nodes = Api::all(plane.admin());
    (plane, oracle, nodes)
}

/// A node with its company's labels.
async fn create(nodes: &Api<Node>, index: usize, hand: &str) {
    let mut node = registration(index);
    node.metadata.labels.get_or_insert_default().extend(company_labels(index));
    node.metadata.annotations.get_or_insert_default().insert(HAND.to_owned(), hand.to_owned());
    nodes.create(&PostParams::default(), &node).await.unwrap();
}

async fn patch(nodes: &Api<Node>, index: usize, metadata: Value) {
    let patch = Patch::Merge(json!({ "metadata": metadata }));
    nodes.patch(&node_name(index), &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test]
async fn nothing_is_missed_while_servers_are_restarted() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let (plane, oracle, nodes) = start().await;
    create(&nodes, 0, "1").await;
    plane.restart_apiserver().await.unwrap();
    nodes.delete(&node_name(0), &DeleteParams::default()).await.unwrap();
    create(&nodes, 0, "2").await;
    plane.restart_etcd().await.unwrap();
    create(&nodes, 1, "3").await;
    oracle.fence().await.unwrap();
    assert_eq!(oracle.look(|judge| judge.tally().lives), 3);
    assert_eq!(oracle.look(|judge| judge.violations().to_vec()), []);
    let unsettled = oracle.look(Judge::unsettled);
    assert_eq!(unsettled.len(), 2, "{unsettled:?}");
}

#[tokio::test]
async fn a_write_that_no_hand_made_is_a_keepers() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let (_plane, oracle, nodes) = start().await;
    create(&nodes, 0, "1").await;
    patch(&nodes, 0, json!({"labels": {"team": null}, "annotations": {HAND: "2"}})).await;
    oracle.fence().await.unwrap();
    assert_eq!(oracle.look(|judge| judge.violations().to_vec()), []);
    patch(&nodes, 0, json!({"labels": {"pool": null}})).await;
    oracle.fence().await.unwrap();
    let broken: Vec<Breach> = oracle.look(|judge| judge.violations().iter().map(|one| one.breach).collect());
    assert!(broken.contains(&Breach::Taken), "{broken:?}");
}

#[tokio::test]
async fn a_node_reads_the_same_whether_the_api_server_stores_json_or_protobuf() {
    for media_type in ["application/json", "application/vnd.kubernetes.protobuf"] {
        let (_plane, oracle, nodes) = start_storing(media_type).await;
        create(&nodes, 0, "1").await;
        // A hand's changes, of every kind, are a hand's; a status alone is nobody's business.
        let spec =
            json!({ "unschedulable": true, "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}] });
        let metadata =
            json!({ "annotations": {HAND: "2", "example.com/note": "x"}, "labels": {"team": null} });
        let patch = Patch::Merge(json!({ "metadata": metadata, "spec": spec }));
        nodes.patch(&node_name(0), &PatchParams::default(), &patch).await.unwrap();
        oracle.fence().await.unwrap();
        assert_eq!(oracle.look(|judge| judge.violations().to_vec()), [], "{media_type}");

        let takes = [
            (json!({ "spec": {"unschedulable": null} }), "-the cordon"),
            (json!({ "spec": {"taints": null} }), "-taint a:NoSchedule"),
            (
                json!({ "metadata": {"annotations": {"example.com/note": null}} }),
                "-annotation example.com/note",
            ),
            (json!({ "metadata": {"labels": {"pool": null}} }), "-pool"),
        ];
        for (index, (patch, what)) in takes.into_iter().enumerate() {
            let node = 1 + index;
            create(&nodes, node, &format!("3-{index}")).await;
            let hand = json!({ "annotations": {HAND: format!("4-{index}"), "example.com/note": "x"} });
            let spec = json!({ "unschedulable": true, "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}] });
            let bears = Patch::Merge(json!({ "metadata": hand, "spec": spec }));
            nodes.patch(&node_name(node), &PatchParams::default(), &bears).await.unwrap();
            nodes.patch(&node_name(node), &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
            oracle.fence().await.unwrap();
            let taken = oracle.look(|judge| {
                let of_node = judge.violations().iter().filter(|one| one.node == node_name(node));
                of_node
                    .filter(|one| one.breach == Breach::Taken)
                    .map(|one| one.what.clone())
                    .collect::<Vec<_>>()
            });
            assert!(taken.iter().any(|one| one.contains(what)), "{media_type}: {what}: {taken:?}");
        }
    }
}

#[tokio::test]
async fn a_history_that_was_turned_back_is_judged_from_there() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let (plane, oracle, nodes) = start().await;
    create(&nodes, 0, "1").await;
    oracle.fence().await.unwrap();
    let snapshot = plane.snapshot_etcd().await.unwrap();
    nodes.delete(&node_name(0), &DeleteParams::default()).await.unwrap();
    create(&nodes, 1, "2").await;
    oracle.fence().await.unwrap();
    assert_eq!(oracle.look(|judge| judge.tally().lives), 2);

    oracle.suspend().await.unwrap();
    plane.restore_etcd(&snapshot).await.unwrap();
    oracle.restored(snapshot.revision).unwrap();
    create(&nodes, 2, "3").await;
    oracle.fence().await.unwrap();
    assert_eq!(oracle.look(|judge| judge.tally().lives), 2);
    let names: Vec<String> = oracle.look(Judge::unsettled).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, [node_name(2), node_name(0)]);
    assert_eq!(oracle.look(|judge| judge.violations().to_vec()), []);
}

#[tokio::test]
async fn what_was_broken_in_a_history_stays_broken_when_it_is_turned_back() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let (plane, oracle, nodes) = start().await;
    create(&nodes, 0, "1").await;
    oracle.fence().await.unwrap();
    let snapshot = plane.snapshot_etcd().await.unwrap();
    patch(&nodes, 0, json!({"labels": {"pool": null}})).await;
    oracle.suspend().await.unwrap();
    plane.restore_etcd(&snapshot).await.unwrap();
    oracle.restored(snapshot.revision).unwrap();
    let broken: Vec<Breach> = oracle.look(|judge| judge.violations().iter().map(|one| one.breach).collect());
    assert!(broken.contains(&Breach::Taken), "{broken:?}");
}
