//! The node is back: its end is established, and it is given its own.

use super::{Case, whole};
use crate::keeper::fold::{Memory, fold};
use crate::keeper::identity::{Likeness, likeness};
use crate::keeper::line::{Kin, Live, Provider, Seen};
use crate::keeper::mark::Mark;
use crate::keeper::plan::{Erasure, Notice, Plan, Why};
use crate::keeper::write::{due, give, patch};
use crate::policy::{Identity, Rule};
use crate::record::{Record, State, Summary};

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

    /// U lives, and the record names an earlier incarnation whose end it does not hold.
    pub(super) fn successor(&self, seen: &Seen, summary: &Summary, live: &Live) -> Plan {
        if live.terminating {
            return Plan::Rest(Why::Terminating);
        }
        if live.mark != Mark::None {
            return self.save_anew(seen, live, None);
        }
        if self.unknown_end(summary) {
            return self.prove(summary, live.version);
        }
        let Some(record) = whole(seen) else { return Plan::ReadRecord };
        match self.ended(seen, record) {
            Some(memory) => self.doubt(record, self.returned(seen, record, memory, live)),
            None => Plan::Rest(Why::Unmanaged),
        }
    }

    /// U lives, and the record is closed.
    pub(super) fn live_closed(&self, seen: &Seen, summary: &Summary, live: &Live, named: bool) -> Plan {
        if live.terminating {
            return Plan::Rest(Why::Terminating);
        }
        if live.mark != Mark::None || named {
            return self.save_anew(seen, live, None);
        }
        let Some(record) = whole(seen) else { return Plan::ReadRecord };
        match fold(Some((record, summary.version)), &self.line.ends, self.cx.policy) {
            Some(memory) => self.returned(seen, record, memory, live),
            None => Plan::Rest(Why::Unmanaged),
        }
    }

    /// A node is back and its memory is at hand: who is it, and what is it owed?
    pub(super) fn returned(&self, seen: &Seen, record: &Record, memory: Memory, live: &Live) -> Plan {
        let Some(content) = &live.content else { return Plan::ReadNode };
        let Some(rule) = self.cx.policy.rule_for(&content.labels, Some(&memory.labels())) else {
            return Plan::Rest(Why::Unmanaged);
        };
        if memory.is_empty() {
            let kept = rule.keep(content);
            return if kept.is_empty() {
                self.empty_successor(record, memory)
            } else {
                self.save(Some(record), live, rule, kept)
            };
        }
        match likeness(rule, memory.incarnation.provider_id.as_deref(), live) {
            Likeness::Unread => Plan::ReadNode,
            Likeness::Same => self.give_or_close(Some(record), memory, live, rule),
            Likeness::Unknown => self.remember(Some(record), memory, Why::IdentityUnknown),
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

    pub(super) fn give_or_close(
        &self,
        record: Option<&Record>,
        memory: Memory,
        live: &Live,
        rule: &Rule,
    ) -> Plan {
        if !self.cx.restore {
            return self.remember(record, memory, Why::RestoreOff);
        }
        let remembered = memory.incarnation.provider_id.as_deref();
        if record.is_none() && likeness(rule, remembered, live) == Likeness::Unread {
            return Plan::ReadNode;
        }
        Plan::Give(give(self.node, record, memory, live, self.cx))
    }
}
