//! A node that is away.

use jiff::SignedDuration;

use super::dsl::*;
use crate::keeper::{Erasure, Notice, Plan, RecordSight, Sight, Why};
use crate::record::{Record, State, Version};

const RETENTION: SignedDuration = SignedDuration::from_hours(30 * 24);

// Absent, open(U) or giving(U): end seen: Close, after some seconds or when somebody waits; not seen: Prove.

#[test]
fn an_end_that_was_seen_closes_an_open_record_with_its_last_state() {
    let record = open(U1, 10).label("a", "1").label("b", "1");
    gone(15)
        .ends([end(U1, 15).label("a", "2")])
        .with(record.clone())
        .closes(next(closed(U1, 15).label("a", "2").before(&record)));
}

#[test]
fn an_end_waits_some_seconds_for_a_quick_return_unless_somebody_waits_for_it() {
    let record = open(U1, 10).label("a", "1");
    let just_now = || end(U1, 15).label("a", "1");
    gone(15).ends([just_now()]).with(record.clone()).at(THEN).waits(THEN + CLOSE_AFTER);
    let plan = gone(15).ends([just_now()]).with(record.clone()).at(THEN).awaited().plan();
    assert!(matches!(plan, Plan::Close(_)), "{plan:?}");
    gone(15).ends([just_now()]).with(record).closes(next(closed(U1, 15).label("a", "1")));
}

#[test]
fn a_giving_record_is_closed_with_the_end_if_it_bore_its_mark_and_merged_otherwise() {
    let record = giving(U2, 20).label("a", "1").label("b", "1");
    gone(25)
        .ends([end(U2, 25).label("b", "2").marked()])
        .with(record.clone())
        .closes(next(closed(U2, 25).label("b", "2").before(&record)));
    gone(25)
        .ends([end(U2, 25).label("b", "2").label("c", "1")])
        .with(record.clone())
        .closes(next(closed(U2, 25).label("a", "1").label("b", "2").label("c", "1").before(&record)));
}

#[test]
fn a_bare_newborn_that_dies_at_once_never_empties_a_record() {
    let record = giving(U2, 20).label("a", "1");
    gone(25).ends([end(U2, 25)]).with(record).closes(next(closed(U2, 25).label("a", "1")));
}

#[test]
fn merging_overwrites_only_where_a_restore_would() {
    let some = policy("rules: [{merge: {overwrite: [a]}}]");
    let record = giving(U2, 20).label("a", "1").label("b", "1").under(&some);
    gone(25)
        .ends([end(U2, 25).label("a", "2").label("b", "2")])
        .with(record.clone())
        .policy(some.clone())
        .closes(next(closed(U2, 25).label("a", "1").label("b", "2").under(&some).before(&record)));
}

#[test]
fn an_end_that_was_not_seen_is_proved_after_a_direct_read() {
    for record in [open(U1, 10).label("a", "1"), giving(U1, 10).label("a", "1")] {
        missing().with(record.clone()).reads_node();
        looked(50).with(record.clone()).proves(U1, 10, 50);
        looked(50).with_summary(&record).proves(U1, 10, 50);
    }
}

#[test]
fn a_proof_is_bounded_by_the_end_of_a_later_life_alone() {
    let record = open(U2, 20).label("a", "1");
    looked(50).ends([end(U1, 15).label("z", "1")]).with(record.clone()).proves(U2, 20, 50);
    looked(50).ends([end(U3, 40)]).with(record).proves(U2, 20, 40);
}

#[test]
fn an_end_past_history_closes_with_what_is_recorded_and_tells_the_doubt() {
    let record = open(U1, 10).label("a", "1");
    looked(50).lost(U1).with(record).closes(telling(
        Notice::Unproved,
        next(Record { deleted_at: Some(NOW), ..closed(U1, 10).label("a", "1").unproved(U1, State::Open) }),
    ));
}

#[test]
fn a_doubt_about_a_life_before_is_put_right_and_that_about_the_last_one_is_told() {
    let record = giving(U2, 20).label("a", "1").unproved(U1, State::Open);
    let right = closed(U2, 20).label("a", "2").unproved(U2, State::Giving).before(&record);
    looked(50)
        .ends([end(U1, 15).label("a", "2")])
        .lost(U2)
        .with(record)
        .closes(telling(Notice::Unproved, next(Record { deleted_at: Some(NOW), ..right })));
}

#[test]
fn an_end_that_came_while_history_was_searched_in_vain_is_no_doubt() {
    let record = open(U1, 10).label("a", "1");
    gone(50)
        .ends([end(U1, 50).label("a", "2")])
        .lost(U1)
        .with(record.clone())
        .closes(next(closed(U1, 50).label("a", "2").before(&record)));
}

#[test]
fn several_ends_are_folded_in_order_and_the_record_names_the_last() {
    let record = open(U1, 10).label("a", "1");
    let ends = [
        end(U1, 15).label("a", "2").label("b", "1"),
        end(U2, 25).label("c", "1"),
        end(U3, 35).label("b", "3"),
    ];
    gone(35)
        .ends(ends)
        .with(record.clone())
        .closes(next(closed(U3, 35).label("a", "2").label("b", "3").label("c", "1").before(&record)));
}

#[test]
fn a_later_life_that_bore_its_mark_speaks_for_itself() {
    let record = open(U1, 10).label("a", "1");
    let ends = [end(U1, 15).label("a", "2"), end(U2, 25).label("c", "1").marked()];
    gone(25).ends(ends).with(record.clone()).closes(next(closed(U2, 25).label("c", "1").before(&record)));
}

#[test]
fn older_ends_that_were_never_given_lie_under_the_end_of_an_open_record() {
    let record = open(U2, 20).label("b", "1");
    let ends = [end(U1, 15).label("a", "1").label("b", "0"), end(U2, 25).label("b", "2")];
    gone(25)
        .ends(ends.clone())
        .with(record.clone())
        .closes(next(closed(U2, 25).label("a", "1").label("b", "2").before(&record)));
    node(live(U3, 30))
        .ends(ends)
        .with(record.clone())
        .gives(next(giving(U3, 30).label("a", "1").label("b", "2").before(&record)));
}

#[test]
fn older_ends_do_not_lie_under_the_end_of_a_life_that_got_its_own_back() {
    let record = open(U2, 20).label("b", "1");
    let ends = [end(U1, 15).label("a", "1"), end(U2, 25).label("b", "2").marked()];
    gone(25).ends(ends).with(record.clone()).closes(next(closed(U2, 25).label("b", "2").before(&record)));
    let record = record.given();
    let ends = [end(U1, 15).label("a", "1"), end(U2, 25).label("b", "2")];
    gone(25).ends(ends).with(record.clone()).closes(next(closed(U2, 25).label("b", "2").before(&record)));
}

#[test]
fn the_end_of_a_node_that_no_rule_matches_any_more_keeps_what_was_recorded() {
    let pools = policy("rules: [{selector: pool=gpu}]");
    gone(15)
        .ends([end(U1, 15).label("a", "2")])
        .with(open(U1, 10).label("a", "1"))
        .policy(pools)
        .closes(next(closed(U1, 15).label("a", "1")));
}

// Absent, none or closed(U1), a newer end held: Close with it.

#[test]
fn a_life_that_no_record_named_is_closed_with_its_end() {
    gone(15).ends([end(U1, 15).label("a", "1")]).closes(first(closed(U1, 15).label("a", "1")));
}

#[test]
fn a_life_that_no_record_named_and_that_ended_bare_leaves_nothing() {
    gone(15).ends([end(U1, 15)]).rests(Why::NothingKept);
    gone(15).rests(Why::NothingKept);
}

#[test]
fn a_newer_end_is_merged_into_a_closed_record_where_it_bore_no_mark() {
    let record = closed(U1, 15).label("a", "1").label("b", "1");
    gone(25)
        .ends([end(U2, 25).label("b", "2")])
        .with(record.clone())
        .closes(next(closed(U2, 25).label("a", "1").label("b", "2").before(&record)));
    gone(25)
        .ends([end(U2, 25).label("b", "2").marked()])
        .with(record.clone())
        .closes(next(closed(U2, 25).label("b", "2").before(&record)));
    gone(25).ends([end(U2, 25)]).with(record).closes(next(closed(U2, 25).label("a", "1").label("b", "1")));
}

#[test]
fn a_closed_record_is_read_whole_before_an_end_is_folded_into_it() {
    gone(25).ends([end(U2, 25).label("b", "2")]).with_summary(&closed(U1, 15).label("a", "1")).reads_record();
}

#[test]
fn an_end_that_the_closed_record_holds_already_changes_nothing() {
    gone(25).ends([end(U2, 15).label("b", "2")]).with(closed(U1, 20).label("a", "1")).rests(Why::Away);
}

#[test]
fn a_closed_record_in_doubt_is_closed_again_with_the_real_end() {
    let doubtful = closed(U1, 10).label("a", "1").unproved(U1, State::Open);
    gone(15)
        .ends([end(U1, 15).label("a", "2")])
        .with(doubtful.clone())
        .closes(next(closed(U1, 15).label("a", "2").before(&doubtful)));
    let doubtful = closed(U1, 10).label("a", "1").unproved(U1, State::Giving);
    gone(15)
        .ends([end(U1, 15).label("b", "1")])
        .with(doubtful.clone())
        .closes(next(closed(U1, 15).label("a", "1").label("b", "1").before(&doubtful)));
}

#[test]
fn a_real_end_and_later_lives_are_folded_into_a_gift_in_doubt() {
    let doubtful = giving(U2, 20).label("a", "1").unproved(U1, State::Open);
    gone(25)
        .ends([end(U1, 15).label("a", "2"), end(U2, 25).label("b", "1")])
        .with(doubtful.clone())
        .closes(next(closed(U2, 25).label("a", "2").label("b", "1").before(&doubtful)));
}

// Absent longer than the retention, or beyond the cap: Erase, after a direct read.

#[test]
fn a_closed_record_rests_until_its_retention_is_over() {
    let record = closed(U1, 15).label("a", "1");
    looked(50).with(record.clone()).rests(Why::Away);
    looked(50).with_summary(&record).at(THEN + RETENTION - CLOSE_AFTER).rests(Why::Away);
}

#[test]
fn a_record_is_erased_after_its_retention_only_right_after_a_direct_read() {
    let record = closed(U1, 15).label("a", "1");
    let late = THEN + RETENTION;
    gone(50).with(record.clone()).at(late).reads_node();
    missing().with(record.clone()).at(late).reads_node();
    looked(50).with(record.clone()).at(late).reads_node();
    let mut fresh = looked(50).with_summary(&record).at(late);
    fresh.line.sight = Sight::Absent { at: 50, looked: Some(late), missing: false };
    fresh.erases(Erasure::Expired);
}

#[test]
fn a_record_beyond_the_cap_is_erased_only_right_after_a_direct_read() {
    let record = closed(U1, 15).label("a", "1");
    looked(50).with_summary(&record).over_cap().erases(Erasure::OverCap);
    gone(50).with_summary(&record).over_cap().reads_node();
    missing().with_summary(&record).over_cap().reads_node();
}

#[test]
fn an_empty_closed_record_is_erased_after_its_hour_only_right_after_a_direct_read() {
    let hour = SignedDuration::from_hours(1);
    gone(50).with(closed(U1, 15)).rests(Why::Away);
    gone(50).with(closed(U1, 15)).at(THEN + hour).reads_node();
    let mut fresh = looked(50).with(closed(U1, 15)).at(THEN + hour);
    fresh.line.sight = Sight::Absent { at: 50, looked: Some(THEN + hour), missing: false };
    fresh.erases(Erasure::Empty);
}

#[test]
fn open_and_giving_records_are_not_collected() {
    for record in [open(U1, 15).label("a", "1"), giving(U1, 15).label("a", "1")] {
        let plan = looked(50).with(record).over_cap().at(NOW + RETENTION).plan();
        assert!(!matches!(plan, Plan::Erase(_)), "{plan:?}");
    }
}

#[test]
fn a_record_is_not_collected_while_a_newer_end_is_held() {
    let record = closed(U1, 15).label("a", "1");
    let plan = looked(50).ends([end(U2, 25).label("b", "1")]).with(record).over_cap().plan();
    assert!(matches!(plan, Plan::Close(_)), "{plan:?}");
}

// Absence is not removal.

#[test]
fn a_node_that_a_list_did_not_have_is_read_directly_before_anything_else() {
    missing().rests(Why::NothingKept);
    missing().with(closed(U1, 15).label("a", "1")).rests(Why::Away);
    missing().ends([end(U1, 15).label("a", "1")]).reads_node();
    missing().ends([end(U2, 25).label("a", "1")]).with(closed(U1, 15).label("a", "1")).reads_node();
    missing().vanished(U1, 10).reads_node();
    missing().with(open(U1, 10)).reads_node();
}

#[test]
fn a_life_that_vanished_unseen_is_proved_before_its_name_is_let_go() {
    looked(50).vanished(U1, 10).proves(U1, 10, 50);
    looked(50).vanished(U1, 10).lost(U1).rests(Why::NothingKept);
}

#[test]
fn a_node_that_a_list_lacks_too_is_read_where_its_record_is_of_a_later_life() {
    let lagging = || gone(15).with(open(U2, 20).label("a", "1"));
    lagging().rests(Why::Lagging);
    let mut listed = lagging();
    listed.line.node_missing(30);
    listed.reads_node();
    let mut read = lagging();
    read.line.node_missing(30);
    read.line.node_absent(40, NOW);
    read.proves(U2, 20, 40);
}

// Absent; somebody else removed the record: drop the ends held, Rest.

#[test]
fn removing_the_record_of_an_absent_node_forgets_it() {
    let mut case = gone(15).ends([end(U1, 15).label("a", "2")]).with(open(U1, 10).label("a", "1"));
    case.line.record_removed(U4, 2000, 2000, false);
    assert_eq!((&case.line.record, case.line.ends.len()), (&RecordSight::None, 0));
    case.rests(Why::NothingKept);
}

#[test]
fn removing_the_record_of_a_living_node_forgets_what_ended_before() {
    let removed = |read_after: Option<Version>| {
        let case = node(live(U2, 20).label("b", "1")).ends([end(U1, 15).label("a", "2")]);
        let mut case = case.with(open(U1, 10).label("a", "1"));
        case.line.record_removed(U4, 2000, 2000, false);
        if let Some(knew) = read_after {
            case.line.node_found(U2, knew);
        }
        case
    };
    removed(None).reads_node();
    removed(Some(1999)).reads_node();
    removed(Some(2000)).saves(first(open(U2, 20).label("b", "1")));
}

#[test]
fn an_earlier_removal_does_not_remove_the_record_that_is_known() {
    let record = || gone(1500).ends([end(U1, 1500).label("a", "1")]).with(open(U1, 1400).label("a", "1"));
    let mut case = record();
    case.line.record_removed(U4, 999, 999, false);
    case.closes(next(closed(U1, 1500).label("a", "1")));
    // Unless the life that it names was over by then: whoever created it too late empties it.
    let mut case = gone(15).ends([end(U1, 15).label("a", "1")]).with(open(U1, 10).label("a", "1"));
    case.line.record_removed(U4, 999, 999, false);
    assert_eq!(case.line.ends.len(), 1);
    case.rests(Why::Lagging);
}

#[test]
fn a_record_that_this_replica_created_after_a_removal_it_did_not_know_of_is_emptied() {
    let created = |record: Record, knew: Version| {
        let mut case = gone(15).with(record);
        let (uid, version) = case.line.seen().map(|seen| (seen.uid, seen.version)).unwrap();
        case.line.record_created(uid, version, knew);
        case.line.record_removed(U3, 999, 999, false);
        case
    };
    let late = closed(U1, 15).label("a", "1").before(&open(U1, 10).label("a", "2"));
    let mut emptied = next(closed(U1, 15).before(&late));
    emptied.record.previous.clear();
    (emptied.record.kept_since, emptied.record.deleted_at) = (None, Some(NOW));
    created(late.clone(), 998).closes(emptied);
    created(late.clone(), 999).rests(Why::Away);
    // What ended after the removal was not forgotten by it.
    created(closed(U1, 1500).label("a", "1"), 998).rests(Why::Away);
    // Where the end of the life that it names is not known, it is looked for.
    created(open(U1, 10).label("a", "1"), 998).proves(U1, 10, 15);
}

#[test]
fn a_record_that_never_was_cannot_be_removed() {
    let mut case = gone(15).ends([end(U1, 15).label("a", "1")]).records_unlisted();
    case.line.record_removed(U4, 2000, 2000, false);
    case.closes(first(closed(U1, 15).label("a", "1")));
}
