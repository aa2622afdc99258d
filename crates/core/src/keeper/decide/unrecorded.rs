//! No record: a name that is new here, or whose record somebody removed.

use super::Case;
use crate::keeper::fold::{Memory, fold};
use crate::keeper::line::{Live, Provider, Sight};
use crate::keeper::mark::Mark;
use crate::keeper::plan::{Plan, Why};
use crate::keeper::write::give;
use crate::policy::Identity;
use crate::record::{Incarnation, Version};

impl Case<'_> {
    pub(super) fn without_record(&self) -> Plan {
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
                match fold(None, &self.line.ends, self.cx) {
                    // A pause is remembered, too, though nothing else is.
                    Some(memory) if !memory.is_empty() || self.on_hold(None) => {
                        self.capture(|| Plan::Close(self.close(None, memory)))
                    }
                    _ => Plan::Rest(Why::NothingKept),
                }
            }
        }
    }

    /// A life that this replica saw and no record names vanished unseen: its end is worth looking for.
    pub(super) fn prove_vanished(&self, to: Version) -> Option<Plan> {
        let (uid, from) = self.line.vanished.filter(|(uid, _)| self.line.lost != Some(*uid))?;
        Some(Plan::Prove { uid, from, to })
    }

    pub(super) fn live_without_record(&self, live: &Live) -> Plan {
        if live.hand.forget {
            return Plan::Rest(Why::Forgotten);
        }
        let paused = live.hand.pause == Some(true);
        if let Some(plan) = self.prove_vanished(live.version) {
            return plan;
        }
        if live.bare && self.line.ends.is_empty() && self.line.kin.is_none() && !self.needs_kin(live) {
            return Plan::Rest(Why::NothingKept);
        }
        if self.line.is_forgotten(live.uid, live.version) {
            // The record was removed after it was last seen: it may have been gone by then.
            return Plan::ReadNode;
        }
        let inherited = live.hand.pause.is_none() && self.on_hold(None);
        let memory = fold(None, &self.line.ends, self.cx).filter(|memory| inherited || !memory.is_empty());
        if paused {
            // The node is left alone. What the lives before it left is recorded all the same.
            return match memory.filter(|_| live.mark == Mark::None && !live.terminating) {
                Some(memory) => self.remember(None, memory, Why::Paused),
                None => Plan::Rest(Why::Paused),
            };
        }
        let Some(content) = &live.content else { return Plan::ReadNode };
        let recorded = memory.as_ref().map(Memory::labels);
        let Some(rule) = self.cx.policy.rule_for(&content.labels, recorded.as_deref()) else {
            return Plan::Rest(Why::Unmanaged);
        };
        let unmarked = live.mark == Mark::None && !live.terminating;
        if let Some(memory) = memory
            && unmarked
        {
            if inherited {
                return self.remember(None, memory, Why::Paused);
            }
            return self.returned(None, memory, live);
        }
        if unmarked && let Some(plan) = self.inherit(None, live, rule) {
            return plan;
        }
        let theirs = content.born.keys().any(|key| !rule.keeps_label(key));
        let forgotten = self.line.removal.is_some() && !content.born.is_empty() && !theirs;
        if unmarked && forgotten && self.cx.restore {
            // What it was born with came from a replica that had yet to hear of the removal: it is taken back.
            let incarnation = Incarnation { uid: live.uid, provider_id: None };
            let memory = Memory::nothing(incarnation, live.version, self.cx.policy.digest());
            return Plan::Give(give(self.node, None, memory, live, self.cx));
        }
        let kept = rule.keep(content);
        if kept.is_empty() {
            return Plan::Rest(Why::NothingKept);
        }
        self.save(None, live, rule, kept)
    }

    /// Whether a newborn may have to inherit from the same machine under another name.
    pub(super) fn needs_kin(&self, live: &Live) -> bool {
        let content = live.content.as_ref();
        live.mark == Mark::None
            && content
                .and_then(|content| self.cx.policy.rule_for(&content.labels, None))
                .is_some_and(|rule| rule.identity() == Identity::Machine && live.provider == Provider::Unread)
    }
}
