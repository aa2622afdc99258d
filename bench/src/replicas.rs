//! One replica, three, five: does each do its share, and is all of it done sooner, or at least not later?

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use perennial_testkit::{Fleet, KeeperProcess};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::compare::{MANY, REST, is_new_record, returned};
use crate::contender::{Contender, NAMESPACE};
use crate::prepared;
use crate::report::{mebibytes, rate};
use crate::results::{Setting, save};
use crate::sight::Sight;
use crate::usage;

/// How long any phase may take.
const LONG: Duration = Duration::from_mins(30);
/// So many share the work, one after the other.
pub(crate) const NUMBERS: [usize; 3] = [1, 3, 5];

/// Everything of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sharing {
    #[serde(flatten)]
    pub(crate) setting: Setting,
    pub(crate) nodes: usize,
    pub(crate) rounds: usize,
    pub(crate) turns: Vec<Turn>,
}

/// One fleet, looked after by so many.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) replicas: usize,
    /// Records a second while the whole fleet is recorded for the first time.
    pub(crate) recorded: f64,
    /// Nodes a second while many return at once.
    pub(crate) given: f64,
    /// What part of all writes each of them made.
    pub(crate) shares: Vec<f64>,
    /// What all of them computed together, in seconds, from their start to the end of that return.
    pub(crate) computed: f64,
    /// What each of them had at most, in mebibytes.
    pub(crate) memory: Vec<f64>,
}

pub(crate) async fn run(nodes: usize, rounds: usize, out: &Path) -> anyhow::Result<()> {
    println!("bench: replicas, {nodes} nodes, {rounds} rounds");
    println!(
        "{:>8}  {:>20}  {:>20}  {:>12}  {:>10}  shares of the writes",
        "replicas", "recorded, records/s", "given back, nodes/s", "computed, s", "most, MiB"
    );
    let mut sharing = Sharing { setting: Setting::here()?, nodes, rounds, turns: Vec::new() };
    for round in 0..rounds {
        // Another order each time: nobody is always the first, or the last.
        let mut numbers = NUMBERS;
        numbers.rotate_left(round % NUMBERS.len());
        for replicas in numbers {
            let turn = timeout(LONG, measure(nodes, replicas)).await;
            let turn = turn.with_context(|| format!("{replicas} replicas"))??;
            let shares: Vec<String> = turn.shares.iter().map(|own| format!("{:.0} %", 100.0 * own)).collect();
            println!(
                "{replicas:>8}  {:>20.0}  {:>20.0}  {:>12.1}  {:>10.1}  {}",
                turn.recorded,
                turn.given,
                turn.computed,
                turn.memory.iter().copied().fold(0.0, f64::max),
                shares.join(", ")
            );
            sharing.turns.push(turn);
            save(&sharing, out)?;
        }
    }
    println!("bench: figures in {}", out.display());
    Ok(())
}

async fn measure(nodes: usize, replicas: usize) -> anyhow::Result<Turn> {
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

    let (mut computed, mut memory) = (0.0, Vec::new());
    for keeper in &keepers {
        let pid = keeper.pid().await.context("a replica is gone")?;
        computed += usage::cpu(pid)?.as_secs_f64();
        memory.push(mebibytes(usage::memory(pid)?.most));
    }
    Ok(Turn { replicas, recorded, given, shares: shares(&keepers).await?, computed, memory })
}

/// What part of all writes each of them made.
async fn shares(keepers: &[KeeperProcess]) -> anyhow::Result<Vec<f64>> {
    let mut writes = Vec::new();
    for keeper in keepers {
        let metrics = keeper.metrics().await?;
        let saves = metrics.iter().filter(|(name, _)| name.starts_with("perennial_saves_total"));
        writes.push(saves.map(|(_, value)| value).sum::<f64>());
    }
    let all: f64 = writes.iter().sum();
    Ok(writes.iter().map(|own| own / all).collect())
}
