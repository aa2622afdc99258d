//! Everyone does the same, one after the other, round after round, on a control plane that began alike.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use perennial_testkit::{ControlPlane, Fleet};
use tokio::time::timeout;

use crate::contender::{Contender, NAMESPACE, Running};
use crate::prepared;
use crate::results::{Case, Results, Sample, Who};
use crate::sight::{Seen, Sight};

mod capture;
mod changes;
mod heartbeats;
mod limit;
mod mass;
mod returns;
mod start;

pub(crate) use changes::ENDLESS;
pub(crate) use heartbeats::watch;
pub(crate) use mass::returned;
pub(crate) use returns::is_whole;

/// So many single changes and returns are timed.
const SINGLES: usize = 500;
/// So many nodes return at once.
pub(crate) const MANY: usize = 5000;
/// Nothing written for so long: whoever is measured has come to rest.
pub(crate) const REST: Duration = Duration::from_secs(6);
/// What the fleets of the field send for 100,000 nodes: each kubelet every five minutes.
const BEATS: u32 = 333;

/// What to compare.
pub(crate) struct Plan {
    pub(crate) nodes: usize,
    pub(crate) rounds: usize,
    pub(crate) contenders: Vec<Contender>,
    /// How long each case may take.
    pub(crate) patience: Duration,
}

/// Does it, adds to the results as it goes, and has them saved after each turn: whoever ends it early keeps those.
pub(crate) async fn run(
    plan: &Plan,
    results: &mut Results,
    save: impl Fn(&Results) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let manner = limit::best_manner(plan.nodes).await?;
    println!("bench: the limit is reached by {manner}");
    results.manner = manner.to_string();
    for round in 0..plan.rounds {
        // Another order each time: nobody is always the first, or the last.
        let mut contenders = plan.contenders.clone();
        contenders.rotate_left(round % plan.contenders.len());
        for contender in contenders {
            let of = format!("round {} of {}", round + 1, plan.rounds);
            // What a machine does in a minute may be another in the next: the limit is taken on both sides of the first that takes
            // part, which is Perennial unless somebody asks for others.
            let beside = contender == plan.contenders[0];
            if beside {
                println!("bench: {of}: the limit");
                limit::measure(plan, manner, results).await.context("the limit")?;
            }
            println!("bench: {of}: {}", contender.name());
            Bout::begin(plan, contender, results)
                .await?
                .fight()
                .await
                .with_context(|| contender.name().to_owned())?;
            if beside {
                println!("bench: {of}: the limit, again");
                limit::measure(plan, manner, results).await.context("the limit")?;
            }
            save(results)?;
        }
    }
    Ok(())
}

/// One contender's turn.
struct Bout<'a> {
    // Dropped in this order: first those who talk, then whom they talk to.
    running: Option<Running>,
    records: Sight,
    plan: &'a Plan,
    contender: Contender,
    kubeconfig: PathBuf,
    results: &'a mut Results,
    plane: ControlPlane,
}

impl<'a> Bout<'a> {
    async fn begin(plan: &'a Plan, contender: Contender, results: &'a mut Results) -> anyhow::Result<Self> {
        let plane = prepared::start(plan.nodes).await?;
        let kubeconfig = plane.kubeconfig_for_keeper(NAMESPACE).await?;
        let records = Sight::of_records(&plane, NAMESPACE).await?;
        Ok(Self { running: None, records, plan, contender, kubeconfig, results, plane })
    }

    /// All cases, in an order in which each leaves what the next one needs.
    async fn fight(mut self) -> anyhow::Result<()> {
        if !self.within(&[Case::Capture], capture::measure).await? {
            return Ok(());
        }
        let rest = async |bout: &mut Self| bout.records.quiet(REST).await;
        rest(&mut self).await?;
        self.within(&[Case::ChangeP50, Case::ChangeP99], changes::measure).await?;
        self.within(&[Case::Heartbeat], heartbeats::measure).await?;
        self.within(&[Case::BusyChangeP50, Case::BusyChangeP99], changes::measure_busy).await?;
        self.within(&[Case::ReturnP50, Case::ReturnP99], returns::measure).await?;
        rest(&mut self).await?;
        self.within(&[Case::Mass], mass::measure).await?;
        rest(&mut self).await?;
        self.within(&[Case::Synced, Case::Start, Case::MemorySteady, Case::MemoryPeak], start::measure)
            .await?;
        self.within(&[Case::Bytes], start::measure_bytes).await?;
        self.within(&[Case::MemoryAbsent], mass::measure_absent).await?;
        if let Some(running) = self.running.take() {
            running.stop().await?;
        }
        Ok(())
    }

    /// Gives a case its time, and notes it if that was not enough. Returns whether it was.
    async fn within(
        &mut self,
        cases: &[Case],
        measure: impl AsyncFnOnce(&mut Self) -> anyhow::Result<()>,
    ) -> anyhow::Result<bool> {
        let (who, patience) = (Who::Contender(self.contender), self.plan.patience);
        let finished = timeout(patience, measure(self)).await;
        if let Some(running) = &mut self.running {
            running.check()?;
        }
        match finished {
            Ok(Ok(())) => {
                for case in cases {
                    let last = self.results.samples.get(case).and_then(|all| all.get(&who)?.last());
                    if let Some(Sample::Figure(figure)) = last {
                        println!("bench:   {:<38} {figure:>10.2} {}", case.title(), case.unit());
                    }
                }
                Ok(true)
            }
            Ok(Err(error)) => Err(error),
            Err(_) => {
                for case in cases {
                    println!("bench:   {:<38} did not finish within {patience:?}", case.title());
                    let did_not_finish = format!("within {} s", patience.as_secs());
                    self.results.push(*case, who, Sample::DidNotFinish { did_not_finish });
                }
                Ok(false)
            }
        }
    }

    fn add(&mut self, case: Case, figure: f64) {
        self.results.add(case, Who::Contender(self.contender), figure);
    }

    fn fleet(&self) -> Fleet {
        Fleet::new(self.plane.admin())
    }

    fn running(&self) -> anyhow::Result<&Running> {
        self.running.as_ref().ok_or_else(|| anyhow!("{} does not run", self.contender.name()))
    }

    /// Starts it, and says when.
    fn start(&mut self) -> anyhow::Result<Instant> {
        let began = Instant::now();
        self.running = Some(self.contender.start(&self.plane, &self.kubeconfig)?);
        Ok(began)
    }

    async fn stop(&mut self) -> anyhow::Result<()> {
        match self.running.take() {
            Some(running) => running.stop().await,
            None => Ok(()),
        }
    }
}

/// Whether one of its records was made.
pub(crate) fn is_new_record(seen: &Seen, contender: Contender) -> bool {
    seen.is_new() && seen.name().starts_with(contender.records())
}
