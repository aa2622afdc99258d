//! Releases come and go; records stay.

use std::collections::BTreeSet;

use anyhow::ensure;
use perennial_testkit::eventually;

use crate::stage::{Ground, NAMESPACE, NEXT, PATIENCE, Stage, step};

pub(super) async fn play(stage: &Stage) -> anyhow::Result<()> {
    stage.install("").await?;
    let nodes = stage.nodes().await?;
    let node = &nodes[0];
    step("helm test");
    stage.helm(&format!("test perennial --namespace {NAMESPACE} --timeout 3m")).await?;
    stage.label(node, "example.com/before=upgrade").await?;

    step("helm upgrade to another image, in place");
    stage.install(&stage.next()).await?;
    if matches!(stage.ground, Ground::Ours(_)) {
        runs(stage, NEXT).await?;
    }
    still_restores(stage, node, "upgraded").await?;

    step("helm rollback");
    stage.helm(&format!("rollback perennial --namespace {NAMESPACE} --wait --timeout 5m")).await?;
    runs(stage, &stage.version).await?;
    still_restores(stage, node, "rolled-back").await?;

    let before = records(stage).await?;
    ensure!(before.len() >= nodes.len(), "{} nodes have but these records: {before:?}", nodes.len());
    step("helm uninstall; a node gets a label, is deleted and returns while nobody is there");
    stage.helm(&format!("uninstall perennial --namespace {NAMESPACE} --wait --timeout 3m")).await?;
    eventually(PATIENCE, "the keepers are gone", || async {
        let pods = stage.kubectl(&format!("get pods --namespace {NAMESPACE} --output name")).await?;
        ensure!(pods.is_empty(), "{pods}");
        Ok(Some(()))
    })
    .await?;
    let after = records(stage).await?;
    ensure!(before.is_subset(&after), "records were lost: of {before:?} there are {after:?}");
    stage.label(node, "example.com/unseen=yes example.com/upgraded-").await?;
    let given = stage.given(node).await?;
    stage.delete_and_return(std::slice::from_ref(node)).await?;
    ensure!(stage.given(node).await?.labels.is_empty(), "{node} has its labels, and nobody gave them back");

    step("helm install again, as if nothing had been");
    stage.install("").await?;
    stage.has(node, &given).await?;
    step(&format!("{} records survived, and what nobody saw is back as well", after.len()));
    still_restores(stage, node, "reinstalled").await?;
    stage.take_all(node).await
}

async fn still_restores(stage: &Stage, node: &String, since: &str) -> anyhow::Result<()> {
    stage.label(node, &format!("example.com/{since}=yes")).await?;
    let given = stage.given(node).await?;
    stage.delete_and_return(std::slice::from_ref(node)).await?;
    stage.has(node, &given).await?;
    step(&format!("{node} was deleted, returned, and has its {} labels", given.labels.len()));
    Ok(())
}

/// All keepers are of this image.
async fn runs(stage: &Stage, tag: &str) -> anyhow::Result<()> {
    let images = "--output jsonpath={.items[*].spec.containers[*].image}";
    eventually(PATIENCE, &format!("all keepers are perennial:{tag}"), || async {
        let images = stage.kubectl(&format!("get pods --namespace {NAMESPACE} {images}")).await?;
        ensure!(images.split_whitespace().all(|image| image == format!("perennial:{tag}")), "{images}");
        Ok(Some(()))
    })
    .await
}

async fn records(stage: &Stage) -> anyhow::Result<BTreeSet<String>> {
    let records = "get configmaps --selector app.kubernetes.io/managed-by=perennial --output name";
    let names = stage.kubectl(&format!("{records} --namespace {NAMESPACE}")).await?;
    Ok(names.lines().filter(|name| name.contains("node-record.")).map(str::to_owned).collect())
}
