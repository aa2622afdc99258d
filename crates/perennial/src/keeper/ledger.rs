//! All lines of the fleet, and which of them somebody has to act on.
//!
//! Events are folded into lines synchronously; whatever a fold leaves pending is queued by urgency, one entry
//! a node, so that memory stays bounded however long the API server is away.

mod cells;
mod clock;
mod entry;
mod fold;
mod kin;
mod lines;
mod press;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use perennial_core::admission::Comer;
use perennial_core::keeper::born::{Birth, born};
use perennial_core::keeper::{Context, Plan, RecordSight, Removal, Sight, Why};
use perennial_core::kept::Digest;
use perennial_core::record::{Seals, Version};
use tokio::time::Instant;
use uuid::Uuid;

use super::fleet::{Counted, Counts, Fleet, Standing};
use super::window::Cell;
use crate::members::{Role, Roster};
use cells::Noted;
use entry::PutOff;
use lines::{Glimpse, Lines, Signs};

pub(crate) use entry::{Entry, Urgency};

/// A node's name, shared by the ledger, its queues and the work under way.
pub(crate) type Name = Arc<str>;

const URGENCIES: usize = 6;
/// What waited in a queue or for a timer takes no room for more than these once it is empty.
const USUAL: usize = 1000;
/// How often in a row a line may be overtaken before it waits.
const OVERTAKEN: u32 = 3;

/// What a line is looked at with.
pub(crate) struct View<'a> {
    /// What holds for every decision.
    pub(crate) cx: Context<'a>,
    /// Whose turn it is.
    pub(crate) roster: &'a Roster,
    /// The time by which waits are measured: nobody can set it back.
    pub(crate) at: Instant,
    /// Nothing is written, whatever is decided.
    pub(crate) dry_run: bool,
}

/// Something was seen at an older version than this, at which it was known before: another history, or an old answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Suspect {
    Node(Name, Version),
    Record(Name, Version),
}

/// The fleet.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    lines: Lines,
    /// What is due, and since when.
    queues: [VecDeque<(Name, Instant)>; URGENCIES],
    timers: BinaryHeap<Reverse<(Instant, Name)>>,
    node_list: u32,
    record_list: u32,
    nodes_listed: bool,
    records_listed: bool,
    /// How far the watches have told.
    told: Version,
    told_records: Version,
    /// How far they had when the last lists began.
    told_before: Version,
    told_records_before: Version,
    /// When nodes were last listed: the version, and the time of the first look after that.
    listed: (Version, Option<Instant>),
    /// An object that was seen at an older version than before.
    suspect: Option<Suspect>,
    /// No record is known that is of a later version of its node.
    recorded: Version,
    fleet: Arc<Fleet>,
    /// What records have to be sealed with to be believed, where they have to be.
    seals: Option<Arc<Seals>>,
    /// Records by the `providerID` of their machine, while the policy finds records by it.
    machines: Option<BTreeMap<Digest, BTreeSet<Name>>>,
    /// What changed since somebody looked at the whole fleet, while somebody does.
    noted: Noted,
}

/// What came of looking at a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Looked {
    /// Nothing new.
    Nothing,
    /// It is left as it is though it is not settled, for this reason, for the first time.
    Skipped(Why),
}

/// What comes next.
#[derive(Debug)]
pub(crate) enum Next {
    /// This is to be done about a line, and has been due since then.
    Act(Name, Plan, Instant),
    /// There is nothing to do about it any more, or not yet: it is to be looked at.
    Look(Name),
}

impl Ledger {
    /// One that counts its lines there.
    pub(crate) fn counted_in(fleet: Arc<Fleet>, seals: Option<Arc<Seals>>) -> Self {
        Self { fleet, seals, ..Self::default() }
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.nodes_listed && self.records_listed
    }

    /// All nodes, in order.
    pub(crate) fn names(&self) -> Vec<Name> {
        in_order(self.lines.names())
    }

    pub(crate) fn entry(&self, name: &str) -> Option<Glimpse<'_>> {
        self.lines.get(name)
    }

    pub(crate) fn entry_mut(&mut self, name: &Name) -> &mut Entry {
        let (nodes_listed, records_listed) = (self.nodes_listed, self.records_listed);
        self.lines.wake_or(name, || {
            let mut entry = Entry::default();
            if nodes_listed {
                entry.line.sight = Sight::Missing;
            }
            if records_listed {
                entry.line.record = RecordSight::None;
            }
            entry
        })
    }

    fn name(&self, name: &str) -> Name {
        self.lines.name(name).map_or_else(|| name.into(), Name::clone)
    }

    /// Looks at a line: queues it, sets its timer, or lets it rest.
    pub(crate) fn look(&mut self, name: &Name, view: &View<'_>) -> Looked {
        self.meet_kin(name);
        let looked = self.look_awake(name, view);
        self.lines.sleep(name);
        looked
    }

    fn look_awake(&mut self, name: &Name, view: &View<'_>) -> Looked {
        let unwatched = self.unwatched(view);
        let Some(entry) = self.lines.wake(name) else { return Looked::Nothing };
        if entry.busy {
            return Looked::Nothing;
        }
        let plan = entry.decide(name, &view.cx);
        entry.owed = entry.awaits(&plan);
        let mut looked = Looked::Nothing;
        let mut wake = None;
        let standing = match &plan {
            Plan::Rest(why) => {
                entry.failures = 0;
                entry.not_before = None;
                entry.pending = None;
                let settled = why.is_settled();
                if !settled && !matches!(why, Why::NotSynced | Why::Lagging) && entry.skipped != Some(*why) {
                    looked = Looked::Skipped(*why);
                }
                entry.skipped = (!settled).then_some(*why);
                if settled {
                    entry.settle();
                }
                match (&entry.line.sight, why) {
                    // Whoever lags has nothing to do: the watch has yet to tell.
                    (_, Why::NotSynced | Why::Lagging) => Standing::Nothing,
                    (Sight::Live(_), _) if settled => Standing::Current,
                    (_, Why::Away) => Standing::Away,
                    (Sight::Live(_), _) => Standing::Pending,
                    _ if settled => Standing::Nothing,
                    _ => Standing::Pending,
                }
            }
            Plan::Wait { until } => {
                entry.pending = None;
                let wait = Duration::try_from(until.duration_since(view.cx.now)).unwrap_or_default();
                wake = Some(view.at + wait);
                if matches!(entry.line.sight, Sight::Live(_)) { Standing::Current } else { Standing::Away }
            }
            plan => {
                let urgency = entry.urgency(plan);
                let put_off = entry.not_before.filter(|off| off.until > view.at && off.at_most <= urgency);
                let turn = entry.turn(name, plan, view, unwatched);
                let until = put_off.map_or(turn, |off| turn.max(off.until));
                if until > view.at {
                    wake = Some(until);
                } else if !entry.held && entry.queued.is_none_or(|queued| urgency < queued) {
                    entry.queued = Some(urgency);
                    self.queues[urgency as usize].push_back((name.clone(), view.at));
                }
                Standing::Pending
            }
        };
        if let Some(at) = wake
            && entry.timer.is_none_or(|set| at < set)
        {
            entry.timer = Some(at);
            self.timers.push(Reverse((at, name.clone())));
        }
        let cell = cells::cell(entry, &plan, standing);
        if std::mem::replace(&mut entry.cell, cell) != cell {
            self.noted.note(name);
        }
        let forgotten = standing == Standing::Nothing
            && matches!(plan, Plan::Rest(Why::NothingKept | Why::Forgotten))
            && entry.line.seen().is_none();
        let counted = entry.count(name, &plan, standing, view);
        self.fleet.recount(&mut entry.counted, if forgotten { Counted::default() } else { counted }, view.at);
        if forgotten {
            self.noted.note(name);
        }
        // What was forgotten may still be reported as an end, and a record that was erased as removed.
        let told = |removal: Removal| removal.at <= self.told;
        if forgotten && entry.line.erased.is_none() && entry.line.removal.is_none_or(told) {
            self.lines.remove(name);
        }
        looked
    }

    /// The version up to which this replica may have missed ends that others saw and have yet to record: that of its last
    /// list, until each of them had a turn since.
    fn unwatched(&mut self, view: &View<'_>) -> Version {
        let (version, since) = &mut self.listed;
        let since = *since.get_or_insert(view.at);
        if view.at < since + view.roster.round() { *version } else { 0 }
    }

    /// What to do next, most urgent first.
    pub(crate) fn next(&mut self, view: &View<'_>) -> Option<Next> {
        let unwatched = self.unwatched(view);
        loop {
            let (urgency, (name, due)) =
                self.queues.iter_mut().enumerate().find_map(|(urgency, queue)| {
                    let due = queue.pop_front()?;
                    if queue.is_empty() {
                        queue.shrink_to(USUAL);
                    }
                    Some((urgency, due))
                })?;
            let Some(entry) = self.lines.wake(&name) else { continue };
            if entry.queued.is_none_or(|queued| queued as usize != urgency) {
                continue;
            }
            entry.queued = None;
            if entry.busy {
                continue;
            }
            return Some(match entry.decide(&name, &view.cx) {
                Plan::Rest(_) | Plan::Wait { .. } => Next::Look(name),
                // What was queued as one thing may have become another, that is not our turn yet.
                plan if entry.turn(&name, &plan, view, unwatched) > view.at => Next::Look(name),
                plan => {
                    entry.busy = true;
                    Next::Act(name, plan, due)
                }
            });
        }
    }

    /// Work on a line is over.
    pub(crate) fn done(&mut self, name: &Name) {
        self.lines.released(name);
    }

    /// Work on a line failed: not before `until`, unless something more urgent than `at_most` comes up.
    pub(crate) fn put_off(&mut self, name: &Name, until: Instant, at_most: Urgency) {
        if let Some(entry) = self.lines.wake(name) {
            entry.failures = entry.failures.saturating_add(1);
            entry.line.hindered = true;
            entry.not_before = Some(PutOff { until, at_most });
        }
    }

    /// What was put off and holds ends is tried again at once: there is not much time left.
    pub(crate) fn hurry(&mut self) -> Vec<Name> {
        let mut hurried = Vec::new();
        self.lines.each(
            |pulse| pulse.has(Signs::ENDS),
            |name, entry| {
                entry.line.awaited = true;
                entry.not_before = None;
                hurried.push(name.clone());
            },
        );
        hurried
    }

    /// How many lines hold ends that could not be recorded yet.
    pub(crate) fn unrecorded_ends(&self) -> usize {
        let held = self.lines.pulses().filter(|(_, pulse)| pulse.has(Signs::ENDS));
        let held = held.filter_map(|(name, _)| self.lines.get(name));
        held.filter(|entry| entry.busy || entry.failures > 0).count()
    }

    /// Nothing more is to be done about a line until it changes.
    pub(crate) fn hold(&mut self, name: &Name) {
        if let Some(entry) = self.lines.wake(name) {
            entry.held = true;
        }
    }

    /// Somebody was faster. That is progress too, but not if it goes on and on.
    pub(crate) fn overtaken(&mut self, name: &Name, until: Instant) {
        if let Some(entry) = self.lines.wake(name) {
            entry.failures = entry.failures.saturating_add(1);
            let at_most = Urgency::Restore;
            entry.line.hindered |= entry.failures > OVERTAKEN;
            entry.not_before = (entry.failures > OVERTAKEN).then_some(PutOff { until, at_most });
        }
    }

    /// The brake keeps a line from being erased or shrunk until then. That is no failure.
    pub(crate) fn braked(&mut self, name: &Name, until: Instant) {
        if let Some(entry) = self.lines.wake(name) {
            entry.braked = true;
            entry.not_before = Some(PutOff { until, at_most: Urgency::Later });
        }
    }

    /// Work on a line went well.
    pub(crate) fn succeeded(&mut self, name: &Name) {
        if let Some(entry) = self.lines.wake(name) {
            entry.failures = 0;
            entry.line.hindered = false;
            entry.not_before = None;
        }
    }

    /// When the next timer is due.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    /// The lines whose timers are due.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<Name> {
        let mut due = Vec::new();
        while let Some(Reverse((at, _))) = self.timers.peek()
            && *at <= now
        {
            let Some(Reverse((at, name))) = self.timers.pop() else { break };
            if let Some(entry) = self.lines.wake(&name).filter(|entry| entry.timer == Some(at)) {
                entry.timer = None;
                due.push(name);
            }
        }
        if self.timers.is_empty() {
            self.timers.shrink_to(USUAL);
        }
        due
    }

    /// History does not tell the end of this incarnation. Everybody who may have seen it has its turn from now on.
    pub(crate) fn end_lost(&mut self, name: &Name, uid: Uuid) {
        let entry = self.entry_mut(name);
        entry.line.lost = Some(uid);
        entry.pending = None;
    }

    /// The lines about which there is something to do, in order.
    pub(crate) fn pending(&self) -> Vec<Name> {
        let pending = self.lines.pulses().filter(|(_, pulse)| pulse.has(Signs::PENDING));
        in_order(pending.map(|(name, _)| name))
    }

    /// The lines that were not as they should be when they were last looked at, or have changed since, in order.
    pub(crate) fn not_current(&self) -> Vec<Name> {
        let others = self.lines.pulses().filter(|(_, pulse)| pulse.cell != Cell::Current);
        in_order(others.map(|(name, _)| name))
    }

    /// Whether somebody has to act on a line.
    pub(crate) fn is_pending(&self, name: &str) -> bool {
        self.lines.get(name).is_some_and(|entry| entry.counted.standing == Standing::Pending)
    }

    /// What a node that comes now is born with.
    pub(crate) fn born(&mut self, comer: &Comer, cx: &Context<'_>) -> Birth {
        let name = self.name(&comer.name);
        let Some(entry) = self.lines.wake(&name) else { return Birth::default() };
        entry.recall();
        let born = born(&name, &comer.labels, comer.machine.as_deref(), &entry.line, cx);
        self.lines.sleep(&name);
        born
    }

    /// Whether nothing is left to write about a line, or nothing that would be lost with its node.
    pub(crate) fn is_recorded(&self, name: &str) -> bool {
        self.lines.get(name).is_none_or(|entry| entry.is_recorded())
    }

    /// Counts anew for how many nodes this replica comes first.
    pub(crate) fn rank_anew(&mut self, roster: &Roster) {
        let first = self.lines.rank(|name| roster.rank(name, Role::Capture) == 0);
        self.fleet.ranked(first);
    }

    /// Whether nothing waits in the queues.
    pub(crate) fn is_idle(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }

    pub(crate) fn counts(&self) -> Counts {
        self.fleet.counts()
    }

    /// The nodes whose records went back to the state that they had just left most often, and how often.
    ///
    /// Looks at every line: a few milliseconds for 100,000 of them, once a second while somebody looks.
    pub(crate) fn churners(&self, most: usize) -> Vec<(Name, u16)> {
        let churned = self.lines.pulses().filter(|(_, pulse)| pulse.has(Signs::CHURNED));
        let often = |name: &Name| Some((name.clone(), self.lines.get(name)?.churn));
        let mut churned: Vec<_> = churned.filter_map(|(name, _)| often(name)).collect();
        churned.sort_by(|(a, often), (b, oftener)| oftener.cmp(often).then(a.cmp(b)));
        churned.truncate(most);
        churned
    }

    /// Lines whose records may be collected one day. All others sleep on: to look into each of a large fleet takes a fifth of a
    /// second, in which nothing else is done.
    pub(crate) fn spent(&self) -> impl Iterator<Item = (&Name, Glimpse<'_>)> {
        let spent = self.lines.pulses().filter(|(_, pulse)| pulse.has(Signs::SPENT));
        spent.filter_map(|(name, _)| Some((name, self.lines.get(name)?)))
    }

    /// The turn is over: whatever was woken and is not worked on goes back to sleep.
    pub(crate) fn rest(&mut self) {
        self.lines.sleep_all();
    }
}

/// In the order in which they are listed, and lie in memory: what is let go of one after the other leaves no holes.
fn in_order<'a>(names: impl Iterator<Item = &'a Name>) -> Vec<Name> {
    let mut names: Vec<Name> = names.cloned().collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests;
