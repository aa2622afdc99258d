//! The one function: what to do about one node, from what is known of it.

mod absent;
mod follow;
mod give;
mod unrecorded;

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::fold::{Memory, fold};
use super::line::{Body, End, Line, Live, Provider, RecordSight, Seen, Sight};
use super::mark::Mark;
use super::plan::{Erasure, Notice, Plan, Why, Write};
use super::write::{close, due, forget, release, save};
use crate::kept::Kept;
use crate::policy::{Policy, Rule};
use crate::ranks::Turn;
use crate::record::{Record, State, Summary, Unproved, Version};

/// What holds for every node: the policy, the time, and what this replica may do.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// What is kept, and how it is given back.
    pub policy: &'a Policy,
    /// The time.
    pub now: Timestamp,
    /// Records may be saved, closed and erased here.
    pub capture: bool,
    /// Records may be given and Nodes patched here.
    pub restore: bool,
    /// How long an ordinary end waits for a quick return, which saves a write.
    pub close_after: SignedDuration,
    /// How long a given record waits before it is opened.
    pub open_after: SignedDuration,
    /// How long after its creation a node's gate may stay closed.
    pub gate: SignedDuration,
    /// Nodes are told in their status that they have their own.
    pub condition: bool,
    /// Records are sealed: one that bears no seal, and is believed all the same, is written again.
    pub seals: bool,
    /// Another replica runs under another policy, as during a rollout.
    pub rollout: bool,
}

/// Decides about one node. Total, and idempotent: once the plan was carried out, deciding again says `Rest`.
#[must_use]
pub fn decide(node: &str, line: &Line, cx: &Context<'_>) -> Plan {
    let case = Case { node, line, cx };
    let plan = match &line.record {
        RecordSight::Unlisted => Plan::Rest(Why::NotSynced),
        RecordSight::None => case.without_record(),
        RecordSight::Seen(seen) => match &seen.body {
            Body::Newer => Plan::Rest(Why::NewerSchema),
            Body::Unread { .. } => Plan::ReadRecord,
            Body::Unreadable { hint, aside, .. } => case.unreadable(*hint, *aside),
            Body::Summary(_) | Body::Whole(_) => case.with_record(seen),
        },
    };
    let plan = case.read_ends(plan);
    // Sealed before it is told: that may be refused.
    case.tell(case.seal(case.at_the_gate(plan)))
}

/// A line under decision. Where a row needs more than is at hand, it answers with the read that fetches it.
pub(super) struct Case<'a> {
    pub(super) node: &'a str,
    pub(super) line: &'a Line,
    pub(super) cx: &'a Context<'a>,
}

impl Case<'_> {
    /// Before an end is written down, or acted on, its machine is read where that matters: an unread one is neither
    /// the same nor another.
    fn read_ends(&self, plan: Plan) -> Plan {
        let acts = match &plan {
            Plan::Close(_) | Plan::Give(_) => true,
            Plan::Save(write) => write.notice == Some(Notice::OtherMachine),
            _ => false,
        };
        if !acts || self.line.ends.iter().all(|end| end.provider != Provider::Unread) {
            return plan;
        }
        let record = self.line.seen().and_then(|seen| Some((whole(seen)?, seen.summary()?.version)));
        fold(record, &self.line.ends, self.cx).and_then(|memory| memory.read_end()).unwrap_or(plan)
    }

    /// A node behind a gate: it is opened with what is given, where nothing is owed, and after a time in any case.
    fn at_the_gate(&self, plan: Plan) -> Plan {
        let Some(live) = self.line.live().filter(|live| self.cx.restore && !live.terminating) else {
            return plan;
        };
        let Some(content) = live.content.as_ref().filter(|content| content.gated) else { return plan };
        let until = due(live.created, self.cx.gate);
        match plan {
            // Whoever is behind cannot tell.
            Plan::Rest(Why::NotSynced | Why::Lagging) => plan,
            // Alone only where it is not about to open with what is owed, or where that failed: somebody may refuse it for
            // ever.
            _ if until <= self.cx.now && (self.line.hindered || !is_about_to_give(&plan)) => {
                Plan::Patch(Box::new(release(live, content)))
            }
            // Something is owed, or may be, and cannot be given yet.
            Plan::Rest(Why::IdentityUnknown | Why::Unreadable | Why::NewerSchema | Why::CaptureOff) => {
                Plan::Wait { until }
            }
            // It opens with this, or this leads to what is owed, or to knowing that nothing is.
            Plan::Patch(_)
            | Plan::ReadRecord
            | Plan::ReadNode
            | Plan::Prove { .. }
            | Plan::ReadEnd { .. }
            | Plan::Tell { .. }
            | Plan::SetAside
            | Plan::Close(_)
            | Plan::Give(_) => plan,
            Plan::Rest(_) | Plan::Wait { .. } | Plan::Save(_) | Plan::Erase(_) => {
                Plan::Patch(Box::new(release(live, content)))
            }
        }
    }

    /// A newborn to which nothing is owed is told so, where there is no record that could be opened, or where there is
    /// and it could not be told with that.
    fn tell(&self, plan: Plan) -> Plan {
        let Some(live) = self.line.live().filter(|_| self.cx.condition) else { return plan };
        let untold = match plan {
            Plan::Rest(Why::NothingKept | Why::Unmanaged) => self.line.told != Some(live.uid),
            Plan::Rest(Why::Agreed) => self.line.untold == Some(live.uid),
            _ => false,
        };
        if !untold || live.terminating || !live.is_young(self.cx.now) {
            return plan;
        }
        Plan::Tell { uid: live.uid, since: live.created }
    }

    /// A record at rest that bears no seal is written again as it is.
    fn seal(&self, plan: Plan) -> Plan {
        let Some(seen) = self.line.seen().filter(|seen| self.cx.seals && self.cx.capture && !seen.sealed)
        else {
            return plan;
        };
        // What may rest like that for ever, too.
        let rests = |why: Why| why.is_settled() || matches!(why, Why::IdentityUnknown | Why::RestoreOff);
        if !matches!(plan, Plan::Rest(why) if rests(why)) {
            return plan;
        }
        let Some(record) = whole(seen) else { return Plan::ReadRecord };
        let record = Record { sequence: record.sequence.saturating_add(1), ..record.clone() };
        let closed = record.state == State::Closed;
        let write = Write { record: Box::new(record), notice: None, braked: false };
        if closed { Plan::Close(write) } else { Plan::Save(write) }
    }

    /// What a node that comes now would be given, as far as that is at hand.
    pub(super) fn remembered(&self) -> Option<Memory> {
        let (seen, ends) = (self.line.seen(), self.line.ends.as_slice());
        if !self.cx.restore || self.on_hold(seen.and_then(Seen::summary).as_ref()) {
            return None;
        }
        match (&self.line.record, seen.map(|seen| &seen.body)) {
            (RecordSight::None, _) => fold(None, ends, self.cx),
            (_, Some(Body::Whole(record))) => {
                let version = seen?.summary()?.version;
                fold(Some((record, version)), ends, self.cx)
            }
            // Its content was let go while its node lived: the end of that life says what it was.
            (_, Some(Body::Summary(summary))) => {
                let own = ends.iter().position(|end| end.uid == summary.uid)?;
                fold(None, &ends[own..], self.cx)
            }
            _ => None,
        }
    }

    fn with_record(&self, seen: &Seen) -> Plan {
        let Some(summary) = seen.summary() else { return Plan::ReadRecord };
        if let Some(plan) = self.created_late(seen, &summary) {
            return plan;
        }
        match &self.line.sight {
            Sight::Unlisted => Plan::Rest(Why::NotSynced),
            Sight::Missing if summary.state == State::Closed && self.line.ends.is_empty() => {
                self.absent_closed(seen, &summary, None)
            }
            Sight::Missing => Plan::ReadNode,
            Sight::Absent { at, looked, missing } => {
                if self.line.ends.last().is_some_and(|end| forgets(end, &summary)) {
                    return self.capture(|| Plan::Erase(Erasure::Forgotten));
                }
                if summary.state == State::Closed {
                    return self.absent_closed(seen, &summary, *looked);
                }
                self.absent_named(seen, &summary, *at, *missing)
            }
            Sight::Live(live) => self.live(seen, &summary, live),
        }
    }

    /// This replica created the record without knowing of a removal that came before. Unless the life that it names
    /// survived that removal, the record is emptied: other replicas would take its removal for a person's.
    fn created_late(&self, seen: &Seen, summary: &Summary) -> Option<Plan> {
        let is_emptied = summary.empty && summary.state == State::Closed;
        if !self.line.is_created_late() || is_emptied || !self.line.is_forgotten(summary.uid, summary.version)
        {
            return None;
        }
        let gone = match &self.line.sight {
            Sight::Unlisted => return Some(Plan::Rest(Why::NotSynced)),
            Sight::Missing => return Some(Plan::ReadNode),
            Sight::Absent { at, .. } => *at,
            Sight::Live(live) if live.uid == summary.uid => {
                let closed = summary.state == State::Closed;
                if live.version < summary.version || closed && live.version == summary.version {
                    return Some(Plan::Rest(Why::Lagging));
                }
                return self.line.is_forgotten(live.uid, live.version).then_some(Plan::ReadNode);
            }
            Sight::Live(live) if live.version <= summary.version => return Some(Plan::Rest(Why::Lagging)),
            Sight::Live(live) => live.version,
        };
        if gone < summary.version || gone == summary.version && summary.state != State::Closed {
            return Some(Plan::Rest(Why::Lagging));
        }
        if self.unknown_end(summary) {
            return Some(self.prove(summary, gone));
        }
        let end = self.line.ends.iter().find(|end| end.uid == summary.uid);
        let survived = end.is_some_and(|end| !self.line.is_forgotten(end.uid, end.version));
        if survived || end.is_none() && summary.state != State::Closed {
            return None;
        }
        let Some(record) = whole(seen) else { return Some(Plan::ReadRecord) };
        Some(self.capture(|| Plan::Close(forget(record, end.map_or(0, |end| end.version), self.cx))))
    }

    fn live(&self, seen: &Seen, summary: &Summary, live: &Live) -> Plan {
        let named = live.uid == summary.uid;
        // A closed record without proof names the last version that was known: whoever sees no more than that
        // has yet to hear of the end.
        let same = live.version == summary.version && (!named || summary.state == State::Closed);
        if live.version < summary.version || same {
            return Plan::Rest(Why::Lagging);
        }
        if !named && self.line.is_forgotten(live.uid, live.version) {
            // An earlier record was removed after this life was last seen: it may have been gone by then.
            return Plan::ReadNode;
        }
        if live.hand.forget || !named && self.line.ends.iter().any(|end| forgets(end, summary)) {
            return self.capture(|| Plan::Erase(Erasure::Forgotten));
        }
        let paused = live.hand.pause.unwrap_or(!named && self.on_hold(Some(summary)));
        if paused {
            return self.paused(seen, summary, live, named);
        }
        match summary.state {
            State::Open if named => self.live_open(seen, summary, live),
            State::Giving if named && live.mark == Mark::None => self.live_giving(seen, summary, live),
            State::Giving if named => self.live_given(seen, summary, live),
            State::Open | State::Giving => self.successor(seen, summary, live),
            State::Closed => self.live_closed(seen, summary, live, named),
        }
    }

    /// Paused: the Node is left alone. The record of a living node notes that once, and the end of an earlier life is
    /// recorded all the same: its memory does not stop, and history may be gone when the pause ends.
    fn paused(&self, seen: &Seen, summary: &Summary, live: &Live, named: bool) -> Plan {
        if summary.paused || named && live.hand.pause.is_some() && summary.state != State::Open {
            return Plan::Rest(Why::Paused);
        }
        let Some(record) = whole(seen) else { return Plan::ReadRecord };
        if named {
            return self
                .capture(|| Plan::Save(save(self.node, Some(record), live, record.kept.clone(), self.cx)));
        }
        if self.unknown_end(summary) {
            return self.prove(summary, live.version);
        }
        match self.ended(seen, record) {
            Some(memory) => self.remember(Some(record), memory, Why::Paused),
            None => Plan::Rest(Why::Paused),
        }
    }

    /// Whether a person paused the name, by what the record and the ends after it say.
    fn on_hold(&self, record: Option<&Summary>) -> bool {
        let after = |end: &&End| record.is_none_or(|record| end.version > record.version);
        self.line.ends.iter().filter(after).fold(record.is_some_and(|record| record.paused), |paused, end| {
            end.hand.pause.unwrap_or(paused && record.is_none_or(|record| record.uid != end.uid))
        })
    }

    fn unreadable(&self, hint: Option<Uuid>, aside: bool) -> Plan {
        if !aside {
            return Plan::SetAside;
        }
        let Some(live) = self.line.live() else { return self.unreadable_end(hint) };
        if live.hand.forget {
            return self.capture(|| Plan::Erase(Erasure::Forgotten));
        }
        if Some(live.uid) != hint {
            return self.unreadable_end(hint);
        }
        if live.hand.pause == Some(true) {
            return Plan::Rest(Why::Paused);
        }
        let Some(content) = &live.content else { return Plan::ReadNode };
        let Some(rule) = self.cx.policy.rule_for(&content.labels, None) else {
            return Plan::Rest(Why::Unmanaged);
        };
        match self.save(None, live, rule, rule.keep(content)) {
            Plan::Save(write) => Plan::Save(Write { notice: Some(Notice::Rewritten), ..write }),
            other => other,
        }
    }

    /// The record cannot be read and the life it names is over. Nothing is given from it; but where that life's
    /// end is held here, it is a fact that needs no record.
    fn unreadable_end(&self, hint: Option<Uuid>) -> Plan {
        let own = self.line.ends.iter().position(|end| Some(end.uid) == hint);
        let memory = own.and_then(|own| fold(None, &self.line.ends[own..], self.cx));
        match (memory.filter(|memory| !memory.is_empty()), &self.line.sight) {
            (None, _) | (_, Sight::Unlisted) => Plan::Rest(Why::Unreadable),
            (_, Sight::Missing) => Plan::ReadNode,
            (Some(memory), Sight::Absent { .. } | Sight::Live(_)) => self.capture(|| {
                Plan::Close(Write { notice: Some(Notice::Rewritten), ..self.close(None, memory) })
            }),
        }
    }

    /// Whether the end of the incarnation the record names is neither recorded nor held, and may be found.
    fn unknown_end(&self, summary: &Summary) -> bool {
        let held = self.line.ends.iter().any(|end| end.uid == summary.uid);
        summary.state != State::Closed && !held && self.line.lost != Some(summary.uid)
    }

    /// Looks for the end of the incarnation the record names, which was `gone` at that version.
    fn prove(&self, summary: &Summary, gone: Version) -> Plan {
        // Only the end of a later life bounds it: earlier ones are held until what they left is given.
        let later = self.line.ends.iter().map(|end| end.version).find(|end| *end > summary.version);
        Plan::Prove { uid: summary.uid, from: summary.version, to: later.map_or(gone, |end| end.min(gone)) }
    }

    /// The end of the incarnation the record names, with what came after it. An end in doubt stands alone at first:
    /// once later lives are merged in, the record cannot say any more whose end is in doubt, and nobody could put the
    /// real one in its place.
    fn ended(&self, seen: &Seen, record: &Record) -> Option<Memory> {
        let version = if seen.foreign { 0 } else { record.version };
        let named = record.incarnation.uid;
        let doubted = record.state != State::Closed && !self.line.ends.iter().any(|end| end.uid == named);
        let alone = doubted && self.cx.capture;
        let ends = self.line.ends.iter().filter(|end| !alone || end.version <= version).cloned();
        let mut memory = fold(Some((record, version)), &ends.collect::<Vec<_>>(), self.cx)?;
        if doubted {
            let doubt = Unproved::new(named, record.state);
            // An earlier end that was in doubt is put right in what was to be given, and this one is still to be told.
            if memory.version <= version && memory.incarnation.uid != named {
                memory.set_privileged_aside();
                memory.incarnation = record.incarnation.clone();
            }
            memory.unproved = (memory.incarnation.uid == named).then_some(doubt);
        }
        Some(memory)
    }

    /// Tells of an end that could not be proved, where this plan acts on the doubt.
    fn doubt(&self, record: &Record, mut plan: Plan) -> Plan {
        let named = record.incarnation.uid;
        // The event may have come while history was searched in vain.
        let held = self.line.ends.iter().any(|end| end.uid == named);
        let lost = self.line.lost == Some(named) && !held;
        if let Plan::Close(write) | Plan::Give(write) = &mut plan {
            write.notice = write.notice.or(lost.then_some(Notice::Unproved));
        }
        plan
    }

    fn erasure(&self, summary: &Summary) -> Option<Erasure> {
        let over_cap = summary.state == State::Closed && self.line.over_cap;
        expired(summary, self.cx.policy, self.cx.now).or(over_cap.then_some(Erasure::OverCap))
    }

    fn close(&self, record: Option<&Record>, memory: Memory) -> Write {
        let mut write = close(self.line, self.node, record, memory, self.cx);
        write.record.paused = self.on_hold(record.map(Record::summary).as_ref());
        write
    }

    /// open(U) over whatever the record says; what it said goes into `previous`.
    fn save_anew(&self, record: &Record, live: &Live, notice: Option<Notice>) -> Plan {
        let Some(content) = &live.content else { return Plan::ReadNode };
        let Some(rule) = self.cx.policy.rule_for(&content.labels, None) else {
            return Plan::Rest(Why::Unmanaged);
        };
        match self.save(Some(record), live, rule, self.keep(record, rule, content)) {
            Plan::Save(write) => Plan::Save(Write { notice, ..write }),
            other => other,
        }
    }

    /// open(U), once who U is has been read where that matters.
    fn save(&self, record: Option<&Record>, live: &Live, rule: &Rule, kept: Kept) -> Plan {
        if live.provider == Provider::Unread && rule.needs_identity(&kept.labels) {
            return self.capture(|| Plan::ReadNode);
        }
        self.capture(|| Plan::Save(save(self.node, record, live, kept, self.cx)))
    }

    fn capture(&self, plan: impl FnOnce() -> Plan) -> Plan {
        if self.cx.capture { plan() } else { Plan::Rest(Why::CaptureOff) }
    }
}

/// Why a record has been kept for long enough, if it has.
#[must_use]
pub fn expired(summary: &Summary, policy: &Policy, now: Timestamp) -> Option<Erasure> {
    if summary.empty && !summary.paused && now >= due(summary.since, policy.empty_retention()) {
        Some(Erasure::Empty)
    } else if summary.state == State::Closed && now >= due(summary.since, policy.retention()) {
        Some(Erasure::Expired)
    } else {
        None
    }
}

/// Whether this gives a node its own, or is one step away from it that nobody else has to be waited for with.
fn is_about_to_give(plan: &Plan) -> bool {
    let gives = matches!(plan, Plan::Patch(_) | Plan::Give(_) | Plan::ReadRecord | Plan::ReadNode);
    gives && plan.turn() == Turn::Anyone
}

/// Whether an end was to be forgotten, and with it what the record says.
fn forgets(end: &End, summary: &Summary) -> bool {
    end.hand.forget && end.version > summary.version
}

fn whole(seen: &Seen) -> Option<&Record> {
    match &seen.body {
        Body::Whole(record) => Some(record),
        _ => None,
    }
}
