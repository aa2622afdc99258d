//! One replica, three, five: does each do its share, and is all of it done sooner, or at least not later?

use std::time::{Duration, Instant};

use anyhow::Context;
use perennial_testkit::{Fleet, KeeperProcess};
use tokio::time::timeout;

use crate::compare::{MANY, REST, is_new_record, returned};
use crate::contender::{Contender, NAMESPACE};
use crate::prepared;
use crate::report::rate;
use crate::sight::Sight;

/// How long any phase may take.
const LONG: Duration = Duration::from_mins(30);

pub(crate) async fn run(nodes: usize) -> anyhow::Result<()> {
    println!("bench: replicas, {nodes} nodes");
    println!(
        "{:>8}  {:>24}  {:>24}  {:>22}",
        "replicas", "recorded, records/s", "given back, nodes/s", "shares of the writes"
    );
    for replicas in [1, 3, 5] {
        timeout(LONG, measure(nodes, replicas)).await.with_context(|| format!("{replicas} replicas"))??;
    }
    Ok(())
}

async fn measure(nodes: usize, replicas: usize) -> anyhow::Result<()> {
    let plane = prepared::start(nodes).await?;
    let kubeconfig = plane.kubeconfig_for_keeper(NAMESPACE).await?;
    let mut records = Sight::of_records(&plane, NAMESPACE).await?;
    let (program, began) = (KeeperProcess::beside_current_exe()?, Instant::now());
    let mut keepers = Vec::new();
    for number in 1..=replicas {
        let keeper =
            KeeperProcess::builder(&program, plane.logs()).kubeconfig(&kubeconfig).namespace(NAMESPACE);
        keepers.push(keeper.arg("--member").arg(format!("replica-{number}")).spawn().await?);
    }
    let mut left = nodes;
    let last = records.until(|seen| {
        left -= usize::from(is_new_record(seen, Contender::Perennial));
        left == 0
    });
    let recorded = rate(nodes, last.await? - began)?;
    records.quiet(REST).await?;

    let many = MANY.min(nodes);
    Fleet::new(plane.admin()).delete(0..many).await?;
    records.quiet(REST).await?;
    let given = rate(many, returned(&plane, many).await?)?;
    println!("{replicas:>8}  {recorded:>24.0}  {given:>24.0}  {:>22}", shares(&keepers).await?);
    Ok(())
}

/// What part of all writes each of them made.
async fn shares(keepers: &[KeeperProcess]) -> anyhow::Result<String> {
    let mut writes = Vec::new();
    for keeper in keepers {
        let metrics = keeper.metrics().await?;
        let saves = metrics.iter().filter(|(name, _)| name.starts_with("perennial_saves_total"));
        writes.push(saves.map(|(_, value)| value).sum::<f64>());
    }
    let all: f64 = writes.iter().sum();
    Ok(writes.iter().map(|own| format!("{:.0} %", 100.0 * own / all)).collect::<Vec<_>>().join(", "))
}
