//! A person's undo: back to a state that the record remembers.
//!
//! A record remembers the last few kept states. [`in_force`] chooses the one that held at some time. On a living node
//! [`undo`] says what to change so that it bears that state again; where the node is away, [`rewrite`] makes the
//! record that is given when it returns.
//!
//! Nothing is taken unless a person asks for [`Scope::Exact`], and then only what is known to have come since: what was
//! kept shows what was there only under the rules that chose it. What another policy, or another rule of this one,
//! may have left out may have been there all along; so may what no record has seen yet. There it is a [`Refusal`].

mod came;

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::identity::{Likeness, privileged_likeness};
use super::line::{Live, Provider};
use super::write::next;
use crate::kept::{Content, Digest, Kept, Pairs, Taint};
use crate::policy::{Identity, Policy, Rule, is_privileged};
use crate::record::{Incarnation, Past, Record, Waiting};

/// How far an undo goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Only what is missing comes back.
    Missing,
    /// What has another value gets its old one as well.
    Reset,
    /// What came since, and is kept, goes as well.
    Exact,
}

/// Why there is no undo.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nobody knows what is kept of it.
    #[error("no rule of the policy matches it")]
    Unmanaged,
    /// A recycled name.
    #[error("that state was another machine's, and the policy tells machines apart")]
    OtherMachine,
    /// What came since cannot be told from what was there and not kept.
    #[error("that state was kept under {}, which may not have kept {what}: it may have been there all along", policy_words(*.then))]
    OtherPolicy {
        /// Under which it was kept, where that is known.
        then: Option<Digest>,
        /// What would be taken.
        what: String,
    },
    /// The same, within one policy.
    #[error("a rule of the policy does not keep {what}: it may have been there all along, under that rule")]
    OtherRule {
        /// What would be taken.
        what: String,
    },
    /// The record lags behind the node, or is paused.
    #[error("{what} is not recorded yet, so that nobody knows since when it is there")]
    NotRecorded {
        /// What would be taken.
        what: String,
    },
}

impl Refusal {
    /// Whether less would not be refused: only what is to be taken is in doubt.
    #[must_use]
    pub fn is_about_taking(&self) -> bool {
        match self {
            Self::Unmanaged | Self::OtherMachine => false,
            Self::OtherPolicy { .. } | Self::OtherRule { .. } | Self::NotRecorded { .. } => true,
        }
    }
}

fn policy_words(then: Option<Digest>) -> String {
    then.map_or_else(|| "an unknown policy".to_owned(), |digest| format!("another policy ({digest})"))
}

/// Pairs to set, or to remove.
pub type Changes = BTreeMap<String, Option<String>>;

/// What to change on a living node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undo {
    /// Labels to set or remove.
    pub labels: Changes,
    /// Annotations to set or remove.
    pub annotations: Changes,
    /// Taints to add, or to give their value back.
    pub taints: Vec<Taint>,
    /// Taints to remove.
    pub untaint: Vec<Taint>,
    /// Cordon or uncordon it.
    pub cordon: Option<bool>,
    /// Privileged labels that are neither given nor taken: that state was another machine's, or nobody knows.
    pub withheld: Vec<String>,
}

impl Undo {
    /// Whether the node is as it was, as far as may be.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { labels, annotations, taints, untaint, cordon, withheld: _ } = self;
        labels.is_empty()
            && annotations.is_empty()
            && taints.is_empty()
            && untaint.is_empty()
            && cordon.is_none()
    }
}

/// The state that was in force at some time; `None` if nothing that old is remembered.
#[must_use]
pub fn in_force(record: &Record, at: Timestamp) -> Option<Past<'_>> {
    record.states().find(|past| past.captured_at <= at)
}

/// What to change on a living node so that it bears a former state of its record.
pub fn undo(
    record: &Record,
    past: &Past<'_>,
    live: &Live,
    content: &Content,
    policy: &Policy,
    scope: Scope,
) -> Result<Undo, Refusal> {
    let rule = policy.rule_for(&content.labels, Some(&record.labels())).ok_or(Refusal::Unmanaged)?;
    let same_life = past.incarnation.uid == live.uid;
    let same_machine =
        same_life || matches!(&live.provider, Provider::Read(id) if *id == past.incarnation.provider_id);
    if rule.identity() != Identity::Name && !same_machine {
        return Err(Refusal::OtherMachine);
    }
    let trusted = same_life || trusts(past.incarnation, live.provider.id(), rule);
    let Kept { labels, annotations, taints, unschedulable } = past.kept;
    let mut undo = Undo {
        labels: missing(&content.labels, labels, scope),
        annotations: missing(&content.annotations, annotations, scope),
        ..Undo::default()
    };
    if !trusted {
        undo.withheld = undo.labels.keys().filter(|key| is_privileged(key)).cloned().collect();
        undo.labels.retain(|key, _| !is_privileged(key));
    }
    // Those that wait still are the keeper's to give.
    let waited = past.waiting.iter().filter(|(key, _)| !record.waiting.contains_key(*key));
    for (key, waiting) in waited.filter(|(key, _)| !labels.contains_key(*key)) {
        match content.labels.get(key) {
            Some(now) if *now == waiting.value || scope == Scope::Missing => {}
            _ if privileged_likeness(rule, waiting, live) == Likeness::Same => {
                undo.labels.insert(key.clone(), Some(waiting.value.clone()));
            }
            _ => undo.withheld.push(key.clone()),
        }
    }
    for taint in taints {
        match content.taints.iter().find(|other| other.same_slot(taint)) {
            Some(other) if other.value == taint.value || scope == Scope::Missing => {}
            _ => undo.taints.push(taint.clone()),
        }
    }
    undo.cordon = (*unschedulable && !content.unschedulable).then_some(true);
    if scope == Scope::Exact {
        let mut came = came::since(rule.keep(content), past);
        undo.withheld.extend(came::leave_privileged(&mut came, trusted));
        came::vouch(&came, record, past, policy)?;
        undo.labels.extend(came.labels.into_keys().map(|key| (key, None)));
        undo.annotations.extend(came.annotations.into_keys().map(|key| (key, None)));
        undo.untaint = came.taints;
        undo.cordon = undo.cordon.or(came.unschedulable.then_some(false));
    }
    Ok(undo)
}

/// Whether privileged labels of a state may come back onto a machine, or go from it. Names are not enough for those.
fn trusts(then: &Incarnation, machine: Option<&str>, rule: &Rule) -> bool {
    then.provider_id.as_deref() == machine && (machine.is_some() || rule.privileged_without_provider())
}

fn missing(now: &Pairs, then: &Pairs, scope: Scope) -> Changes {
    let wanted = |key: &str, value: &str| match now.get(key) {
        None => true,
        Some(other) => other != value && scope != Scope::Missing,
    };
    let missing = then.iter().filter(|(key, value)| wanted(key, value));
    missing.map(|(key, value)| (key.clone(), Some(value.clone()))).collect()
}

/// The record of a node that is away, as it has to be so that the node returns to a former state. What it says now
/// goes into `previous`. `None` where that changes nothing.
pub fn rewrite(
    record: &Record,
    past: &Past<'_>,
    policy: &Policy,
    scope: Scope,
    now: Timestamp,
) -> Result<Option<Record>, Refusal> {
    let rule = policy.rule_for(&record.labels(), None);
    let same_life = past.incarnation.uid == record.incarnation.uid;
    let same_machine = same_life || past.incarnation.provider_id == record.incarnation.provider_id;
    if rule.is_some_and(|rule| rule.identity() != Identity::Name) && !same_machine {
        return Err(Refusal::OtherMachine);
    }
    let (mut kept, mut waiting, mut chosen) = (record.kept.clone(), record.waiting.clone(), record.policy);
    if scope == Scope::Exact {
        let rule = rule.ok_or(Refusal::Unmanaged)?;
        let mut came = came::since(rule.keep(&content(&kept)), past);
        let machine = record.incarnation.provider_id.as_deref();
        came::leave_privileged(&mut came, same_life || trusts(past.incarnation, machine, rule));
        came::vouch(&came, record, past, policy)?;
        if !came.is_empty() {
            came::take(&mut kept, &came);
            chosen = policy.digest();
        }
    }
    let mut labels = past.kept.labels.clone();
    if past.incarnation.provider_id != record.incarnation.provider_id {
        // They wait for the machine that bore them: the one that the record names is another.
        labels.retain(|key, value| {
            if !is_privileged(key) {
                return true;
            }
            let provider_id = past.incarnation.provider_id.clone();
            waiting.entry(key.clone()).or_insert_with(|| Waiting { value: value.clone(), provider_id });
            false
        });
    }
    lay(&mut kept.labels, &labels, scope);
    lay(&mut kept.annotations, &past.kept.annotations, scope);
    for taint in &past.kept.taints {
        if scope != Scope::Missing || !kept.taints.iter().any(|other| other.same_slot(taint)) {
            kept.taints.retain(|other| !other.same_slot(taint));
            kept.taints.push(taint.clone());
        }
    }
    kept.taints.sort();
    kept.unschedulable |= past.kept.unschedulable;
    for (key, waited) in past.waiting {
        waiting.entry(key.clone()).or_insert_with(|| waited.clone());
    }
    waiting.retain(|key, _| !kept.labels.contains_key(key));
    if kept == record.kept && waiting == record.waiting {
        return Ok(None);
    }
    let rewritten =
        Record { kept, waiting, captured_at: now, kept_since: None, policy: chosen, ..record.clone() };
    Ok(Some(replaced(record, rewritten)))
}

fn lay(onto: &mut Pairs, from: &Pairs, scope: Scope) {
    for (key, value) in from {
        if scope != Scope::Missing || !onto.contains_key(key) {
            onto.insert(key.clone(), value.clone());
        }
    }
}

/// What a node would bear that got all of it.
fn content(kept: &Kept) -> Content {
    let Kept { labels, annotations, taints, unschedulable } = kept.clone();
    Content { labels, annotations, taints, unschedulable, ..Content::default() }
}

/// A record in the place of another, which it remembers.
#[must_use]
pub fn replaced(before: &Record, record: Record) -> Record {
    *next(Some(before), record).record
}

#[cfg(test)]
mod tests;
