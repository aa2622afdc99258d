//! Plays rounds until time is over or a promise is broken, and tells how it went.

use std::{
    collections::BTreeMap,
    io::{self, Write as _},
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Context;
use perennial_testkit::{
    Interrupt, interrupted,
    oracle::{Judge, Tally},
};

use crate::{
    args::Args,
    cluster::Cluster,
    plan::draw,
    round::{self, Done, Report},
};

/// So many nodes are looked up in the replicas' logs, and so many lines of each log are shown.
const NAMED: usize = 3;
const SAID: usize = 12;

/// How it ended.
enum End {
    /// Every promise was kept, or one was broken.
    Judged {
        kept: bool,
    },
    Failed(anyhow::Error),
    Interrupted(Interrupt),
}

/// All rounds together.
#[derive(Default)]
struct Total {
    rounds: usize,
    tally: Tally,
    deeds: usize,
    faults: BTreeMap<String, usize>,
}

/// Makes chaos and tells how it ended.
pub(crate) fn run(args: &Args) -> ExitCode {
    let end = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime.block_on(chaos(args)),
        Err(error) => End::Failed(error.into()),
    };
    match end {
        End::Judged { kept: true } => ExitCode::SUCCESS,
        End::Judged { kept: false } => ExitCode::FAILURE,
        End::Failed(error) => {
            say(&format!("failed: {error:#}"));
            ExitCode::from(2)
        }
        End::Interrupted(by) => {
            say(&format!("ended by {}, nothing is left running", by.name));
            by.into()
        }
    }
}

async fn chaos(args: &Args) -> End {
    let mut cluster = None;
    let end = tokio::select! {
        by = interrupted() => End::Interrupted(by),
        kept = rounds(args, &mut cluster) => kept.map_or_else(End::Failed, |kept| End::Judged { kept }),
    };
    if let (End::Judged { kept: false } | End::Failed(_), Some(cluster)) = (&end, &mut cluster) {
        cluster.plane.keep_logs();
    }
    end
}

async fn rounds(args: &Args, slot: &mut Option<Cluster>) -> anyhow::Result<bool> {
    let Args { seed, replicas, nodes, api_servers, etcd_members, .. } = args;
    say(&format!(
        "seed {seed}, {replicas} replicas, {nodes} nodes, {api_servers} API servers, {etcd_members} etcd members"
    ));
    let first = draw(*seed, args.from, args.shape());
    let cluster = slot.insert(Cluster::start(args.shape(), &first.setting, &args.keeper).await?);
    let until = Instant::now() + Duration::from_secs(60 * args.minutes);
    let mut total = Total::default();
    for number in args.from.. {
        let enough = args.rounds.is_some_and(|rounds| number >= args.from + rounds);
        if enough || Instant::now() > until {
            break;
        }
        let played = round::play(cluster, args, number).await;
        if !told(cluster, args, number)? {
            return Ok(false);
        }
        let report = played.with_context(|| format!("round {number} (again: {})", args.again(number)))?;
        say(&format!("round {number} {}", line(&report)));
        total.add(report);
    }
    say(&total.line());
    Ok(true)
}

/// Tells what is broken, if anything is.
fn told(cluster: &Cluster, args: &Args, number: u64) -> anyhow::Result<bool> {
    let violations = cluster.oracle.look(|judge: &Judge| judge.violations().to_vec());
    if violations.is_empty() {
        return Ok(true);
    }
    let mut out = io::stdout();
    for violation in &violations {
        writeln!(out, "\n{violation}")?;
    }
    let mut nodes: Vec<&str> = violations.iter().map(|violation| violation.node.as_str()).collect();
    nodes.dedup();
    for node in nodes.into_iter().take(NAMED) {
        writeln!(out, "what replicas say about {node}:")?;
        cluster.said_about(node, SAID)?.iter().try_for_each(|line| writeln!(out, "  {line}"))?;
    }
    writeln!(out, "what went wrong in this round:")?;
    let plan = draw(args.seed, number, args.shape());
    writeln!(out, "  {:?}", plan.setting)?;
    for (tick, faults) in plan.ticks.iter().map(|tick| &tick.faults).enumerate() {
        if !faults.is_empty() {
            writeln!(out, "  tick {tick}: {faults:?}")?;
        }
    }
    say(&format!("round {number}: {} promises broken; again: {}", violations.len(), args.again(number)));
    Ok(false)
}

fn line(report: &Report) -> String {
    let Report { theme, done: Done { deeds, faults }, tally, settled } = report;
    let Tally { lives, patches, records, excused, unjudged } = tally;
    let many: usize = faults.values().sum();
    let told = |many: usize, what| if many > 0 { format!(", {many} {what}") } else { String::new() };
    let doubt = told(*excused, "excused") + &told(*unjudged, "unjudged");
    format!(
        "({theme:?}): {deeds} deeds, {many} faults, {lives} lives, {patches} restores, {records} record writes{doubt}, \
         settled in {:.1} s, then silent",
        settled.as_secs_f64()
    )
}

impl Total {
    fn add(&mut self, report: Report) {
        let Report { theme: _, done: Done { deeds, faults }, tally, settled: _ } = report;
        self.rounds += 1;
        self.deeds += deeds;
        self.tally.lives += tally.lives;
        self.tally.patches += tally.patches;
        self.tally.records += tally.records;
        self.tally.excused += tally.excused;
        self.tally.unjudged += tally.unjudged;
        for (kind, many) in faults {
            *self.faults.entry(kind).or_default() += many;
        }
    }

    fn line(&self) -> String {
        let Self { rounds, tally, deeds, faults } = self;
        let faults: Vec<String> = faults.iter().map(|(kind, many)| format!("{kind} {many}")).collect();
        let Tally { lives, patches, records, excused, unjudged } = tally;
        format!(
            "kept every promise: {rounds} schedules, {deeds} deeds, {lives} node lives, {patches} restores, \
             {records} record writes ({excused} excused, {unjudged} unjudged); faults: {}",
            faults.join(", ")
        )
    }
}

/// A line on stdout that bears our name. If nobody reads it, there is nobody to tell.
fn say(line: &str) {
    let _ = writeln!(io::stdout(), "chaos: {line}");
}
