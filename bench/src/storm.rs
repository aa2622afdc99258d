//! Does a storm hold up the single node that returns in the middle of it?

use std::time::{Duration, Instant};

use anyhow::Context;
use kube::api::ListParams;
use perennial_testkit::eventually;

use crate::cluster::{Cluster, LONG};
use crate::report::{Times, ratio};

/// Nodes beside the storm, that return one after the other.
const BYSTANDERS: usize = 20;
/// Single restores on a quiet cluster, to compare with.
const QUIET: usize = 40;

pub(crate) async fn run(nodes: usize, replicas: usize) -> anyhow::Result<()> {
    println!("bench: storm, {nodes} nodes, {replicas} replicas");
    let cluster = Cluster::start(nodes + BYSTANDERS, replicas).await?;
    let fleet = cluster.fleet();
    let mut quiet = Vec::new();
    for number in 0..QUIET {
        quiet.push(cluster.restore_one(nodes + number % BYSTANDERS).await?);
    }
    let quiet = Times::new(quiet);
    println!("bench:   quiet cluster          {quiet}");

    let closed = "perennial.dev/state=closed";
    let deleted = async {
        fleet.delete(0..nodes).await?;
        let gone = Instant::now();
        cluster.records_become(nodes, closed).await?;
        Ok(gone.elapsed())
    };
    let (took, during) = beside(&cluster, nodes, deleted).await?;
    tell(&format!("{nodes} deletions"), &during, &quiet);
    println!("bench:   all ends recorded {took:.1?} after the last deletion");

    let before = cluster.metric("perennial_restores_total").await?;
    let returned = async {
        fleet.register(0..nodes).await?;
        let back = Instant::now();
        eventually(LONG, "all are whole", || async {
            let bare = cluster.nodes.list_metadata(&ListParams::default().labels("!team")).await?.items.len();
            // The bystander that is under way may be.
            if bare <= 1 { Ok(Some(())) } else { Err(anyhow::anyhow!("{bare} are bare")) }
        })
        .await?;
        Ok(back.elapsed())
    };
    let (took, during) = beside(&cluster, nodes, returned).await?;
    tell(&format!("{nodes} returns"), &during, &quiet);
    let restores = cluster.metric("perennial_restores_total").await? - before;
    println!("bench:   all given {took:.1?} after the last registration ({restores} restores)");
    let (twice, takeovers) = (
        cluster.metric("perennial_member_duplicates_total").await?,
        cluster.metric("perennial_member_takeovers_total").await?,
    );
    println!("bench:   writes that lost to another replica: {twice}; takeovers: {takeovers}");
    Ok(())
}

/// Restores single nodes, one after the other, until the storm is over.
async fn beside(
    cluster: &Cluster,
    nodes: usize,
    storm: impl Future<Output = anyhow::Result<Duration>>,
) -> anyhow::Result<(Duration, Times)> {
    let mut storm = std::pin::pin!(storm);
    let (mut times, mut over) = (Vec::new(), None);
    let mut bystanders = (nodes..nodes + BYSTANDERS).cycle();
    loop {
        let mut single = std::pin::pin!(cluster.restore_one(bystanders.next().unwrap_or(nodes)));
        // One that has begun is seen through, also when the storm ends before it.
        let time = loop {
            tokio::select! {
                took = &mut storm, if over.is_none() => over = Some(took.context("the storm")?),
                time = &mut single => break time?,
            }
        };
        times.push(time);
        if let Some(took) = over {
            return Ok((took, Times::new(times)));
        }
    }
}

fn tell(what: &str, during: &Times, quiet: &Times) {
    let times = ratio(during.percentile(50), quiet.percentile(50));
    println!("bench:   during {what:<15} {during}  ({times:.1} x quiet at p50)");
}
