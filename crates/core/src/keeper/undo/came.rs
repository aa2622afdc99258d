//! What came since a state, and whether that is known.

use super::Refusal;
use crate::kept::{Kept, Taint};
use crate::policy::{Policy, Rule, is_privileged};
use crate::record::{Past, Record};

/// What is kept now and was not in a state.
pub(super) fn since(now: Kept, past: &Past<'_>) -> Kept {
    let then = past.labels();
    let Kept { mut labels, mut annotations, mut taints, unschedulable } = now;
    labels.retain(|key, _| !then.contains_key(key));
    annotations.retain(|key, _| !past.kept.annotations.contains_key(key));
    taints.retain(|taint| !has(&past.kept.taints, taint));
    Kept { labels, annotations, taints, unschedulable: unschedulable && !past.kept.unschedulable }
}

fn has(taints: &[Taint], taint: &Taint) -> bool {
    taints.iter().any(|other| other.same_slot(taint))
}

/// Leaves the privileged labels alone where that state was another machine's: what that one lacked says nothing of
/// this one. Returns which.
pub(super) fn leave_privileged(came: &mut Kept, trusted: bool) -> Vec<String> {
    if trusted {
        return Vec::new();
    }
    let left: Vec<String> = came.labels.keys().filter(|key| is_privileged(key)).cloned().collect();
    came.labels.retain(|key, _| !is_privileged(key));
    left
}

/// Whether all of it is known to have come since: that state would hold it if it had been there, and a record holds it
/// that was written later.
pub(super) fn vouch(came: &Kept, record: &Record, past: &Past<'_>, policy: &Policy) -> Result<(), Refusal> {
    let Some(what) = first(came, &|_| false) else { return Ok(()) };
    if past.policy != Some(policy.digest()) {
        return Err(Refusal::OtherPolicy { then: past.policy, what });
    }
    // Which rule that was depends on labels that may not be kept: any of them.
    for rule in policy.rules() {
        if let Some(what) = first(came, &|one| one.is_kept_by(rule)) {
            return Err(Refusal::OtherRule { what });
        }
    }
    match first(came, &|one| one.is_in(&record.kept)) {
        Some(what) => Err(Refusal::NotRecorded { what }),
        None => Ok(()),
    }
}

/// Takes it away.
pub(super) fn take(kept: &mut Kept, came: &Kept) {
    kept.labels.retain(|key, _| !came.labels.contains_key(key));
    kept.annotations.retain(|key, _| !came.annotations.contains_key(key));
    kept.taints.retain(|taint| !has(&came.taints, taint));
    kept.unschedulable &= !came.unschedulable;
}

/// One thing that is kept.
enum One<'a> {
    Label(&'a str),
    Annotation(&'a str),
    Taint(&'a Taint),
    Cordon,
}

impl One<'_> {
    fn is_kept_by(&self, rule: &Rule) -> bool {
        match self {
            Self::Label(key) => rule.keeps_label(key),
            Self::Annotation(key) => rule.keeps_annotation(key),
            Self::Taint(taint) => rule.keeps_taint(&taint.key),
            Self::Cordon => rule.keeps_cordon(),
        }
    }

    fn is_in(&self, kept: &Kept) -> bool {
        match self {
            Self::Label(key) => kept.labels.contains_key(*key),
            Self::Annotation(key) => kept.annotations.contains_key(*key),
            Self::Taint(taint) => has(&kept.taints, taint),
            Self::Cordon => kept.unschedulable,
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Label(key) => format!("the label {key}"),
            Self::Annotation(key) => format!("the annotation {key}"),
            Self::Taint(taint) => format!("the taint {}:{}", taint.key, taint.effect),
            Self::Cordon => "the cordon".to_owned(),
        }
    }
}

/// The first of which this is not so, in words.
fn first(came: &Kept, so: &dyn Fn(&One<'_>) -> bool) -> Option<String> {
    let Kept { labels, annotations, taints, unschedulable } = came;
    let labels = labels.keys().map(|key| One::Label(key));
    let annotations = annotations.keys().map(|key| One::Annotation(key));
    let all = labels.chain(annotations).chain(taints.iter().map(One::Taint));
    let mut all = all.chain(unschedulable.then_some(One::Cordon));
    all.find(|one| !so(one)).map(|one| one.words())
}
