//! All lines of the fleet, and which of them somebody has to act on.
//!
//! Events are folded into lines synchronously; whatever a fold leaves pending is queued by urgency, one entry
//! a node, so that memory stays bounded however long the API server is away.

mod kin;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use perennial_core::keeper::{
    Body, Context, Erasure, Line, Plan, Provider, RecordSight, Seen, Sight, Why, decide,
};
use perennial_core::kept::Digest;
use perennial_core::policy::Policy;
use perennial_core::record::{State, Version};
use tokio::time::Instant;
use uuid::Uuid;

use super::object::{NodeObject, RecordObject};
use crate::members::{Role, Roster};

/// A node's name, shared by the ledger, its queues and the work under way.
pub(crate) type Name = Arc<str>;

/// How urgent a pending line is. Restores and last states go before ordinary saves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// A node is back and waits for its own.
    Restore,
    /// A node's last state is in nobody's record yet.
    End,
    /// A change on a living node.
    Save,
    /// Whatever can wait: collection.
    Later,
}

const URGENCIES: usize = 4;
/// How often in a row a line may be overtaken before it waits.
const OVERTAKEN: u32 = 3;

/// Where a line stands, for the gauges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing is known yet, or nothing is there.
    #[default]
    Nothing,
    /// The node lives and its record is current.
    Current,
    /// The node is away and its record is closed.
    Away,
    /// Somebody has to act.
    Pending,
}

/// What a line is looked at with.
pub(crate) struct View<'a> {
    /// What holds for every decision.
    pub(crate) cx: Context<'a>,
    /// Whose turn it is.
    pub(crate) roster: &'a Roster,
    /// The time by which waits are measured: nobody can set it back.
    pub(crate) at: Instant,
}

/// Work that failed and waits.
#[derive(Clone, Copy, Debug)]
struct PutOff {
    until: Instant,
    /// What is more urgent than this does not wait.
    at_most: Urgency,
}

/// A line and what this replica is doing about it.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    pub(crate) line: Line,
    /// Fingerprint of the node as last folded: an equal one changes nothing.
    fingerprint: Option<u64>,
    /// The lists that last had the node, and the record.
    node_list: u32,
    record_list: u32,
    /// Work is under way.
    busy: bool,
    /// The queue it waits in; what it left behind in a less urgent one is passed over.
    queued: Option<Urgency>,
    /// Not before this time, after a failure.
    not_before: Option<PutOff>,
    pub(crate) failures: u32,
    /// Nothing more is done about it until it changes.
    held: bool,
    standing: Standing,
    /// Since when there is something to do about this version of the record.
    pending: Option<(Instant, Option<Version>)>,
    /// When it is looked at again; any other timer of its is void.
    timer: Option<Instant>,
    /// It was counted as a node that is there.
    there: bool,
    /// It was counted as one for which this replica comes first.
    first: bool,
    /// The last reason to skip it, so that each is counted once.
    skipped: Option<Why>,
}

/// The fleet.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    entries: HashMap<Name, Entry>,
    queues: [VecDeque<Name>; URGENCIES],
    timers: BinaryHeap<Reverse<(Instant, Name)>>,
    node_list: u32,
    record_list: u32,
    nodes_listed: bool,
    records_listed: bool,
    standings: [usize; 4],
    /// How many nodes are there, and for how many of them this replica comes first.
    nodes: usize,
    first: usize,
    /// Records by the `providerID` of their machine, while the policy finds records by it.
    machines: Option<BTreeMap<Digest, BTreeSet<Name>>>,
}

/// How the fleet stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) nodes: usize,
    pub(crate) first: usize,
    pub(crate) current: usize,
    pub(crate) pending: usize,
}

/// What came of looking at a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Looked {
    /// Nothing new.
    Nothing,
    /// It is left as it is though it is not settled, for this reason, for the first time.
    Skipped(Why),
}

impl Ledger {
    pub(crate) fn is_synced(&self) -> bool {
        self.nodes_listed && self.records_listed
    }

    pub(crate) fn names(&self) -> Vec<Name> {
        self.entries.keys().cloned().collect()
    }

    pub(crate) fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.get(name)
    }

    pub(crate) fn entry_mut(&mut self, name: &Name) -> &mut Entry {
        let (nodes_listed, records_listed) = (self.nodes_listed, self.records_listed);
        self.entries.entry(name.clone()).or_insert_with(|| {
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
        self.entries.get_key_value(name).map_or_else(|| name.into(), |(name, _)| name.clone())
    }

    /// A list of nodes begins.
    pub(crate) fn nodes_listing(&mut self) {
        self.node_list += 1;
    }

    /// A list of records begins.
    pub(crate) fn records_listing(&mut self) {
        self.record_list += 1;
    }

    /// Folds a node as it is now. Returns its name if that could change a decision.
    pub(crate) fn node_applied(
        &mut self,
        node: NodeObject,
        installation: &str,
        policy: &Policy,
        now: Timestamp,
    ) -> Option<Name> {
        let name = self.name(&node.metadata.name);
        let list = self.node_list;
        let entry = self.entry_mut(&name);
        entry.node_list = list;
        let fingerprint = node.fingerprint(policy);
        let version = node.metadata.resource_version;
        let waiting = entry.line.seen().and_then(Seen::summary).is_some_and(|record| record.waiting);
        if let Sight::Live(live) = &mut entry.line.sight
            && entry.fingerprint == Some(fingerprint)
            && live.uid == node.metadata.uid
            && !((live.wants_identity || waiting)
                && live.provider == Provider::Read(None)
                && live.is_young(now))
        {
            live.version = live.version.max(version);
            // A line that lagged behind its record may have caught up with it.
            return (entry.skipped == Some(Why::Lagging)).then_some(name);
        }
        let live = node.into_live(installation, policy, now);
        if !entry.line.node_seen(live, policy, now) {
            return None;
        }
        entry.fingerprint = Some(fingerprint);
        entry.held = false;
        Some(name)
    }

    /// Folds a node that was read directly: even what did not change may have been dropped before.
    ///
    /// Returns false for a life that the watch has not told of. It will, and in order: the ends of the lives
    /// before it are on their way, and what is given to it must not be decided without them.
    pub(crate) fn node_read(
        &mut self,
        name: &Name,
        node: NodeObject,
        installation: &str,
        policy: &Policy,
        now: Timestamp,
    ) -> bool {
        let fingerprint = node.fingerprint(policy);
        let entry = self.entry_mut(name);
        let untold = match &entry.line.sight {
            Sight::Live(live) => live.uid != node.metadata.uid,
            Sight::Absent { .. } => true,
            Sight::Unlisted | Sight::Missing => false,
        };
        if untold {
            return false;
        }
        let live = node.into_live(installation, policy, now);
        if entry.line.node_seen(live, policy, now) {
            entry.fingerprint = Some(fingerprint);
        }
        true
    }

    /// Folds a node's end.
    pub(crate) fn node_deleted(
        &mut self,
        node: NodeObject,
        installation: &str,
        policy: &Policy,
        now: Timestamp,
    ) -> Name {
        let name = self.name(&node.metadata.name);
        let deleted = node.metadata.resource_version;
        let end = node.into_end(deleted, installation, policy, now);
        let entry = self.entry_mut(&name);
        entry.line.node_ended(end);
        entry.held = false;
        name
    }

    /// The list of nodes is complete. What it did not have is missing, which alone counts for nothing.
    pub(crate) fn nodes_listed(&mut self, version: Version) {
        self.nodes_listed = true;
        let list = self.node_list;
        for entry in self.entries.values_mut().filter(|entry| entry.node_list != list) {
            entry.line.node_missing(version);
        }
    }

    /// Folds a ConfigMap by its metadata. Returns the node's name if it is a record and could change a
    /// decision.
    pub(crate) fn record_applied(&mut self, object: &RecordObject) -> Option<Name> {
        let name = self.name(object.node()?);
        let list = self.record_list;
        let entry = self.entry_mut(&name);
        entry.record_list = list;
        // Whatever follows what could not be read is somebody else's edit too: its annotations prove nothing.
        let sequence = |seen: &Seen| seen.summary().map_or(u64::MAX, |summary| summary.sequence);
        let mut seen = object.by_metadata(entry.line.seen().map(|known| (known.version, sequence(known))));
        entry.remember_name(&mut seen);
        if !entry.line.record_seen(seen) {
            return None;
        }
        entry.held = false;
        self.index_machine(&name);
        Some(name)
    }

    /// A direct read at `version` found no record.
    pub(crate) fn record_absent(&mut self, name: &Name, version: Version) {
        self.entry_mut(name).line.record_removed(version);
    }

    /// This replica removed the record: by a person's word, or because its time was over.
    pub(crate) fn record_erased(&mut self, name: &Name, version: Version, why: Erasure) {
        let line = &mut self.entry_mut(name).line;
        if line.seen().is_some_and(|seen| seen.version > version) {
            return;
        }
        match why {
            Erasure::Forgotten => line.record_removed(version),
            Erasure::Expired | Erasure::OverCap | Erasure::Empty => line.record_collected(),
        }
    }

    /// Folds a record that was read whole.
    pub(crate) fn record_read(&mut self, name: &Name, object: &RecordObject) {
        let entry = self.entry_mut(name);
        let mut seen = object.whole(name);
        // The same bytes judged again: what was found out about them holds.
        if let Some(known) = entry.line.seen().filter(|known| known.version == seen.version) {
            seen.foreign = known.foreign;
            if let (Body::Unreadable { aside, .. }, Body::Unreadable { aside: true, .. }) =
                (&mut seen.body, &known.body)
            {
                *aside = true;
            }
        }
        entry.remember_name(&mut seen);
        entry.line.record_seen(seen);
        self.index_machine(name);
    }

    /// Folds the content of a record that is known by its metadata. Whatever changed since is passed over.
    pub(crate) fn record_fetched(&mut self, object: &RecordObject) -> Option<Name> {
        let name = self.name(object.node()?);
        let known = self.entry(&name)?.seen()?.version;
        (known == object.metadata.resource_version).then(|| self.record_read(&name, object))?;
        Some(name)
    }

    /// Folds a record's removal.
    pub(crate) fn record_deleted(&mut self, object: &RecordObject) -> Option<Name> {
        let name = self.name(object.node()?);
        let entry = self.entry_mut(&name);
        entry.line.record_removed(object.metadata.resource_version);
        entry.held = false;
        Some(name)
    }

    /// The list of records is complete. One that it did not have has to be read before it counts as gone.
    pub(crate) fn records_listed(&mut self) {
        self.records_listed = true;
        let list = self.record_list;
        for entry in self.entries.values_mut().filter(|entry| entry.record_list != list) {
            match &mut entry.line.record {
                RecordSight::Seen(seen) => {
                    seen.body = Body::Unread { hint: seen.names() };
                }
                RecordSight::Unlisted => entry.line.record = RecordSight::None,
                RecordSight::None => {}
            }
        }
    }

    /// Records whose Node version lies beyond `head` were written in another history, but for those that were
    /// written after `head` was read.
    pub(crate) fn judge_histories(&mut self, head: Version) -> Vec<Name> {
        let mut judged = Vec::new();
        for (name, entry) in &mut self.entries {
            if let RecordSight::Seen(seen) = &mut entry.line.record
                && seen.version <= head
                && seen.summary().is_some_and(|summary| summary.version > head)
            {
                seen.foreign = true;
                judged.push(name.clone());
            }
        }
        judged
    }

    /// Looks at a line: queues it, sets its timer, or lets it rest.
    pub(crate) fn look(&mut self, name: &Name, view: &View<'_>) -> Looked {
        self.meet_kin(name);
        let Some(entry) = self.entries.get_mut(name) else { return Looked::Nothing };
        if entry.busy {
            return Looked::Nothing;
        }
        let plan = decide(name, &entry.line, &view.cx);
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
                    entry.line.settle();
                }
                match (&entry.line.sight, why) {
                    (_, Why::NotSynced) => Standing::Nothing,
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
                let urgency = urgency(plan, &entry.line);
                let put_off = entry.not_before.filter(|off| off.until > view.at && off.at_most <= urgency);
                let turn = entry.turn(name, plan, view);
                let until = put_off.map_or(turn, |off| turn.max(off.until));
                if until > view.at {
                    wake = Some(until);
                } else if !entry.held && entry.queued.is_none_or(|queued| urgency < queued) {
                    entry.queued = Some(urgency);
                    self.queues[urgency as usize].push_back(name.clone());
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
        let before = std::mem::replace(&mut entry.standing, standing);
        let was_there = std::mem::replace(&mut entry.there, matches!(entry.line.sight, Sight::Live(_)));
        self.nodes = self.nodes + usize::from(entry.there) - usize::from(was_there);
        if entry.there != was_there {
            let first = entry.there && view.roster.rank(name, Role::Capture) == 0;
            self.first = self.first + usize::from(first) - usize::from(entry.first);
            entry.first = first;
        }
        let forgotten = standing == Standing::Nothing
            && matches!(plan, Plan::Rest(Why::NothingKept | Why::Forgotten))
            && entry.line.seen().is_none();
        self.standings[before as usize] = self.standings[before as usize].saturating_sub(1);
        self.standings[standing as usize] += 1;
        if forgotten {
            self.entries.remove(name);
        }
        looked
    }

    /// The next line to act on, with its plan, most urgent first.
    pub(crate) fn next(&mut self, view: &View<'_>) -> Option<(Name, Plan)> {
        loop {
            let (urgency, name) = self.queues.iter_mut().enumerate().find_map(|(urgency, queue)| {
                let name = queue.pop_front()?;
                Some((urgency, name))
            })?;
            let Some(entry) = self.entries.get_mut(&name) else { continue };
            if entry.queued.is_none_or(|queued| queued as usize != urgency) {
                continue;
            }
            entry.queued = None;
            if entry.busy {
                continue;
            }
            match decide(&name, &entry.line, &view.cx) {
                plan @ (Plan::Rest(_) | Plan::Wait { .. }) => drop(plan),
                // What was queued as one thing may have become another, that is not our turn yet.
                plan if entry.turn(&name, &plan, view) > view.at => drop(plan),
                plan => {
                    entry.busy = true;
                    return Some((name, plan));
                }
            }
            self.look(&name, view);
        }
    }

    /// Work on a line is over.
    pub(crate) fn done(&mut self, name: &Name) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.busy = false;
        }
    }

    /// Work on a line failed: not before `until`, unless something more urgent than `at_most` comes up.
    pub(crate) fn put_off(&mut self, name: &Name, until: Instant, at_most: Urgency) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.failures = entry.failures.saturating_add(1);
            entry.not_before = Some(PutOff { until, at_most });
        }
    }

    /// What was put off and holds ends is tried again at once: there is not much time left.
    pub(crate) fn hurry(&mut self) -> Vec<Name> {
        let mut hurried = Vec::new();
        for (name, entry) in self.entries.iter_mut().filter(|(_, entry)| !entry.line.ends.is_empty()) {
            entry.line.awaited = true;
            entry.not_before = None;
            hurried.push(name.clone());
        }
        hurried
    }

    /// How many lines hold ends that could not be recorded yet.
    pub(crate) fn unrecorded_ends(&self) -> usize {
        let held = |entry: &&Entry| !entry.line.ends.is_empty() && (entry.busy || entry.failures > 0);
        self.entries.values().filter(held).count()
    }

    /// Nothing more is to be done about a line until it changes.
    pub(crate) fn hold(&mut self, name: &Name) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.held = true;
        }
    }

    /// Somebody was faster. That is progress too, but not if it goes on and on.
    pub(crate) fn overtaken(&mut self, name: &Name, until: Instant) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.failures = entry.failures.saturating_add(1);
            let at_most = Urgency::Restore;
            entry.not_before = (entry.failures > OVERTAKEN).then_some(PutOff { until, at_most });
        }
    }

    /// Work on a line went well.
    pub(crate) fn succeeded(&mut self, name: &Name) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.failures = 0;
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
            if let Some(entry) = self.entries.get_mut(&name).filter(|entry| entry.timer == Some(at)) {
                entry.timer = None;
                due.push(name);
            }
        }
        due
    }

    /// The lines about which there is something to do.
    pub(crate) fn pending(&self) -> Vec<Name> {
        let pending = self.entries.iter().filter(|(_, entry)| entry.pending.is_some());
        pending.map(|(name, _)| name.clone()).collect()
    }

    /// Counts anew for how many nodes this replica comes first.
    pub(crate) fn rank_anew(&mut self, roster: &Roster) {
        self.first = 0;
        for (name, entry) in &mut self.entries {
            entry.first = entry.there && roster.rank(name, Role::Capture) == 0;
            self.first += usize::from(entry.first);
        }
    }

    /// Whether nothing waits in the queues.
    pub(crate) fn is_idle(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }

    pub(crate) fn counts(&self) -> Counts {
        let [_, current, _, pending] = self.standings;
        Counts { nodes: self.nodes, first: self.first, current, pending }
    }

    /// The records, as far as their summaries are known: name, state, since when.
    pub(crate) fn records(&self) -> impl Iterator<Item = (&Name, &Seen)> {
        self.entries.iter().filter_map(|(name, entry)| Some((name, entry.line.seen()?)))
    }

    /// Another policy: every node and record that the next lists bring is judged anew.
    pub(crate) fn judge_anew(&mut self) {
        self.nodes_listed = false;
        self.records_listed = false;
        for entry in self.entries.values_mut() {
            entry.fingerprint = None;
            // It lacks whatever only the new policy keeps.
            if let Sight::Live(live) = &mut entry.line.sight {
                live.content = None;
            }
            entry.held = false;
            entry.line.agreed = None;
        }
    }

    /// Forgets everything: another history begins.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}

impl Entry {
    /// The incarnation that lives, or that the record names.
    pub(crate) fn uid(&self) -> Option<Uuid> {
        self.line.live().map(|live| live.uid).or_else(|| self.line.seen()?.names())
    }

    /// When it is this replica's turn, counted from when there was first something to do about the record as it
    /// is. A node that changes all the time does not begin the wait anew; whoever writes the record does.
    fn turn(&mut self, name: &str, plan: &Plan, view: &View<'_>) -> Instant {
        let over = self.seen().map(|seen| seen.version);
        let since = match self.pending {
            Some((since, version)) if version == over => since,
            _ => view.at,
        };
        self.pending = Some((since, over));
        since + view.roster.delay(name, role(urgency(plan, &self.line)), plan.turn())
    }

    /// What the plan's writes are conditioned on.
    pub(crate) fn seen(&self) -> Option<&Seen> {
        self.line.seen()
    }

    /// Whoever breaks a record may take its annotations along: what this replica knew of it still counts.
    fn remember_name(&self, seen: &mut Seen) {
        if let Body::Unread { hint } | Body::Unreadable { hint, .. } = &mut seen.body {
            *hint = hint.or_else(|| self.line.seen()?.names());
        }
    }
}

/// The part of a whole; all of it where there is nothing.
pub(crate) fn ratio(part: usize, whole: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a share of at most some million nodes")]
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

/// Among whom ranks are taken.
pub(crate) fn role(urgency: Urgency) -> Role {
    match urgency {
        Urgency::Restore => Role::Restore,
        Urgency::End | Urgency::Save | Urgency::Later => Role::Capture,
    }
}

pub(crate) fn urgency(plan: &Plan, line: &Line) -> Urgency {
    let named = line.seen().and_then(Seen::summary).map(|record| (record.uid, record.state));
    match (plan, line.live()) {
        (Plan::Give(_) | Plan::Patch(_), _) => Urgency::Restore,
        (Plan::Erase(_), _) => Urgency::Later,
        (Plan::Save(write), _) if write.braked => Urgency::Later,
        (Plan::Save(_), _) => Urgency::Save,
        (_, Some(live)) => match named {
            Some((uid, State::Open)) if uid == live.uid => Urgency::Save,
            None => Urgency::Save,
            Some(_) => Urgency::Restore,
        },
        (Plan::ReadNode, None) if matches!(named, Some((_, State::Closed))) => Urgency::Later,
        (_, None) => Urgency::End,
    }
}

#[cfg(test)]
mod tests;
