//! The one function: what to do about one node, from what is known of it.

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::fold::{Memory, fold};
use super::identity::{Likeness, keys_like, likeness};
use super::line::{Body, Kin, Line, Live, Provider, RecordSight, Seen, Sight};
use super::mark::Mark;
use super::plan::{Erasure, Notice, Plan, Why, Write};
use super::write::{close, due, give, patch, patch_waiting, save};
use crate::kept::{Digest, Kept, Pairs};
use crate::policy::{Identity, Narrow, Policy, Rule};
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
}

/// How recent a direct read must be for a record to be erased on its word.
const LOOKED: SignedDuration = SignedDuration::from_mins(1);

/// Decides about one node. Total, and idempotent: once the plan was carried out, deciding again says `Rest`.
#[must_use]
pub fn decide(node: &str, line: &Line, cx: &Context<'_>) -> Plan {
    let case = Case { node, line, cx };
    match &line.record {
        RecordSight::Unlisted => Plan::Rest(Why::NotSynced),
        RecordSight::None => case.without_record(),
        RecordSight::Seen(seen) => match &seen.body {
            Body::Newer => Plan::Rest(Why::NewerSchema),
            Body::Unread { .. } => Plan::ReadRecord,
            Body::Unreadable { hint, aside, .. } => case.unreadable(*hint, *aside),
            Body::Summary(_) | Body::Whole(_) => case.with_record(seen),
        },
    }
}

/// A line under decision. Where a row needs more than is at hand, it answers with the read that fetches it.
struct Case<'a> {
    node: &'a str,
    line: &'a Line,
    cx: &'a Context<'a>,
}

impl Case<'_> {
    fn without_record(&self) -> Plan {
        match &self.line.sight {
            Sight::Unlisted => Plan::Rest(Why::NotSynced),
            Sight::Missing if self.line.ends.is_empty() && self.line.vanished.is_none() => {
                Plan::Rest(Why::NothingKept)
            }
            Sight::Missing => Plan::ReadNode,
            Sight::Live(live) => self.live_without_record(live),
            Sight::Absent { at, .. } => {
                if let Some(plan) = self.prove_vanished(*at) {
                    return plan;
                }
                if self.line.ends.last().is_some_and(|end| end.hand.forget) {
                    return Plan::Rest(Why::Forgotten);
                }
                match fold(None, &self.line.ends, self.cx.policy) {
                    Some(memory) if !memory.is_empty() => {
                        self.capture(|| Plan::Close(self.close(None, memory)))
                    }
                    _ => Plan::Rest(Why::NothingKept),
                }
            }
        }
    }

    /// A life that this replica saw and no record names vanished unseen: its end is worth looking for.
    fn prove_vanished(&self, to: Version) -> Option<Plan> {
        let (uid, from) = self.line.vanished.filter(|(uid, _)| self.line.lost != Some(*uid))?;
        Some(Plan::Prove { uid, from, to })
    }

    fn live_without_record(&self, live: &Live) -> Plan {
        if live.hand.forget {
            return Plan::Rest(Why::Forgotten);
        }
        if live.hand.pause == Some(true) {
            return Plan::Rest(Why::Paused);
        }
        if let Some(plan) = self.prove_vanished(live.version) {
            return plan;
        }
        if live.bare && self.line.ends.is_empty() && self.line.kin.is_none() && !self.needs_kin(live) {
            return Plan::Rest(Why::NothingKept);
        }
        let Some(content) = &live.content else { return Plan::ReadNode };
        let memory = fold(None, &self.line.ends, self.cx.policy).filter(|memory| !memory.is_empty());
        let recorded = memory.as_ref().map(Memory::labels);
        let Some(rule) = self.cx.policy.rule_for(&content.labels, recorded.as_deref()) else {
            return Plan::Rest(Why::Unmanaged);
        };
        let unmarked = live.mark == Mark::None && !live.terminating;
        if let Some(memory) = memory
            && unmarked
        {
            return self.give_or_close(None, memory, live, rule);
        }
        if unmarked && rule.identity() == Identity::Machine && self.cx.restore {
            match (&live.provider, self.line.kin.as_deref()) {
                (Provider::Unread, _) => return Plan::ReadNode,
                (_, Some(Kin::Open)) => return Plan::Wait { until: due(self.cx.now, self.cx.close_after) },
                (_, Some(Kin::Closed(record))) if !record.is_empty() => {
                    let memory = Memory::of(record, record.version);
                    return Plan::Give(give(self.node, None, memory, live, self.cx));
                }
                _ => {}
            }
        }
        let kept = rule.keep(content);
        if kept.is_empty() {
            return Plan::Rest(Why::NothingKept);
        }
        self.save(None, live, rule, kept)
    }

    /// Whether a newborn may have to inherit from the same machine under another name.
    fn needs_kin(&self, live: &Live) -> bool {
        let content = live.content.as_ref();
        live.mark == Mark::None
            && content
                .and_then(|content| self.cx.policy.rule_for(&content.labels, None))
                .is_some_and(|rule| rule.identity() == Identity::Machine && live.provider == Provider::Unread)
    }

    fn unreadable(&self, hint: Option<Uuid>, aside: bool) -> Plan {
        if !aside {
            return Plan::SetAside;
        }
        let Some(live) = self.line.live().filter(|live| Some(live.uid) == hint) else {
            return Plan::Rest(Why::Unreadable);
        };
        let Some(content) = &live.content else { return Plan::ReadNode };
        let Some(rule) = self.cx.policy.rule_for(&content.labels, None) else {
            return Plan::Rest(Why::Unmanaged);
        };
        match self.save(None, live, rule, rule.keep(content)) {
            Plan::Save(write) => Plan::Save(Write { notice: Some(Notice::Rewritten), ..write }),
            other => other,
        }
    }

    fn with_record(&self, seen: &Seen) -> Plan {
        let Some(summary) = seen.summary() else { return Plan::ReadRecord };
        match &self.line.sight {
            Sight::Unlisted => Plan::Rest(Why::NotSynced),
            Sight::Missing if summary.state == State::Closed => self.absent_closed(seen, &summary, None),
            Sight::Missing => Plan::ReadNode,
            Sight::Absent { at, looked } => {
                if self.line.ends.last().is_some_and(|end| end.hand.forget) {
                    return self.capture(|| Plan::Erase(Erasure::Forgotten));
                }
                if summary.state == State::Closed {
                    return self.absent_closed(seen, &summary, *looked);
                }
                self.absent_named(seen, &summary, *at)
            }
            Sight::Live(live) => self.live(seen, &summary, live),
        }
    }

    /// Absent, and the record is open or giving.
    fn absent_named(&self, seen: &Seen, summary: &Summary, at: Version) -> Plan {
        if summary.paused {
            return Plan::Rest(Why::Paused);
        }
        if at <= summary.version {
            return Plan::Rest(Why::Lagging);
        }
        if !self.cx.capture {
            return Plan::Rest(Why::CaptureOff);
        }
        let end = self.line.ends.iter().find(|end| end.uid == summary.uid);
        if let Some(end) = end {
            let until = due(end.seen_at, self.cx.close_after);
            if !self.line.awaited && self.cx.now < until {
                return Plan::Wait { until };
            }
        } else if self.line.lost != Some(summary.uid) {
            let to = self.line.ends.first().map_or(at, |end| at.min(end.version));
            return Plan::Prove { uid: summary.uid, from: summary.version, to };
        }
        let Some(record) = whole(seen) else { return Plan::ReadRecord };
        match self.ended(seen, record) {
            Some(memory) => self.doubt(record, Plan::Close(self.close(Some(record), memory))),
            None => Plan::Rest(Why::Unmanaged),
        }
    }

    /// Absent, and the record is closed.
    fn absent_closed(&self, seen: &Seen, summary: &Summary, looked: Option<Timestamp>) -> Plan {
        if !self.line.ends.is_empty() && self.cx.capture && !summary.paused {
            let Some(record) = whole(seen) else { return Plan::ReadRecord };
            let before = Memory::of(record, summary.version);
            return match fold(Some((record, summary.version)), &self.line.ends, self.cx.policy) {
                Some(memory) if memory != before => Plan::Close(self.close(Some(record), memory)),
                _ => Plan::Rest(Why::Away),
            };
        }
        let Some(why) = self.erasure(summary) else { return Plan::Rest(Why::Away) };
        match looked {
            Some(looked) if self.cx.now < due(looked, LOOKED) => self.capture(|| Plan::Erase(why)),
            _ => self.capture(|| Plan::ReadNode),
        }
    }

    fn erasure(&self, summary: &Summary) -> Option<Erasure> {
        let policy = self.cx.policy;
        if summary.empty && self.cx.now >= due(summary.since, policy.empty_retention()) {
            Some(Erasure::Empty)
        } else if summary.state == State::Closed && self.cx.now >= due(summary.since, policy.retention()) {
            Some(Erasure::Expired)
        } else if summary.state == State::Closed && self.line.over_cap {
            Some(Erasure::OverCap)
        } else {
            None
        }
    }

    fn live(&self, seen: &Seen, summary: &Summary, live: &Live) -> Plan {
        let named = live.uid == summary.uid;
        if live.version < summary.version || !named && live.version == summary.version {
            return Plan::Rest(Why::Lagging);
        }
        if live.hand.forget {
            return self.capture(|| Plan::Erase(Erasure::Forgotten));
        }
        let paused = live.hand.pause.unwrap_or(summary.paused && !named);
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

    /// Paused: the record remembers that once, and rests.
    fn paused(&self, seen: &Seen, summary: &Summary, live: &Live, named: bool) -> Plan {
        if !named || summary.paused || summary.state != State::Open {
            return Plan::Rest(Why::Paused);
        }
        let Some(record) = whole(seen) else { return Plan::ReadRecord };
        self.capture(|| Plan::Save(save(self.node, Some(record), live, record.kept.clone(), self.cx)))
    }

    /// open(U), U lives: the node is the authority.
    fn live_open(&self, seen: &Seen, summary: &Summary, live: &Live) -> Plan {
        let older_ends = !self.line.ends.is_empty() && live.mark == Mark::None && !summary.given;
        if older_ends && !live.terminating {
            let Some(record) = whole(seen) else { return Plan::ReadRecord };
            let memory = fold(None, &self.line.ends, self.cx.policy).filter(|memory| !memory.is_empty());
            if let Some(memory) = memory
                && self.cx.restore
            {
                let Some(content) = &live.content else { return Plan::ReadNode };
                let rule = self.cx.policy.rule_for(&content.labels, Some(&memory.labels()));
                return match rule {
                    None => Plan::Rest(Why::Unmanaged),
                    Some(rule) => match likeness(rule, memory.incarnation.provider_id.as_deref(), live) {
                        Likeness::Unread => Plan::ReadNode,
                        Likeness::Same => Plan::Give(give(self.node, Some(record), memory, live, self.cx)),
                        Likeness::Unknown | Likeness::Other => self.follow(seen, summary, live),
                    },
                };
            }
        }
        self.follow(seen, summary, live)
    }

    /// Saves what changed on a living node that its record names, and gives what waited for its identity.
    fn follow(&self, seen: &Seen, summary: &Summary, live: &Live) -> Plan {
        if summary.waiting && !live.terminating {
            match self.waiting(seen, live) {
                Plan::Rest(_) => {}
                other => return other,
            }
        }
        let unidentified = live.wants_identity && summary.provider.is_none();
        if unidentified && live.provider == Provider::Unread && live.is_young(self.cx.now) {
            return self.capture(|| Plan::ReadNode);
        }
        let same_state = summary.state == State::Open && !summary.paused && identity_kept(summary, live);
        let agreed = self.line.agreed == Some((live.digest, summary.sequence));
        if same_state
            && (summary.policy == self.cx.policy.digest() && live.digest == summary.digest || agreed)
        {
            return self.at_rest(summary, live);
        }
        let (Some(record), Some(content)) = (whole(seen), &live.content) else {
            return if whole(seen).is_none() { Plan::ReadRecord } else { Plan::ReadNode };
        };
        let Some(rule) = self.cx.policy.rule_for(&content.labels, Some(&record.labels())) else {
            return Plan::Rest(Why::Unmanaged);
        };
        let kept = rule.keep(content);
        if same_state && record.policy != self.cx.policy.digest() {
            // Chosen under another policy: compare only what this one keeps.
            if project(&record.kept, rule) == kept {
                if self.cx.policy.narrow() == Narrow::AtNextChange || record.kept == kept {
                    return self.at_rest(summary, live);
                }
                return match self.save(Some(record), live, rule, kept) {
                    Plan::Save(write) => Plan::Save(Write { braked: true, ..write }),
                    other => other,
                };
            }
        }
        if same_state && record.kept == kept {
            return self.at_rest(summary, live);
        }
        self.save(Some(record), live, rule, kept)
    }

    fn at_rest(&self, summary: &Summary, live: &Live) -> Plan {
        if live.bare && self.erasure(summary) == Some(Erasure::Empty) {
            return self.capture(|| Plan::Erase(Erasure::Empty));
        }
        if summary.waiting {
            return Plan::Rest(Why::IdentityUnknown);
        }
        Plan::Rest(Why::Agreed)
    }

    /// Keys that wait for the machine's identity, on a node that got the rest back.
    fn waiting(&self, seen: &Seen, live: &Live) -> Plan {
        let Some(record) = whole(seen) else { return Plan::ReadRecord };
        let Some(content) = &live.content else { return Plan::ReadNode };
        let Some(rule) = self.cx.policy.rule_for(&content.labels, Some(&record.labels())) else {
            return Plan::Rest(Why::Unmanaged);
        };
        if live.provider == Provider::Unread {
            return Plan::ReadNode;
        }
        let same = keys_like(&record.waiting, rule, live, Likeness::Same);
        let other = keys_like(&record.waiting, rule, live, Likeness::Other);
        let given = live.mark == Mark::Full;
        if (given && !same.is_empty() || !other.is_empty()) && self.cx.capture {
            let mut write = save(self.node, Some(record), live, rule.keep(content), self.cx);
            let gone = |key: &String| other.contains_key(key) || given && same.contains_key(key);
            write.record.waiting.retain(|key, _| !gone(key));
            write.notice = (!other.is_empty()).then_some(Notice::PrivilegedDropped);
            return Plan::Save(write);
        }
        if !given && !same.is_empty() && self.cx.restore {
            return Plan::Patch(Box::new(patch_waiting(record, live, content, rule)));
        }
        Plan::Rest(Why::IdentityUnknown)
    }

    /// giving(U), U lives and does not bear its mark.
    fn live_giving(&self, seen: &Seen, summary: &Summary, live: &Live) -> Plan {
        if live.terminating {
            return Plan::Rest(Why::Terminating);
        }
        if !self.cx.restore {
            return Plan::Rest(Why::RestoreOff);
        }
        let Some(record) = whole(seen) else { return Plan::ReadRecord };
        if let Some(doubt) = &record.unproved
            && self.line.ends.iter().any(|end| end.uid == doubt.uid)
            && let Some(memory) = fold(Some((record, summary.version)), &self.line.ends, self.cx.policy)
        {
            return Plan::Give(give(self.node, Some(record), memory, live, self.cx));
        }
        let Some(content) = &live.content else { return Plan::ReadNode };
        let Some(rule) = self.cx.policy.rule_for(&content.labels, Some(&record.labels())) else {
            return Plan::Rest(Why::Unmanaged);
        };
        if !record.waiting.is_empty() && live.provider == Provider::Unread {
            return Plan::ReadNode;
        }
        Plan::Patch(Box::new(patch(record, live, content, rule)))
    }

    /// giving(U), U lives and bears its mark: it is open, in a moment.
    fn live_given(&self, seen: &Seen, summary: &Summary, live: &Live) -> Plan {
        let until = due(summary.since, self.cx.open_after);
        if live.digest == summary.digest && !summary.waiting && self.cx.now < until {
            return Plan::Wait { until };
        }
        self.follow(seen, summary, live)
    }

    /// U lives, and the record names an earlier incarnation whose end it does not hold.
    fn successor(&self, seen: &Seen, summary: &Summary, live: &Live) -> Plan {
        if live.mark != Mark::None {
            return self.save_anew(seen, live, None);
        }
        if live.terminating {
            return Plan::Rest(Why::Terminating);
        }
        let end_known = self.line.ends.iter().any(|end| end.uid == summary.uid);
        if !end_known && self.line.lost != Some(summary.uid) {
            let to = self.line.ends.first().map_or(live.version, |end| live.version.min(end.version));
            return Plan::Prove { uid: summary.uid, from: summary.version, to };
        }
        let Some(record) = whole(seen) else { return Plan::ReadRecord };
        match self.ended(seen, record) {
            Some(memory) => self.doubt(record, self.returned(seen, record, memory, live)),
            None => Plan::Rest(Why::Unmanaged),
        }
    }

    /// U lives, and the record is closed.
    fn live_closed(&self, seen: &Seen, summary: &Summary, live: &Live, named: bool) -> Plan {
        if live.mark != Mark::None || named {
            return self.save_anew(seen, live, None);
        }
        if live.terminating {
            return Plan::Rest(Why::Terminating);
        }
        let Some(record) = whole(seen) else { return Plan::ReadRecord };
        match fold(Some((record, summary.version)), &self.line.ends, self.cx.policy) {
            Some(memory) => self.returned(seen, record, memory, live),
            None => Plan::Rest(Why::Unmanaged),
        }
    }

    /// A node is back and its memory is at hand: who is it, and what is it owed?
    fn returned(&self, seen: &Seen, record: &Record, memory: Memory, live: &Live) -> Plan {
        let Some(content) = &live.content else { return Plan::ReadNode };
        let Some(rule) = self.cx.policy.rule_for(&content.labels, Some(&memory.labels())) else {
            return Plan::Rest(Why::Unmanaged);
        };
        if memory.is_empty() {
            let kept = rule.keep(content);
            return if kept.is_empty() {
                self.empty_successor(record)
            } else {
                self.save(Some(record), live, rule, kept)
            };
        }
        match likeness(rule, memory.incarnation.provider_id.as_deref(), live) {
            Likeness::Unread => Plan::ReadNode,
            Likeness::Same => self.give_or_close(Some(record), memory, live, rule),
            Likeness::Unknown if record.state == State::Closed => Plan::Rest(Why::IdentityUnknown),
            Likeness::Unknown => self.capture(|| Plan::Close(self.close(Some(record), memory))),
            Likeness::Other => match (rule.identity(), self.line.kin.as_deref()) {
                (Identity::Machine, Some(Kin::Open)) => {
                    Plan::Wait { until: due(self.cx.now, self.cx.close_after) }
                }
                (Identity::Machine, Some(Kin::Closed(kin))) => {
                    let memory = Memory::of(kin, kin.version);
                    self.give_or_close(Some(record), memory, live, rule)
                }
                _ => self.save_anew(seen, live, Some(Notice::OtherMachine)),
            },
        }
    }

    /// A bare node came back under a record with nothing in it.
    fn empty_successor(&self, record: &Record) -> Plan {
        if self.erasure(&record.summary()) == Some(Erasure::Empty) {
            return self.capture(|| Plan::Erase(Erasure::Empty));
        }
        Plan::Rest(Why::NothingKept)
    }

    fn give_or_close(&self, record: Option<&Record>, memory: Memory, live: &Live, rule: &Rule) -> Plan {
        if !self.cx.restore {
            let closed = record.is_some_and(|record| {
                record.state == State::Closed && Memory::of(record, memory.version) == memory
            });
            if closed {
                return Plan::Rest(Why::RestoreOff);
            }
            return self.capture(|| Plan::Close(self.close(record, memory)));
        }
        let remembered = memory.incarnation.provider_id.as_deref();
        if record.is_none() && likeness(rule, remembered, live) == Likeness::Unread {
            return Plan::ReadNode;
        }
        Plan::Give(give(self.node, record, memory, live, self.cx))
    }

    /// The end of the incarnation the record names, with what came after it.
    fn ended(&self, seen: &Seen, record: &Record) -> Option<Memory> {
        let version = if seen.foreign { 0 } else { record.version };
        let mut memory = fold(Some((record, version)), &self.line.ends, self.cx.policy)?;
        if !self.line.ends.iter().any(|end| end.uid == record.incarnation.uid) {
            let doubt = Unproved { uid: record.incarnation.uid, from: record.state };
            // Later lives that were merged in make it impossible to put the real end in its place.
            memory.unproved = (memory.incarnation.uid == doubt.uid).then_some(doubt);
        }
        Some(memory)
    }

    /// Tells of an end that could not be proved, where this plan acts on the doubt.
    fn doubt(&self, record: &Record, mut plan: Plan) -> Plan {
        let lost = self.line.lost == Some(record.incarnation.uid);
        if let Plan::Close(write) | Plan::Give(write) = &mut plan {
            write.notice = write.notice.or(lost.then_some(Notice::Unproved));
        }
        plan
    }

    fn close(&self, record: Option<&Record>, memory: Memory) -> Write {
        close(self.line, self.node, record, memory, self.cx)
    }

    /// open(U) over whatever the record says; what it said goes into `previous`.
    fn save_anew(&self, seen: &Seen, live: &Live, notice: Option<Notice>) -> Plan {
        let Some(record) = whole(seen) else { return Plan::ReadRecord };
        let Some(content) = &live.content else { return Plan::ReadNode };
        let Some(rule) = self.cx.policy.rule_for(&content.labels, None) else {
            return Plan::Rest(Why::Unmanaged);
        };
        match self.save(Some(record), live, rule, rule.keep(content)) {
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

/// Whether the record knows as much about the machine as the node says.
fn identity_kept(summary: &Summary, live: &Live) -> bool {
    live.provider.id().is_none_or(|id| summary.provider == Some(Digest::of(id.as_bytes())))
}

fn whole(seen: &Seen) -> Option<&Record> {
    match &seen.body {
        Body::Whole(record) => Some(record),
        _ => None,
    }
}

/// The part of a recorded state that a rule keeps.
fn project(kept: &Kept, rule: &Rule) -> Kept {
    Kept {
        labels: filter(&kept.labels, |key| rule.keeps_label(key)),
        annotations: filter(&kept.annotations, |key| rule.keeps_annotation(key)),
        taints: kept.taints.iter().filter(|taint| rule.keeps_taint(&taint.key)).cloned().collect(),
        unschedulable: kept.unschedulable && rule.keeps_cordon(),
    }
}

fn filter(pairs: &Pairs, keeps: impl Fn(&str) -> bool) -> Pairs {
    pairs.iter().filter(|(key, _)| keeps(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}
