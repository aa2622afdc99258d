//! One round: a fleet, a storm, and the calm after it.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{anyhow, ensure};
use perennial_testkit::{
    eventually,
    oracle::{Judge, Tally, Told},
    proxy::Injection,
};
use tokio::time::{interval, sleep};

use crate::{
    args::Args,
    cluster::{Cluster, NAMESPACE},
    hands::Hands,
    plan::{Deed, Fault, Plan, Shape, Theme, Tick, draw},
    replica::{Replica, TAKEOVER},
};

/// How long two looks at everything may take.
const LOOKS: Duration = Duration::from_mins(1);
/// Nothing was written for so long, and for as long again as the last in line waits: it has come to rest.
const AT_REST: Duration = Duration::from_millis(1_500);
/// A kubelet says that it is alive, every so often.
const BEAT: Duration = Duration::from_millis(50);

/// What was done in a round.
#[derive(Default)]
pub(crate) struct Done {
    /// What people and kubelets did.
    pub(crate) deeds: usize,
    /// What went wrong, by kind.
    pub(crate) faults: BTreeMap<String, usize>,
}

impl Done {
    fn add(&mut self, tick: &Tick) {
        self.deeds += tick.deeds.len();
        for fault in &tick.faults {
            *self.faults.entry(fault.kind()).or_default() += 1;
        }
    }
}

/// What was done in a round, and what came of it.
pub(crate) struct Report {
    pub(crate) theme: Theme,
    pub(crate) done: Done,
    pub(crate) tally: Tally,
    pub(crate) settled: Duration,
}

/// Plays one round. Whatever is broken in it stands with the oracle.
pub(crate) async fn play(cluster: &mut Cluster, args: &Args, number: u64) -> anyhow::Result<Report> {
    let shape @ Shape { nodes, replicas, .. } = args.shape();
    let patience = Duration::from_secs(args.patience);
    let plan = draw(args.seed, number, shape);
    let before = cluster.oracle.look(Judge::tally);
    let client = cluster.plane.api_server(0).admin();
    let hands = Hands::new(&client, NAMESPACE, cluster.oracle.clone(), number);
    cluster.set(&plan.setting).await?;

    let first: Vec<(usize, Deed)> = plan.fleet.iter().cloned().map(Deed::Create).enumerate().collect();
    hands.all(&first).await?;
    let (mut done, mut taken) = (Done::default(), None);
    if settle(cluster, patience).await?.is_some() {
        storm(cluster, &plan, &hands, &mut done).await?;
        if !cluster.oracle.look(broken) {
            taken = take_over(cluster, &hands, patience).await?;
            cluster.heal(replicas).await?;
        }
    }
    let began = Instant::now();
    let mut at = settle(cluster, patience).await?.unwrap_or_else(Instant::now);
    let pauses = plan.ticks.iter().flat_map(|tick| &tick.deeds).any(|(_, deed)| deed.pauses());
    if pauses && !cluster.oracle.look(broken) {
        // Those who are paused were left alone until now, and get what they are owed.
        hands.resume_all(&plan).await?;
        at = settle(cluster, patience).await?.unwrap_or(at);
    }
    // Those who were started again found all done.
    let settled = taken.unwrap_or_else(|| at.duration_since(began));
    if !cluster.oracle.look(broken) {
        silence(cluster, &hands, nodes).await?;
    }
    if !cluster.oracle.look(broken) {
        clean_up(cluster, &hands, nodes, patience).await?;
    }

    let after = cluster.oracle.look(Judge::tally);
    let unjudged = after.unjudged.saturating_sub(before.unjudged);
    ensure!(unjudged == 0, "{unjudged} writes could be told in too many ways to be judged");
    Ok(Report { theme: plan.theme, done, tally: since(after, before), settled })
}

fn broken(judge: &Judge) -> bool {
    !judge.violations().is_empty()
}

/// Everything that is planned, while kubelets go on saying that they are alive.
async fn storm(cluster: &mut Cluster, plan: &Plan, hands: &Hands, done: &mut Done) -> anyhow::Result<()> {
    for tick in &plan.ticks {
        sleep(tick.after).await;
        if tick.faults.contains(&Fault::Restore) {
            cluster.break_things(&tick.faults).await?;
            hands.all(&tick.deeds).await?;
        } else {
            // Those who write do not wait until all is well again.
            tokio::try_join!(cluster.break_things(&tick.faults), hands.all(&tick.deeds), beat(hands, plan))?;
        }
        done.add(tick);
        for replica in &cluster.replicas {
            replica.check().await?;
        }
        if cluster.oracle.look(broken) {
            return Ok(());
        }
    }
    Ok(())
}

/// Those who are left do the work of those who are down, before these are started again.
/// Returns how long that took, if there were some of both.
async fn take_over(
    cluster: &mut Cluster,
    hands: &Hands,
    patience: Duration,
) -> anyhow::Result<Option<Duration>> {
    let must = cluster.ease().await?;
    hands.release_all().await?;
    if !must {
        return Ok(None);
    }
    let began = Instant::now();
    Ok(settle(cluster, patience).await?.map(|at| at.duration_since(began)))
}

/// Some kubelets say that they are alive.
async fn beat(hands: &Hands, plan: &Plan) -> anyhow::Result<()> {
    for node in (0..plan.fleet.len()).step_by(7) {
        hands.heartbeat(node).await?;
    }
    Ok(())
}

/// Waits until every node and its record agree, and nobody writes any more. `None` if a promise is broken.
async fn settle(cluster: &mut Cluster, patience: Duration) -> anyhow::Result<Option<Instant>> {
    let mut rest = (0, Instant::now());
    let mut agreed = None;
    let rests = AT_REST + TAKEOVER * u32::try_from(cluster.replicas.len())?;
    let settled = async {
        let mut ticks = interval(Duration::from_millis(50));
        loop {
            ticks.tick().await;
            let (unsettled, written, broken) = cluster.oracle.look(state);
            if broken {
                return Ok(None);
            }
            if written != rest.0 || unsettled > 0 {
                rest = (written, Instant::now());
                agreed = None;
            }
            let at = *agreed.get_or_insert_with(Instant::now);
            if unsettled == 0 && at.elapsed() > rests {
                // Nobody is asked whether all is well, but one that says that it is still at work is believed.
                if cluster.restless().await.is_empty() {
                    // What happened until now may not have been seen yet.
                    let version = cluster.oracle.fence().await?;
                    if cluster.oracle.look(state) == (0, rest.0, false) {
                        return anyhow::Ok(Some((version, at)));
                    }
                }
                agreed = None;
            }
        }
    };
    let Ok(settled) = tokio::time::timeout(patience, settled).await else {
        cluster.oracle.out_of_time();
        let who = cluster.restless().await;
        ensure!(
            cluster.oracle.look(broken),
            "all agrees, but replicas {who:?} do not rest after {patience:?}"
        );
        return Ok(None);
    };
    let Some((version, at)) = settled? else { return Ok(None) };
    cluster.calm(version).await?;
    Ok(Some(at))
}

/// How many nodes and records do not agree yet, when a keeper last wrote, and whether a promise is broken.
fn state(judge: &Judge) -> (usize, u64, bool) {
    (judge.unsettled().len(), judge.last_written(), broken(judge))
}

/// Every replica looks at everything twice, kubelets go on, and nothing is written.
async fn silence(cluster: &Cluster, hands: &Hands, nodes: usize) -> anyhow::Result<()> {
    cluster.oracle.fence().await?;
    cluster.oracle.tell(Told::Quiet);
    let calls: Vec<u64> = cluster.replicas.iter().map(Replica::calls).collect();
    let looks: Vec<_> = cluster.replicas.iter().map(Replica::resyncs).collect();
    // One that was under way already, and two whole ones.
    let looked = eventually(LOOKS, "every replica looks at everything twice", || async {
        let looks: Vec<u64> = looks.iter().map(Injection::met).collect();
        if looks.iter().all(|many| *many > 2) { Ok(Some(())) } else { Err(anyhow!("{looks:?}")) }
    });
    let beats = async {
        let mut ticks = interval(BEAT);
        for node in (0..nodes).cycle() {
            ticks.tick().await;
            hands.heartbeat(node).await?;
        }
        anyhow::Ok(())
    };
    tokio::select! {
        looked = looked => looked?,
        beats = beats => beats?,
    }
    // Etcd does not hear of a write that is refused, or that changes nothing.
    for (number, (replica, calls)) in cluster.replicas.iter().zip(calls).enumerate() {
        for what in replica.writes_since(calls) {
            cluster.oracle.tell(Told::Asked { replica: format!("replica {number}"), what });
        }
    }
    cluster.oracle.fence().await?;
    cluster.oracle.tell(Told::Loud);
    Ok(())
}

/// The next round knows nothing of this one. Records stay: these names never come back.
async fn clean_up(
    cluster: &mut Cluster,
    hands: &Hands,
    nodes: usize,
    patience: Duration,
) -> anyhow::Result<()> {
    hands.delete_all(nodes).await?;
    if settle(cluster, patience).await?.is_some() {
        cluster.oracle.forget();
    }
    Ok(())
}

fn since(after: Tally, before: Tally) -> Tally {
    Tally {
        lives: after.lives.saturating_sub(before.lives),
        patches: after.patches.saturating_sub(before.patches),
        records: after.records.saturating_sub(before.records),
        excused: after.excused.saturating_sub(before.excused),
        unjudged: after.unjudged.saturating_sub(before.unjudged),
    }
}
