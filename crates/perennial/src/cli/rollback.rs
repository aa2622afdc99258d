//! `perennial rollback`: brings nodes back to what was kept of them at some time.
//!
//! Each node is planned, shown, and, after a question, changed: read anew, decided anew, written under the version that was
//! read. One that fails does not stop the others.

use futures::StreamExt as _;
use jiff::Timestamp;
use perennial_core::keeper::Mark;
use perennial_core::keeper::undo::{Past, Scope, Undo, in_force, rewrite, undo};
use perennial_core::record::{Record, State};

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

/// Where to.
#[derive(Clone, Copy)]
struct Goal {
    at: Timestamp,
    scope: Scope,
}

pub(crate) async fn run(args: &RollbackArgs, config: &DeskConfig, screen: &mut Screen) -> Result<u8, Error> {
    let at = times::read(&args.to, Timestamp::now()).map_err(|why| Error::Said(format!("--to: {why}")))?;
    let goal = Goal { at, scope: if args.exact { Scope::Exact } else { Scope::Reset } };
    let desk = Desk::open(config).await?;
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
    let names = plan(&entries, &desk, goal, args, screen, &mut tally)?;
    if names.is_empty() {
        return tally.end(screen, "Nothing to roll back");
    }
    if args.dry_run {
        return tally.end(screen, &format!("{} would be rolled back (dry run)", count(names.len())));
    }
    let question = format!("Roll {} back to {:.0}?", count(names.len()), goal.at);
    if !screen.confirm(&question, args.yes)? {
        screen.note("Nothing was changed.")?;
        return Ok(1);
    }
    let done = carry_out(&names, &desk, goal, screen, &mut tally).await?;
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
) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
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
                names.push(entry.name.clone());
            }
            Err(error) => {
                tally.failed += 1;
                screen.note(error)?;
            }
        }
    }
    Ok(names)
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
        None => Ok(rewrite(record, &past, goal.scope, Timestamp::now())
            .map_or(Step::Nothing, |next| Step::Record(Box::new(next)))),
    }
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
    let Some(rule) = desk.policy.rule_for(&content.labels, Some(&record.labels())) else {
        return said("no rule of the policy matches it");
    };
    match undo(past, live, content, rule, scope) {
        None => said("that state was another machine's, and the policy tells machines apart"),
        Some(undo) if undo.is_empty() && undo.withheld.is_empty() => Ok(Step::Nothing),
        Some(undo) if undo.is_empty() => {
            said(&format!("privileged labels of another machine are not given: {}", undo.withheld.join(", ")))
        }
        Some(undo) => Ok(Step::Node(undo)),
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
        screen.say(format_args!("    {key} is not given: it is privileged, and was another machine's"))?;
    }
    Ok(())
}

/// Does it, some at once, and returns how many it was done for.
async fn carry_out(
    names: &[String],
    desk: &Desk,
    goal: Goal,
    screen: &mut Screen,
    tally: &mut Tally,
) -> Result<usize, Error> {
    let each = names.iter().map(|name| async move {
        let done = settle(async || one(name, desk, goal).await).await;
        (name, done)
    });
    let mut each = futures::stream::iter(each).buffer_unordered(AT_ONCE);
    let (mut done, mut seen) = (0, 0);
    while let Some((name, result)) = each.next().await {
        seen += 1;
        screen.progress(seen, names.len())?;
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

async fn one(name: &str, desk: &Desk, goal: Goal) -> Result<bool, Error> {
    let entry = desk.known(name).await?;
    match step(&entry, desk, goal)? {
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
