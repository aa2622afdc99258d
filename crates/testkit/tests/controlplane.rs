//! The control plane against itself: it is what it says, and leaves nothing behind.

use std::{path::Path, process::Command, time::Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::{
    Api, Client, Config,
    api::{ListParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use perennial_testkit::ControlPlane;

fn node(name: &str, labels: &[(&str, &str)]) -> Node {
    let mut node = Node::default();
    node.metadata.name = Some(name.to_owned());
    node.metadata.labels = Some(labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect());
    node
}

async fn client_from(kubeconfig: &Path) -> anyhow::Result<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

fn code(refused: kube::Error) -> u16 {
    match refused {
        kube::Error::Api(status) => status.code,
        other => panic!("not an answer of the API server: {other}"),
    }
}

#[tokio::test]
async fn everybody_gets_in_with_what_they_are_given_and_may_do_what_they_may() {
    let started = Instant::now();
    let controlplane = ControlPlane::start().await.unwrap();
    println!("started in {:?}", started.elapsed());

    let nodes: Api<Node> = Api::all(controlplane.admin());
    nodes.create(&PostParams::default(), &node("a", &[])).await.unwrap();

    let nobody: Api<Node> = Api::all(controlplane.service_account("perennial", "keeper").await.unwrap());
    assert_eq!(code(nobody.get("a").await.unwrap_err()), 403);

    let admin = client_from(&controlplane.kubeconfig_for_admin().unwrap()).await.unwrap();
    assert_eq!(Api::<Node>::all(admin).list(&ListParams::default()).await.unwrap().items.len(), 1);
    let path = controlplane.kubeconfig_for_service_account("perennial", "keeper").await.unwrap();
    let keeper = Api::<ConfigMap>::all(client_from(&path).await.unwrap());
    let refused = keeper.list(&ListParams::default()).await.unwrap_err().to_string();
    assert!(refused.contains("system:serviceaccount:perennial:keeper"), "{refused}");

    let kubectl = Command::new(controlplane.assets().kubectl())
        .arg("--kubeconfig")
        .arg(controlplane.kubeconfig_for_admin().unwrap())
        .args(["get", "nodes", "-o", "name"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&kubectl.stdout), "node/a\n", "{kubectl:?}");
}
