//! Two policies at once: what one has no say in and the other recorded stays.
//!
//! During a rollout replicas of two policies write the same records. Whichever of them closes a record, gives it or
//! opens it again must not take what only the other keeps; so it leaves those keys where they are, as far as the
//! node still bears them. Whether it is a rollout is seen from the members: none of this holds when all run under one
//! policy, nor where that one narrows at once.

use super::decide::Context;
use crate::kept::{Content, Digest, Kept, Pairs};
use crate::policy::{Narrow, Policy, Rule};

/// Whether this replica leaves alone what the policy of this digest recorded and its own has no say in. Once
/// nobody runs under another policy any more, what its own does not keep is neither recorded nor given.
pub(super) fn leaves(cx: &Context<'_>, recorded_by: Digest) -> bool {
    cx.rollout && recorded_by != cx.policy.digest() && cx.policy.narrow() == Narrow::AtNextChange
}

/// What a rule keeps of `content`, and beside it what is recorded and the rule has no say in, as the node bears it.
///
/// Labels are always at hand. Annotations, taints and cordon are only where the policy has the watch carry them;
/// where it does not, they stay as they are recorded.
pub(super) fn beside(
    mut kept: Kept,
    recorded: &Kept,
    rule: &Rule,
    content: &Content,
    policy: &Policy,
) -> Kept {
    let Kept { labels, annotations, taints, unschedulable } = recorded;
    let pairs = |kept: &mut Pairs, recorded: &Pairs, now: Option<&Pairs>, keeps: &dyn Fn(&str) -> bool| {
        for (key, value) in recorded.iter().filter(|(key, _)| !keeps(key)) {
            if let Some(value) = now.map_or(Some(value), |now| now.get(key)) {
                kept.insert(key.clone(), value.clone());
            }
        }
    };
    pairs(&mut kept.labels, labels, Some(&content.labels), &|key| rule.keeps_label(key));
    let seen = policy.keeps_annotations().then_some(&content.annotations);
    pairs(&mut kept.annotations, annotations, seen, &|key| rule.keeps_annotation(key));
    let seen = policy.needs_spec();
    for taint in taints.iter().filter(|taint| !rule.keeps_taint(&taint.key)) {
        let now = content.taints.iter().find(|now| now.same_slot(taint));
        kept.taints.extend(if seen { now } else { Some(taint) }.cloned());
    }
    kept.taints.sort();
    let cordoned = *unschedulable && !rule.keeps_cordon() && (!seen || content.unschedulable);
    kept.unschedulable |= cordoned;
    kept
}

/// The digest of what chose `kept`: this policy, or this and the one before where both had a say.
pub(super) fn chosen_by(kept: &Kept, before: Digest, rule: Option<&Rule>, policy: &Policy) -> Digest {
    let own = policy.digest();
    let theirs = |rule: &Rule| {
        kept.labels.keys().any(|key| !rule.keeps_label(key))
            || kept.annotations.keys().any(|key| !rule.keeps_annotation(key))
            || kept.taints.iter().any(|taint| !rule.keeps_taint(&taint.key))
            || kept.unschedulable && !rule.keeps_cordon()
    };
    if before == own || !rule.is_some_and(theirs) {
        return own;
    }
    mixed(before, own)
}

/// The digest of what two policies chose together: neither may take it for its own alone.
pub(super) fn mixed(before: Digest, own: Digest) -> Digest {
    if before == own { own } else { Digest::of(format!("{before} {own}").as_bytes()) }
}
