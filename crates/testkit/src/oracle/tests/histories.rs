//! Histories that were turned back.

use perennial_core::record::State;

use super::script::Script;
use crate::oracle::{Breach, Entry, Fact, Told};

/// A node with `a=1`, in a history that was turned back.
fn turned_back() -> Script {
    let mut script = Script::new();
    script.born(1, "a=1").open(1, "a=1").nobody_watches().tell(Told::Restored(12));
    script
}

#[test]
fn until_everybody_has_noticed_only_the_outcome_is_judged() {
    let mut script = turned_back();
    script.record(State::Open, 1, 900, "a=7").is_clean();
    script.waits("something else");
    script.record(State::Open, 1, script.now(), "a=1").is_fine();
    script.tell(Told::Calm).record(State::Open, 1, 2, "a=1").breaks(Breach::OlderWon, "went back");
}

#[test]
fn once_everybody_has_noticed_every_write_is_judged_again() {
    let mut script = turned_back();
    script.record(State::Open, 1, 900, "a=7").tell(Told::Noticed);
    // What a confused one wrote is put right; its version does not count.
    script.label("b=1").open(1, "a=1 b=1").is_fine();
    script.record(State::Open, 1, 12, "a=1").breaks(Breach::OlderWon, "went back");
    let mut script = turned_back();
    script.tell(Told::Noticed).gone().closed(1, "").breaks(Breach::Lost, "{} instead of {a=1}");
}

#[test]
fn a_life_of_the_other_history_may_be_named_by_those_who_find_it_in_the_record() {
    let mut script = turned_back();
    script.record(State::Giving, 7, 900, "a=1").tell(Told::Noticed).gone();
    script.record(State::Closed, 7, script.now(), "a=1").is_clean();
    script.record(State::Closed, 8, script.now(), "a=1").breaks(Breach::OlderWon, "never lived");
}

#[test]
fn a_confused_one_may_give_something_else_but_not_nothing() {
    let returned = || {
        let mut script = Script::new();
        script.born(1, "a=1").open(1, "a=1").gone().closed(1, "a=1").born(2, "");
        let now = script.giving(2, "a=1").now();
        script.tell(Told::Restored(now));
        script
    };
    returned().given("").breaks(Breach::Lost, "not given {a=1}");
    returned().given("a=9").is_clean();
    let mut script = returned();
    script.giving(2, "c=1").given("c=1").is_clean();
}

#[test]
fn what_is_forgotten_after_the_snapshot_was_never_forgotten() {
    let stays = |version, fact| Entry { version, fact }.stays(20);
    assert!(stays(15, Fact::Told(Told::Compacted(15))));
    assert!(!stays(25, Fact::Told(Told::Compacted(25))));
    assert!(!stays(25, Fact::Node { name: "n".to_owned(), seen: None }));
    assert!(stays(25, Fact::Told(Told::Note(String::new()))));
}
