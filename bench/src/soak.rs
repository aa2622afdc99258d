//! A long time of churn: does memory stay flat, is nothing left to do at its end, and was every promise kept?
//!
//! ```text
//! hands: labels change, nodes are deleted and return bare, kubelets say that they are alive ──> API server
//! replicas ── memory, sampled ──> flat?           etcd's history ──> the oracle ──> violations
//! ```

use std::collections::VecDeque;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use perennial_core::policy::Policy;
use perennial_testkit::oracle::{HAND, Judge, Oracle};
use perennial_testkit::{ControlPlane, KeeperProcess, company_labels, eventually, node_name, registration};
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval};

use crate::contender::NAMESPACE;
use crate::report::mebibytes;
use crate::results::{Setting, median, save};
use crate::usage;

/// How long it may take until all is done, at the beginning and at the end: for each node, and at least.
const PATIENCE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_mins(3));
/// What is done at once, and how often. In a second: 20 labels change, 4 nodes go, 50 kubelets say that they are alive.
const TICK: Duration = Duration::from_millis(500);
const CHANGES: usize = 10;
const LEAVE: usize = 2;
const BEATS: usize = 25;
/// How many ticks a node is away.
const AWAY: Range<usize> = 1..20;
/// How often memory is looked at.
const SAMPLE: Duration = Duration::from_secs(5);
/// How often it is told.
const TELL: Duration = Duration::from_mins(1);
/// Hands that write at once.
const AT_ONCE: usize = 32;
/// Flat is what grows by less than this from the second quarter of the time to the last.
const FLAT: f64 = 1.1;

/// What to do.
pub(crate) struct Soak {
    pub(crate) nodes: usize,
    pub(crate) replicas: usize,
    pub(crate) lasting: Duration,
    pub(crate) seed: u64,
}

/// What came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Soaked {
    #[serde(flatten)]
    pub(crate) setting: Setting,
    pub(crate) nodes: usize,
    pub(crate) minutes: u64,
    pub(crate) seed: u64,
    pub(crate) churned: Churned,
    /// What the oracle saw of it: lives of nodes, records written, nodes given their own.
    pub(crate) lives: usize,
    pub(crate) records: usize,
    pub(crate) given: usize,
    /// Contents that are right only because history is gone.
    pub(crate) excused: usize,
    /// Seconds between two samples.
    pub(crate) every: u64,
    /// What each replica took, in mebibytes, sample by sample.
    pub(crate) memory: Vec<Vec<f64>>,
}

impl Soaked {
    /// The medians of the four quarters of each replica's time.
    pub(crate) fn quarters(&self) -> Vec<Vec<f64>> {
        self.memory.iter().map(|samples| quarters(samples)).collect()
    }
}

pub(crate) async fn run(soak: &Soak, out: &Path) -> anyhow::Result<()> {
    let setting = Setting::here()?;
    let Soak { nodes, replicas, lasting, seed } = *soak;
    println!("bench: soak, {nodes} nodes, {replicas} replicas, {lasting:?}, seed {seed}");
    // The oracle reads what etcd stores.
    let json = "--storage-media-type=application/json";
    let plane = ControlPlane::builder().without_audit().apiserver_flag(json).start().await?;
    let kubeconfig = plane.kubeconfig_for_keeper(NAMESPACE).await?;
    let oracle = Oracle::follow(&plane, Judge::new(Policy::default(), "perennial")).await?;
    let hands = Hands { nodes: Api::all(plane.admin()), writes: AtomicU64::new(0) };
    println!("bench:   {nodes} nodes register");
    hands.all(0..nodes, |index| hands.register(index, true)).await?;

    let program = KeeperProcess::beside_current_exe()?;
    let mut keepers = Vec::new();
    for number in 1..=replicas {
        let keeper =
            KeeperProcess::builder(&program, plane.logs()).kubeconfig(&kubeconfig).namespace(NAMESPACE);
        // A list of so many takes a while on a machine that does all of this.
        keepers.push(keeper.arg("--member").arg(format!("replica-{number}")).spawn().await?);
    }
    let patience = PATIENCE.1 + PATIENCE.0 * u32::try_from(nodes)?;
    settled(&oracle, &keepers, patience).await.context("the first records")?;
    println!("bench:   all are recorded; churn begins");

    let mut memory = Memory::new(keepers.len());
    let churned = tokio::select! {
        churned = churn(&hands, nodes, lasting, seed) => churned?,
        failed = memory.watch(&keepers, &oracle) => return failed,
    };
    println!("bench:   {churned}");
    settled(&oracle, &keepers, patience).await.context("the end")?;
    memory.sample(&keepers).await?;

    let tally = oracle.look(Judge::tally);
    let soaked = Soaked {
        setting,
        nodes,
        minutes: lasting.as_secs() / 60,
        seed,
        churned,
        lives: tally.lives,
        records: tally.records,
        given: tally.patches,
        excused: tally.excused,
        every: SAMPLE.as_secs(),
        memory: memory.samples,
    };
    save(&soaked, out)?;
    println!(
        "bench:   {} lives, {} records written, {} nodes given their own, {} excused; figures in {}",
        soaked.lives,
        soaked.records,
        soaked.given,
        soaked.excused,
        out.display()
    );
    soaked.judged()
}

/// Waits until every node agrees with its record, no replica has anything to do, and no promise is broken.
async fn settled(oracle: &Oracle, keepers: &[KeeperProcess], patience: Duration) -> anyhow::Result<()> {
    eventually(patience, "all is done", || async {
        for keeper in keepers {
            keeper.check().await?;
            let pending = keeper.metrics().await?.get("perennial_pending").copied();
            let pending = pending.ok_or_else(|| anyhow!("no perennial_pending among the metrics"))?;
            ensure!(pending.abs() < f64::EPSILON, "{pending} lines are pending");
        }
        oracle.fence().await?;
        if let Err(broken) = unbroken(oracle) {
            return Ok(Some(Err(broken)));
        }
        match oracle.look(|judge| judge.unsettled().into_iter().next()) {
            Some((node, why)) => Err(anyhow!("{node}: {why}")),
            None => Ok(Some(Ok(()))),
        }
    })
    .await?
}

fn unbroken(oracle: &Oracle) -> anyhow::Result<()> {
    oracle.look(|judge| match judge.violations().first() {
        None => Ok(()),
        Some(violation) => Err(anyhow!("a promise is broken: {violation}")),
    })
}

/// What was done.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Churned {
    pub(crate) changes: usize,
    pub(crate) returns: usize,
    pub(crate) beats: usize,
    /// Half seconds that were not enough for what was to be done in them.
    pub(crate) late: usize,
}

impl std::fmt::Display for Churned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { changes, returns, beats, late } = self;
        write!(f, "{changes} changes, {returns} returns, {beats} heartbeats; {late} ticks were late")
    }
}

async fn churn(hands: &Hands, nodes: usize, lasting: Duration, seed: u64) -> anyhow::Result<Churned> {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut done = Churned { changes: 0, returns: 0, beats: 0, late: 0 };
    // Who is away, by the tick at which it returns.
    let mut away: VecDeque<Vec<usize>> = VecDeque::from(vec![Vec::new(); AWAY.end]);
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let began = Instant::now();
    while began.elapsed() < lasting {
        let due = ticks.tick().await;
        let back = away.pop_front().unwrap_or_default();
        away.push_back(Vec::new());
        let mut chosen: Vec<usize> =
            (0..CHANGES + LEAVE + BEATS).map(|_| random.random_range(0..nodes)).collect();
        chosen.sort_unstable();
        chosen.dedup();
        chosen.retain(|index| !back.contains(index) && !away.iter().flatten().any(|other| other == index));
        // In no order, or it would always be the first nodes that leave.
        for at in (1..chosen.len()).rev() {
            chosen.swap(at, random.random_range(0..=at));
        }
        let leave = chosen.split_off(chosen.len().saturating_sub(LEAVE));
        let change = chosen.split_off(chosen.len().saturating_sub(CHANGES));
        for index in &leave {
            away[random.random_range(AWAY) - 1].push(*index);
        }
        let value = random.random_range(0..5);
        tokio::try_join!(
            hands.all(back.iter().copied(), |index| hands.register(index, false)),
            hands.all(change.iter().copied(), |index| hands.change(index, value)),
            hands.all(leave.iter().copied(), |index| hands.delete(index)),
            hands.all(chosen.iter().copied(), |index| hands.beat(index)),
        )?;
        done.returns += back.len();
        done.changes += change.len();
        done.beats += chosen.len();
        done.late += usize::from(due.elapsed() > TICK);
    }
    let back: Vec<usize> = away.into_iter().flatten().collect();
    hands.all(back.iter().copied(), |index| hands.register(index, false)).await?;
    done.returns += back.len();
    Ok(done)
}

/// What people and kubelets do. Each write says that it is theirs.
struct Hands {
    nodes: Api<Node>,
    writes: AtomicU64,
}

impl Hands {
    async fn all<F>(
        &self,
        many: impl IntoIterator<Item = usize>,
        act: impl Fn(usize) -> F,
    ) -> anyhow::Result<()>
    where
        F: Future<Output = kube::Result<()>>,
    {
        Ok(stream::iter(many).map(act).buffer_unordered(AT_ONCE).try_collect::<()>().await?)
    }

    fn hand(&self) -> String {
        format!("hand-{}", self.writes.fetch_add(1, Ordering::Relaxed))
    }

    /// A node registers: with the labels of people, or bare.
    async fn register(&self, index: usize, labelled: bool) -> kube::Result<()> {
        let mut node = registration(index);
        if labelled {
            // A privileged one comes back only where it is known whose it is.
            let labels = company_labels(index).into_iter().filter(|(key, _)| !key.starts_with("node-role."));
            node.metadata.labels.get_or_insert_default().extend(labels);
        }
        node.metadata.annotations.get_or_insert_default().insert(HAND.to_owned(), self.hand());
        unless(409, self.nodes.create(&PostParams::default(), &node).await.map(drop))
    }

    async fn delete(&self, index: usize) -> kube::Result<()> {
        unless(404, self.nodes.delete(&node_name(index), &DeleteParams::default()).await.map(drop))
    }

    /// A label changes, or goes.
    async fn change(&self, index: usize, value: u32) -> kube::Result<()> {
        let value = (value > 0).then(|| format!("v{value}"));
        let metadata = json!({
            "labels": { "example.com/soak": value },
            "annotations": { HAND: self.hand() },
        });
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        self.nodes.patch_metadata(&node_name(index), &PatchParams::default(), &patch).await.map(drop)
    }

    async fn beat(&self, index: usize) -> kube::Result<()> {
        let hand = self.hand();
        let patch = Patch::Merge(json!({
            "metadata": { "annotations": { HAND: hand } },
            "status": { "nodeInfo": { "bootID": hand } },
        }));
        self.nodes.patch_status(&node_name(index), &PatchParams::default(), &patch).await.map(drop)
    }
}

/// The client asks again where the answer was lost on a busy machine: it is done then, and the answer says so by this code.
fn unless(code: u16, done: kube::Result<()>) -> kube::Result<()> {
    match done {
        Err(kube::Error::Api(status)) if status.code == code => Ok(()),
        done => done,
    }
}

/// What the replicas take, over time: for each its samples, in mebibytes.
struct Memory {
    samples: Vec<Vec<f64>>,
}

impl Memory {
    fn new(replicas: usize) -> Self {
        Self { samples: vec![Vec::new(); replicas] }
    }

    async fn sample(&mut self, keepers: &[KeeperProcess]) -> anyhow::Result<()> {
        for (keeper, samples) in keepers.iter().zip(&mut self.samples) {
            keeper.check().await?;
            let pid = keeper.pid().await.context("a replica is gone")?;
            // A tenth is all that such a figure is worth.
            samples.push((10.0 * mebibytes(usage::memory(pid)?.now)).round() / 10.0);
        }
        Ok(())
    }

    /// Looks again and again, and at the oracle too. Returns only when something is wrong.
    async fn watch(&mut self, keepers: &[KeeperProcess], oracle: &Oracle) -> anyhow::Result<()> {
        let (began, mut told) = (Instant::now(), Instant::now());
        let mut ticks = interval(SAMPLE);
        loop {
            ticks.tick().await;
            self.sample(keepers).await?;
            unbroken(oracle)?;
            if told.elapsed() >= TELL {
                told = Instant::now();
                let now: Vec<String> =
                    self.samples.iter().filter_map(|all| Some(format!("{:.1}", all.last()?))).collect();
                println!("bench:   after {:.0?}: {} MiB", began.elapsed(), now.join(", "));
            }
        }
    }
}

impl Soaked {
    /// Tells the quarters; an error if one of the replicas grew.
    fn judged(&self) -> anyhow::Result<()> {
        let mut grew = Vec::new();
        for (number, medians) in self.quarters().iter().enumerate() {
            let shown: Vec<String> = medians.iter().map(|median| format!("{median:.1}")).collect();
            println!("bench:   replica {}: {} MiB by quarters", number + 1, shown.join(", "));
            if let (Some(second), Some(last)) = (medians.get(1), medians.last())
                && last / second > FLAT
            {
                grew.push(number + 1);
            }
        }
        ensure!(grew.is_empty(), "replicas {grew:?} grew by more than {FLAT} x");
        println!("bench:   memory is flat, nothing is pending, no promise was broken");
        Ok(())
    }
}

fn quarters(samples: &[f64]) -> Vec<f64> {
    samples.chunks(samples.len().div_ceil(4).max(1)).filter_map(median).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// One in which the replicas took this.
    pub(crate) fn soaked(memory: &[&[f64]]) -> Soaked {
        Soaked {
            setting: Setting {
                began: "2026-01-01".to_owned(),
                commit: "abc".to_owned(),
                machine: "2 cores".to_owned(),
            },
            nodes: 100,
            minutes: 30,
            seed: 1,
            churned: Churned { changes: 4, returns: 3, beats: 2, late: 1 },
            lives: 103,
            records: 110,
            given: 3,
            excused: 0,
            every: 5,
            memory: memory.iter().map(|samples| samples.to_vec()).collect(),
        }
    }

    #[test]
    fn memory_that_grows_is_found() {
        let of = |samples: &[f64]| soaked(&[&[1.0; 4], samples]).judged();
        assert!(of(&[10.0, 40.0, 40.0, 41.0]).is_ok(), "what it takes first does not count");
        assert!(of(&[40.0, 40.0, 44.0, 48.0]).is_err());
        assert!(of(&[]).is_ok());
    }
}
