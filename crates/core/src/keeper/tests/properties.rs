//! The promises of a restore, one property each.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use uuid::Uuid;

use super::dsl::*;
use super::totality::{POLICIES, content, labels};
use crate::keeper::{End, Live, Mark, Patch, Plan, Write};
use crate::kept::{Content, Pairs};
use crate::policy::{Policy, is_privileged};
use crate::record::Record;

/// Policies that give a node back to its name, which is all that these properties are about.
fn policies() -> impl Strategy<Value = Arc<Policy>> {
    prop::sample::select(vec![0usize, 1, 2, 5, 8]).prop_map(|at| POLICIES[at].clone())
}

fn bears(uid: Uuid, version: u64, content: &Content) -> Live {
    Live { content: Some(content.clone()), ..live(uid, version).machine("m1") }
}

fn ended(uid: Uuid, version: u64, content: &Content) -> End {
    End { content: content.clone(), ..end(uid, version).machine("m1") }
}

fn wrote(plan: Plan) -> Write {
    match plan {
        Plan::Save(write) | Plan::Close(write) | Plan::Give(write) => write,
        other => panic!("not a write: {other:?}"),
    }
}

/// What the API server makes of a patch.
fn patched(content: &Content, patch: &Patch) -> Content {
    let mut content = content.clone();
    content.labels.extend(patch.labels.clone());
    content.annotations.extend(patch.annotations.clone());
    content.taints.retain(|taint| !patch.taints.iter().any(|other| other.same_slot(taint)));
    content.taints.extend(patch.taints.clone());
    content.unschedulable |= patch.cordon;
    content
}

fn patch_of(record: Record, newborn: &Content, policy: &Arc<Policy>) -> Patch {
    match node(bears(U2, 25, newborn)).with(record).policy(policy.clone()).plan() {
        Plan::Patch(patch) => *patch,
        other => panic!("not a patch: {other:?}"),
    }
}

/// What an end, recorded or not, leaves for the next life, as the record that names it.
fn remembered(record: Option<Record>, ends: Vec<End>, policy: &Arc<Policy>) -> Option<Record> {
    let at = ends.last().map_or(20, |end| end.version);
    let case = gone(at).ends(ends).policy(policy.clone());
    let case = match record {
        Some(record) => case.with(record),
        None => case,
    };
    match case.plan() {
        Plan::Close(write) => Some(*write.record),
        _ => None,
    }
}

/// Ends of lives that bore nothing and were never given anything.
fn bare(count: usize) -> Vec<End> {
    (0..count).map(|n| end(Uuid::from_u128(100 + n as u128), 30 + n as u64)).collect()
}

/// Labels kept, and those that wait.
fn remembers(record: &Record) -> Pairs {
    record.labels().into_owned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_kept_comes_back_as_it_was(full in content(), policy in policies()) {
        let Some(rule) = policy.rule_for(&full.labels, None) else { return Ok(()) };
        let kept = rule.keep(&full);
        prop_assume!(!kept.is_empty());
        let saved = wrote(node(bears(U1, 10, &full)).policy(policy.clone()).plan()).record;
        prop_assert_eq!(&saved.kept, &kept);
        let closed = remembered(Some(*saved), vec![ended(U1, 15, &full)], &policy).unwrap();
        let parsed = Record::parse(NODE, Some(&closed.to_json())).unwrap();
        let newborn = Content::default();
        let given = wrote(node(bears(U2, 20, &newborn)).with(parsed).policy(policy.clone()).plan()).record;
        let patch = patch_of(*given, &newborn, &policy);
        prop_assert_eq!(rule.keep(&patched(&newborn, &patch)), kept);
    }

    #[test]
    fn missing_never_changes_a_value_that_is_there(old in content(), newborn in content()) {
        let policy = &POLICIES[5];
        let record = kept_by(policy, &old);
        let patch = patch_of(record, &newborn, policy);
        let after = patched(&newborn, &patch);
        prop_assert!(newborn.labels.iter().all(|(key, value)| after.labels.get(key) == Some(value)));
        prop_assert!(newborn.annotations.iter().all(|(key, value)| after.annotations.get(key) == Some(value)));
        prop_assert!(newborn.taints.iter().all(|taint| after.taints.contains(taint)));
        prop_assert!(after.unschedulable || !newborn.unschedulable);
    }

    #[test]
    fn overwrite_changes_only_what_the_policy_names(old in content(), newborn in content()) {
        let policy = &POLICIES[2];
        let record = kept_by(policy, &old);
        let wanted = record.kept.labels.get("a").or(newborn.labels.get("a")).cloned();
        let after = patched(&newborn, &patch_of(record, &newborn, policy));
        prop_assert_eq!(after.labels.get("a"), wanted.as_ref());
        for (key, value) in newborn.labels.iter().filter(|(key, _)| *key != "a") {
            prop_assert_eq!(after.labels.get(key), Some(value));
        }
    }

    #[test]
    fn a_newborn_that_dies_bare_never_shrinks_a_record(old in content(), policy in policies(), count in 1usize..4) {
        let kept = kept_by(&policy, &old);
        prop_assume!(!kept.kept.is_empty());
        let before = remembers(&kept);
        let closed = Record { state: crate::record::State::Closed, deleted_at: Some(THEN), ..kept.clone() };
        let mut own = vec![end(U2, 25)];
        own.extend(bare(count));
        for (record, ends) in [(kept, own), (closed, bare(count))] {
            let after = remembered(Some(record.clone()), ends, &policy).unwrap();
            prop_assert_eq!(&remembers(&after), &before);
            prop_assert_eq!(&after.kept.taints, &record.kept.taints);
            prop_assert_eq!(after.kept.unschedulable, record.kept.unschedulable);
        }
    }

    #[test]
    fn an_unrecorded_last_state_survives_any_number_of_bare_successors(
        last in labels(), policy in policies(), count in 0usize..5, saved in any::<bool>(),
    ) {
        let content = Content { labels: last, ..Content::default() };
        let Some(rule) = policy.rule_for(&content.labels, None) else { return Ok(()) };
        let kept = rule.keep(&content);
        prop_assume!(!kept.is_empty());
        let mut ends = vec![ended(U1, 15, &content)];
        ends.extend(bare(count));
        // The first of them may have been saved by somebody who saw nothing of its predecessor.
        let record = (saved && count > 0).then(|| open(Uuid::from_u128(100), 29).under(&policy));
        let after = remembered(record.clone(), ends.clone(), &policy).unwrap();
        prop_assert_eq!(&remembers(&after), &kept.labels);
        let case = node(live(U3, 90).machine("m1")).ends(ends).policy(policy.clone());
        let case = match record {
            Some(record) => case.with(record),
            None => case,
        };
        let given = wrote(case.plan()).record;
        prop_assert_eq!(&remembers(&given), &kept.labels);
        prop_assert!(!given.kept.labels.keys().any(|key| is_privileged(key)));
    }

    #[test]
    fn older_observations_never_win_over_newer_ones(versions in vec((1u64..50, labels()), 1..8)) {
        let mut case = missing();
        for (version, labels) in &versions {
            let content = Content { labels: labels.clone(), ..Content::default() };
            case.line.node_seen(bears(U1, *version, &content), &case.policy, NOW);
        }
        let newest = versions.iter().map(|(version, _)| *version).max().unwrap();
        prop_assert_eq!(case.line.live().unwrap().version, newest);
        for (recorded, labels) in &versions {
            let mut record = open(U1, *recorded);
            record.kept.labels.clone_from(labels);
            let seen = bears(U1, 25, &Content::default());
            let plan = node(seen).with(record).plan();
            prop_assert_eq!(*recorded > 25, plan == Plan::Rest(crate::keeper::Why::Lagging));
        }
    }
}

/// giving(U2) with what a policy keeps of a content; privileged labels wait for this very machine.
fn kept_by(policy: &Arc<Policy>, content: &Content) -> Record {
    let closed = remembered(None, vec![ended(U1, 15, content)], policy);
    let Some(closed) = closed else { return giving(U2, 20).under(policy) };
    *wrote(node(bears(U2, 20, &Content::default())).with(closed).policy(policy.clone()).plan()).record
}

#[test]
fn the_mark_alone_is_given_where_everything_is_there() {
    let patch = patch_of(giving(U2, 20), &Content::default(), &DEFAULT);
    assert_eq!((patch.mark, patch.labels.len()), (Mark::Given, 0));
}
