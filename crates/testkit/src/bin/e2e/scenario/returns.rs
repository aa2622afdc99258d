//! Nodes are deleted and return: the same machine, and another one.

use std::time::Instant;

use anyhow::ensure;
use perennial_testkit::{cluster::Cluster, eventually};

use crate::{
    nodes::Given,
    stage::{Ground, PATIENCE, Stage, step},
};

pub(super) async fn play(stage: &Stage) -> anyhow::Result<()> {
    stage.install("").await?;
    let nodes = stage.nodes().await?;
    same_machine(stage, &nodes[0]).await?;
    taken_away(stage, &nodes[0]).await?;
    match &stage.ground {
        Ground::Ours(cluster) => another_machine(stage, cluster, &nodes[nodes.len() - 1]).await?,
        Ground::Theirs { .. } => step("SKIPPED: there is no other machine to put in a node's place"),
    }
    for node in nodes {
        stage.take_all(&node).await?;
    }
    Ok(())
}

async fn same_machine(stage: &Stage, node: &str) -> anyhow::Result<()> {
    step(&format!(
        "{node} is labelled, annotated, tainted, cordoned, deleted at once; its kubelet is restarted"
    ));
    stage.label(node, "example.com/rack=r7 example.com/team=db").await?;
    stage.kubectl(&format!("annotate node {node} example.com/owner=ann")).await?;
    stage.kubectl(&format!("taint node {node} example.com/dedicated=db:NoSchedule")).await?;
    stage.kubectl(&format!("cordon {node}")).await?;
    let (before, given) = (stage.node(node).await?, stage.given(node).await?);
    stage.delete_and_return(&[node.to_owned()]).await?;
    let began = Instant::now();
    stage.has(node, &given).await?;
    step(&format!("all of it is back {:.1?} after {node} was ready", began.elapsed()));
    ensure!(stage.node(node).await?.metadata.uid != before.metadata.uid, "{node} was not registered anew");
    Ok(())
}

/// A record that gave back what somebody removed would be worse than none.
async fn taken_away(stage: &Stage, node: &str) -> anyhow::Result<()> {
    step(&format!("all but one label is taken away from {node} again, and it is deleted and returns"));
    stage.take_all(node).await?;
    stage.label(node, "example.com/rack=r8").await?;
    let given = stage.given(node).await?;
    stage.delete_and_return(&[node.to_owned()]).await?;
    stage.has(node, &given).await?;
    step("the label is back, and nothing else");
    Ok(())
}

async fn another_machine(stage: &Stage, cluster: &Cluster, node: &str) -> anyhow::Result<()> {
    step(&format!(
        "{node} gets `lifecycle=spot`, of which the policy says `identity: provider`, and is deleted and returns"
    ));
    stage.label(node, "lifecycle=spot example.com/disk=encrypted").await?;
    let given = stage.given(node).await?;
    stage.delete_and_return(&[node.to_owned()]).await?;
    stage.has(node, &given).await?;
    step("it is the same machine, and has its labels again");

    step(&format!("{node} is deleted, and another machine takes its place under its name"));
    let worker = cluster.worker(node)?;
    let before = worker.provider_id()?;
    stage.kubectl(&format!("delete node {node}")).await?;
    worker.replace().await?;
    stage.import().await?;
    let newcomer = stage.ready(node).await?;
    ensure!(worker.provider_id()? != before, "it is the same machine");
    // The keeper says so when it has decided; before that a missing label proves nothing.
    let uid = newcomer.metadata.uid.unwrap_or_default();
    let events = format!(
        "get events --namespace default --field-selector involvedObject.name={node},reason=RestoreSkipped --output jsonpath={{.items[*].involvedObject.uid}}"
    );
    eventually(PATIENCE, "an Event tells that nothing was restored", || async {
        let uids = stage.kubectl(&events).await?;
        Ok(uids.split_whitespace().any(|skipped| skipped == uid).then_some(()))
    })
    .await?;
    stage.has(node, &Given::default()).await?;
    step("it has none of the labels, and an Event says so");
    Ok(())
}
