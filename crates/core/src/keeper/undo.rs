//! A person's undo: back to a state that the record remembers.
//!
//! A record remembers the last few kept states. [`in_force`] chooses the one that held at some time. On a living node
//! [`undo`] says what to change so that it bears that state again; where the node is away, [`rewrite`] makes the
//! record that is given when it returns. Nothing is taken unless a person asks for [`Scope::Exact`].

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::line::Live;
use super::write::next;
use crate::kept::{Content, Kept, Pairs, Taint};
use crate::policy::{Identity, Rule, is_privileged};
use crate::record::{Incarnation, Record, Waiting};

/// A state that a record remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Past<'a> {
    /// Whose it was.
    pub incarnation: &'a Incarnation,
    /// What was kept.
    pub kept: &'a Kept,
    /// Since when it held.
    pub captured_at: Timestamp,
}

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
    /// Privileged labels that are not given: that state was another machine's, or nobody knows.
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

/// All states that a record remembers, the newest first: that is what it says now.
pub fn states(record: &Record) -> impl Iterator<Item = Past<'_>> {
    let now = Past { incarnation: &record.incarnation, kept: &record.kept, captured_at: record.held_since() };
    let before = record.previous.iter().map(|previous| Past {
        incarnation: &previous.incarnation,
        kept: &previous.kept,
        captured_at: previous.captured_at,
    });
    std::iter::once(now).chain(before)
}

/// The state that was in force at some time; `None` if nothing that old is remembered.
#[must_use]
pub fn in_force(record: &Record, at: Timestamp) -> Option<Past<'_>> {
    states(record).find(|past| past.captured_at <= at)
}

/// What to change on a living node so that it bears a former state. `None` where that state was another machine's and
/// the rule tells machines apart.
#[must_use]
pub fn undo(past: &Past<'_>, live: &Live, content: &Content, rule: &Rule, scope: Scope) -> Option<Undo> {
    let machine = live.provider.id();
    let same_life = past.incarnation.uid == live.uid;
    let same_machine = same_life || past.incarnation.provider_id.as_deref() == machine;
    if rule.identity() != Identity::Name && !same_machine {
        return None;
    }
    let trusted = same_life || same_machine && (machine.is_some() || rule.privileged_without_provider());
    let Kept { labels, annotations, taints, unschedulable } = past.kept;
    let mut undo = Undo {
        labels: changes(&content.labels, labels, &|key| rule.keeps_label(key), scope),
        annotations: changes(&content.annotations, annotations, &|key| rule.keeps_annotation(key), scope),
        ..Undo::default()
    };
    if !trusted {
        let withheld = |key: &String, value: &Option<String>| is_privileged(key) && value.is_some();
        undo.withheld = undo.labels.iter().filter(|(k, v)| withheld(k, v)).map(|(k, _)| k.clone()).collect();
        undo.labels.retain(|key, value| !withheld(key, value));
    }
    for taint in taints {
        match content.taints.iter().find(|other| other.same_slot(taint)) {
            Some(other) if other.value == taint.value || scope == Scope::Missing => {}
            _ => undo.taints.push(taint.clone()),
        }
    }
    if scope == Scope::Exact {
        let came = |taint: &&Taint| {
            rule.keeps_taint(&taint.key) && !taints.iter().any(|other| other.same_slot(taint))
        };
        undo.untaint = content.taints.iter().filter(came).cloned().collect();
    }
    undo.cordon = match (*unschedulable, content.unschedulable) {
        (true, false) => Some(true),
        (false, true) if scope == Scope::Exact && rule.keeps_cordon() => Some(false),
        _ => None,
    };
    Some(undo)
}

fn changes(now: &Pairs, then: &Pairs, keeps: &dyn Fn(&str) -> bool, scope: Scope) -> Changes {
    let mut changes = Changes::new();
    for (key, value) in then {
        match now.get(key) {
            Some(other) if other == value || scope == Scope::Missing => {}
            _ => drop(changes.insert(key.clone(), Some(value.clone()))),
        }
    }
    if scope == Scope::Exact {
        let came = now.keys().filter(|key| keeps(key) && !then.contains_key(*key));
        changes.extend(came.map(|key| (key.clone(), None)));
    }
    changes
}

/// The record of a node that is away, as it has to be so that the node returns to a former state. What it says now
/// goes into `previous`. `None` where that changes nothing.
#[must_use]
pub fn rewrite(record: &Record, past: &Past<'_>, scope: Scope, now: Timestamp) -> Option<Record> {
    let mut kept = if scope == Scope::Exact { Kept::default() } else { record.kept.clone() };
    let mut waiting = record.waiting.clone();
    let lay = |onto: &mut Pairs, from: &Pairs| {
        for (key, value) in from {
            if scope != Scope::Missing || !onto.contains_key(key) {
                onto.insert(key.clone(), value.clone());
            }
        }
    };
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
    lay(&mut kept.labels, &labels);
    lay(&mut kept.annotations, &past.kept.annotations);
    for taint in &past.kept.taints {
        if scope != Scope::Missing || !kept.taints.iter().any(|other| other.same_slot(taint)) {
            kept.taints.retain(|other| !other.same_slot(taint));
            kept.taints.push(taint.clone());
        }
    }
    kept.taints.sort();
    kept.unschedulable |= past.kept.unschedulable;
    waiting.retain(|key, _| !kept.labels.contains_key(key));
    if kept == record.kept && waiting == record.waiting {
        return None;
    }
    Some(replaced(record, Record { kept, waiting, captured_at: now, kept_since: None, ..record.clone() }))
}

/// A record in the place of another, which it remembers.
#[must_use]
pub fn replaced(before: &Record, record: Record) -> Record {
    *next(Some(before), record).record
}

#[cfg(test)]
mod tests;
