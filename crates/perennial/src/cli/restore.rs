//! `perennial restore`: gives a node now what its record holds and it lacks.
//!
//! The keeper's own rules decide, step by step, with one hand tied: nothing is recorded here, only given. What was read or
//! written is folded into the line, which is then decided again, until nothing is owed any more.

use std::sync::Arc;

use jiff::SignedDuration;
use perennial_core::keeper::mark::PAUSE;
use perennial_core::keeper::undo::Scope;
use perennial_core::keeper::{Body, Line, Mark, Notice, Patch, Plan, RecordSight, Sight, Why, decide};
use perennial_core::record::{Record, State, TooLarge};

use super::desk::Desk;
use super::error::Error;
use super::fleet::Entry;
use super::rollback::{Step, on_node, show_undo};
use super::screen::{Screen, Style};
use super::writes::settle;
use crate::args::operate::RestoreArgs;
use crate::config::DeskConfig;
use crate::keeper::{Apply, Outcome};

/// More steps than any restore takes.
const STEPS: u32 = 32;

pub(crate) async fn run(args: &RestoreArgs, config: &DeskConfig, screen: &mut Screen) -> Result<u8, Error> {
    let desk = Desk::open(config).await?;
    desk.certain(config, args.dry_run, screen)?;
    let mut failed = false;
    for name in &args.names {
        if let Err(error) = settle(async || restore(&desk, name, args, screen).await).await {
            failed = true;
            screen.note(error)?;
        }
    }
    Ok(u8::from(failed))
}

async fn restore(desk: &Desk, name: &str, args: &RestoreArgs, screen: &mut Screen) -> Result<(), Error> {
    let said = |why: &str| Err(Error::Said(format!("node {name:?} {why}")));
    let mut entry = desk.known(name).await?;
    if entry.live().is_none() {
        return said("is away: what is recorded of it is given when it returns");
    }
    if let Some(why) = entry.unreadable() {
        return said(&format!("gets nothing: its record cannot be read ({why})"));
    }
    let Some(record) = entry.record() else { return said("gets nothing: nothing is recorded of it") };
    if is_own(&entry, record) {
        return put_back(desk, &entry, args, screen).await;
    }
    let Some(live) = entry.live() else { return Ok(()) };
    if live.hand.pause.is_none() && record.paused && !args.dry_run {
        // What only its record remembers would end once the record names this life: it stays, as a word on the node.
        desk.annotate(name, live, PAUSE, Some("true")).await?;
        entry = desk.known(name).await?;
    }
    let giving = Giving { desk, name: name.into(), line: entry.line, args };
    match giving.carry_out().await? {
        Given::Patched(patch) => tell(name, &patch, args.dry_run, screen),
        Given::Nothing(why) => said(explained(why)),
    }
}

/// Whether the record follows this very life: then it is owed nothing, and a person's word counts.
fn is_own(entry: &Entry, record: &Record) -> bool {
    let named = entry.live().filter(|live| live.uid == record.incarnation.uid);
    named.is_some_and(|live| match record.state {
        State::Open => true,
        State::Giving => live.mark != Mark::None,
        State::Closed => false,
    })
}

/// Puts back what the record of a living node holds and it lacks, as a person with kubectl would.
async fn put_back(desk: &Desk, entry: &Entry, args: &RestoreArgs, screen: &mut Screen) -> Result<(), Error> {
    let name = &entry.name;
    let now = entry.record().map(Record::now);
    let Some((now, live)) = now.zip(entry.live()) else { return Ok(()) };
    match on_node(entry, &now, desk, Scope::Missing)? {
        Step::Node(undo) => {
            if !args.dry_run {
                desk.apply_undo(name, live, &undo).await?;
            }
            screen.say(format_args!("node/{} {}", screen.paint(name, Style::Strong), done(args.dry_run)))?;
            show_undo(entry, &undo, screen)
        }
        Step::Nothing | Step::NothingElse | Step::Record(_) => screen.say(format_args!(
            "node/{name} lacks nothing that is recorded (`perennial show {name}` lists former states, `perennial rollback` goes back to one)"
        )),
    }
}

fn done(dry_run: bool) -> &'static str {
    if dry_run { "would be restored (dry run)" } else { "restored" }
}

fn tell(name: &str, patch: &Patch, dry_run: bool, screen: &mut Screen) -> Result<(), Error> {
    let Patch { labels, annotations, taints, cordon, withheld, .. } = patch;
    let painted = screen.paint(name, Style::Strong);
    let lines = labels.iter().map(|(key, value)| format!("+ {key}={value}"));
    let lines = lines.chain(annotations.iter().map(|(key, value)| format!("+ annotation {key}={value}")));
    let taint = taints.iter().map(|taint| format!("+ taint {}={}:{}", taint.key, taint.value, taint.effect));
    let lines: Vec<String> = lines.chain(taint).chain(cordon.then(|| "+ cordon".to_owned())).collect();
    let words = if lines.is_empty() { "lacked nothing, and is marked as restored" } else { done(dry_run) };
    screen.say(format_args!("node/{painted} {words}"))?;
    for line in lines {
        screen.say(format_args!("  {}", screen.paint(&line, Style::Good)))?;
    }
    if *withheld > 0 {
        screen.say(format_args!("    {withheld} privileged labels wait for the machine's identity"))?;
    }
    Ok(())
}

fn explained(why: Why) -> &'static str {
    match why {
        Why::IdentityUnknown => {
            "gets nothing yet: its machine (spec.providerID) is not known, or not the one that is remembered"
        }
        Why::Unmanaged => "gets nothing: no rule of the policy matches it",
        Why::NothingKept => "gets nothing: nothing is recorded of it",
        Why::Terminating => "gets nothing: it is being deleted",
        Why::Forgotten => "gets nothing: it is to be forgotten",
        Why::CaptureOff => {
            "gets nothing: it got its own already, it is to be forgotten, or another machine bears its name"
        }
        Why::Unreadable | Why::NewerSchema => "gets nothing: its record cannot be used",
        _ => "gets nothing: it changes right now; try again",
    }
}

/// What came of it.
enum Given {
    /// The Node was patched, or would be.
    Patched(Box<Patch>),
    /// It gets nothing.
    Nothing(Why),
}

/// A restore under way.
struct Giving<'a> {
    desk: &'a Desk,
    name: Arc<str>,
    line: Line,
    args: &'a RestoreArgs,
}

impl Giving<'_> {
    async fn carry_out(mut self) -> Result<Given, Error> {
        for _ in 0..STEPS {
            // A person's word on this very node: the pause is for the replicas.
            if let Sight::Live(live) = &mut self.line.sight {
                live.hand.pause = Some(false);
            }
            let plan = decide(&self.name, &self.line, &self.desk.context(false));
            if let Some(given) = self.step(plan).await? {
                return Ok(given);
            }
        }
        Ok(Given::Nothing(Why::Lagging))
    }

    async fn step(&mut self, plan: Plan) -> Result<Option<Given>, Error> {
        match &plan {
            Plan::Rest(why) => return Ok(Some(Given::Nothing(*why))),
            Plan::Wait { .. }
            | Plan::Save(_)
            | Plan::Close(_)
            | Plan::Erase(_)
            | Plan::SetAside
            | Plan::Tell { .. } => {
                return Ok(Some(Given::Nothing(Why::Lagging)));
            }
            Plan::Give(write) if write.notice == Some(Notice::Unproved) && !self.args.unproved => {
                return Err(Error::Said(format!(
                    "how node {:?} last was lies before etcd's history, and its record may be older than that; a replica may \
                     know better and waits a few seconds for the others: try again, or give --unproved",
                    self.name
                )));
            }
            Plan::Give(write) if self.args.dry_run => {
                if let RecordSight::Seen(seen) = &mut self.line.record {
                    seen.body = Body::Whole(write.record.clone());
                    seen.foreign = false;
                }
                return Ok(None);
            }
            Plan::Patch(patch) if self.args.dry_run => return Ok(Some(Given::Patched(patch.clone()))),
            Plan::Give(_)
            | Plan::Patch(_)
            | Plan::Prove { .. }
            | Plan::ReadEnd { .. }
            | Plan::ReadNode
            | Plan::ReadRecord => {}
        }
        if matches!(plan, Plan::Give(_)) {
            self.desk.may_seal(self.line.seen())?;
        }
        let apply = Apply {
            api: self.desk.api.clone(),
            brake: Arc::default(),
            policy: self.desk.policy.clone(),
            dry_run: false,
            condition: false,
            records: 0,
            ask_again: SignedDuration::ZERO,
        };
        let outcome = apply.carry_out(&self.name, plan, self.line.seen().cloned()).await;
        self.fold(outcome)
    }

    fn fold(&mut self, outcome: Outcome) -> Result<Option<Given>, Error> {
        let (now, policy, line) = (self.desk.now(), &self.desk.policy, &mut self.line);
        let installation = self.desk.api.installation();
        match outcome {
            Outcome::Node(Ok(node)) => {
                let uid = node.metadata.uid;
                line.node_seen(node.into_live(installation, policy, now), policy, now);
                line.node_found(uid, line.last_removal());
            }
            Outcome::Node(Err(version)) => line.node_absent(version, now),
            Outcome::Record(Ok(object)) => {
                line.record_seen(object.whole(&self.name, self.desk.api.seals()));
            }
            Outcome::Wrote { object, write, .. } => {
                line.record_seen(object.holding(write.record));
            }
            Outcome::Record(Err(version)) => line.record_absent(version, version, false),
            Outcome::Proved(end) => line.node_ended(end),
            Outcome::Lost(uid) => line.lost = Some(uid),
            Outcome::EndRead(uid, id) => line.end_read(uid, id),
            Outcome::Patched { patch, .. } => return Ok(Some(Given::Patched(patch))),
            Outcome::Overtaken(read) => return self.fold(*read),
            Outcome::Failed(error, _) | Outcome::Untold(error) | Outcome::PastUnreadable(_, error) => {
                return self.desk.told(Err(error));
            }
            Outcome::TooLarge(bytes) => {
                return Err(Error::Said(format!(
                    "what is recorded of node {:?}: {}",
                    self.name,
                    TooLarge(bytes)
                )));
            }
            Outcome::Idle
            | Outcome::Told(_)
            | Outcome::SetAside
            | Outcome::Erased(..)
            | Outcome::Braked
            | Outcome::WouldHave(_) => {}
        }
        Ok(None)
    }
}
