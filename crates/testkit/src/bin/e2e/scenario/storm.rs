//! All nodes go and return at once, while those who are to keep them go, too.

use std::time::Instant;

use anyhow::Context;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt, api::ListParams};

use crate::stage::{NAMESPACE, PATIENCE, Stage, step};

const ROUNDS: usize = 3;

pub(super) async fn play(stage: &Stage) -> anyhow::Result<()> {
    stage.install("").await?;
    let nodes = stage.nodes().await?;
    for round in 1..=ROUNDS {
        step(&format!(
            "round {round}: {} nodes get labels and are deleted and return; a keeper is killed, the others are rolled",
            nodes.len()
        ));
        let mut given = Vec::new();
        for (number, node) in nodes.iter().enumerate() {
            // One that is new, one that changes, one that goes.
            let label = format!(
                "example.com/round={round} example.com/number-{round}={number} example.com/number-{}-",
                round - 1
            );
            stage.label(node, &label).await?;
            given.push(stage.given(node).await?);
        }
        tokio::try_join!(stage.delete_and_return(&nodes), kill_one_and_roll_the_others(stage))?;
        let began = Instant::now();
        for (node, given) in nodes.iter().zip(&given) {
            stage.has(node, given).await?;
        }
        step(&format!(
            "round {round}: every label is there {:.1?} after the nodes were ready",
            began.elapsed()
        ));
        stage.console.rolled_out(NAMESPACE, "deployment/perennial", PATIENCE).await?;
    }
    for node in nodes {
        stage.take_all(&node).await?;
    }
    Ok(())
}

/// One after the other: a roll that ran beside the kill could end the very pod that was picked for it.
async fn kill_one_and_roll_the_others(stage: &Stage) -> anyhow::Result<()> {
    // The pods of the roll before this one may still be on their way out: they are nobody's to kill.
    let pods: Api<Pod> = Api::namespaced(stage.client.clone(), NAMESPACE);
    let pods = pods.list(&ListParams::default()).await?;
    let living = pods.iter().find(|pod| pod.metadata.deletion_timestamp.is_none());
    let pod = living.context("no keeper is running that could be killed")?.name_any();
    stage
        .kubectl(&format!("delete pod {pod} --namespace {NAMESPACE} --grace-period=0 --force --wait=false"))
        .await?;
    stage.kubectl(&format!("rollout restart deployment/perennial --namespace {NAMESPACE}")).await.map(drop)
}
