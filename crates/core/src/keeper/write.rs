//! Builds the records and patches that a plan asks for.

use jiff::Timestamp;

use super::beside::{chosen_by, leaves};
use super::born::stamp;
use super::decide::Context;
use super::fold::{Memory, missing_taints};
use super::identity::{Likeness, keys_like};
use super::line::{Line, Live};
use super::mark::Mark;
use super::plan::{Patch, Write};
use crate::kept::{Content, Kept, Pairs};
use crate::policy::syntax::{is_key, is_label};
use crate::policy::{Rule, is_privileged};
use crate::record::{Incarnation, PREVIOUS, Record, SCHEMA, State, Version, WaitingKeys};

/// What a taint can do.
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// The record that follows `before`, which remembers what it replaces.
pub(super) fn next(before: Option<&Record>, mut record: Record) -> Write {
    if let Some(before) = before {
        record.sequence = before.sequence.saturating_add(1);
        record.previous.clone_from(&before.previous);
        if before.now().is_same(&record.now()) {
            record.kept_since = Some(before.held_since());
            // It holds since then, and there may have been more that this policy keeps and that one did not.
            record.policy = before.policy;
        } else {
            // Also one with nothing in it: nothing is what the node bore at that time.
            record.kept_since = None;
            record.previous.insert(0, before.now().to_previous());
            record.previous.truncate(PREVIOUS);
        }
    }
    Write { record: Box::new(record), notice: None, braked: false }
}

/// open(U): what the living node bears.
pub(super) fn save(node: &str, before: Option<&Record>, live: &Live, kept: Kept, cx: &Context<'_>) -> Write {
    let labels = live.content.as_ref().map(|content| &content.labels);
    let recorded = before.map(Record::labels);
    let rule = cx.policy.rule_for(labels.unwrap_or(&Pairs::new()), recorded.as_deref());
    let own = cx.policy.digest();
    let policy = chosen_by(&kept, before.map_or(own, |before| before.policy), rule, cx.policy);
    let names_it = before.filter(|before| before.incarnation.uid == live.uid);
    let remembered = names_it.and_then(|before| before.incarnation.provider_id.clone());
    let mut waiting = names_it.map(|before| before.waiting.clone()).unwrap_or_default();
    waiting.retain(|key, _| !live.content.as_ref().is_some_and(|content| content.labels.contains_key(key)));
    next(
        before,
        Record {
            schema: SCHEMA,
            node: node.to_owned(),
            state: State::Open,
            incarnation: Incarnation {
                uid: live.uid,
                provider_id: live.provider.id().map(str::to_owned).or(remembered),
            },
            version: live.version,
            kept,
            waiting,
            previous: Vec::new(),
            captured_at: cx.now,
            kept_since: None,
            deleted_at: None,
            sequence: 1,
            policy,
            unproved: None,
            given: live.mark != Mark::None || names_it.is_some_and(|before| before.given),
            paused: live.hand.pause == Some(true),
        },
    )
}

/// closed(U): an end.
pub(super) fn close(
    line: &Line,
    node: &str,
    before: Option<&Record>,
    memory: Memory,
    cx: &Context<'_>,
) -> Write {
    let Memory { incarnation, version, kept, waiting, unproved, policy: _, chosen, unread: _ } = memory;
    let ended = line.ends.iter().find(|end| end.uid == incarnation.uid).map(|end| end.seen_at);
    let recorded = before.filter(|before| before.incarnation.uid == incarnation.uid);
    let ended = ended.or_else(|| recorded.and_then(|before| before.deleted_at));
    next(
        before,
        Record {
            schema: SCHEMA,
            node: node.to_owned(),
            state: State::Closed,
            incarnation,
            version,
            kept,
            waiting,
            previous: Vec::new(),
            captured_at: cx.now,
            kept_since: None,
            deleted_at: Some(ended.unwrap_or(cx.now)),
            sequence: 1,
            policy: chosen,
            unproved,
            given: false,
            paused: false,
        },
    )
}

/// closed(U) with nothing in it, not even earlier states.
pub(super) fn forget(record: &Record, ended: Version, cx: &Context<'_>) -> Write {
    let record = Record {
        state: State::Closed,
        version: record.version.max(ended),
        kept: Kept::default(),
        waiting: WaitingKeys::new(),
        previous: Vec::new(),
        captured_at: cx.now,
        kept_since: None,
        deleted_at: Some(cx.now),
        sequence: record.sequence.saturating_add(1),
        policy: cx.policy.digest(),
        unproved: None,
        given: false,
        paused: false,
        ..record.clone()
    };
    Write { record: Box::new(record), notice: None, braked: false }
}

/// giving(U): what is remembered is about to be given to the living node.
pub(super) fn give(
    node: &str,
    before: Option<&Record>,
    mut memory: Memory,
    live: &Live,
    cx: &Context<'_>,
) -> Write {
    memory.set_privileged_aside();
    let Memory { incarnation: _, version: _, kept, waiting, unproved, policy: _, chosen, unread: _ } = memory;
    next(
        before,
        Record {
            schema: SCHEMA,
            node: node.to_owned(),
            state: State::Giving,
            incarnation: Incarnation { uid: live.uid, provider_id: live.provider.id().map(str::to_owned) },
            version: live.version,
            kept,
            waiting,
            previous: Vec::new(),
            captured_at: cx.now,
            kept_since: None,
            deleted_at: None,
            sequence: 1,
            policy: chosen,
            unproved,
            given: false,
            paused: false,
        },
    )
}

/// What the living node lacks of what is being given to it, and the mark.
///
/// What it was born with counts as missing: it is given as it is remembered, and taken back where it is not. What the API
/// server would refuse, as a record that was edited by hand may hold, is left out: it would refuse the rest with it.
pub(super) fn patch(record: &Record, live: &Live, content: &Content, rule: &Rule, cx: &Context<'_>) -> Patch {
    let own = content.own();
    let Content { labels, annotations, taints, unschedulable, born: _, gated } = own.as_ref();
    let kept = &record.kept;
    // What another policy keeps is given as well, where it is known whether it is missing.
    let theirs = leaves(cx, record.policy);
    let annotated = theirs && cx.policy.keeps_annotations();
    let specified = theirs && cx.policy.needs_spec();
    let lacking = |has: &Pairs, from: &Pairs, keeps: &dyn Fn(&str) -> bool, over: &dyn Fn(&str) -> bool| {
        let wanted = |key: &str, value: &str| match has.get(key) {
            None => keeps(key),
            Some(now) => now != value && keeps(key) && over(key),
        };
        from.iter().filter(|(key, value)| wanted(key, value)).map(|(k, v)| (k.clone(), v.clone())).collect()
    };
    let mut patch = Patch {
        uid: live.uid,
        version: live.version,
        // Privileged ones are given from `waiting` alone, whoever put one here.
        labels: lacking(
            labels,
            &kept.labels,
            &|key| (theirs || rule.keeps_label(key)) && !is_privileged(key),
            &|key| rule.overwrites_label(key),
        ),
        annotations: lacking(
            annotations,
            &kept.annotations,
            &|key| annotated || rule.keeps_annotation(key),
            &|key| rule.overwrites_annotation(key),
        ),
        taints: missing_taints(taints, &kept.taints, rule)
            .into_iter()
            .filter(|taint| specified || rule.keeps_taint(&taint.key))
            .cloned()
            .collect(),
        cordon: kept.unschedulable && (specified || rule.keeps_cordon()) && !unschedulable,
        unset: Vec::new(),
        mark: Mark::Given,
        stamp: None,
        opens: *gated,
        withheld: record.waiting.len(),
    };
    patch.labels.retain(|key, value| is_label(key, value));
    // Of these it does not mind capitals before the slash.
    patch.annotations.retain(|key, _| is_key(&key.to_ascii_lowercase()));
    patch
        .taints
        .retain(|taint| is_label(&taint.key, &taint.value) && EFFECTS.contains(&taint.effect.as_str()));
    patch.unset = content.born.keys().filter(|key| !patch.labels.contains_key(*key)).cloned().collect();
    patch.labels.retain(|key, value| content.born.get(key) != Some(value));
    add_waiting(&mut patch, &record.waiting, live, content, rule);
    patch
}

/// The privileged labels that may be given now that the machine is known.
pub(super) fn patch_waiting(record: &Record, live: &Live, content: &Content, rule: &Rule) -> Patch {
    let mut patch = Patch {
        uid: live.uid,
        version: live.version,
        labels: Pairs::new(),
        annotations: Pairs::new(),
        taints: Vec::new(),
        cordon: false,
        unset: Vec::new(),
        mark: Mark::Given,
        stamp: None,
        opens: content.gated,
        withheld: record.waiting.len(),
    };
    add_waiting(&mut patch, &record.waiting, live, content, rule);
    patch
}

/// The gate is opened, and nothing else: whatever the node was born with is still to be confirmed.
pub(super) fn release(live: &Live, content: &Content) -> Patch {
    Patch {
        uid: live.uid,
        version: live.version,
        labels: Pairs::new(),
        annotations: Pairs::new(),
        taints: Vec::new(),
        cordon: false,
        unset: Vec::new(),
        mark: Mark::None,
        stamp: (!content.born.is_empty()).then(|| stamp(&content.born, false)),
        opens: true,
        withheld: 0,
    }
}

fn add_waiting(patch: &mut Patch, waiting: &WaitingKeys, live: &Live, content: &Content, rule: &Rule) {
    let same = keys_like(waiting, rule, live, Likeness::Same);
    patch.withheld -= same.len();
    // Full means that none is left whose machine may still turn out to be this one.
    if !same.is_empty() && keys_like(waiting, rule, live, Likeness::Unknown).is_empty() {
        patch.mark = Mark::Full;
    }
    for (key, waiting) in same {
        let missing = !content.labels.contains_key(&key);
        let taken = rule.keeps_label(&key) && is_label(&key, &waiting.value);
        if taken && (missing || rule.overwrites_label(&key)) {
            patch.labels.insert(key, waiting.value);
        }
    }
}

/// When a time after some moment is over.
pub(super) fn due(since: Timestamp, after: jiff::SignedDuration) -> Timestamp {
    since.checked_add(after).unwrap_or(Timestamp::MAX)
}

/// When a time after some moment is over, while it is not. A moment that lies in the future is by another clock,
/// or ours was set back: nobody knows how long ago it was, and nobody waits for it.
pub(super) fn still(since: Timestamp, after: jiff::SignedDuration, now: Timestamp) -> Option<Timestamp> {
    Some(due(since, after)).filter(|until| since <= now && now < *until)
}
