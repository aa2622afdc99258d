//! Policies that change, and two of them at once.

use super::dsl::*;
use crate::keeper::{Mark, Plan, Why};
use crate::kept::Digest;
use crate::policy::Policy;
use crate::record::Record;

fn keeping(keys: &str) -> Policy {
    policy(&format!("rules: [{{labels: {{include: [{keys}]}}}}]"))
}

#[test]
fn a_narrowed_policy_rewrites_nothing_by_itself() {
    let narrow = keeping("b");
    let record = open(U1, 10).label("a", "1").label("b", "1");
    node(live(U1, 20).label("a", "1").label("b", "1")).with(record).policy(narrow).rests(Why::Agreed);
}

#[test]
fn a_record_shrinks_when_what_a_narrowed_policy_keeps_next_changes() {
    let narrow = keeping("b");
    let record = open(U1, 10).label("a", "1").label("b", "1");
    node(live(U1, 20).label("a", "1").label("b", "2"))
        .with(record.clone())
        .policy(narrow.clone())
        .saves(next(open(U1, 20).label("b", "2").under(&narrow).before(&record)));
}

#[test]
fn records_shrink_at_once_under_the_brake_when_asked() {
    let narrow = policy("narrow: now\nrules: [{labels: {include: [b]}}]");
    let record = open(U1, 10).label("a", "1").label("b", "1");
    let mut write = next(open(U1, 20).label("b", "1").under(&narrow).before(&record));
    write.braked = true;
    node(live(U1, 20).label("a", "1").label("b", "1")).with(record).policy(narrow).saves(write);
}

#[test]
fn a_widened_policy_saves_what_it_keeps_now() {
    let narrow = keeping("b");
    let record = open(U1, 10).label("b", "1").under(&narrow);
    node(live(U1, 20).label("a", "1").label("b", "1"))
        .with(record.clone())
        .saves(next(open(U1, 20).label("a", "1").label("b", "1").before(&record)));
}

#[test]
fn what_two_policies_keep_stays_side_by_side_during_a_rollout() {
    let (old, new) = (keeping("a, b"), keeping("b, c"));
    let bears = || live(U1, 20).label("a", "1").label("b", "1").label("c", "1");
    let record = open(U1, 10).label("a", "1").label("b", "1").under(&old);
    // Neither takes it for its own alone.
    let mixed = Digest::of(format!("{} {}", old.digest(), new.digest()).as_bytes());
    let both = open(U1, 20).label("a", "1").label("b", "1").label("c", "1");
    let both = Record { policy: mixed, ..both };
    node(bears()).with(record.clone()).policy(new.clone()).saves(next(both.clone().before(&record)));
    node(bears()).with(both.clone()).policy(old).rests(Why::Agreed);
    node(bears()).with(both).policy(new).rests(Why::Agreed);
}

/// What `narrow` writes beside the keys of the default policy.
fn under_both(record: Record, narrow: &Policy) -> Record {
    let mixed = format!("{} {}", DEFAULT.digest(), narrow.digest());
    Record { policy: Digest::of(mixed.as_bytes()), ..record }
}

#[test]
fn in_a_rollout_a_change_leaves_what_only_another_policy_keeps() {
    let narrow = keeping("b");
    let record = open(U1, 10).label("a", "1").label("b", "1").label("c", "1");
    let bears = || live(U1, 20).label("a", "2").label("b", "2");
    let saved = open(U1, 20).label("a", "2").label("b", "2");
    node(bears())
        .with(record.clone())
        .policy(narrow.clone())
        .rollout()
        .saves(next(under_both(saved, &narrow).before(&record)));
    let alone = open(U1, 20).label("b", "2").under(&narrow);
    node(bears()).with(record.clone()).policy(narrow).saves(next(alone.before(&record)));
}

#[test]
fn an_end_is_recorded_with_what_only_another_policy_keeps_as_the_node_bore_it() {
    let narrow = keeping("b");
    let record = open(U1, 10).label("a", "1").label("b", "1").label("c", "1");
    let ended = end(U1, 15).label("a", "2").label("b", "2").label("d", "2");
    let closed = closed(U1, 15).label("a", "2").label("b", "2");
    gone(15)
        .ends([ended.clone()])
        .with(record.clone())
        .policy(narrow.clone())
        .rollout()
        .closes(next(under_both(closed, &narrow).before(&record)));
    let giving = giving(U2, 20).label("a", "2").label("b", "2");
    node(live(U2, 20))
        .ends([ended])
        .with(record.clone())
        .policy(narrow.clone())
        .rollout()
        .gives(next(under_both(giving, &narrow).before(&record)));
}

#[test]
fn a_newborn_that_dies_is_laid_over_what_only_another_policy_keeps() {
    let narrow = keeping("b");
    let record = giving(U2, 20).label("a", "1").label("b", "1").label("c", "1");
    let closed = closed(U2, 25).label("a", "2").label("b", "1").label("c", "1");
    gone(25)
        .ends([end(U2, 25).label("a", "2")])
        .with(record.clone())
        .policy(narrow.clone())
        .rollout()
        .closes(next(under_both(closed, &narrow).before(&record)));
}

#[test]
fn what_only_another_policy_keeps_is_given_and_stays_when_the_record_is_opened() {
    let narrow = keeping("b");
    let record = giving(U2, 20).label("a", "1").label("b", "1");
    node(live(U2, 25)).with(record.clone()).policy(narrow.clone()).rollout().patches(patch(
        U2,
        25,
        Mark::Given,
        &[("a", "1"), ("b", "1")],
    ));
    let opened = open(U2, 26).label("a", "1").label("b", "1").given();
    node(live(U2, 26).label("a", "1").label("b", "1").marked())
        .with(record)
        .policy(narrow)
        .rollout()
        .saves(next(opened));
}

#[test]
fn what_a_policy_narrows_at_once_is_neither_recorded_nor_given() {
    let narrow = policy("narrow: now\nrules: [{labels: {include: [b]}}]");
    let record = open(U1, 10).label("a", "1").label("b", "1");
    gone(15)
        .ends([end(U1, 15).label("a", "1").label("b", "1")])
        .with(record.clone())
        .policy(narrow.clone())
        .rollout()
        .closes(next(closed(U1, 15).label("b", "1").under(&narrow).before(&record)));
}

#[test]
fn once_all_run_under_one_policy_what_it_does_not_keep_is_neither_recorded_nor_given() {
    let narrow = keeping("b");
    let record = open(U1, 10).label("a", "1").label("b", "1");
    gone(15)
        .ends([end(U1, 15).label("a", "1").label("b", "1")])
        .with(record.clone())
        .policy(narrow.clone())
        .closes(next(closed(U1, 15).label("b", "1").under(&narrow).before(&record)));
}

/// Lets replicas with different policies decide in turn until none of them writes; how many writes it took.
fn writes_until_rest(mut record: Record, bears: &crate::keeper::Live, policies: &[Policy]) -> usize {
    let mut writes = 0;
    for turn in 0.. {
        let resting = (0..policies.len()).all(|offset| {
            let policy = policies[(turn + offset) % policies.len()].clone();
            !matches!(node(bears.clone()).with(record.clone()).policy(policy).plan(), Plan::Save(_))
        });
        if resting || writes > 20 {
            break;
        }
        let policy = policies[turn % policies.len()].clone();
        if let Plan::Save(write) = node(bears.clone()).with(record.clone()).policy(policy).plan() {
            record = *write.record;
            writes += 1;
        }
    }
    writes
}

#[test]
fn policies_that_overlap_do_not_take_turns() {
    let policies =
        [keeping("a, b"), keeping("b, c"), keeping("b"), keeping("\"*\""), policy("rules: [{cordon: true}]")];
    for first in &policies {
        for second in &policies {
            for bears in [
                live(U1, 20).label("a", "1").label("b", "1").label("c", "1"),
                live(U1, 20).label("a", "1").label("b", "2").label("c", "1"),
                live(U1, 20).label("a", "2").label("c", "2").cordoned(),
                live(U1, 20),
            ] {
                let record = open(U1, 10).label("a", "1").label("b", "1").under(first);
                let writes = writes_until_rest(record, &bears, &[second.clone(), first.clone()]);
                assert!(writes <= 3, "{writes} writes");
            }
        }
    }
}

#[test]
fn a_policy_digest_alone_is_no_reason_to_write_nor_to_read() {
    let same = policy("rules: [{merge: overwrite}]");
    let record = open(U1, 10).label("a", "1").under(&same);
    node(live(U1, 20).label("a", "1")).with(record.clone()).rests(Why::Agreed);
    node(live(U1, 20).label("a", "1")).with_summary(&record).judged().settled().rests(Why::Agreed);
}

#[test]
fn what_was_compared_in_full_is_not_read_again() {
    let narrow = keeping("b");
    let record = open(U1, 10).label("a", "1").label("b", "1");
    let mut case =
        node(live(U1, 20).label("a", "1").label("b", "1")).with(record).policy(narrow.clone()).settled();
    case.line.settle();
    assert!(case.line.agreed.is_some());
    case.rests(Why::Agreed);
}

#[test]
fn the_first_rule_that_matches_live_and_recorded_labels_speaks() {
    let pools = policy("rules: [{selector: pool=gpu, labels: {include: [\"*\"]}}, {labels: {include: [b]}}]");
    let record = closed(U1, 15).label("pool", "gpu").label("a", "1").under(&pools);
    node(live(U2, 20).label("b", "1"))
        .with(record.clone())
        .policy(pools.clone())
        .gives(next(giving(U2, 20).label("pool", "gpu").label("a", "1").under(&pools)));
}

// Which policy a state is of, for undo: only one that looked at the node's content chose it.

#[test]
fn what_is_carried_on_without_a_look_stays_the_other_policys() {
    let wide = policy("rules: [{labels: {include: ['*']}}]");
    let narrow = keeping("a");
    let record = || open(U1, 10).label("a", "1").under(&narrow);
    // A pause writes down what was recorded, whatever the node bears.
    let paused = node(live(U1, 20).label("a", "1").label("b", "1").paused(true));
    paused
        .with(record())
        .policy(wide.clone())
        .saves(next(open(U1, 20).label("a", "1").under(&narrow).on_hold()));
    // So does an end that is gone.
    let given = giving(U2, 20).label("a", "1").under(&narrow);
    node(live(U2, 20).label("b", "1"))
        .with(closed(U1, 15).label("a", "1").under(&narrow))
        .policy(wide.clone())
        .gives(next(given.clone()));
    // A newborn's end is laid over it: part of it was never looked at.
    let merged = closed(U2, 25).label("a", "1").label("b", "1");
    let laid_over = gone(25).ends([end(U2, 25).label("b", "1")]).with(given.clone()).policy(wide.clone());
    let Plan::Close(write) = laid_over.plan() else { panic!("not closed") };
    assert_eq!(write.record.kept, merged.kept);
    assert!(![wide.digest(), narrow.digest()].contains(&write.record.policy), "{write:?}");
    // One that got its own back says all there is.
    gone(25)
        .ends([end(U2, 25).label("a", "1").label("b", "1").marked()])
        .with(given.clone())
        .policy(wide.clone())
        .closes(next(merged.under(&wide).before(&given)));
}
