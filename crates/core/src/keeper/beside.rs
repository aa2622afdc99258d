//! Two policies at once: what one has no say in and the other recorded stays.
//!
//! During a rollout replicas of two policies write the same records. Whichever of them closes a record, gives it or
//! opens it again must not take what only the other keeps; so it leaves those keys where they are, as far as the
//! node still bears them. They leave the record when the node next changes in what the narrower policy keeps, or at
//! once where that policy says so.

use crate::kept::{Content, Digest, Kept, Pairs};
use crate::policy::{Narrow, Policy, Rule};

/// Whether a policy leaves alone what the one with this digest recorded and it has no say in.
pub(super) fn leaves(policy: &Policy, recorded_by: Digest) -> bool {
    recorded_by != policy.digest() && policy.narrow() == Narrow::AtNextChange
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
    // Neither may take it for its own alone.
    Digest::of(format!("{before} {own}").as_bytes())
}
