//! `perennial rollback`: brings nodes back to what was kept of them at some time.
//!
//! Each node is planned, shown, and, after a question, changed: read anew, decided anew, written under the version that was
//! read. One that fails does not stop the others. Whatever a person was not shown is not taken.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use jiff::Timestamp;
use perennial_core::keeper::Mark;
use perennial_core::keeper::undo::{Changes, Refusal, Scope, Undo, in_force, rewrite, undo};
use perennial_core::kept::{Kept, Pairs, Taint};
use perennial_core::record::{Past, Record, State};

use super::compare::{changes, style};
use super::desk::Desk;
use super::error::Error;
use super::fleet::Entry;
use super::hand::not_closed;
use super::screen::{Screen, Style};
use super::times;
use super::writes::settle;
use crate::args::operate::RollbackArgs;
use crate::config::DeskConfig;

/// How many nodes are changed at once.
const AT_ONCE: usize = 8;

/// What to do about one node.
pub(crate) enum Step {
    /// It is as it was.
    Nothing,
    /// Only one state of it is remembered.
    NothingElse,
    /// Change the Node.
    Node(Undo),
    /// Rewrite the record of one that is away.
    Record(Box<Record>),
}

impl Step {
    /// What it takes from a node, or from a record that is to be given, in words.
    fn takes(&self, entry: &Entry) -> BTreeSet<String> {
        let taint = |taint: &Taint| format!("taint {}:{}", taint.key, taint.effect);
        match self {
            Self::Nothing | Self::NothingElse => BTreeSet::new(),
            Self::Node(Undo { labels, annotations, taints: _, untaint, cordon, withheld: _ }) => {
                let gone = |changes: &Changes, kind: &str| -> Vec<String> {
                    let gone = changes.iter().filter(|(_, value)| value.is_none());
                    gone.map(|(key, _)| format!("{kind} {key}")).collect()
                };
                let pairs = gone(labels, "label").into_iter().chain(gone(annotations, "annotation"));
                let cordon = (*cordon == Some(false)).then(|| "cordon".to_owned());
                pairs.chain(untaint.iter().map(taint)).chain(cordon).collect()
            }
            Self::Record(next) => {
                let nothing = Kept::default();
                let before = entry.record().map_or(&nothing, |record| &record.kept);
                let gone = |from: &Pairs, to: &Pairs, kind: &str| -> Vec<String> {
                    let gone = from.keys().filter(|key| !to.contains_key(*key));
                    gone.map(|key| format!("{kind} {key}")).collect()
                };
                let labels = gone(&before.labels, &next.labels(), "label");
                let annotations = gone(&before.annotations, &next.kept.annotations, "annotation");
                let stays = |taint: &&Taint| !next.kept.taints.iter().any(|other| other.same_slot(taint));
                let cordon = before.unschedulable && !next.kept.unschedulable;
                let pairs = labels.into_iter().chain(annotations);
                let taints = before.taints.iter().filter(stays).map(taint);
                pairs.chain(taints).chain(cordon.then(|| "cordon".to_owned())).collect()
            }
        }
    }
}

/// A node to be rolled back, and what is taken from it by that.
struct Planned {
    name: String,
    takes: BTreeSet<String>,
}

/// Where to.
#[derive(Clone, Copy)]
struct Goal {
    at: Timestamp,
    scope: Scope,
}

pub(crate) async fn run(args: &RollbackArgs, config: &DeskConfig, screen: &mut Screen) -> Result<u8, Error> {
    let desk = Desk::open(config).await?;
    let at = times::read(&args.to, desk.now()).map_err(|why| Error::Said(format!("--to: {why}")))?;
    let goal = Goal { at, scope: if args.exact { Scope::Exact } else { Scope::Reset } };
    desk.certain(config, args.dry_run, screen)?;
    let entries = if args.all {
        desk.whole_fleet().await?.into_iter().filter(|entry| entry.seen().is_some()).collect()
    } else {
        let mut entries = Vec::new();
        for name in &args.names {
            entries.push(desk.known(name).await?);
        }
        entries
    };
    let mut tally = Tally::default();
    let planned = plan(&entries, &desk, goal, args, screen, &mut tally)?;
    if planned.is_empty() {
        return tally.end(screen, "Nothing to roll back");
    }
    if args.dry_run {
        return tally.end(screen, &format!("{} would be rolled back (dry run)", count(planned.len())));
    }
    let question = format!("Roll {} back to {:.0}?", count(planned.len()), goal.at);
    if !screen.confirm(&question, args.yes)? {
        screen.note("Nothing was changed.")?;
        return Ok(1);
    }
    let done = carry_out(&planned, &desk, goal, screen, &mut tally).await?;
    tally.end(screen, &format!("{} rolled back", count(done)))
}

fn count(nodes: usize) -> String {
    if nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") }
}

/// What else there is to say at the end.
#[derive(Default)]
struct Tally {
    unchanged: usize,
    failed: usize,
}

impl Tally {
    fn end(&self, screen: &mut Screen, words: &str) -> Result<u8, Error> {
        let mut words = words.to_owned();
        if self.unchanged > 0 {
            words = format!("{words}, {} unchanged", self.unchanged);
        }
        if self.failed > 0 {
            words = format!("{words}, {} failed", self.failed);
        }
        screen.note(format_args!("{words}."))?;
        Ok(u8::from(self.failed > 0))
    }
}

/// Shows what there is to do, and returns for whom.
fn plan(
    entries: &[Entry],
    desk: &Desk,
    goal: Goal,
    args: &RollbackArgs,
    screen: &mut Screen,
    tally: &mut Tally,
) -> Result<Vec<Planned>, Error> {
    let mut planned = Vec::new();
    for entry in entries {
        match step(entry, desk, goal) {
            Ok(Step::Nothing) => tally.unchanged += 1,
            // Of all, many may be like this; one that was named should be answered for.
            Ok(Step::NothingElse) if args.all => tally.unchanged += 1,
            Ok(Step::NothingElse) => {
                tally.unchanged += 1;
                screen.note(format_args!("node/{}: only one state of it is remembered", entry.name))?;
            }
            Ok(step) => {
                // A long list is for whoever asked to see it.
                if args.dry_run || !args.yes {
                    show(entry, &step, goal, screen)?;
                }
                planned.push(Planned { name: entry.name.clone(), takes: step.takes(entry) });
            }
            Err(error) => {
                tally.failed += 1;
                screen.note(error)?;
            }
        }
    }
    Ok(planned)
}

/// What to do about a node.
fn step(entry: &Entry, desk: &Desk, goal: Goal) -> Result<Step, Error> {
    let name = &entry.name;
    let Some(record) = entry.record() else {
        let why = entry.unreadable().unwrap_or("there is none");
        return Err(Error::Said(format!("node {name:?}: no record can be read: {why}")));
    };
    let Some(past) = in_force(record, goal.at) else {
        if record.previous.is_empty() {
            return Ok(Step::NothingElse);
        }
        let oldest = record.previous.last().map_or(record.captured_at, |previous| previous.captured_at);
        return Err(Error::Said(format!(
            "node {name:?}: nothing is remembered from before {oldest:.0}, which is its oldest state"
        )));
    };
    match entry.live() {
        Some(_) => on_node(entry, &past, desk, goal.scope),
        None if record.state != State::Closed => Err(not_closed(name)),
        None => match rewrite(record, &past, &desk.policy, goal.scope, desk.now()) {
            Err(refusal) => Err(refused(name, &refusal)),
            Ok(None) => Ok(Step::Nothing),
            Ok(Some(next)) => Ok(Step::Record(Box::new(next))),
        },
    }
}

/// Why it is not done, and what can be done instead.
fn refused(name: &str, refusal: &Refusal) -> Error {
    let instead = match refusal {
        _ if !refusal.is_about_taking() => "",
        Refusal::NotRecorded { .. } => {
            "; wait until a replica recorded it, or leave out --exact: then what is missing comes back, and nothing is removed"
        }
        _ => "; leave out --exact: then what is missing comes back, and nothing is removed",
    };
    Error::Said(format!("node {name:?}: {refusal}{instead}"))
}

/// What to change on a living node, whose record has to be its own.
pub(crate) fn on_node(entry: &Entry, past: &Past<'_>, desk: &Desk, scope: Scope) -> Result<Step, Error> {
    let name = &entry.name;
    let said = |why: &str| Err(Error::Said(format!("node {name:?}: {why}")));
    let (Some(live), Some(record)) = (entry.live(), entry.record()) else { return Ok(Step::Nothing) };
    if live.terminating {
        return said("it is being deleted");
    }
    let own = record.incarnation.uid == live.uid
        && (record.state == State::Open || record.state == State::Giving && live.mark != Mark::None);
    if !own {
        return said(&format!("it did not get its own back yet: `perennial restore {name}` first"));
    }
    let Some(content) = &live.content else { return said("it was not read whole") };
    match undo(record, past, live, content, &desk.policy, scope) {
        Err(refusal) => Err(refused(name, &refusal)),
        Ok(undo) if undo.is_empty() && undo.withheld.is_empty() => Ok(Step::Nothing),
        Ok(undo) if undo.is_empty() => said(&format!(
            "privileged labels are left alone, that state was another machine's: {}",
            undo.withheld.join(", ")
        )),
        Ok(undo) => Ok(Step::Node(undo)),
    }
}

fn show(entry: &Entry, step: &Step, goal: Goal, screen: &mut Screen) -> Result<(), Error> {
    let then = entry.record().and_then(|record| in_force(record, goal.at));
    let then = then.map_or_else(String::new, |past| format!("to the state of {:.0}", past.captured_at));
    let name = screen.paint(&entry.name, Style::Strong);
    match step {
        Step::Nothing | Step::NothingElse => Ok(()),
        Step::Node(undo) => {
            screen.say(format_args!("node/{name} {then}"))?;
            show_undo(entry, undo, screen)
        }
        Step::Record(next) => {
            let Some(record) = entry.record() else { return Ok(()) };
            screen.say(format_args!("node/{name} {then} (its record: it is away)"))?;
            for (sign, words) in changes(&record.kept, &next.kept) {
                screen.say(format_args!("  {}", screen.paint(&format!("{sign} {words}"), style(sign))))?;
            }
            Ok(())
        }
    }
}

/// Shows each change of a Node in a line.
pub(crate) fn show_undo(entry: &Entry, undo: &Undo, screen: &mut Screen) -> Result<(), Error> {
    let content = entry.live().and_then(|live| live.content.as_ref());
    let mut say = |sign: char, words: String| {
        screen.say(format_args!("  {}", screen.paint(&format!("{sign} {words}"), style(sign))))
    };
    let kinds = [
        ("", &undo.labels, content.map(|content| &content.labels)),
        ("annotation ", &undo.annotations, content.map(|content| &content.annotations)),
    ];
    for (kind, changes, now) in kinds {
        for (key, value) in changes {
            let before = now.and_then(|now| now.get(key));
            match (before, value) {
                (None, Some(value)) => say('+', format!("{kind}{key}={value}"))?,
                (Some(before), Some(value)) => say('~', format!("{kind}{key}: {before} -> {value}"))?,
                (before, None) => {
                    let before = before.map(String::as_str).unwrap_or_default();
                    say('-', format!("{kind}{key}={before}"))?;
                }
            }
        }
    }
    for taint in &undo.taints {
        say('+', format!("taint {}={}:{}", taint.key, taint.value, taint.effect))?;
    }
    for taint in &undo.untaint {
        say('-', format!("taint {}={}:{}", taint.key, taint.value, taint.effect))?;
    }
    match undo.cordon {
        Some(true) => say('+', "cordon".to_owned())?,
        Some(false) => say('-', "cordon".to_owned())?,
        None => {}
    }
    for key in &undo.withheld {
        screen.say(format_args!(
            "    {key} is left alone: it is privileged, and that state was another machine's"
        ))?;
    }
    Ok(())
}

/// Does it, some at once, and returns how many it was done for.
async fn carry_out(
    planned: &[Planned],
    desk: &Desk,
    goal: Goal,
    screen: &mut Screen,
    tally: &mut Tally,
) -> Result<usize, Error> {
    let each = planned.iter().map(|planned| async move {
        let done = settle(async || one(planned, desk, goal).await).await;
        (&planned.name, done)
    });
    let mut each = futures::stream::iter(each).buffer_unordered(AT_ONCE);
    let (mut done, mut seen) = (0, 0);
    while let Some((name, result)) = each.next().await {
        seen += 1;
        screen.progress(seen, planned.len())?;
        match result {
            Ok(true) => {
                done += 1;
                screen.say(format_args!("node/{name} rolled back"))?;
            }
            Ok(false) => tally.unchanged += 1,
            Err(error) => {
                tally.failed += 1;
                screen.note(format_args!("node/{name}: {error}"))?;
            }
        }
    }
    Ok(done)
}

async fn one(planned: &Planned, desk: &Desk, goal: Goal) -> Result<bool, Error> {
    let name = &planned.name;
    let entry = desk.known(name).await?;
    let step = step(&entry, desk, goal)?;
    // The person said yes to what there was to see.
    if let Some(more) = step.takes(&entry).difference(&planned.takes).next() {
        return Err(Error::Said(format!(
            "it changed meanwhile, and would lose more than was shown ({more}): try again"
        )));
    }
    match step {
        Step::Nothing | Step::NothingElse => Ok(false),
        Step::Node(undo) => {
            let Some(live) = entry.live() else { return Ok(false) };
            desk.apply_undo(name, live, &undo).await?;
            Ok(true)
        }
        Step::Record(next) => {
            desk.write_record(*next, entry.seen()).await?;
            Ok(true)
        }
    }
}
