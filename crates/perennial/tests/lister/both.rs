//! One process that keeps nodes and publishes listings, as the real binary.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use perennial_testkit::{ControlPlane, KeeperProcess, eventually};
use serde_json::json;

use crate::plane::Plane;
use crate::world::{SOON, World, into_config_map, lines};

/// A process that does both, and does not wait until it is ready.
async fn both(plane: &ControlPlane, namespace: &str) -> KeeperProcess {
    plane.kubeconfig_for_lister(namespace).await.unwrap();
    let kubeconfig = plane.kubeconfig_for_keeper(namespace).await.unwrap();
    let builder = KeeperProcess::builder(env!("CARGO_BIN_EXE_perennial"), plane.logs());
    let builder = builder.kubeconfig(kubeconfig).namespace(namespace);
    builder.arg("--roles=keeper,lister").arg("--close-after=100ms").spawn().await.unwrap()
}

#[tokio::test]
async fn one_replica_keeps_nodes_and_publishes_listings() {
    let world = World::alone().await;
    let process = both(&world.plane, &world.namespace).await;
    process.ready(SOON).await.unwrap();
    let nodes: Api<Node> = Api::all(world.client());
    let node =
        |labels| serde_json::from_value(json!({ "metadata": { "name": "n", "labels": labels } })).unwrap();
    nodes.create(&PostParams::default(), &node(json!({ "rack": "r1" }))).await.unwrap();
    world.endpoints("web", &["10.0.0.1"]).await;
    world.listing("web", into_config_map("web")).await;
    world.says("out", &lines(&["10.0.0.1"])).await;
    nodes.delete("n", &DeleteParams::default()).await.unwrap();
    nodes.create(&PostParams::default(), &node(json!({}))).await.unwrap();
    eventually(SOON, "the node has its label back", || async {
        let labels = nodes.get("n").await?.metadata.labels.unwrap_or_default();
        Ok((labels.get("rack").map(String::as_str) == Some("r1")).then_some(()))
    })
    .await
    .unwrap();
    let leases = Api::<Lease>::namespaced(world.client(), &world.namespace);
    assert_eq!(leases.list(&ListParams::default()).await.unwrap().items.len(), 1, "one member, two roles");
    let (page, metrics) =
        (process.get(&format!("/listings/{}/web", world.namespace)).await, process.metrics().await.unwrap());
    assert_eq!(page.unwrap(), lines(&["10.0.0.1"]));
    assert_eq!(metrics["perennial_restores_total"].to_bits(), 1_f64.to_bits());
    assert!(metrics["perennial_listing_render_seconds_count"] >= 1.0);
    assert!(process.stop().await.unwrap().success());
    assert!(leases.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_lister_whose_definition_is_missing_says_so_and_goes_on_once_it_is_there() {
    let plane = Plane::own(ControlPlane::start().await.unwrap());
    let process = both(&plane, "perennial").await;
    eventually(SOON, "the log names what is missing", || async {
        let log = process.log()?;
        Ok((log.contains("listings") && log.contains("deploy/crds")).then_some(()))
    })
    .await
    .unwrap();
    assert!(process.get("/readyz").await.is_err(), "it is not ready");
    plane.install_listings().await.unwrap();
    process.ready(SOON).await.unwrap();
    assert!(process.stop().await.unwrap().success());
}
