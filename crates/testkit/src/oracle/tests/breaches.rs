//! Histories in which one promise is broken, each in one way.

use perennial_core::{
    kept::Pairs,
    record::{Record, State, Unproved, Waiting},
};
use serde_json::json;
use uuid::Uuid;

use super::script::{Script, pairs};
use crate::oracle::{Breach, Entry, Fact, Told};

/// A node with `a=1 b=1` that died, is closed, and is back bare.
fn returned() -> Script {
    let mut script = Script::new();
    script.born(1, "a=1 b=1").open(1, "a=1 b=1").gone().closed(1, "a=1 b=1").born(2, "");
    script
}

/// The same, and it got its own back.
fn restored() -> Script {
    let mut script = returned();
    script.giving(2, "a=1 b=1").given("a=1 b=1").open(2, "a=1 b=1");
    script
}

#[test]
fn lost_a_record_is_closed_with_less() {
    let mut script = Script::new();
    script
        .born(1, "a=1 b=1")
        .open(1, "a=1 b=1")
        .gone()
        .closed(1, "a=1")
        .breaks(Breach::Lost, "{a=1} instead of");
}

#[test]
fn lost_a_record_is_closed_with_an_older_value() {
    let mut script = Script::new();
    script.born(1, "a=1").open(1, "a=1").label("a=2").gone().closed(1, "a=1").breaks(Breach::Lost, "a=1");
}

#[test]
fn lost_a_newborns_end_empties_a_record() {
    let mut script = returned();
    script.giving(2, "a=1 b=1").gone().closed(2, "").breaks(Breach::Lost, "{} instead of {a=1, b=1}");
}

#[test]
fn lost_a_bare_newborn_is_recorded_as_open() {
    returned().open(2, "").breaks(Breach::Lost, "opened though");
}

#[test]
fn lost_it_is_marked_and_not_given_all() {
    returned().giving(2, "a=1 b=1").given("a=1").breaks(Breach::Lost, "not given {b=1}");
}

#[test]
fn lost_a_record_is_removed() {
    restored().found(None).breaks(Breach::Lost, "was removed");
}

#[test]
fn lost_a_record_is_removed_long_after_its_node_went() {
    let mut script = Script::new();
    script.born(1, "a=1").open(1, "a=1").gone().closed(1, "a=1").is_fine();
    script.judge.forget();
    script.found(None).breaks(Breach::Lost, "of a node that is away was removed");
    let mut script = Script::new();
    script.born(1, "a=1").open(1, "a=1").unlabel("a").open(1, "").gone().closed(1, "").is_fine();
    script.judge.forget();
    script.found(None).is_clean();
}

#[test]
fn lost_nobody_ever_acts() {
    let mut script = returned();
    script.is_clean();
    script.judge.out_of_time();
    script.breaks(Breach::Unsettled, "its own back");
}

#[test]
fn taken_a_keeper_removes_a_label() {
    let mut script = returned();
    script.label("c=1").giving(2, "a=1 b=1");
    script.keeper(|seen| drop(seen.labels.remove("c"))).breaks(Breach::Taken, "-c");
}

#[test]
fn taken_a_keeper_changes_a_label() {
    let mut script = returned();
    script.label("a=9").giving(2, "a=1 b=1").given("a=1 b=1").breaks(Breach::Taken, "a=9→1");
}

#[test]
fn taken_a_keeper_changes_something_else() {
    let mut script = returned();
    script.giving(2, "a=1 b=1");
    script.keeper(|seen| seen.rest = 99).breaks(Breach::Taken, "more of the Node");
    let mut script = returned();
    script.keeper(|seen| drop(seen.annotations.insert("x".to_owned(), String::new())));
    script.breaks(Breach::Taken, "more of the Node");
}

#[test]
fn taken_a_keeper_writes_as_if_it_was_a_hand() {
    let mut script = restored();
    script.keeper(|seen| seen.hand = Some("1".to_owned())).breaks(Breach::Taken, "more of the Node");
}

#[test]
fn taken_a_key_leaves_a_record_while_the_node_bears_it() {
    let mut script = restored();
    script.label("c=1").open(2, "a=1 c=1").breaks(Breach::Taken, "b left its record");
}

#[test]
fn given_twice_by_a_second_patch() {
    let mut script = restored();
    script.unlabel("b").given("b=1").breaks(Breach::GivenTwice, "{b=1} again");
}

#[test]
fn given_twice_by_a_record_that_says_so() {
    let mut script = restored();
    script.unlabel("b").giving(2, "a=1 b=1").breaks(Breach::GivenTwice, "had got its own back");
}

#[test]
fn given_with_the_mark_of_another_life() {
    let mut script = returned();
    script.giving(2, "a=1 b=1").keeper(|seen| {
        seen.labels.extend(pairs("a=1 b=1"));
        let mark = "restored.perennial.dev/perennial".to_owned();
        seen.annotations.insert(mark, uuid::Uuid::from_u128(1).to_string());
    });
    script.breaks(Breach::GivenTwice, "instead of its uid");
}

#[test]
fn older_won_a_record_goes_back() {
    let mut script = Script::new();
    script.born(1, "a=1");
    let old = script.now();
    script
        .label("a=2")
        .open(1, "a=2")
        .record(State::Open, 1, old, "a=1")
        .breaks(Breach::OlderWon, "went back");
}

#[test]
fn older_won_a_record_was_not_compared() {
    let mut script = Script::new();
    script.born(1, "a=1").open(1, "a=1").label("a=2");
    script.written(State::Open, 1, script.now(), "a=2", |record| record.sequence = 1);
    script.breaks(Breach::OlderWon, "sequence went from 1 to 1");
}

#[test]
fn older_won_a_record_makes_something_up() {
    let mut script = Script::new();
    script.born(1, "a=1").open(1, "a=2").breaks(Breach::OlderWon, "other than it bore");
    let mut script = Script::new();
    script.born(1, "a=1").record(State::Open, 1, 99, "a=1").breaks(Breach::OlderWon, "never at version 99");
    let mut script = Script::new();
    script.born(1, "a=1").open(7, "a=1").breaks(Breach::OlderWon, "never lived");
    let mut script = Script::new();
    script.born(1, "a=1").found(Some(Err("no".to_owned()))).breaks(Breach::OlderWon, "cannot be read");
    let mut script = returned();
    script.record(State::Giving, 2, 99, "a=1 b=1").breaks(Breach::OlderWon, "never at version 99");
}

#[test]
fn older_won_a_record_holds_what_nobody_keeps() {
    let breaks = |change: &dyn Fn(&mut Record)| {
        let mut script = Script::new();
        script.born(1, "a=1");
        script.written(State::Open, 1, script.now(), "a=1", change);
        script.breaks(Breach::OlderWon, "more than the policy keeps");
    };
    breaks(&|record| drop(record.kept.annotations.insert("x".to_owned(), String::new())));
    breaks(&|record| record.kept.unschedulable = true);
    breaks(&|record| {
        let waiting = Waiting { value: String::new(), provider_id: None };
        record.waiting.insert("node-role.kubernetes.io/x".to_owned(), waiting);
    });
}

#[test]
fn older_won_a_record_is_not_what_its_metadata_say() {
    let mut script = Script::new();
    script.born(1, "a=1").open(1, "a=1");
    let record = script.record.clone().expect("a record");
    let read = |annotations: Pairs, label: &str| {
        let labels = json!({"perennial.dev/state": label});
        let data = json!({"record.json": record.to_json()});
        let object = json!({"metadata": {"labels": labels, "annotations": annotations}, "data": data});
        let key = "/registry/configmaps/perennial/node-record.n";
        let entry = Entry::read(99, key, Some(object.to_string().as_bytes())).expect("JSON");
        match entry.expect("a record").fact {
            Fact::Record { found: Some(found), .. } => found.map(|found| *found),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(read(record.annotations(), "open"), Ok(record.clone()));
    assert!(read(record.annotations(), "closed").is_err_and(|why| why.contains("its label says")));
    let later = Record { sequence: 2, ..record.clone() };
    assert!(read(later.annotations(), "open").is_err_and(|why| why.contains("its annotations say")));
    assert!(read(Pairs::new(), "open").is_err_and(|why| why.contains("its annotations say None")));
}

#[test]
fn older_won_a_living_node_is_closed() {
    let mut script = Script::new();
    script.born(1, "a=1").open(1, "a=1").closed(1, "a=1").breaks(Breach::OlderWon, "which lives");
}

#[test]
fn older_won_a_record_is_closed_for_a_life_before_the_last() {
    let mut script = Script::new();
    script.born(1, "a=1").open(1, "a=1").gone().closed(1, "a=1").born(2, "").giving(2, "a=1").gone();
    script.record(State::Closed, 1, script.now(), "a=1").breaks(Breach::OlderWon, "died at");
}

#[test]
fn older_won_more_is_given_than_is_owed() {
    let mut script = returned();
    script.giving(2, "a=1 b=1 c=1").breaks(Breach::OlderWon, "c=1");
    let mut script = returned();
    script.giving(2, "a=1 b=1").given("a=1 b=1 c=1").breaks(Breach::OlderWon, "but the record said");
}

#[test]
fn older_won_something_is_given_that_the_record_no_longer_says() {
    let given_again = |doubted: bool| {
        let mut script = Script::new();
        script.born(1, "a=1").open(1, "a=1").nobody_watches().label("a=2").gone();
        let died = script.now();
        let born = script.tell(Told::Compacted(died)).born(2, "").now();
        let doubt = doubted.then_some(Unproved::new(Uuid::from_u128(1), State::Open));
        script.written(State::Giving, 2, born, "a=1", |record| record.unproved = doubt);
        script.record(State::Giving, 2, born, "a=2").given("a=1");
        script
    };
    given_again(true).is_clean();
    given_again(false).breaks(Breach::OlderWon, "but the record said {a=2}");
}

#[test]
fn older_won_a_node_is_patched_before_its_record_says_so() {
    returned().given("a=1 b=1").breaks(Breach::OlderWon, "before any record");
}

#[test]
fn older_won_a_dying_node_is_patched() {
    let mut script = returned();
    script.giving(2, "a=1 b=1").hands(|seen| seen.terminating = true).given("a=1 b=1");
    script.breaks(Breach::OlderWon, "dying");
}

#[test]
fn noise_a_record_or_a_node_is_written_in_silence() {
    let mut script = restored();
    script.tell(Told::Quiet).hands(|seen| seen.rest = 5).is_clean();
    script.open(2, "a=1 b=1").breaks(Breach::Noise, "the record was written");
    let mut script = returned();
    script.giving(2, "a=1 b=1").tell(Told::Quiet).given("a=1 b=1").breaks(Breach::Noise, "the Node");
    let mut script = Script::new();
    script.born(1, "").open(1, "").tell(Told::Quiet).found(None).breaks(Breach::Noise, "the record's end");
    let mut script = restored();
    script.tell(Told::Quiet).tell(Told::Loud).label("a=2").open(2, "a=2 b=1").is_clean();
}

#[test]
fn noise_a_write_is_asked_for_that_changes_nothing() {
    let asked = || Told::Asked { replica: "replica 1".to_owned(), what: "Patch".to_owned() };
    let mut script = restored();
    script.tell(asked()).tell(Told::Quiet).is_clean();
    script.tell(asked()).breaks(Breach::Noise, "asked for a write");
}

#[test]
fn refused_a_node_cannot_join() {
    let refused = Told::Refused { node: "n".to_owned(), why: "no".to_owned() };
    Script::new().tell(refused).breaks(Breach::Refused, "no");
}

#[test]
fn a_violation_shows_what_led_to_it() {
    let mut script = returned();
    script.tell(Told::Note("replica 1 is killed".to_owned())).hands(|seen| seen.rest = 5).open(2, "");
    let lost = script.judge.violations().iter().find(|violation| violation.breach == Breach::Lost);
    let told = lost.expect("it is lost").to_string();
    insta_like(
        &told,
        &[
            "1. Nothing kept is lost — broken for n at version 18: its record was opened though",
            "     11  hand: node 000001 is born, kept {a=1, b=1}",
            "     12  keeper: record open(000001)@11 #1 {a=1, b=1}",
            "     13  hand: node 000001 is gone",
            "     14  keeper: record closed(000001)@13 #2 {a=1, b=1}",
            "     15  hand: node 000002 is born, kept {}",
            "     16  driver: replica 1 is killed",
            "     18  keeper: record open(000002)@17 #3 {}",
        ],
    );
}

#[track_caller]
fn insta_like(told: &str, lines: &[&str]) {
    let told: Vec<&str> = told.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
    assert_eq!(told.len(), lines.len(), "{told:#?}");
    for (told, line) in told.iter().zip(lines) {
        assert!(told.starts_with(line), "{told:?} does not start with {line:?}");
    }
}
