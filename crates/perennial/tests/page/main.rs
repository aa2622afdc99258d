//! The status page of the real binary, against a real API server, in a real browser.
#![allow(clippy::unwrap_used, reason = "what a test cannot go on without fails it")]

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{Namespace, Node};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use perennial::lister::listing::Listing;
use perennial_testkit::{ControlPlane, Fleet, KeeperProcess, eventually, registration, run_script};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_mins(1);
const NAMESPACE: &str = "perennial";
const NODES: usize = 24;

/// A cluster with some nodes, a listing, and one replica that looks after both.
async fn world(plane: &ControlPlane) -> anyhow::Result<KeeperProcess> {
    let namespaces: Api<Namespace> = Api::all(plane.admin());
    let own = serde_json::from_value(json!({ "metadata": { "name": NAMESPACE } }))?;
    namespaces.create(&PostParams::default(), &own).await?;
    plane.install_listings().await?;
    plane.kubeconfig_for_lister(NAMESPACE).await?;
    let kubeconfig = plane.kubeconfig_for_keeper(NAMESPACE).await?;
    Fleet::new(plane.admin()).create(0..NODES).await?;
    publish(plane).await?;
    let builder = KeeperProcess::builder(env!("CARGO_BIN_EXE_perennial"), plane.logs());
    let builder = builder
        .kubeconfig(kubeconfig)
        .namespace(NAMESPACE)
        .arg("--roles=keeper,lister")
        .arg("--member=perennial-0");
    builder.arg("--close-after=100ms").arg("--open-after=100ms").start().await
}

/// Endpoints of a Service, and a Listing of them.
async fn publish(plane: &ControlPlane) -> anyhow::Result<()> {
    let slice = json!({
        "metadata": { "name": "web-0", "labels": { "kubernetes.io/service-name": "web" } },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": ["10.0.0.1"], "conditions": { "ready": true } }],
        "ports": [{ "port": 80, "protocol": "TCP" }],
    });
    let slices = Api::<EndpointSlice>::namespaced(plane.admin(), NAMESPACE);
    slices.create(&PostParams::default(), &serde_json::from_value(slice)?).await?;
    let template = "<h1>web</h1>{% for e in endpoints %}<p>{{ e.address }}</p>{% endfor %}";
    let listing = json!({
        "apiVersion": "perennial.dev/v1alpha1",
        "kind": "Listing",
        "metadata": { "name": "web" },
        "spec": { "service": "web", "template": { "inline": template, "contentType": "text/html" } },
    });
    let listings = Api::<Listing>::namespaced(plane.admin(), NAMESPACE);
    listings.create(&PostParams::default(), &serde_json::from_value(listing)?).await?;
    Ok(())
}

/// Does what a script asks for, as a cloud or a person would.
async fn act(nodes: &Api<Node>, question: &str) -> anyhow::Result<()> {
    let (verb, name) = question.split_once(' ').context("what?")?;
    match verb {
        "delete" => drop(nodes.delete(name, &DeleteParams::default()).await?),
        "return" => {
            let index: usize = name.rsplit('-').next().unwrap_or_default().parse()?;
            nodes.create(&PostParams::default(), &registration(index)).await?;
        }
        "label" => {
            let by_hand = json!({ "metadata": { "labels": { "example.com/by-hand": "yes" } } });
            nodes.patch(name, &PatchParams::default(), &Patch::Merge(by_hand)).await?;
        }
        other => anyhow::bail!("nobody knows how to {other}"),
    }
    Ok(())
}

#[tokio::test]
async fn a_node_dies_and_returns_before_the_eyes_of_whoever_looks() {
    let plane = ControlPlane::start().await.unwrap();
    let keeper = world(&plane).await.unwrap();
    let nodes: Api<Node> = Api::all(plane.admin());
    let url = format!("{}/", keeper.url());
    let printed = run_script("live.mjs", &url, &plane.logs(), Duration::from_mins(3), async |question| {
        act(&nodes, question).await
    })
    .await
    .unwrap();
    println!("{printed}");
    labels_are_compared(&plane, &keeper, &nodes).await;
    assert!(keeper.stop().await.unwrap().success());
}

/// A node's page as the API server and the record tell it, without any value.
async fn labels_are_compared(plane: &ControlPlane, keeper: &KeeperProcess, nodes: &Api<Node>) {
    let text = keeper.get("/page/node/web-00003").await.unwrap();
    let node: Value = serde_json::from_str(&text).unwrap();
    let how = |key: &str| {
        let labels = node["labels"].as_array().unwrap();
        labels.iter().find(|label| label["key"] == key).map(|label| label["how"].clone())
    };
    assert_eq!(how("example.com/rack"), Some(json!("same")));
    assert_eq!(how("kubernetes.io/hostname"), Some(json!("not kept")));
    assert_eq!(node["line"]["state"], "current");
    assert!(!text.contains("r00-left") && !text.contains("eu-central"), "a value: {text}");
    not_found(keeper, "/page/node/nobody").await;
    nodes.delete("web-00000", &DeleteParams::default()).await.unwrap();
    let gone = eventually(SOON, "the node's page says that it is gone", || async {
        let node: Value = serde_json::from_str(&keeper.get("/page/node/web-00000").await?)?;
        Ok((node["line"]["state"] == "absent" && node["record"]["state"] == "closed").then_some(node))
    });
    let gone = gone.await.unwrap();
    assert_eq!(gone["labels"][0]["how"], "remembered");
    assert!(gone["live"].is_null());
    values_where_that_is_asked_for(&plane.logs(), plane).await;
}

async fn not_found(keeper: &KeeperProcess, path: &str) {
    let error = format!("{:#}", keeper.get(path).await.unwrap_err());
    assert!(error.contains("404"), "{error}");
}

async fn values_where_that_is_asked_for(logs: &Path, plane: &ControlPlane) {
    let kubeconfig = plane.kubeconfig_for_keeper(NAMESPACE).await.unwrap();
    let builder = KeeperProcess::builder(env!("CARGO_BIN_EXE_perennial"), logs);
    let builder = builder.kubeconfig(kubeconfig).namespace(NAMESPACE).arg("--dry-run");
    let shows = builder.clone().arg("--page-values").start().await.unwrap();
    assert!(shows.get("/page/node/web-00003").await.unwrap().contains("r00-left"));
    let none = builder.arg("--page=off").start().await.unwrap();
    not_found(&none, "/page/node/web-00003").await;
}
