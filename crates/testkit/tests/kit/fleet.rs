//! The fleet on a real API server.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::Node;
use kube::{Api, ResourceExt, api::ListParams};
use perennial_testkit::{ControlPlane, Fleet, company_labels, kubelet_labels, node_name};

const NODES: usize = 300;

async fn nodes(api: &Api<Node>) -> kube::Result<BTreeMap<String, Node>> {
    let list = api.list(&ListParams::default()).await?;
    Ok(list.items.into_iter().map(|node| (node.name_any(), node)).collect())
}

fn heartbeat(node: &Node) -> Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::Time> {
    node.status.as_ref()?.conditions.as_ref()?.first()?.last_heartbeat_time.as_ref()
}

#[tokio::test]
async fn a_fleet_is_created_beats_is_deleted_and_comes_back_bare() {
    let controlplane = ControlPlane::start().await.unwrap();
    let api: Api<Node> = Api::all(controlplane.admin());
    let fleet = Fleet::new(controlplane.admin());

    let started = Instant::now();
    fleet.create(0..NODES).await.unwrap();
    println!("{NODES} nodes created in {:?}", started.elapsed());
    let first = nodes(&api).await.unwrap();
    assert_eq!(first.len(), NODES);
    for index in 0..NODES {
        let node = &first[&node_name(index)];
        let size = serde_json::to_vec(node).unwrap().len();
        assert!((8_000..=14_000).contains(&size), "{size} bytes");
        let mut expected = kubelet_labels(index);
        expected.extend(company_labels(index));
        assert_eq!(*node.labels(), expected);
        assert!(heartbeat(node).is_some(), "a status is taken at creation");
    }
    assert!(fleet.create(0..1).await.unwrap_err().to_string().contains("is there already"));

    let written = fleet.heartbeats(0..NODES, 300, Duration::from_secs(1)).await.unwrap();
    assert_eq!(written, NODES);
    let beaten = nodes(&api).await.unwrap();
    for (name, node) in &beaten {
        assert!(heartbeat(node) > heartbeat(&first[name]), "{name}");
        assert_eq!(node.labels(), first[name].labels());
    }

    fleet.delete(0..10).await.unwrap();
    fleet.register(0..10).await.unwrap();
    fleet.recreate(10..NODES).await.unwrap();
    let again = nodes(&api).await.unwrap();
    for index in 0..NODES {
        let node = &again[&node_name(index)];
        assert_eq!(*node.labels(), kubelet_labels(index));
        assert_eq!(node.spec, first[&node_name(index)].spec, "the same machine");
        assert_ne!(node.uid(), first[&node_name(index)].uid());
    }
}

#[tokio::test]
async fn a_fleet_goes_on_while_the_api_server_is_restarted() {
    let controlplane = ControlPlane::start().await.unwrap();
    let fleet = Fleet::new(controlplane.admin()).concurrency(4);
    let restart = async {
        controlplane.kill_apiserver().await?;
        controlplane.start_apiserver().await
    };
    tokio::try_join!(fleet.create(0..NODES), restart).unwrap();
    assert_eq!(nodes(&Api::all(controlplane.admin())).await.unwrap().len(), NODES);
}
