//! All replicas are away while every node changes and is deleted: how long until every end is proved?

use std::time::Instant;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{ListParams, Patch, PatchParams, VersionMatch};
use perennial_testkit::{eventually, node_name};
use serde_json::json;

use crate::cluster::{Cluster, LONG};
use crate::report::ratio;

/// As many as a replica has under way.
const IN_FLIGHT: usize = 64;

pub(crate) async fn run(nodes: usize, replicas: usize) -> anyhow::Result<()> {
    println!("bench: proofs, {nodes} nodes, {replicas} replicas");
    let cluster = Cluster::start(nodes, replicas).await?;
    for keeper in &cluster.keepers {
        keeper.kill9().await?;
    }
    let (nodes_api, recorded) = (&cluster.nodes, version(&cluster).await?);
    let last = |name: String| async move {
        let patch = json!({ "metadata": { "labels": { "last": "word" } } });
        let params = PatchParams::default();
        nodes_api.patch_metadata(&name, &params, &Patch::Merge(patch)).await.map(drop)
    };
    stream::iter((0..nodes).map(node_name)).map(last).buffer_unordered(IN_FLIGHT).try_collect::<()>().await?;
    cluster.fleet().delete(0..nodes).await?;
    cluster.fleet().register(0..nodes / 2).await?;
    let span = version(&cluster).await? - recorded;
    let unit = exact_reads(&cluster, nodes).await?;

    let started = Instant::now();
    for keeper in &cluster.keepers {
        keeper.start_again().await?;
    }
    let ready = started.elapsed();
    let restored = async {
        let params = ListParams::default().labels("last=word");
        eventually(LONG, "those that are back have the last word", || async {
            let back = cluster.nodes.list_metadata(&params).await?.items.len();
            if back == nodes / 2 { Ok(Some(())) } else { Err(anyhow::anyhow!("{back}")) }
        })
        .await?;
        anyhow::Ok(started.elapsed())
    };
    let closed = async {
        cluster.records_become(nodes - nodes / 2, "perennial.dev/state=closed").await?;
        anyhow::Ok(started.elapsed())
    };
    let (restored, closed) = tokio::try_join!(restored, closed)?;
    let proved = cluster.metric("perennial_proofs_total{kind=\"proved\"}").await?;
    let lost = cluster.metric("perennial_proofs_total{kind=\"lost\"}").await?;
    println!("bench:   replicas ready after {ready:.1?}; proved {proved}, lost {lost}");
    println!("bench:   {} that are back restored after {restored:.1?}", nodes / 2);
    println!("bench:   all {nodes} ends known after {closed:.1?}");
    // Each is a bisection of the versions since the record was written, and a read of the whole object.
    let reads = u32::try_from(nodes)? * (span.max(1).ilog2() + 2);
    println!(
        "bench:   those {reads} reads of history, {IN_FLIGHT} at once, would take {:.1?} alone: {:.1} x",
        unit * reads,
        ratio(closed, unit * reads)
    );
    Ok(())
}

/// The version that everything is at.
async fn version(cluster: &Cluster) -> anyhow::Result<u64> {
    let now = cluster.nodes.list_metadata(&ListParams::default().limit(1)).await?;
    Ok(now.metadata.resource_version.unwrap_or_default().parse()?)
}

/// How long one read of history takes, many at once.
async fn exact_reads(cluster: &Cluster, nodes: usize) -> anyhow::Result<std::time::Duration> {
    let version = version(cluster).await?.to_string();
    let reads = nodes.min(2000);
    let read = |name: String| {
        let params = ListParams {
            resource_version: Some(version.clone()),
            version_match: Some(VersionMatch::Exact),
            ..ListParams::default().fields(&format!("metadata.name={name}"))
        };
        async move { cluster.nodes.list_metadata(&params).await.map(drop) }
    };
    let started = Instant::now();
    stream::iter((0..reads).map(node_name)).map(read).buffer_unordered(IN_FLIGHT).try_collect::<()>().await?;
    Ok(started.elapsed() / u32::try_from(reads)?)
}
