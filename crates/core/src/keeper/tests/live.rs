//! A node that lives, and a record that is its own or none.

use jiff::SignedDuration;

use super::dsl::*;
use crate::keeper::{Erasure, Mark, Plan, Why};
use crate::record::State;

// Seen at a version not greater than the record's, whatever the uid (within one uid: older): Rest.

#[test]
fn a_replica_that_sees_an_older_version_than_the_record_rests_whatever_the_state() {
    for record in [open(U1, 10), closed(U1, 10), giving(U1, 10)] {
        for uid in [U1, U2] {
            node(live(uid, 9).label("a", "2")).with(record.clone().label("a", "1")).rests(Why::Lagging);
        }
    }
}

#[test]
fn another_incarnation_at_the_records_very_version_lags_too() {
    for record in [open(U1, 10), closed(U1, 10), giving(U1, 10)] {
        node(live(U2, 10).label("a", "2")).with(record.label("a", "1")).rests(Why::Lagging);
    }
}

#[test]
fn the_recorded_version_itself_is_not_older() {
    let record = open(U1, 10).label("a", "1");
    node(live(U1, 10).label("a", "2"))
        .with(record.clone())
        .saves(next(open(U1, 10).label("a", "2").before(&record)));
}

#[test]
fn a_lagging_replica_heeds_no_annotation_that_it_saw_too_early() {
    node(live(U1, 9).forget()).with(open(U1, 10).label("a", "1")).rests(Why::Lagging);
    node(live(U1, 9).paused(true)).with(open(U2, 10).label("a", "1")).rests(Why::Lagging);
}

#[test]
fn a_lagging_replica_that_saw_an_earlier_life_end_rests() {
    gone(9).ends([end(U1, 9).label("a", "1")]).with(open(U2, 10).label("b", "1")).rests(Why::Lagging);
    gone(10).ends([end(U1, 9).label("a", "1")]).with(giving(U2, 10).label("b", "1")).rests(Why::Lagging);
}

#[test]
fn a_lagging_replica_does_not_erase_because_an_earlier_life_was_to_be_forgotten() {
    gone(9).ends([end(U1, 9).forget()]).with(open(U2, 10).label("b", "1")).rests(Why::Lagging);
}

// Live U, no record, no ends held: Save open(U); nothing kept: Rest.

#[test]
fn a_node_without_a_record_is_saved_open() {
    node(live(U1, 10).label("a", "1")).saves(first(open(U1, 10).label("a", "1")));
}

#[test]
fn only_what_the_policy_keeps_is_saved() {
    node(live(U1, 10).label("a", "1").label("kubernetes.io/hostname", "x").annotation("b", "1"))
        .saves(first(open(U1, 10).label("a", "1")));
}

#[test]
fn a_node_without_a_record_of_which_nothing_is_kept_has_none() {
    node(live(U1, 10)).rests(Why::NothingKept);
    node(live(U1, 10).label("kubernetes.io/hostname", "x")).rests(Why::NothingKept);
}

#[test]
fn a_marked_node_without_a_record_is_saved_as_one_that_got_its_own() {
    node(live(U1, 10).label("a", "1").marked()).saves(first(open(U1, 10).label("a", "1").given()));
}

#[test]
fn a_node_that_no_rule_matches_is_not_touched() {
    let rules = "rules: [{selector: pool=gpu}]";
    node(live(U1, 10).label("a", "1")).policy(policy(rules)).rests(Why::NothingKept);
    node(live(U1, 10).label("a", "2"))
        .with(open(U1, 5).label("a", "1"))
        .policy(policy(rules))
        .rests(Why::Unmanaged);
}

#[test]
fn nothing_is_decided_before_both_lists_are_complete() {
    unlisted().rests(Why::NotSynced);
    unlisted().with(open(U1, 10)).rests(Why::NotSynced);
    unlisted().with(closed(U1, 10)).rests(Why::NotSynced);
    node(live(U1, 10).label("a", "1")).records_unlisted().rests(Why::NotSynced);
    gone(10).ends([end(U1, 10).label("a", "1")]).records_unlisted().rests(Why::NotSynced);
}

#[test]
fn a_life_that_vanished_unseen_before_its_record_is_proved_first() {
    node(live(U2, 20)).vanished(U1, 10).proves(U1, 10, 20);
    node(live(U2, 20)).vanished(U1, 10).lost(U1).rests(Why::NothingKept);
}

// Live U, open(U), same kept: Rest.

#[test]
fn a_node_that_agrees_with_its_record_rests() {
    let record = open(U1, 10).label("a", "1");
    node(live(U1, 10).label("a", "1")).with(record.clone()).rests(Why::Agreed);
    node(live(U1, 500).label("a", "1")).with(record.clone()).rests(Why::Agreed);
    node(live(U1, 500).label("a", "1")).with_summary(&record).settled().rests(Why::Agreed);
}

#[test]
fn what_is_not_kept_may_change_without_a_write() {
    let record = open(U1, 10).label("a", "1");
    node(live(U1, 20).label("a", "1").label("kubernetes.io/os", "linux").annotation("x", "y"))
        .with(record)
        .rests(Why::Agreed);
}

#[test]
fn a_providerid_that_nothing_kept_asks_for_is_not_worth_a_write() {
    let record = open(U1, 10).label("a", "1");
    node(live(U1, 20).label("a", "1").machine("m1")).with(record).rests(Why::Agreed);
}

// Live U, open(U), other kept: Save; the node is the authority while it lives.

#[test]
fn a_changed_an_added_and_a_removed_label_are_saved() {
    let record = open(U1, 10).label("a", "1").label("b", "1");
    node(live(U1, 20).label("a", "2").label("c", "1"))
        .with(record.clone())
        .saves(next(open(U1, 20).label("a", "2").label("c", "1").before(&record)));
}

#[test]
fn what_changed_is_read_where_only_its_digest_is_known() {
    let record = open(U1, 10).label("a", "1");
    node(live(U1, 20).label("a", "2")).with_summary(&record).reads_record();
    node(live(U1, 20).label("a", "2")).with(record).settled().reads_node();
}

#[test]
fn a_value_that_went_back_is_saved_and_counted_as_churn() {
    let before = open(U1, 5).label("a", "1");
    let record = open(U1, 10).label("a", "2").before(&before);
    let write = next(open(U1, 20).label("a", "1").before(&record).before(&before));
    assert!(write.record.went_back());
    node(live(U1, 20).label("a", "1")).with(record).saves(write);
}

#[test]
fn a_record_remembers_its_last_five_states_for_undo() {
    let earlier: Vec<_> = (0..5).map(|n| open(U1, n).label("a", &n.to_string())).collect();
    let record = earlier.iter().rev().fold(open(U1, 10).label("a", "9"), RecordWords::before);
    let mut expected = open(U1, 20).label("a", "10").before(&record);
    for state in earlier.iter().rev().take(4) {
        expected = expected.before(state);
    }
    node(live(U1, 20).label("a", "10")).with(record).saves(next(expected));
}

#[test]
fn a_node_whose_last_kept_label_was_removed_has_an_empty_record() {
    let record = open(U1, 10).label("a", "1");
    node(live(U1, 20)).with(record.clone()).saves(next(open(U1, 20).before(&record)));
}

#[test]
fn an_empty_record_of_a_bare_node_is_erased_after_its_hour() {
    let hour = SignedDuration::from_hours(1);
    node(live(U1, 20)).with(open(U1, 10)).at(THEN + hour - OPEN_AFTER).rests(Why::Agreed);
    node(live(U1, 20)).with(open(U1, 10)).at(THEN + hour).erases(Erasure::Empty);
    node(live(U1, 20).label("a", "1"))
        .with(open(U1, 10))
        .at(NOW + hour)
        .plan_is_save_of(|record| assert_eq!(record.kept.labels["a"], "1"));
}

#[test]
fn an_open_record_that_holds_something_is_never_erased_by_time() {
    let ages = SignedDuration::from_hours(24 * 400);
    node(live(U1, 20).label("a", "1")).with(open(U1, 10).label("a", "1")).at(NOW + ages).rests(Why::Agreed);
}

#[test]
fn the_mark_of_an_open_node_is_remembered_by_the_next_save() {
    let record = open(U1, 10).label("a", "1");
    node(live(U1, 20).label("a", "2").marked())
        .with(record.clone())
        .saves(next(open(U1, 20).label("a", "2").given().before(&record)));
    let record = record.given();
    node(live(U1, 20).label("a", "2"))
        .with(record.clone())
        .saves(next(open(U1, 20).label("a", "2").given().before(&record)));
}

// Live U with its mark, giving(U): it is open; Save if kept differs, otherwise after a few seconds.

#[test]
fn a_restored_node_that_differs_from_what_was_given_is_saved_at_once() {
    let record = giving(U2, 20).label("a", "1");
    node(live(U2, 25).label("a", "1").label("b", "1").marked())
        .with(record.clone())
        .at(THEN)
        .plan_is_save_of(|saved| {
            assert_eq!((saved.state, saved.version, saved.given), (State::Open, 25, true));
            assert_eq!(saved.kept.labels.len(), 2);
        });
}

#[test]
fn a_restored_node_that_is_as_given_is_opened_after_a_few_seconds() {
    let record = giving(U2, 20).label("a", "1");
    let restored = live(U2, 25).label("a", "1").marked();
    node(restored.clone()).with(record.clone()).at(THEN).waits(THEN + OPEN_AFTER);
    node(restored).with(record).saves(next(open(U2, 25).label("a", "1").given()));
}

#[test]
fn a_mark_removed_by_hand_after_it_was_opened_starts_nothing_again() {
    node(live(U2, 30).label("a", "1")).with(open(U2, 25).label("a", "1").given()).rests(Why::Agreed);
    let record = open(U2, 25).label("a", "1").given();
    node(live(U2, 30))
        .ends([end(U1, 15).label("a", "1")])
        .with(record.clone())
        .saves(next(open(U2, 30).given().before(&record)));
}

#[test]
fn a_label_removed_from_a_restored_node_leaves_the_record_and_stays_away() {
    let record = giving(U2, 20).label("a", "1");
    node(live(U2, 30).marked()).with(record.clone()).saves(next(open(U2, 30).given().before(&record)));
}

// Terminating: Save in open(U), giving(U) with the mark, or none; otherwise Rest; never Give or Patch.

#[test]
fn a_terminating_node_is_saved_where_its_record_is_its_own_or_none() {
    let dying = live(U2, 20).label("a", "2").terminating();
    node(dying.clone()).saves(first(open(U2, 20).label("a", "2")));
    let record = open(U2, 10).label("a", "1");
    node(dying.clone()).with(record.clone()).saves(next(open(U2, 20).label("a", "2").before(&record)));
    let record = giving(U2, 10).label("a", "1");
    node(dying.marked())
        .with(record.clone())
        .saves(next(open(U2, 20).label("a", "2").given().before(&record)));
}

#[test]
fn a_terminating_node_rests_in_any_other_state_until_its_end() {
    let dying = live(U2, 20).label("a", "2").terminating();
    node(dying.clone()).with(giving(U2, 10).label("a", "1")).rests(Why::Terminating);
    for record in [open(U1, 10), giving(U1, 10), closed(U1, 10)] {
        let ends = (record.state != State::Closed).then(|| end(U1, 15).label("a", "1"));
        let record = record.label("a", "1");
        node(dying.clone()).ends(ends.clone()).with(record.clone()).rests(Why::Terminating);
        node(dying.clone().marked()).ends(ends).with(record).rests(Why::Terminating);
    }
}

#[test]
fn an_end_is_looked_for_though_its_successor_is_dying() {
    let dying = live(U2, 20).label("a", "2").terminating();
    for record in [open(U1, 10), giving(U1, 10)] {
        let plan = node(dying.clone()).with(record.label("a", "1")).plan();
        assert_eq!(plan, Plan::Prove { uid: U1, from: 10, to: 20 });
    }
}

#[test]
fn a_terminating_node_is_never_given_older_ends() {
    let dying = live(U2, 20).label("b", "1").terminating();
    let older = end(U1, 15).label("a", "1");
    node(dying.clone()).ends([older.clone()]).saves(first(open(U2, 20).label("b", "1")));
    node(dying).ends([older]).with(open(U2, 18).label("b", "1")).rests(Why::Agreed);
}

#[test]
fn a_terminating_node_is_never_given_its_waiting_keys() {
    let record = open(U2, 10).label("a", "1").given().waits(ROLE, "", Some("m1"));
    let plan = node(live(U2, 20).label("a", "1").marked().terminating().machine("m1")).with(record).plan();
    assert!(!matches!(plan, Plan::Patch(_) | Plan::Give(_)), "{plan:?}");
}

#[test]
fn the_mark_tells_given_from_full() {
    assert!(Mark::None < Mark::Given && Mark::Given < Mark::Full);
}
