//! People who remove records, pause nodes and have them forgotten.

use perennial_core::record::{State, Unproved};
use uuid::Uuid;

use super::script::Script;
use crate::oracle::{Breach, Told, Versions};

const PAUSE: &str = "perennial.dev/pause";
const FORGET: &str = "perennial.dev/forget";

/// A node with `a=1`, recorded.
fn known() -> Script {
    let mut script = Script::new();
    script.born(1, "a=1").open(1, "a=1");
    script
}

/// It died, is closed, and a person removed its record.
fn forgotten() -> Script {
    let mut script = known();
    script.gone().closed(1, "a=1").remove_record().is_fine();
    script
}

#[test]
fn a_node_that_lives_is_recorded_again_after_its_record_was_removed() {
    let mut script = known();
    script.remove_record().waits("has no record");
    script.heartbeat().open(1, "a=1").is_fine();
    script.gone().closed(1, "").breaks(Breach::Lost, "{} instead of {a=1}");
}

#[test]
fn who_dies_after_the_record_was_removed_is_remembered() {
    let mut script = known();
    script.remove_record().label("b=2").gone().waits("away and has no record");
    script.closed(1, "a=1 b=2").is_fine();
}

#[test]
fn only_the_removal_that_a_person_asked_for_is_a_persons() {
    let mut script = known();
    script.remove_record().heartbeat().open(1, "a=1").found(None).breaks(Breach::Lost, "was removed");
    let mut script = known();
    script.tell(Told::Removing("n".to_owned())).tell(Told::Removed("n".to_owned())).found(None);
    script.breaks(Breach::Lost, "was removed");
}

#[test]
fn of_a_node_that_is_away_nothing_comes_back_after_its_record_was_removed() {
    let mut script = forgotten();
    script.born(2, "").is_fine();
    script.giving(2, "a=1").breaks(Breach::OlderWon, "{a=1} instead of {}");
    // Also where its end had not been recorded.
    let mut script = known();
    script.gone().remove_record().is_fine();
    script.born(2, "b=2").giving(2, "a=1").breaks(Breach::OlderWon, "{a=1} instead of {}");
    // What it is given anew is its own.
    let mut script = forgotten();
    script.born(2, "b=2").open(2, "b=2").gone().closed(2, "b=2").is_fine();
}

#[test]
fn a_late_write_of_a_forgotten_life_must_go_again() {
    let mut script = known();
    let version = script.now() - 1;
    script.gone().remove_record();
    script.record(State::Open, 1, version, "a=1").is_clean();
    script.waits("it was forgotten, and has a record again");
    script.found(None).is_fine();
    let mut script = known();
    let died = script.gone().now();
    script.remove_record().record(State::Closed, 1, died, "a=1").is_clean();
    script.waits("it was forgotten, and has a record again");
    script.born(2, "").giving(2, "a=1").breaks(Breach::OlderWon, "{a=1} instead of {}");
}

#[test]
fn the_next_life_overwrites_the_record_of_a_forgotten_one() {
    let mut script = known();
    let version = script.now() - 1;
    script.gone().remove_record().record(State::Open, 1, version, "a=1");
    script.born(2, "b=2").open(2, "b=2").is_fine();
}

#[test]
fn what_a_living_node_was_owed_when_its_record_was_removed_may_come_back_or_not() {
    let owed = || {
        let mut script = Script::new();
        script.born(1, "a=1 b=1").open(1, "a=1 b=1").gone().closed(1, "a=1 b=1").born(2, "");
        script.remove_record().heartbeat();
        script
    };
    owed().is_fine();
    owed().giving(2, "a=1 b=1").given("a=1 b=1").open(2, "a=1 b=1").is_fine();
    owed().giving(2, "a=1").given("a=1").open(2, "a=1").is_fine();
    owed().giving(2, "a=1 c=1").breaks(Breach::OlderWon, "c=1");
    owed().giving(2, "a=7").breaks(Breach::OlderWon, "a=7");
    // What it bears itself is not in question.
    owed().label("c=1").gone().closed(2, "a=1").breaks(Breach::Lost, "instead of {c=1}");
    owed().label("c=1").gone().closed(2, "a=1 c=1").is_fine();
}

#[test]
fn a_paused_node_is_left_alone() {
    let mut script = known();
    script.gone().closed(1, "a=1").born(2, "").giving(2, "a=1").annotate(PAUSE, "true").is_fine();
    script.given("a=1").breaks(Breach::OlderWon, "a paused node was written");
    let mut script = known();
    script.gone().closed(1, "a=1").born_with(2, "", PAUSE, "true").is_fine();
    script.annotate(PAUSE, "false").waits("its own back");
    script.giving(2, "a=1").given("a=1").open(2, "a=1").is_fine();
}

#[test]
fn a_pause_that_a_newborn_inherits_keeps_it_alone_until_somebody_says_no() {
    let paused = || {
        let mut script = known();
        script.annotate(PAUSE, "true");
        script.written(State::Open, 1, script.now(), "a=1", |record| record.paused = true).is_fine();
        script.gone().is_fine();
        script
    };
    let mut script = paused();
    script.born(2, "").is_fine();
    script.giving(2, "a=1").given("a=1").breaks(Breach::OlderWon, "a paused node was written");
    let mut script = paused();
    script.born(2, "").annotate(PAUSE, "false").waits("its own back");
    script.giving(2, "a=1").given("a=1").open(2, "a=1").is_fine();
    // Nobody may know of it, where nobody saw its end.
    let mut script = known();
    script.nobody_watches().annotate(PAUSE, "true").gone();
    let doubt = Unproved::new(Uuid::from_u128(1), State::Open);
    let born = script.tell(Told::Compacted(script.now())).born(2, "").now();
    script.written(State::Giving, 2, born, "a=1", |record| record.unproved = Some(doubt));
    script.given("a=1").is_clean();
}

#[test]
fn the_end_before_a_paused_node_is_recorded() {
    let before = || {
        let mut script = known();
        script.label("a=2").gone().born_with(2, "", PAUSE, "true");
        script
    };
    before().waits("the end of the life before it is not recorded");
    let mut script = before();
    let died = script.now() - 1;
    script.record(State::Closed, 1, died, "a=2").is_fine();
    // Memory goes on: what it is owed is that, when the pause ends.
    script.tell(Told::Calm).annotate(PAUSE, "false").waits("its own back");
    script.giving(2, "a=1").breaks(Breach::Lost, "{a=1} instead of {a=2}");
    before().record(State::Closed, 1, died, "a=1").breaks(Breach::Lost, "{a=1} instead of {a=2}");
}

#[test]
fn what_is_done_to_a_paused_node_is_recorded_when_the_pause_ends() {
    let paused = || {
        let mut script = Script::new();
        script.born(1, "a=1 b=1").open(1, "a=1 b=1").unlabel("b").annotate(PAUSE, "true");
        // The pause is remembered, with what the record said.
        script.written(State::Open, 1, script.now(), "a=1 b=1", |record| record.paused = true);
        script.label("a=2").is_fine();
        script
    };
    let mut script = paused();
    script.unannotate(PAUSE).waits("its record is paused, and it is not");
    script.open(1, "a=2").is_fine();
    let mut script = paused();
    script.gone().born(2, "").annotate(PAUSE, "false").giving(2, "a=1 b=1");
    script.breaks(Breach::Lost, "{a=1, b=1} instead of {a=2}");
    // What it makes up is told from what it carries over.
    let mut script = paused();
    script.written(State::Open, 1, script.now(), "a=7", |record| record.paused = true);
    script.breaks(Breach::OlderWon, "other than it bore");
}

#[test]
fn a_node_paused_from_its_birth_has_no_record() {
    let mut script = Script::new();
    script.born_with(1, "a=1", PAUSE, "true").is_fine();
    script.annotate(PAUSE, "false").waits("has no record");
}

#[test]
fn calm_does_not_take_from_a_paused_node_what_it_is_owed() {
    let mut script = known();
    script.annotate(PAUSE, "true");
    script.written(State::Open, 1, script.now(), "a=1", |record| record.paused = true);
    script.gone().born(2, "").tell(Told::Calm).annotate(PAUSE, "false").waits("its own back");
    script.open(2, "").breaks(Breach::Lost, "opened though");
}

#[test]
fn what_was_excused_before_calm_is_excused_after_a_pause() {
    let mut script = known();
    script.annotate(PAUSE, "true");
    script.written(State::Open, 1, script.now(), "a=1", |record| record.paused = true);
    let died = script.nobody_watches().gone().now();
    script.tell(Told::Compacted(died)).born(2, "").tell(Told::Calm);
    let doubt = Unproved::new(Uuid::from_u128(1), State::Open);
    let now = script.annotate(PAUSE, "false").now();
    script.written(State::Giving, 2, now, "a=1", |record| record.unproved = Some(doubt)).is_clean();
}

#[test]
fn a_node_that_is_to_be_forgotten_has_no_record_and_is_given_nothing() {
    let mut script = known();
    script.annotate(FORGET, "true").waits("it is to be forgotten, and has a record");
    script.found(None).is_fine();
    script.unannotate(FORGET).waits("has no record");
    script.open(1, "a=1").is_fine();
    script.found(None).breaks(Breach::Lost, "was removed");
    let mut script = known();
    script.gone().closed(1, "a=1").born(2, "").giving(2, "a=1").annotate(FORGET, "true").given("a=1");
    script.breaks(Breach::OlderWon, "a node that is to be forgotten was written");
}

#[test]
fn a_node_that_was_to_be_forgotten_when_it_ended_is_forgotten() {
    let ended = || {
        let mut script = known();
        script.annotate(FORGET, "true").gone();
        script
    };
    ended().waits("its record is open");
    ended().found(None).is_fine();
    ended().found(None).born(2, "").is_fine();
    ended().born(2, "").found(None).is_fine();
    ended().closed(1, "a=1").breaks(Breach::OlderWon, "{a=1} instead of {}");
    ended().born(2, "").giving(2, "a=1").breaks(Breach::OlderWon, "{a=1} instead of {}");
    ended().found(None).born(2, "").giving(2, "a=1").breaks(Breach::OlderWon, "{a=1} instead of {}");
    // A record that speaks of a later time is not forgotten with it.
    let mut script = known();
    script.annotate(FORGET, "true").unannotate(FORGET).open(1, "a=1").gone().closed(1, "a=1").found(None);
    script.breaks(Breach::Lost, "was removed");
}

#[test]
fn what_nobody_saw_before_calm_is_excused_after_a_pause() {
    let given = |calm: bool| {
        let mut script = known();
        script.annotate(PAUSE, "true");
        script.written(State::Open, 1, script.now(), "a=1", |record| record.paused = true);
        script.gone();
        // No record names this one, and nobody watches.
        script.nobody_watches().born(2, "b=2").gone().born(3, "");
        if calm {
            script.tell(Told::Calm);
        } else {
            script.missed(&Versions::none(), &Versions::none());
        }
        script.annotate(PAUSE, "false").giving(3, "a=1");
        script
    };
    given(true).is_clean();
    given(false).breaks(Breach::Lost, "{a=1} instead of {a=1, b=2}");
}

#[test]
fn nothing_of_a_life_that_was_to_be_forgotten_comes_back_to_the_next_one() {
    let mut script = known();
    script.annotate(FORGET, "true").gone().born(2, "").found(None).is_fine();
    script.heartbeat().giving(2, "a=1").breaks(Breach::OlderWon, "{a=1} instead of {}");
}

#[test]
fn a_life_whose_record_was_removed_may_be_missed_like_one_that_never_had_any() {
    let ended = |watched: bool| {
        let mut script = known();
        script.remove_record();
        if !watched {
            script.nobody_watches();
        }
        script.gone().born(2, "");
        script
    };
    ended(true).waits("its own back");
    ended(false).is_fine();
}

#[test]
fn a_record_takes_the_pause_along_that_it_remembers() {
    let paused = || {
        let mut script = known();
        script.annotate(PAUSE, "true");
        script.written(State::Open, 1, script.now(), "a=1", |record| record.paused = true).gone();
        script
    };
    // While the node is away: the next life is one like any other.
    paused().remove_record().born(2, "b=2").waits("has no record");
    // And while the next life waits for somebody to end it.
    let mut script = paused();
    script.born(2, "").remove_record().heartbeat().giving(2, "a=1").given("a=1").open(2, "a=1").is_fine();
}
