//! Histories in which nothing is wrong.

use super::script::Script;
use crate::oracle::{Breach, Told};
use perennial_core::record::State;

#[test]
fn a_node_that_goes_and_returns_gets_its_own_back() {
    let mut script = Script::new();
    script.born(1, "a=1").open(1, "a=1").label("b=2");
    let labelled = script.now();
    script.record(State::Open, 1, labelled, "a=1 b=2").is_fine();
    script.gone().waits("away");
    script.closed(1, "a=1 b=2").is_fine();
    script.born(2, "").waits("its own back");
    script.giving(2, "a=1 b=2").given("a=1 b=2").waits("not open");
    script.open(2, "a=1 b=2").is_fine();
    script.unlabel("a").waits("something else");
    script.record(State::Open, 2, script.now(), "b=2").is_fine();
    script.gone().closed(2, "b=2").is_fine();
    assert_eq!(script.judge.tally().lives, 2);
    assert_eq!(script.judge.tally().patches, 1);
}

#[test]
fn an_end_that_was_seen_is_given_in_one_write() {
    let mut script = Script::new();
    script.born(1, "a=1").open(1, "a=1").label("a=2").gone().born(2, "b=3").giving(2, "a=2").given("a=2");
    script.open(2, "a=2 b=3").is_fine();
}

#[test]
fn newborns_that_die_before_they_got_their_own_back_are_laid_over_it() {
    let mut script = Script::new();
    script.born(1, "a=1 b=1").open(1, "a=1 b=1").gone();
    script.born(2, "a=2").giving(2, "a=1 b=1").gone().born(3, "").gone();
    script.closed(3, "a=2 b=1").is_fine();
    script.born(4, "").giving(4, "a=2 b=1").given("a=2 b=1").unlabel("b").gone();
    // It bore its mark: its own word counts, also what was removed.
    script.closed(4, "a=2").is_fine();
}

#[test]
fn a_label_that_somebody_set_before_the_restore_stays() {
    let mut script = Script::new();
    script.born(1, "a=1 b=1").open(1, "a=1 b=1").gone().closed(1, "a=1 b=1");
    script.born(2, "").giving(2, "a=1 b=1").label("a=9").given("b=1").open(2, "a=9 b=1").is_fine();
}

#[test]
fn heartbeats_are_nobodys_business() {
    let mut script = Script::new();
    script.born(1, "a=1").open(1, "a=1").tell(Told::Quiet);
    script.hands(|seen| seen.rest = 7).hands(|seen| seen.rest = 8).is_fine();
}

#[test]
fn a_late_save_of_what_was_true_is_harmless() {
    let mut script = Script::new();
    script.born(1, "a=1").open(1, "a=1").label("a=2");
    let late = script.now();
    script.gone().record(State::Open, 1, late, "a=2").is_clean();
    script.waits("its record is open");
}

#[test]
fn a_life_that_no_record_named_may_be_missed_if_somebody_did_not_hear_of_it() {
    let lives = |disturbed: bool, given: &str| {
        let mut script = Script::new();
        script.born(1, "a=1").open(1, "a=1");
        if disturbed {
            script.nobody_watches();
        }
        script.gone().born(2, "b=2").gone().born(3, "").giving(3, given);
        script
    };
    lives(true, "a=1").is_clean();
    lives(true, "a=1 b=2").is_clean();
    lives(false, "a=1 b=2").is_clean();
    lives(false, "a=1").breaks(Breach::Lost, "instead of {a=1, b=2}");
    lives(true, "b=2").breaks(Breach::Lost, "instead of");
}

#[test]
fn a_label_that_somebody_removed_may_leave_though_a_life_that_was_missed_bore_it() {
    let mut script = Script::new();
    script.born(1, "a=1 b=1").open(1, "a=1 b=1").nobody_watches().unlabel("b").gone();
    script.born(2, "b=2").gone().born(3, "").giving(3, "a=1").is_clean();
}

#[test]
fn what_was_recorded_counts_where_history_is_gone() {
    let lives = |compacted: bool| {
        let mut script = Script::new();
        script.born(1, "a=1").open(1, "a=1");
        let saved = script.now() - 1;
        script.nobody_watches().label("a=2").gone();
        if compacted {
            script.tell(Told::Compacted(script.now()));
        }
        script.closed_unproved(1, saved, "a=1");
        script
    };
    let mut script = lives(true);
    script.is_fine();
    // The real end turns up.
    let died = script.now() - 2;
    script.record(State::Closed, 1, died, "a=2").is_fine();
    lives(false).breaks(Breach::Lost, "called unproved");
}

#[test]
fn a_bare_node_needs_no_record() {
    let mut script = Script::new();
    script.born(1, "kubernetes.io/os=linux").is_fine();
    script.gone().is_fine();
}
