//! A node that came back, and what it is owed.

use super::dsl::*;
use crate::keeper::{Mark, Notice, Plan, Seen, Why};
use crate::record::{Record, State};

// Live U without its mark, closed(V): Give.

#[test]
fn a_node_that_came_back_is_given_what_is_closed() {
    let record = closed(U1, 15).label("a", "1").label("b", "1");
    node(live(U2, 20).label("b", "2"))
        .with(record)
        .gives(next(giving(U2, 20).label("a", "1").label("b", "1")));
}

#[test]
fn a_closed_record_is_read_whole_before_it_is_given() {
    node(live(U2, 20)).with_summary(&closed(U1, 15).label("a", "1")).reads_record();
    node(live(U2, 20)).with(closed(U1, 15).label("a", "1")).settled().reads_node();
}

#[test]
fn a_closed_record_is_given_together_with_the_newer_ends_held_here() {
    let record = closed(U1, 15).label("a", "1");
    node(live(U3, 30))
        .ends([end(U2, 25).label("b", "1")])
        .with(record.clone())
        .gives(next(giving(U3, 30).label("a", "1").label("b", "1").before(&record)));
}

#[test]
fn a_marked_node_under_a_closed_record_of_another_is_not_given_again() {
    let record = closed(U1, 15).label("a", "1");
    node(live(U2, 20).label("b", "1").marked())
        .with(record.clone())
        .saves(next(open(U2, 20).label("b", "1").given().before(&record)));
}

#[test]
fn a_node_whose_record_was_closed_too_early_is_opened_again() {
    let record = closed(U1, 15).label("a", "1").unproved(U1, State::Open);
    node(live(U1, 20).label("a", "1")).with(record).saves(next(open(U1, 20).label("a", "1")));
}

#[test]
fn a_node_whose_gift_was_closed_too_early_is_given_it_again() {
    let record = closed(U1, 15).label("a", "1").unproved(U1, State::Giving);
    node(live(U1, 20).label("b", "1")).with(record.clone()).gives(next(giving(U1, 20).label("a", "1")));
    node(live(U1, 20)).with_summary(&record).reads_record();
}

#[test]
fn a_view_that_knows_no_more_than_a_record_closed_in_doubt_lags() {
    for from in [State::Open, State::Giving] {
        let record = closed(U1, 15).label("a", "1").unproved(U1, from);
        node(live(U1, 15)).with(record).rests(Why::Lagging);
    }
}

#[test]
fn a_bare_node_under_an_empty_closed_record_has_nothing_to_get() {
    node(live(U2, 20)).with(closed(U1, 15)).rests(Why::NothingKept);
}

#[test]
fn a_labelled_node_under_an_empty_closed_record_is_saved_open() {
    let empty = closed(U1, 15);
    node(live(U2, 20).label("a", "1"))
        .with(empty.clone())
        .saves(next(open(U2, 20).label("a", "1").before(&empty)));
}

#[test]
fn a_life_that_ended_bare_empties_its_record_before_its_bare_successor_rests() {
    let record = open(U1, 10).label("a", "1");
    node(live(U2, 20)).ends([end(U1, 15)]).with(record.clone()).closes(next(closed(U1, 15).before(&record)));
}

// Live U without its mark, giving(U): Patch.

#[test]
fn what_is_missing_is_patched_together_with_the_mark() {
    node(live(U2, 25).label("b", "2")).with(giving(U2, 20).label("a", "1").label("b", "1")).patches(patch(
        U2,
        25,
        Mark::Given,
        &[("a", "1")],
    ));
}

#[test]
fn the_mark_alone_is_patched_where_nothing_is_missing() {
    node(live(U2, 25).label("a", "2")).with(giving(U2, 20).label("a", "1")).patches(patch(
        U2,
        25,
        Mark::Given,
        &[],
    ));
}

#[test]
fn a_value_that_is_there_is_overwritten_only_where_the_policy_says() {
    let some = policy("rules: [{merge: {overwrite: [\"a*\"]}}]");
    node(live(U2, 25).label("a", "2").label("ab", "1").label("b", "2"))
        .with(giving(U2, 20).label("a", "1").label("ab", "1").label("b", "1").label("c", "1"))
        .policy(some)
        .patches(patch(U2, 25, Mark::Given, &[("a", "1"), ("c", "1")]));
}

#[test]
fn annotations_taints_and_cordon_are_given_when_asked_for_and_beside_what_others_set() {
    let all = policy("rules: [{annotations: {include: [note]}, taints: {include: [\"*\"]}, cordon: true}]");
    let mut expected = patch(U2, 25, Mark::Given, &[]);
    expected.annotations.insert("note".to_owned(), "x".to_owned());
    expected.taints = vec![taint("dedicated", "db")];
    expected.cordon = true;
    let record =
        giving(U2, 20).annotation("note", "x").taint("dedicated", "db").taint("there", "old").cordoned();
    node(live(U2, 25).annotation("other", "y").taint("there", "new").taint("foreign", ""))
        .with(record.clone().under(&all))
        .policy(all)
        .patches(expected);
    node(live(U2, 25)).with(record).patches(patch(U2, 25, Mark::Given, &[]));
}

#[test]
fn a_key_that_a_narrowed_policy_keeps_no_more_is_not_given() {
    let narrow = policy("rules: [{labels: {include: [b]}}]");
    node(live(U2, 25)).with(giving(U2, 20).label("a", "1").label("b", "1")).policy(narrow).patches(patch(
        U2,
        25,
        Mark::Given,
        &[("b", "1")],
    ));
}

#[test]
fn a_newborn_is_matched_by_the_labels_that_its_record_remembers() {
    let pools = policy("rules: [{selector: pool=gpu}]");
    let record = closed(U1, 15).label("pool", "gpu").under(&pools);
    node(live(U2, 20))
        .with(record)
        .policy(pools.clone())
        .gives(next(giving(U2, 20).label("pool", "gpu").under(&pools)));
    node(live(U2, 20)).with(giving(U2, 20).label("pool", "gpu").under(&pools)).policy(pools).patches(patch(
        U2,
        20,
        Mark::Given,
        &[("pool", "gpu")],
    ));
}

#[test]
fn a_record_to_be_given_is_read_whole_before_the_node_is_patched() {
    node(live(U2, 25)).with_summary(&giving(U2, 20).label("a", "1")).reads_record();
    node(live(U2, 25)).with(giving(U2, 20).label("a", "1")).settled().reads_node();
}

// Live U2, open(U1) or giving(U1): end seen: Give with it; not seen: Prove, then the same.

#[test]
fn an_end_that_was_seen_is_given_in_one_write() {
    let record = open(U1, 10).label("a", "1");
    node(live(U2, 20))
        .ends([end(U1, 15).label("a", "2").label("b", "1")])
        .with(record.clone())
        .gives(next(giving(U2, 20).label("a", "2").label("b", "1").before(&record)));
}

#[test]
fn an_end_that_was_not_seen_is_proved_first() {
    for record in [open(U1, 10), giving(U1, 10)] {
        node(live(U2, 20)).with(record.clone().label("a", "1")).proves(U1, 10, 20);
        node(live(U2, 20)).with_summary(&record.label("a", "1")).proves(U1, 10, 20);
    }
}

#[test]
fn the_end_of_a_later_life_bounds_the_proof_and_that_of_an_earlier_one_does_not() {
    let record = open(U2, 20).label("a", "1");
    node(live(U3, 40)).ends([end(U1, 15).label("z", "1")]).with(record.clone()).proves(U2, 20, 40);
    let later = end(U4, 30);
    node(live(U3, 40)).ends([later]).with(record).proves(U2, 20, 30);
}

#[test]
fn an_end_that_cannot_be_proved_is_given_as_recorded_with_the_doubt_told() {
    let record = open(U1, 10).label("a", "1");
    node(live(U2, 20))
        .lost(U1)
        .with(record)
        .gives(telling(Notice::Unproved, next(giving(U2, 20).label("a", "1").unproved(U1, State::Open))));
    let record = giving(U1, 10).label("a", "1");
    node(live(U2, 20))
        .lost(U1)
        .with(record)
        .gives(telling(Notice::Unproved, next(giving(U2, 20).label("a", "1").unproved(U1, State::Giving))));
}

#[test]
fn a_doubt_is_recorded_before_later_lives_are_merged_over_it() {
    let record = open(U1, 10).label("a", "1");
    let later = || end(U2, 25).label("b", "1");
    let closed = closed(U1, 10).label("a", "1").unproved(U1, State::Open);
    let closed = Record { deleted_at: Some(NOW), ..closed };
    node(live(U3, 30))
        .ends([later()])
        .lost(U1)
        .with(record.clone())
        .closes(telling(Notice::Unproved, next(closed.clone())));
    gone(50).ends([later()]).lost(U1).with(record).closes(telling(Notice::Unproved, next(closed.clone())));
    let given = giving(U3, 30).label("a", "1").label("b", "1").unproved(U1, State::Open).later("b", "1");
    node(live(U3, 30)).ends([later()]).lost(U1).with(closed.clone()).gives(next(given.before(&closed)));
}

#[test]
fn an_end_in_doubt_is_put_right_beneath_the_lives_that_were_merged_over_it() {
    let seen = || end(U1, 15).label("a", "2").label("b", "2").label("c", "2");
    let merged = || closed(U2, 25).label("a", "1").label("b", "3");
    let doubted = merged().unproved(U1, State::Open).later("b", "3");
    let right = closed(U2, 25).label("a", "2").label("b", "3").label("c", "2");
    gone(50).ends([seen()]).with(doubted.clone()).closes(next(right.before(&doubted)));
    let given = giving(U3, 30).label("a", "2").label("b", "3").label("c", "2");
    node(live(U3, 30)).ends([seen()]).with(doubted.clone()).gives(next(given.before(&doubted)));
    // Whoever was being given to lies over what it was to be given, and beneath what came after it.
    let doubted = merged().unproved(U1, State::Giving).later("b", "3");
    let right = closed(U2, 25).label("a", "2").label("b", "3").label("c", "2");
    gone(50).ends([seen()]).with(doubted.clone()).closes(next(right.before(&doubted)));
    // A life that got its own back says all there is.
    let marked = end(U3, 40).label("d", "4").marked();
    gone(50)
        .ends([marked])
        .with(doubted.clone())
        .closes(next(closed(U3, 40).label("d", "4").before(&doubted)));
}

#[test]
fn the_end_in_doubt_is_held_until_the_record_has_it() {
    let record = closed(U2, 25).label("a", "1").unproved(U1, State::Open);
    for whole in [true, false] {
        let case = gone(50).ends([end(U1, 15).label("a", "2"), end(U2, 25)]);
        let case = if whole { case.with(record.clone()) } else { case.with_summary(&record) };
        let mut line = case.line;
        let seen = line.seen().cloned().unwrap();
        line.record_seen(Seen { version: seen.version + 1, ..seen });
        let held: Vec<_> = line.ends.iter().map(|end| end.uid).collect();
        assert_eq!(
            held,
            if whole { vec![U1] } else { vec![U1, U2] },
            "a summary does not say whose end is in doubt"
        );
    }
}

#[test]
fn an_end_that_was_lost_and_then_seen_is_in_no_doubt() {
    let record = open(U1, 10).label("a", "1");
    let mut case = node(live(U2, 20)).lost(U1).with(record.clone());
    case.line.node_ended(end(U1, 15).label("a", "2"));
    case.gives(next(giving(U2, 20).label("a", "2").before(&record)));
}

#[test]
fn from_giving_a_marked_life_speaks_for_itself_and_an_unmarked_one_is_merged() {
    let record = giving(U1, 10).label("a", "1").label("b", "1");
    node(live(U2, 20))
        .ends([end(U1, 15).label("b", "2").marked()])
        .with(record.clone())
        .gives(next(giving(U2, 20).label("b", "2").before(&record)));
    node(live(U2, 20))
        .ends([end(U1, 15).label("b", "2")])
        .with(record.clone())
        .gives(next(giving(U2, 20).label("a", "1").label("b", "2").before(&record)));
}

#[test]
fn a_marked_successor_is_saved_and_given_nothing() {
    for record in [open(U1, 10).label("a", "1"), giving(U1, 10).label("a", "1")] {
        node(live(U2, 20).label("b", "1").marked())
            .with(record.clone())
            .saves(next(open(U2, 20).label("b", "1").given().before(&record)));
    }
}

// Live U without its mark, none or open(U), older ends held: Give with the older ends alone.

#[test]
fn older_ends_that_no_record_holds_are_given_alone() {
    let newborn = live(U2, 20).label("own", "1");
    let older = end(U1, 15).label("a", "1");
    node(newborn.clone()).ends([older.clone()]).gives(first(giving(U2, 20).label("a", "1")));
    let record = open(U2, 18).label("own", "1");
    node(newborn)
        .ends([older])
        .with(record.clone())
        .gives(next(giving(U2, 20).label("a", "1").before(&record)));
}

#[test]
fn several_older_ends_are_folded_in_order() {
    let ends = [end(U1, 12).label("a", "1").label("b", "1"), end(U2, 15).label("b", "2")];
    node(live(U3, 20)).ends(ends).gives(first(giving(U3, 20).label("a", "1").label("b", "2")));
}

#[test]
fn older_ends_with_nothing_kept_are_not_worth_a_gift() {
    node(live(U2, 20).label("a", "1")).ends([end(U1, 15)]).saves(first(open(U2, 20).label("a", "1")));
    node(live(U2, 20)).ends([end(U1, 15)]).rests(Why::NothingKept);
}

#[test]
fn a_node_that_bears_its_mark_is_never_given_older_ends() {
    let older = end(U1, 15).label("a", "1");
    node(live(U2, 20).label("b", "1").marked())
        .ends([older.clone()])
        .saves(first(open(U2, 20).label("b", "1").given()));
    node(live(U2, 20).label("b", "1").marked())
        .ends([older])
        .with(open(U2, 18).label("b", "1"))
        .rests(Why::Agreed);
}

// Closed `unproved`, or giving made from it and no mark yet, and the real end is held: again, with it.

#[test]
fn a_gift_in_doubt_is_made_again_when_the_real_end_turns_up() {
    let doubtful = giving(U2, 20).label("a", "1").unproved(U1, State::Open);
    node(live(U2, 25))
        .ends([end(U1, 15).label("a", "2")])
        .with(doubtful.clone())
        .gives(next(giving(U2, 25).label("a", "2").before(&doubtful)));
}

#[test]
fn a_real_end_that_was_to_be_merged_is_merged_when_it_turns_up() {
    let doubtful = giving(U2, 20).label("a", "1").unproved(U1, State::Giving);
    node(live(U2, 25))
        .ends([end(U1, 15).label("b", "1")])
        .with(doubtful.clone())
        .gives(next(giving(U2, 25).label("a", "1").label("b", "1").before(&doubtful)));
}

#[test]
fn a_closed_record_in_doubt_is_given_with_the_real_end_held_here() {
    let doubtful = closed(U1, 10).label("a", "1").unproved(U1, State::Open);
    node(live(U2, 25))
        .ends([end(U1, 15).label("a", "2")])
        .with(doubtful.clone())
        .gives(next(giving(U2, 25).label("a", "2").before(&doubtful)));
}

#[test]
fn a_doubt_is_over_when_the_mark_is_there() {
    let doubtful = giving(U2, 20).label("a", "1").unproved(U1, State::Open);
    node(live(U2, 25).label("a", "1").marked())
        .ends([end(U1, 15).label("a", "2")])
        .with(doubtful)
        .saves(next(open(U2, 25).label("a", "1").given()));
}

#[test]
fn a_repaired_gift_keeps_the_machine_of_the_privileged_keys_it_holds() {
    let doubtful = giving(U2, 20).waits(ROLE, "", Some("m1")).unproved(U1, State::Open);
    node(live(U2, 25).machine("m1"))
        .ends([end(U1, 15).label(ROLE, "").label("a", "1")])
        .with(doubtful.clone())
        .gives(next(
            giving(U2, 25).machine("m1").label("a", "1").waits(ROLE, "", Some("m1")).before(&doubtful),
        ));
}

// Histories that run backwards.

#[test]
fn a_version_of_another_history_counts_as_none() {
    let record = open(U1, 9000).label("a", "1");
    node(live(U1, 10).label("a", "2"))
        .with(record.clone())
        .foreign()
        .saves(next(open(U1, 10).label("a", "2").before(&record)));
    node(live(U2, 10)).with(record.clone()).foreign().proves(U1, 0, 10);
    node(live(U2, 10))
        .with(closed(U1, 9000).label("a", "1"))
        .foreign()
        .gives(next(giving(U2, 10).label("a", "1")));
    gone(10)
        .ends([end(U1, 10).label("a", "2")])
        .with(record.clone())
        .foreign()
        .closes(next(closed(U1, 10).label("a", "2").before(&record)));
    gone(10).ends([end(U2, 10).label("b", "1")]).with(closed(U1, 9000).label("a", "1")).foreign().closes(
        next(closed(U2, 10).label("a", "1").label("b", "1").before(&closed(U1, 9000).label("a", "1"))),
    );
}

#[test]
fn a_paused_return_is_not_a_plan_to_patch() {
    let plan = node(live(U2, 25).paused(true)).with(giving(U2, 20).label("a", "1")).plan();
    assert_eq!(plan, Plan::Rest(Why::Paused));
}
