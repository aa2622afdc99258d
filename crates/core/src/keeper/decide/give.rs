//! The node is back: its end is established, and it is given its own.

use jiff::SignedDuration;

use super::{Case, whole};
use crate::keeper::fold::{Memory, fold};
use crate::keeper::identity::{Likeness, likeness};
use crate::keeper::line::{Kin, Live, Provider, Seen};
use crate::keeper::mark::Mark;
use crate::keeper::plan::{Erasure, Notice, Plan, Why};
use crate::keeper::write::{close, due, give, patch};
use crate::policy::{Identity, Rule};
use crate::record::{Record, State, Summary, Unproved};

/// The least time to wait for somebody else's step.
const A_MOMENT: SignedDuration = SignedDuration::from_millis(200);

impl Case<'_> {
    /// giving(U), U lives and does not bear its mark.
    pub(super) fn live_giving(&self, seen: &Seen, summary: &Summary, live: &Live) -> Plan {
        if live.terminating {
            return Plan::Rest(Why::Terminating);
        }
        if !self.cx.restore {
            return Plan::Rest(Why::RestoreOff);
        }
        let Some(record) = whole(seen) else { return Plan::ReadRecord };
        if let Some(doubt) = &record.unproved
            && self.line.ends.iter().any(|end| end.uid == doubt.uid)
            && let Some(memory) = fold(Some((record, summary.version)), &self.line.ends, self.cx)
            && memory.unproved.is_none()
        {
            return Plan::Give(give(self.node, Some(record), memory, live, self.cx));
        }
        let Some(content) = &live.content else { return Plan::ReadNode };
        let Some(rule) = self.cx.policy.rule_for(&content.own().labels, Some(&record.labels())) else {
            return Plan::Rest(Why::Unmanaged);
        };
        if !record.waiting.is_empty() && live.provider == Provider::Unread {
            return Plan::ReadNode;
        }
        Plan::Patch(Box::new(patch(record, live, content, rule, self.cx)))
    }

    /// U lives, and the record names an earlier incarnation whose end it does not hold.
    pub(super) fn successor(&self, seen: &Seen, summary: &Summary, live: &Live) -> Plan {
        // History may be gone by the time a dying successor is: the end is looked for at once, and held.
        if live.mark == Mark::None && self.unknown_end(summary) {
            return self.prove(summary, live.version);
        }
        if live.terminating {
            return Plan::Rest(Why::Terminating);
        }
        if live.mark != Mark::None {
            return self.marked(seen, live);
        }
        let Some(record) = whole(seen) else { return Plan::ReadRecord };
        let later = |memory: &Memory| self.line.ends.iter().any(|end| end.version > memory.version);
        match self.ended(seen, record) {
            Some(memory) if memory.unproved.is_some() && later(&memory) => {
                self.doubt(record, self.capture(|| Plan::Close(self.close(Some(record), memory))))
            }
            Some(memory) => self.doubt(record, self.returned(Some(record), memory, live)),
            None => Plan::Rest(Why::Unmanaged),
        }
    }

    /// U lives, and the record is closed.
    pub(super) fn live_closed(&self, seen: &Seen, summary: &Summary, live: &Live, named: bool) -> Plan {
        if live.terminating {
            return Plan::Rest(Why::Terminating);
        }
        if live.mark != Mark::None {
            return self.marked(seen, live);
        }
        let Some(record) = whole(seen) else { return Plan::ReadRecord };
        // Closed too early: it lives. Unless it was about to be given its own, what it bears is all there is.
        let giving = |doubt: &Unproved| doubt.uid == live.uid && doubt.from == State::Giving;
        if named && !record.unproved.as_ref().is_some_and(giving) {
            return self.marked(seen, live);
        }
        match fold(Some((record, summary.version)), &self.line.ends, self.cx) {
            Some(memory) => {
                let unproved = memory.unproved.clone().filter(|_| !named);
                self.returned(Some(record), Memory { unproved, ..memory }, live)
            }
            None => Plan::Rest(Why::Unmanaged),
        }
    }

    /// U lives and got its own back, whatever the record says of another.
    fn marked(&self, seen: &Seen, live: &Live) -> Plan {
        let Some(record) = whole(seen) else { return Plan::ReadRecord };
        self.save_anew(record, live, None)
    }

    /// A node is back and its memory is at hand: who is it, and what is it owed?
    pub(super) fn returned(&self, record: Option<&Record>, memory: Memory, live: &Live) -> Plan {
        let Some(content) = &live.content else { return Plan::ReadNode };
        let Some(rule) = self.cx.policy.rule_for(&content.own().labels, Some(&memory.labels())) else {
            return Plan::Rest(Why::Unmanaged);
        };
        // What it was born with is taken back where nothing is remembered.
        if memory.is_empty() && content.born.is_empty() {
            let kept = rule.keep(content);
            return match (self.inherit(record, live, rule), record) {
                (Some(plan), _) => plan,
                (None, Some(record)) if kept.is_empty() => self.empty_successor(record, memory),
                (None, record) => self.save(record, live, rule, kept),
            };
        }
        let newer = |kin: &Kin| kin.version() > memory.version;
        if self.line.kin.as_deref().is_some_and(newer)
            && let Some(plan) = self.inherit(record, live, rule)
        {
            return plan;
        }
        match likeness(rule, memory.incarnation.provider_id.as_deref(), live) {
            Likeness::Unread => Plan::ReadNode,
            Likeness::Same if self.cx.restore => Plan::Give(give(self.node, record, memory, live, self.cx)),
            Likeness::Same => self.remember(record, memory, Why::RestoreOff),
            Likeness::Unknown => self.remember(record, memory, Why::IdentityUnknown),
            Likeness::Other => self.other_machine(record, &memory, live, rule),
        }
    }

    /// Another machine than the one that is remembered bears the name now.
    fn other_machine(&self, record: Option<&Record>, memory: &Memory, live: &Live, rule: &Rule) -> Plan {
        // What goes into `previous` is the end, which the record may not hold yet.
        let ended = close(self.line, self.node, record, memory.clone(), self.cx).record;
        let sequence = record.map_or(0, |record| record.sequence);
        let captured_at = record.map_or(self.cx.now, Record::held_since);
        let ended = Record { captured_at, kept_since: None, sequence, ..*ended };
        if let Some(plan) = self.inherit(Some(&ended), live, rule) {
            return plan;
        }
        self.save_anew(&ended, live, Some(Notice::OtherMachine))
    }

    /// Under `identity: machine`, what the same machine left under another name.
    pub(super) fn inherit(&self, record: Option<&Record>, live: &Live, rule: &Rule) -> Option<Plan> {
        if rule.identity() != Identity::Machine {
            return None;
        }
        if live.provider == Provider::Unread {
            return Some(Plan::ReadNode);
        }
        match self.line.kin.as_deref()? {
            Kin::Open(_) => Some(Plan::Wait { until: due(self.cx.now, self.cx.close_after.max(A_MOMENT)) }),
            Kin::Closed(kin) if kin.is_empty() => None,
            Kin::Closed(_) if !self.cx.restore => Some(Plan::Rest(Why::RestoreOff)),
            Kin::Closed(kin) => {
                let memory = Memory::of(kin, kin.version);
                Some(Plan::Give(give(self.node, record, memory, live, self.cx)))
            }
        }
    }

    /// A bare node came back, and the life before it left nothing.
    pub(super) fn empty_successor(&self, record: &Record, memory: Memory) -> Plan {
        if self.erasure(&record.summary()) == Some(Erasure::Empty) {
            return self.capture(|| Plan::Erase(Erasure::Empty));
        }
        self.remember(Some(record), memory, Why::NothingKept)
    }

    /// Closes the record with what is remembered, unless it says that already: then it rests for this reason.
    pub(super) fn remember(&self, record: Option<&Record>, memory: Memory, why: Why) -> Plan {
        let held =
            |record: &Record| record.state == State::Closed && Memory::of(record, memory.version) == memory;
        if record.is_some_and(held) {
            return Plan::Rest(why);
        }
        self.capture(|| Plan::Close(self.close(record, memory)))
    }
}
