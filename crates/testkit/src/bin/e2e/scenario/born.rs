//! The API server asks through the webhook's Service, as on every cluster: a node that returns is born with its labels.

use std::time::Instant;

use anyhow::{bail, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{WatchEvent, WatchParams},
};
use perennial_testkit::eventually;

use crate::stage::{PATIENCE, Stage, step};

const RACK: &str = "example.com/rack";
/// No kubelet may give itself this one.
const ROLE: &str = "node-role.kubernetes.io/db";
const GATE: &str = "perennial.dev/unrestored";
const CONDITION: &str = "perennial.dev/MetadataRestored";

pub(super) async fn play(stage: &Stage) -> anyhow::Result<()> {
    step("installed with the webhook, a gate, the condition and strict mode");
    stage
        .install("--set webhook.enabled=true,webhook.strict=true,webhook.gate=2m,keeper.condition=true")
        .await?;
    let node = &stage.nodes().await?[0];
    // In strict mode nothing is deleted before the API server trusts the webhook; a dry run asks it, too.
    eventually(PATIENCE, "the API server trusts the webhook", || async {
        stage.kubectl(&format!("delete node {node} --dry-run=server")).await.map(Some)
    })
    .await?;

    step(&format!("{node} is labelled, {ROLE} included, deleted at once, and its kubelet is restarted"));
    stage.label(node, &format!("{RACK}=r9 {ROLE}=")).await?;
    let born = birth(stage, node).await?;
    let began = Instant::now();
    let labels = born.metadata.labels.clone().unwrap_or_default();
    ensure!(labels.get(RACK).map(String::as_str) == Some("r9"), "{node} was born with {labels:?}");
    ensure!(!labels.contains_key(ROLE), "no kubelet may set that: {labels:?}");
    ensure!(is_gated(&born), "{node} is owed its role, and was born without a gate");
    step(&format!("{node} was born with {RACK}=r9, and behind the gate"));

    eventually(PATIENCE, "it has the rest", || async {
        let node = stage.node(node).await?;
        let whole = node.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(ROLE));
        Ok((whole && !is_gated(&node) && is_told(&node)).then_some(()))
    })
    .await?;
    step(&format!(
        "its role is back, the gate is open and the condition is set, {:.1?} after it was ready",
        began.elapsed()
    ));
    stage.label(node, &format!("{ROLE}-")).await?;
    stage.take_all(node).await?;
    stage.install("").await
}

/// Deletes a node, has it return, and gives it as it was when it was made.
async fn birth(stage: &Stage, name: &str) -> anyhow::Result<Node> {
    let nodes: Api<Node> = Api::all(stage.client.clone());
    let before = stage.node(name).await?.metadata;
    let params = WatchParams::default().fields(&format!("metadata.name={name}")).timeout(290);
    let version = before.resource_version.unwrap_or_default();
    let mut events = nodes.watch(&params, &version).await?.boxed();
    let made = async {
        while let Some(event) = events.try_next().await? {
            if let WatchEvent::Added(node) = event
                && node.metadata.uid != before.uid
            {
                return Ok(node);
            }
        }
        bail!("the watch of {name} ended before it was made")
    };
    let names = [name.to_owned()];
    let (made, ()) = tokio::try_join!(made, stage.delete_and_return(&names))?;
    Ok(made)
}

fn is_gated(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.is_some_and(|taints| taints.iter().any(|taint| taint.key == GATE))
}

fn is_told(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|one| one.type_ == CONDITION && one.status == "True"))
}
