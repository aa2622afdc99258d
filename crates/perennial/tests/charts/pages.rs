//! Commands of the documentation, run as they stand there: records that are exported and put into another cluster, and a
//! kubeconfig for a host.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use perennial_testkit::{ControlPlane, KeeperProcess, eventually};
use serde_json::json;
use tokio::process::Command;

use crate::rendered::root;

const SOON: Duration = Duration::from_mins(1);
const PROGRAM: &str = env!("CARGO_BIN_EXE_perennial");
const LABELS: [(&str, &str); 2] = [("team", "blue"), ("tier", "gold")];

/// The commands of the first block below a heading.
fn commands(page: &str, heading: &str) -> String {
    let text = std::fs::read_to_string(root().join("docs").join(page)).unwrap();
    let below = text.split_once(&format!("\n## {heading}\n")).unwrap().1;
    let block = below.split_once("```sh\n").unwrap().1;
    block.split_once("```").unwrap().0.to_owned()
}

/// Runs commands in a shell whose kubectl and helm talk to this control plane.
async fn run(plane: &ControlPlane, folder: &Path, commands: &str) {
    std::os::unix::fs::symlink(root().join("charts"), folder.join("charts")).ok();
    std::os::unix::fs::symlink(root().join("deploy"), folder.join("deploy")).ok();
    let mut path = OsString::from(plane.assets().folder());
    path.push(":");
    path.push(perennial_testkit::helm().unwrap().parent().unwrap());
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", commands])
        .current_dir(folder)
        .env("PATH", path)
        .env("HOME", folder)
        .env("KUBECONFIG", plane.kubeconfig_for_admin().unwrap())
        .output()
        .await
        .unwrap();
    assert!(output.status.success(), "{commands}\n{}", String::from_utf8_lossy(&output.stderr));
}

fn node(labels: &[(&str, &str)]) -> Node {
    let labels: std::collections::BTreeMap<_, _> = labels.iter().copied().collect();
    serde_json::from_value(json!({ "metadata": { "name": "worker", "labels": labels } })).unwrap()
}

async fn keeper(plane: &ControlPlane) -> KeeperProcess {
    let kubeconfig = plane.kubeconfig_for_admin().unwrap();
    KeeperProcess::builder(PROGRAM, plane.logs())
        .kubeconfig(kubeconfig)
        .namespace("perennial")
        .start()
        .await
        .unwrap()
}

#[tokio::test]
async fn exported_records_and_values_give_nodes_of_another_cluster_their_own_back() {
    let (old, new) = tokio::join!(ControlPlane::start(), ControlPlane::start());
    let (old, new) = (old.unwrap(), new.unwrap());
    let folder = tempfile::tempdir().unwrap();
    let install =
        "helm install perennial charts/perennial -n perennial --create-namespace --set policy.retention=7d";
    run(&old, folder.path(), install).await;
    let nodes: Api<Node> = Api::all(old.admin());
    nodes.create(&PostParams::default(), &node(&LABELS)).await.unwrap();
    let keeps = keeper(&old).await;
    let records: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(old.admin(), "perennial");
    eventually(SOON, "the node is recorded", || async {
        Ok(records.get_opt("node-record.worker").await?.map(drop))
    })
    .await
    .unwrap();
    keeps.stop().await.unwrap();
    run(&old, folder.path(), &commands("failover.md", "Before: keep both outside")).await;
    drop(old);

    // Nobody runs pods here, so Helm does not wait for them; the keeper is one of our own.
    let after = commands("failover.md", "After: records first").replace(" --wait", "");
    run(&new, folder.path(), &after).await;
    let policies: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(new.admin(), "perennial");
    let policy = policies.get("perennial-policy").await.unwrap().data.unwrap();
    assert_eq!(policy["policy.yaml"].trim(), "retention: 7d");
    let _keeps = keeper(&new).await;
    let nodes: Api<Node> = Api::all(new.admin());
    nodes.create(&PostParams::default(), &node(&[])).await.unwrap();
    eventually(SOON, "the node has its own back", || async {
        let labels = nodes.get("worker").await?.metadata.labels.unwrap_or_default();
        Ok(LABELS.iter().all(|(key, value)| labels.get(*key).is_some_and(|now| now == value)).then_some(()))
    })
    .await
    .unwrap();
    nodes.delete("worker", &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn the_kubeconfig_for_a_host_is_that_of_the_account_and_of_nobody_else() {
    let plane = ControlPlane::start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let page = std::fs::read_to_string(root().join("docs/install.md")).unwrap();
    let begin = page.find("kubectl create namespace perennial\nkubectl apply -f deploy/rbac.yaml").unwrap();
    let commands = page[begin..].split_once("sudo install").unwrap().0;
    run(&plane, folder.path(), commands).await;
    let kubeconfig = folder.path().join("kubeconfig");
    let text = std::fs::read_to_string(&kubeconfig).unwrap();
    assert!(!text.contains("client-key") && text.contains("token"), "{text}");
    eventually(SOON, "the check is content", || async {
        let output = Command::new(PROGRAM).arg("check").arg("--kubeconfig").arg(&kubeconfig).output().await?;
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() { Ok(Some(())) } else { Err(anyhow::anyhow!(told)) }
    })
    .await
    .unwrap();
}
