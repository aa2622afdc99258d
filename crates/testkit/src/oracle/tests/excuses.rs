//! What is excused, and no more than that.

use perennial_core::record::{State, Unproved};
use uuid::Uuid;

use super::script::Script;
use crate::oracle::{Breach, Told, Versions};

/// A life that no record named ended between two others, and is not in what is given.
fn forgotten(script: &mut Script) -> u64 {
    script.born(1, "a=1").open(1, "a=1").gone().born(2, "b=2").gone();
    script.now()
}

#[test]
fn a_life_that_everybody_saw_counts_though_something_went_wrong() {
    let mut script = Script::new();
    let died = forgotten(&mut script);
    // One did not listen before, and one does not now; but none of them may write.
    script.missed(&Versions::up_to(died - 1), &Versions::all()).born(3, "").giving(3, "a=1");
    script.breaks(Breach::Lost, "instead of {a=1, b=2}");
}

#[test]
fn a_life_that_one_missed_counts_while_another_saw_it() {
    let given = |by_all: Versions| {
        let mut script = Script::new();
        forgotten(&mut script);
        script.missed(&Versions::all(), &by_all).born(3, "").giving(3, "a=1");
        script
    };
    given(Versions::none()).breaks(Breach::Lost, "instead of {a=1, b=2}");
    given(Versions::all()).is_clean();
}

#[test]
fn what_is_missed_while_servers_are_restarted_is_excused_and_nothing_before_or_after() {
    // The version of each step: 11 born, 12 open, 13 gone, 14 born, 15 gone.
    let given = |from, to| {
        let gap = Versions::between(from, to);
        let mut script = Script::new();
        assert_eq!(forgotten(&mut script), 15);
        script.missed(&gap, &gap).born(3, "").giving(3, "a=1");
        script
    };
    given(14, 15).is_clean();
    given(13, 14).breaks(Breach::Lost, "instead of {a=1, b=2}");
    given(15, 99).breaks(Breach::Lost, "instead of {a=1, b=2}");
}

#[test]
fn a_life_that_was_missed_once_counts_when_only_those_are_left_who_saw_it() {
    let mut script = Script::new();
    script.nobody_watches();
    forgotten(&mut script);
    script.missed(&Versions::none(), &Versions::none()).born(3, "").giving(3, "a=1");
    script.breaks(Breach::Lost, "instead of {a=1, b=2}");
}

#[test]
fn an_end_that_somebody_saw_is_not_in_doubt_though_history_is_gone() {
    let lives = |by_all| {
        let mut script = Script::new();
        script.born(1, "a=1").open(1, "a=1");
        let saved = script.now() - 1;
        script.label("a=2").gone();
        let gone = script.now();
        script.tell(Told::Compacted(gone)).missed(&Versions::all(), &by_all);
        script.closed_unproved(1, saved, "a=1");
        script
    };
    lives(Versions::all()).is_clean();
    lives(Versions::up_to(10)).breaks(Breach::Lost, "or somebody saw it");
}

#[test]
fn an_old_word_that_is_not_called_unproved_is_a_wrong_one() {
    let lives = || {
        let mut script = Script::new();
        script.born(1, "a=1").open(1, "a=1");
        script.nobody_watches().label("a=2").gone();
        let gone = script.now();
        script.tell(Told::Compacted(gone)).born(2, "");
        script
    };
    lives().giving(2, "a=1").breaks(Breach::Lost, "{a=1} instead of {a=2}");
    let mut script = lives();
    let doubt = Unproved::new(Uuid::from_u128(1), State::Open);
    script.written(State::Giving, 2, script.now(), "a=1", |record| record.unproved = Some(doubt)).is_clean();
    // It was told once: that is enough.
    script.gone().closed(2, "a=1").is_clean();
}

#[test]
fn what_was_broken_before_stays_broken_in_another_judges_eyes() {
    let mut script = Script::new();
    script.born(1, "a=1").open(1, "a=1").gone().closed(1, "");
    let known = script.judge.violations().to_vec();
    assert!(!known.is_empty());
    let mut other = Script::new();
    other.judge.adopt(known.clone());
    other.judge.adopt(known.clone());
    assert_eq!(other.judge.violations(), known);
}

#[test]
fn what_can_be_told_in_too_many_ways_is_not_taken_for_right() {
    let mut script = Script::new();
    script.nobody_watches();
    for life in 1..=10 {
        script.born(life, &format!("k{life}=1")).gone();
    }
    script.waits("too many ways");
    script.born(11, "").waits("too many ways");
    script.open(11, "");
    assert_eq!(script.judge.tally().unjudged, 1);
    script.waits("too many ways");
}
