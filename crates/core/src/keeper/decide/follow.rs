//! The node lives and its record names it: the record follows.

use super::{Case, whole};
use crate::keeper::beside::{beside, leaves};
use crate::keeper::fold::fold;
use crate::keeper::identity::{Likeness, keys_like, likeness};
use crate::keeper::line::{Live, Provider, Seen};
use crate::keeper::mark::Mark;
use crate::keeper::plan::{Erasure, Notice, Plan, Why, Write};
use crate::keeper::write::{give, next, patch_waiting, save, still};
use crate::kept::{Content, Digest, Kept, Pairs};
use crate::policy::{Narrow, Rule};
use crate::record::{Record, State, Summary, Waiting};

impl Case<'_> {
    /// open(U), U lives: the node is the authority.
    pub(super) fn live_open(&self, seen: &Seen, summary: &Summary, live: &Live) -> Plan {
        let older_ends = !self.line.ends.is_empty() && live.mark == Mark::None && !summary.given;
        if older_ends && !live.terminating {
            let Some(record) = whole(seen) else { return Plan::ReadRecord };
            let memory = fold(None, &self.line.ends, self.cx).filter(|memory| !memory.is_empty());
            if let Some(mut memory) = memory
                && self.cx.restore
            {
                if let Some(read) = memory.read_end() {
                    return read;
                }
                memory.wait_for(&record.waiting);
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
    pub(super) fn follow(&self, seen: &Seen, summary: &Summary, live: &Live) -> Plan {
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
        // The same content is the same, whichever policy chose it.
        if same_state && (live.digest == summary.digest || agreed) {
            return self.at_rest(summary, live);
        }
        let (Some(record), Some(content)) = (whole(seen), &live.content) else {
            return if whole(seen).is_none() { Plan::ReadRecord } else { Plan::ReadNode };
        };
        let Some(rule) = self.cx.policy.rule_for(&content.labels, Some(&record.labels())) else {
            return Plan::Rest(Why::Unmanaged);
        };
        let kept = rule.keep(content);
        let theirs = record.policy != self.cx.policy.digest();
        let both = |kept: Kept| beside(kept, &record.kept, rule, content, self.cx.policy);
        if !same_state {
            return self.save(Some(record), live, rule, self.keep(record, rule, content));
        }
        // Another policy may have chosen it: compare only what this one keeps.
        let mine = project(&record.kept, rule);
        if mine != kept {
            // What this policy keeps and that one did not is no change of the node: their keys stay beside it,
            // so that two policies do not take turns. In a rollout they stay whatever changed.
            let stay = leaves(self.cx, record.policy) || theirs && is_part(&mine, &kept);
            let kept = if stay { both(kept) } else { kept };
            return self.save(Some(record), live, rule, kept);
        }
        if record.kept == kept || self.cx.policy.narrow() == Narrow::AtNextChange {
            return self.at_rest(summary, live);
        }
        match self.save(Some(record), live, rule, kept) {
            Plan::Save(write) => Plan::Save(Write { braked: true, ..write }),
            other => other,
        }
    }

    /// What is kept of a node whose record is written over, and beside it what only another policy keeps.
    pub(super) fn keep(&self, record: &Record, rule: &Rule, content: &Content) -> Kept {
        let kept = rule.keep(content);
        if leaves(self.cx, record.policy) {
            return beside(kept, &record.kept, rule, content, self.cx.policy);
        }
        kept
    }

    pub(super) fn at_rest(&self, summary: &Summary, live: &Live) -> Plan {
        if live.bare && self.erasure(summary) == Some(Erasure::Empty) {
            return self.capture(|| Plan::Erase(Erasure::Empty));
        }
        if summary.waiting {
            return Plan::Rest(Why::IdentityUnknown);
        }
        Plan::Rest(Why::Agreed)
    }

    /// Keys that wait for the machine's identity, on a node that got the rest back.
    pub(super) fn waiting(&self, seen: &Seen, live: &Live) -> Plan {
        let Some(record) = whole(seen) else { return Plan::ReadRecord };
        let Some(content) = &live.content else { return Plan::ReadNode };
        let Some(rule) = self.cx.policy.rule_for(&content.labels, Some(&record.labels())) else {
            return Plan::Rest(Why::Unmanaged);
        };
        if live.provider == Provider::Unread {
            return Plan::ReadNode;
        }
        let mut same = keys_like(&record.waiting, rule, live, Likeness::Same);
        same.retain(|key, _| rule.keeps_label(key));
        let other = keys_like(&record.waiting, rule, live, Likeness::Other);
        // Where some go on waiting, the mark does not tell which were given: those that are there.
        let landed = |key: &String, waiting: &Waiting| {
            let there = content.labels.get(key);
            live.mark == Mark::Full
                || there.is_some_and(|value| *value == waiting.value || !rule.overwrites_label(key))
        };
        let missing = same.iter().any(|(key, waiting)| !landed(key, waiting));
        same.retain(|key, waiting| landed(key, waiting));
        if (!same.is_empty() || !other.is_empty()) && self.cx.capture {
            let saved = save(self.node, Some(record), live, self.keep(record, rule, content), self.cx).record;
            let mut waiting = saved.waiting.clone();
            waiting.retain(|key, _| !other.contains_key(key) && !same.contains_key(key));
            let notice = (!other.is_empty()).then_some(Notice::PrivilegedDropped);
            return Plan::Save(Write { notice, ..next(Some(record), Record { waiting, ..*saved }) });
        }
        if missing && self.cx.restore {
            return Plan::Patch(Box::new(patch_waiting(record, live, content, rule)));
        }
        Plan::Rest(Why::IdentityUnknown)
    }

    /// giving(U), U lives and bears its mark: it is open, in a moment.
    pub(super) fn live_given(&self, seen: &Seen, summary: &Summary, live: &Live) -> Plan {
        if live.digest == summary.digest
            && !summary.waiting
            && let Some(until) = still(summary.since, self.cx.open_after, self.cx.now)
        {
            return Plan::Wait { until };
        }
        self.follow(seen, summary, live)
    }
}

/// Whether the record knows as much about the machine as the node says, where that matters.
fn identity_kept(summary: &Summary, live: &Live) -> bool {
    let known = |id: &str| summary.provider == Some(Digest::of(id.as_bytes()));
    !live.wants_identity || live.provider.id().is_none_or(known)
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

/// Whether all of `part` is in `whole`.
fn is_part(part: &Kept, whole: &Kept) -> bool {
    let within = |part: &Pairs, whole: &Pairs| part.iter().all(|(key, value)| whole.get(key) == Some(value));
    within(&part.labels, &whole.labels)
        && within(&part.annotations, &whole.annotations)
        && part.taints.iter().all(|taint| whole.taints.contains(taint))
        && (!part.unschedulable || whole.unschedulable)
}

fn filter(pairs: &Pairs, keeps: impl Fn(&str) -> bool) -> Pairs {
    pairs.iter().filter(|(key, _)| keeps(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}
