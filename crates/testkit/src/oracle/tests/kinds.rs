//! Annotations, taints and cordon, where the policy keeps them.

use perennial_core::{
    kept::{Kept, Pairs, Taint},
    policy::Policy,
    record::State,
};

use super::script::Script;
use crate::oracle::{Breach, Sighting};

type Change<T> = fn(&mut T);

const NOTE: &str = "example.com/note";

fn taint() -> Taint {
    Taint { key: "example.com/gpu".to_owned(), effect: "NoSchedule".to_owned(), value: "yes".to_owned() }
}

/// All that a node bears.
fn kept() -> Kept {
    Kept {
        labels: Pairs::from([("a".to_owned(), "1".to_owned())]),
        annotations: Pairs::from([(NOTE.to_owned(), "x".to_owned())]),
        taints: vec![taint()],
        unschedulable: true,
    }
}

fn bear(seen: &mut Sighting, kept: Kept) {
    let Kept { labels, annotations, taints, unschedulable } = kept;
    seen.labels.extend(labels);
    seen.annotations.extend(annotations);
    seen.taints = taints;
    seen.unschedulable = unschedulable;
}

/// A node that bears all of it, under a policy that keeps all of it.
fn equipped() -> Script {
    let policy =
        "rules: [{annotations: {include: [\"example.com/*\"]}, taints: {include: [\"*\"]}, cordon: true}]";
    let mut script = Script::with_policy(Policy::parse(policy).expect("a policy"));
    script.born(1, "").hands(|seen| bear(seen, kept()));
    script
}

/// A keeper writes this record, as of the last step.
fn write(script: &mut Script, state: State, uid: u128, kept: Kept) {
    script.written(state, uid, script.now(), "", |record| record.kept = kept);
}

/// The node is gone, and back with nothing.
fn returned() -> Script {
    let mut script = equipped();
    write(&mut script, State::Open, 1, kept());
    script.is_fine();
    script.gone();
    write(&mut script, State::Closed, 1, kept());
    script.is_fine();
    script.born(2, "");
    write(&mut script, State::Giving, 2, kept());
    script
}

#[test]
fn a_node_gets_back_all_that_the_policy_keeps() {
    let mut script = returned();
    script.waits("its own back");
    script.given_with(|seen| bear(seen, kept()));
    write(&mut script, State::Open, 2, kept());
    script.is_fine();
}

#[test]
fn each_of_them_can_be_lost() {
    let without: [(&str, Change<Kept>); 3] = [
        ("annotation example.com/note", |kept| kept.annotations.clear()),
        ("taint example.com/gpu:NoSchedule", |kept| kept.taints.clear()),
        ("the cordon", |kept| kept.unschedulable = false),
    ];
    for (what, take) in without {
        let mut less = kept();
        take(&mut less);
        let mut script = equipped();
        write(&mut script, State::Open, 1, less.clone());
        script.breaks(Breach::OlderWon, "other than it bore");
        let mut script = equipped();
        script.gone();
        write(&mut script, State::Closed, 1, less.clone());
        script.breaks(Breach::Lost, what);
        let mut script = returned();
        script.given_with(|seen| bear(seen, less));
        script.breaks(Breach::Lost, what);
    }
}

#[test]
fn each_of_them_can_be_taken_from_a_node() {
    let takes: [(&str, Change<Sighting>); 3] = [
        ("-annotation example.com/note", |seen| drop(seen.annotations.remove(NOTE))),
        ("-taint example.com/gpu:NoSchedule", |seen| seen.taints.clear()),
        ("-the cordon", |seen| seen.unschedulable = false),
    ];
    for (what, take) in takes {
        let mut script = equipped();
        script.keeper(take).breaks(Breach::Taken, what);
    }
}

#[test]
fn a_taint_with_another_value_that_the_node_bears_already_stays() {
    let mut script = returned();
    let other = Taint { value: "no".to_owned(), ..taint() };
    script.hands(|seen| seen.taints = vec![other.clone()]);
    let mut rest = Kept { taints: vec![other], ..kept() };
    script.given_with(|seen| bear(seen, rest.clone()));
    write(&mut script, State::Open, 2, rest.clone());
    script.is_fine();
    rest.taints = vec![taint()];
    let mut script = returned();
    script.hands(|seen| seen.taints = vec![Taint { value: "no".to_owned(), ..taint() }]);
    script.given_with(|seen| bear(seen, rest)).breaks(Breach::Taken, "=no→yes");
}

#[test]
fn what_the_policy_does_not_keep_is_neither_recorded_nor_given() {
    let mut script = equipped();
    script.hands(|seen| drop(seen.annotations.insert("other.org/x".to_owned(), String::new())));
    write(&mut script, State::Open, 1, kept());
    script.is_fine();
    let mut more = kept();
    more.annotations.insert("other.org/x".to_owned(), String::new());
    write(&mut script, State::Open, 1, more);
    script.breaks(Breach::OlderWon, "more than the policy keeps");
    let mut script = returned();
    script.given_with(|seen| {
        bear(seen, kept());
        seen.annotations.insert("other.org/x".to_owned(), String::new());
    });
    script.breaks(Breach::Taken, "more of the Node than what is kept");
}
