//! The control plane against itself: it is what it says, and everybody may do in it what they may.

use std::{path::Path, process::Command, time::Duration};

use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::{
    Api, Client, Config,
    api::{ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use perennial_testkit::{ControlPlane, eventually};
use serde_json::json;

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
async fn everybody_gets_in_with_what_they_are_given() {
    let controlplane = ControlPlane::start().await.unwrap();
    let nodes: Api<Node> = Api::all(controlplane.admin());
    nodes.create(&PostParams::default(), &node("a", &[])).await.unwrap();

    let keeper: Api<Node> = Api::all(controlplane.service_account("perennial", "keeper").await.unwrap());
    assert_eq!(code(keeper.get("a").await.unwrap_err()), 403);

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

    let asked = eventually(Duration::from_secs(5), "the refusal is in the audit log", || async {
        let audit = controlplane.audit()?;
        let refused = |entry: &perennial_testkit::AuditEntry| entry.code == 403 && entry.name == "a";
        Ok(audit.into_iter().find(refused))
    });
    let asked = asked.await.unwrap();
    assert_eq!(asked.user, "system:serviceaccount:perennial:keeper");
    assert_eq!(
        (asked.verb.as_str(), asked.resource.as_str(), asked.subresource.as_str()),
        ("get", "nodes", "")
    );
}

#[tokio::test]
async fn a_kubelet_registers_its_own_node_and_takes_no_role() {
    let controlplane = ControlPlane::start().await.unwrap();
    let nodes: Api<Node> = Api::all(controlplane.kubelet("worker").unwrap());
    let post = PostParams::default();

    let plain = [("kubernetes.io/hostname", "worker"), ("team", "search")];
    nodes.create(&post, &node("worker", &plain)).await.unwrap();
    let other = nodes.create(&post, &node("another", &plain)).await;
    assert_eq!(code(other.unwrap_err()), 403);

    let role = json!({"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}});
    let refused = nodes.patch("worker", &PatchParams::default(), &Patch::Merge(role)).await.unwrap_err();
    assert!(refused.to_string().contains("is not allowed to modify labels"), "{refused}");
    let status = json!({"status": {"nodeInfo": {"kubeletVersion": "v1.36.3"}}});
    nodes.patch_status("worker", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

#[tokio::test]
async fn several_run_side_by_side_and_do_not_know_each_other() {
    let (one, two) = tokio::try_join!(ControlPlane::start(), ControlPlane::start()).unwrap();
    let nodes_of = |controlplane: &ControlPlane| Api::<Node>::all(controlplane.admin());
    nodes_of(&one).create(&PostParams::default(), &node("a", &[])).await.unwrap();
    assert!(nodes_of(&two).get_opt("a").await.unwrap().is_none());

    // Not even by mistake: each trusts its own authority alone.
    let kubeconfig = Kubeconfig::read_from(one.kubeconfig_for_admin().unwrap()).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    config.cluster_url = two.url().parse().unwrap();
    let stranger = Api::<Node>::all(Client::try_from(config).unwrap()).get("a").await.unwrap_err();
    assert!(!matches!(stranger, kube::Error::Api(_)), "{stranger}");
}
