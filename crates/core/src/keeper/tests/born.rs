//! A node that is born with its labels, and what becomes of those that it should not have been born with.

use super::dsl::*;
use crate::keeper::born::{CONTROL_PLANE, STAMP_PREFIX, is_gated, is_kubelets_own, stamp, stamped};
use crate::keeper::{Mark, Patch, Plan, Why, YOUTH};
use crate::kept::Pairs;
use crate::record::Record;

fn pairs(pairs: &[(&str, &str)]) -> Pairs {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn given(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    self::pairs(pairs).into_iter().collect()
}

const NOTHING: Vec<(String, String)> = Vec::new();

#[test]
fn nothing_is_given_that_a_kubelet_may_not_set_itself() {
    let own = [
        "team",
        "example.com/team",
        "kubernetes.io/os",
        "topology.kubernetes.io/zone",
        "node.kubernetes.io/pool",
        "kubelet.kubernetes.io/pool",
        "sub.node.kubernetes.io/pool",
        "notkubernetes.io/pool",
        "k8s.io.example.com/pool",
        "kubernetes.io",
    ];
    let others = [
        "node-role.kubernetes.io/db",
        "node-restriction.kubernetes.io/db",
        "example.com.node-restriction.kubernetes.io/db",
        "kubernetes.io/role",
        "kops.k8s.io/instancegroup",
        "k8s.io/pool",
        "mynode.kubernetes.io.k8s.io/pool",
        "topology.kubernetes.io/rack",
    ];
    for (key, expected) in own.map(|key| (key, true)).into_iter().chain(others.map(|key| (key, false))) {
        assert_eq!(is_kubelets_own(key), expected, "{key}");
    }
}

/// Pairs that somebody may have written into a record and that are no labels.
fn no_labels() -> [(String, String); 6] {
    let (long, longest) = ("a".repeat(64), "a".repeat(300));
    let none = [
        ("team", "a b"),
        ("longer", long.as_str()),
        (long.as_str(), "1"),
        ("no key", "1"),
        ("example.com/a/b", "1"),
        ("example.com/", longest.as_str()),
    ];
    none.map(|(key, value)| (key.to_owned(), value.to_owned()))
}

#[test]
fn nothing_is_given_that_the_api_server_would_refuse() {
    let spoilt =
        |record: Record| no_labels().iter().fold(record, |record, (key, value)| record.label(key, value));
    let record = spoilt(closed(U1, 15).label("a", "1"));
    let birth = gone(15).with(record).birth(&[], None);
    assert_eq!(birth.labels, pairs(&[("a", "1")]));
    assert_eq!(stamp(&birth.labels, birth.owed), "a=1", "and no gate waits for it");
    // Nor afterwards, when the rest is.
    let record = spoilt(giving(U2, 20).label("a", "1").label("b", "1"));
    node(live(U2, 20).born("a", "1")).with(record).patches(patch(U2, 20, Mark::Given, &[("b", "1")]));
    let record = giving(U2, 20).annotation("no key", "1").annotation("Example.com/b", "any thing");
    let record = record.taint("no key", "1").taint("c", "a b").taint("d", "1");
    let all = policy("rules: [{annotations: {include: ['*']}, taints: {include: ['*']}}]");
    let mut expected = patch(U2, 20, Mark::Given, &[]);
    expected.annotations = pairs(&[("Example.com/b", "any thing")]);
    expected.taints = vec![taint("d", "1")];
    node(live(U2, 20)).with(record).policy(all).patches(expected);
    // What waits for its machine, too.
    let record = giving(U2, 20).waits(ROLE, "a b", Some("m1")).waits(CONTROL_PLANE[1], "", Some("m1"));
    node(live(U2, 20).machine("m1")).with(record).patches(patch(
        U2,
        20,
        Mark::Full,
        &[(CONTROL_PLANE[1], "")],
    ));
}

#[test]
fn a_node_is_born_with_what_is_closed() {
    let record = closed(U1, 15).label("a", "1").label("b", "1").waits(ROLE, "", None);
    assert_eq!(gone(15).with(record).bears(&[("b", "2")], None), given(&[("a", "1")]));
}

#[test]
fn a_node_is_born_with_the_end_that_is_held_here() {
    let ends = || [end(U1, 15).label("a", "2").label(ROLE, "")];
    let record = open(U1, 10).label("a", "1").label("b", "1");
    assert_eq!(gone(15).with(record.clone()).ends(ends()).bears(&[], None), given(&[("a", "2")]));
    assert_eq!(gone(15).with_summary(&record).ends(ends()).bears(&[], None), given(&[("a", "2")]));
    assert_eq!(gone(15).ends(ends()).bears(&[], None), given(&[("a", "2")]));
}

#[test]
fn whoever_has_not_heard_of_the_end_gives_what_is_recorded_if_it_is_at_hand() {
    let record = open(U1, 10).label("a", "1");
    assert_eq!(
        node(live(U1, 10).label("a", "1")).with(record.clone()).bears(&[], None),
        given(&[("a", "1")])
    );
    assert_eq!(node(live(U1, 10)).with_summary(&record).settled().bears(&[], None), NOTHING);
}

#[test]
fn a_node_is_born_with_nothing_where_nothing_is_known_or_wanted() {
    let record = || closed(U1, 15).label("a", "1");
    assert_eq!(gone(15).bears(&[], None), NOTHING);
    assert_eq!(gone(15).records_unlisted().bears(&[], None), NOTHING);
    assert_eq!(gone(15).with(record()).no_restore().bears(&[], None), NOTHING);
    assert_eq!(gone(15).with(record().on_hold()).bears(&[], None), NOTHING);
    assert_eq!(gone(25).with(record()).ends([end(U2, 25).paused(true)]).bears(&[], None), NOTHING);
    assert_eq!(gone(25).with(record()).ends([end(U2, 25).forget()]).bears(&[], None), NOTHING);
    let others = policy("rules: [{selector: pool=gpu}]");
    assert_eq!(gone(15).with(record()).policy(others).bears(&[], None), NOTHING);
    let narrow = policy("rules: [{labels: {include: [b]}}]");
    assert_eq!(gone(15).with(record()).policy(narrow).bears(&[], None), NOTHING);
}

#[test]
fn where_the_machine_counts_it_must_be_told_and_be_the_same() {
    let record = || closed(U1, 15).label("a", "1").machine("m1");
    let provider = || policy("rules: [{identity: provider}]");
    assert_eq!(gone(15).with(record()).policy(provider()).bears(&[], Some("m1")), given(&[("a", "1")]));
    assert_eq!(gone(15).with(record()).policy(provider()).bears(&[], Some("m2")), NOTHING);
    assert_eq!(gone(15).with(record()).policy(provider()).bears(&[], None), NOTHING);
    let unknown = closed(U1, 15).label("a", "1");
    assert_eq!(gone(15).with(unknown).policy(provider()).bears(&[], None), NOTHING);
}

#[test]
fn a_stamp_is_read_back_as_far_as_it_is_still_true() {
    let annotations = |text: &str| pairs(&[(&format!("{STAMP_PREFIX}perennial"), text)]);
    let labels = pairs(&[("a", "1"), ("b", ""), ("c", "1"), (ROLE, "")]);
    let text = stamp(&pairs(&[("a", "1"), ("b", ""), ("c", "2"), ("d", "1")]), true);
    assert_eq!(stamped(&labels, &annotations(&text), "perennial"), pairs(&[("a", "1"), ("b", "")]));
    assert_eq!(stamped(&labels, &annotations(&text), "other"), Pairs::new());
    assert!(is_gated(&annotations(&text), "perennial") && !is_gated(&annotations(&text), "other"));
    for broken in ["", " ", "a", "=1", "a=1=1", "a =1", "\u{0}", &format!("{ROLE}=")] {
        assert_eq!(stamped(&labels, &annotations(broken), "perennial"), Pairs::new(), "{broken:?}");
        assert!(!is_gated(&annotations(broken), "perennial"), "{broken:?}");
    }
}

#[test]
fn what_it_was_born_with_is_confirmed_or_put_right_with_the_mark() {
    let record = || giving(U2, 20).label("a", "1").label("b", "1").label("c", "1");
    // Right, wrong, missing, and what its kubelet set itself.
    let node_ = live(U2, 20).born("a", "1").born("b", "0").label("d", "1");
    node(node_).with(record()).patches(patch(U2, 20, Mark::Given, &[("b", "1"), ("c", "1")]));
    // A label that was removed before the last life ended.
    let node_ = live(U2, 20).born("a", "1").born("gone", "1");
    let mut expected = patch(U2, 20, Mark::Given, &[("b", "1"), ("c", "1")]);
    expected.unset = vec!["gone".to_owned()];
    node(node_).with(record()).patches(expected);
}

#[test]
fn what_it_was_born_with_is_taken_back_where_nothing_is_remembered() {
    let record = closed(U1, 15);
    node(live(U2, 20).born("a", "1")).with(record.clone()).gives(next(giving(U2, 20)));
    let mut expected = patch(U2, 20, Mark::Given, &[]);
    expected.unset = vec!["a".to_owned()];
    node(live(U2, 20).born("a", "1")).with(giving(U2, 20)).patches(expected);
}

#[test]
fn where_there_is_no_record_what_it_was_born_with_is_its_own_unless_a_record_was_removed() {
    let born = || node(live(U2, 20).born("a", "1"));
    born().saves(first(open(U2, 20).label("a", "1")));
    let forgotten = |mut case: Case| {
        case.line.record_removed(U4, 10, 10, false);
        case
    };
    forgotten(born()).gives(first(giving(U2, 20)));
    // Not what only another policy keeps: its replicas may remember it.
    forgotten(born()).policy(policy("rules: [{labels: {include: [b]}}]")).rests(Why::NothingKept);
    let mut case = forgotten(node(live(U2, 20).born("a", "1").label("b", "1")));
    case.line.node_ended(end(U2, 25).born("a", "1").label("b", "1"));
    case.closes(first(closed(U2, 25).label("b", "1")));
}

#[test]
fn a_newborn_that_dies_unmarked_does_not_pass_on_what_it_was_born_with() {
    let record = closed(U1, 15).label("a", "1").label("b", "1");
    let ends = [end(U2, 25).born("a", "0").born("gone", "1").label("c", "1")];
    gone(25)
        .ends(ends)
        .with(record.clone())
        .closes(next(closed(U2, 25).label("a", "1").label("b", "1").label("c", "1").before(&record)));
}

#[test]
fn the_rule_is_found_by_what_is_remembered_and_not_by_what_it_was_born_with() {
    let pools = policy(
        "rules: [{name: gpu, selector: pool=gpu, labels: {include: [pool, a]}}, {name: others, labels: {include: [pool, b]}}]",
    );
    let record = giving(U2, 20).label("pool", "cpu").label("b", "1").under(&pools);
    let expected = patch(U2, 20, Mark::Given, &[("b", "1"), ("pool", "cpu")]);
    node(live(U2, 20).born("pool", "gpu")).with(record).policy(pools).patches(expected);
}

/// Of a node that comes back: more is remembered of it than it is born with.
fn owes(case: Case, labels: &[(&str, &str)]) -> bool {
    case.birth(labels, None).owed
}

#[test]
fn more_is_owed_where_more_is_remembered_than_a_kubelet_may_set() {
    let record = || closed(U1, 15).label("a", "1");
    assert!(!owes(gone(15).with(record()), &[]));
    assert!(!owes(gone(15), &[]));
    assert!(owes(gone(15).with(record().label("example.k8s.io/group", "1")), &[]));
    assert!(!owes(
        gone(15).with(record().label("example.k8s.io/group", "1")),
        &[("example.k8s.io/group", "1")]
    ));
    assert!(owes(gone(15).with(record().waits(ROLE, "", None)), &[]));
    assert!(owes(gone(15).with(record().machine("m1")).policy(policy("rules: [{identity: provider}]")), &[]));
    let control_plane = record().label("example.k8s.io/group", "1").waits(CONTROL_PLANE[0], "", None);
    assert!(
        !owes(gone(15).with(control_plane), &[]),
        "nobody keeps the control plane from being scheduled to"
    );
}

/// A patch that opens the gate and does nothing else.
fn release(stamp: Option<&str>) -> Patch {
    Patch { opens: true, stamp: stamp.map(str::to_owned), ..patch(U2, 20, Mark::None, &[]) }
}

#[test]
fn a_gate_is_opened_with_what_is_given() {
    let record = || giving(U2, 20).label("a", "1");
    let expected = Patch { opens: true, ..patch(U2, 20, Mark::Given, &[("a", "1")]) };
    node(live(U2, 20).gated()).with(record()).patches(expected.clone());
    node(live(U2, 20).gated()).with(record()).hindered().patches(expected.clone());
    // Also once its time is over, and no sooner than that.
    node(live(U2, 20).gated()).with(record()).at(NOW + GATE).patches(expected);
    node(live(U2, 20).gated()).with_summary(&record()).at(NOW + GATE).reads_record();
    // Unless that failed: it may be refused for ever.
    node(live(U2, 20).gated()).with(record()).at(NOW + GATE).hindered().patches(release(None));
}

#[test]
fn a_gate_is_opened_at_once_where_nothing_is_owed() {
    node(live(U2, 20).gated()).patches(release(None));
    node(live(U2, 20).label("a", "1").gated()).patches(release(None));
    node(live(U2, 20).label("a", "1").gated().marked())
        .with(open(U2, 20).label("a", "1"))
        .patches(release(None));
    node(live(U2, 20).gated().paused(true)).with(closed(U1, 15).label("a", "1")).patches(release(None));
    let others = policy("rules: [{selector: pool=gpu}]");
    node(live(U2, 20).gated()).with(closed(U1, 15).label("a", "1")).policy(others).patches(release(None));
}

#[test]
fn a_gate_stays_closed_while_something_is_owed_but_not_for_ever() {
    let owed = || closed(U1, 15).label("a", "1");
    let newborn = || live(U2, 20).born("b", "1").gated();
    node(newborn()).with(owed()).gives(next(giving(U2, 20).label("a", "1")));
    node(newborn()).with_summary(&owed()).reads_record();
    // What is about to be given is given first, though its time is over.
    let mut given = next(giving(U2, 20).label("a", "1"));
    given.record.captured_at = NOW + GATE;
    node(newborn()).with(owed()).at(NOW + GATE).gives(given);
    node(newborn()).with_summary(&owed()).at(NOW + GATE).reads_record();
    // Where that fails, what it was born with is confirmed later.
    node(newborn()).with(owed()).at(NOW + GATE).hindered().patches(release(Some("b=1")));
    node(newborn()).with_summary(&owed()).at(NOW + GATE).hindered().patches(release(Some("b=1")));
    // Nor does anybody look for an end in history then, or wait until others told of it.
    let unproved = || node(newborn()).with(open(U1, 10).label("a", "1"));
    unproved().proves(U1, 10, 20);
    unproved().at(NOW + GATE).patches(release(Some("b=1")));
    unproved().lost(U1).at(NOW + GATE).patches(release(Some("b=1")));
    let provider = || policy("rules: [{identity: provider}]");
    let unknown = || node(newborn().no_machine()).with(owed().machine("m1")).policy(provider());
    unknown().waits(NOW + GATE);
    unknown().at(NOW + GATE).patches(release(Some("b=1")));
}

#[test]
fn a_gate_is_left_to_those_who_may_open_it_and_know_better() {
    node(live(U2, 20).gated()).records_unlisted().rests(Why::NotSynced);
    node(live(U2, 20).gated()).with(closed(U1, 25).label("a", "1")).rests(Why::Lagging);
    let record = open(U2, 20).label("a", "1");
    node(live(U2, 20).label("a", "1").gated().marked()).with(record).no_restore().rests(Why::Agreed);
}

// ── The condition ──

#[test]
fn a_newborn_to_which_nothing_is_owed_is_told_so_once() {
    let told = Plan::Tell { uid: U2, since: NOW };
    let bare = || node(live(U2, 20).young());
    assert_eq!(bare().tells(None, None).plan(), told);
    bare().tells(Some(U2), None).rests(Why::NothingKept);
    // Where there is a record it is told when that is opened, and later only if that was refused.
    let recorded = || node(live(U2, 20).young().label("a", "1").marked()).with(open(U2, 20).label("a", "1"));
    recorded().tells(None, None).rests(Why::Agreed);
    assert_eq!(recorded().tells(None, Some(U2)).plan(), told);
    recorded().tells(None, Some(U1)).rests(Why::Agreed);
    recorded().tells(None, Some(U2)).at(NOW + YOUTH).rests(Why::Agreed);
    let paused = node(live(U2, 20).young().label("a", "1").paused(true));
    paused.with(open(U2, 20).label("a", "1").on_hold()).tells(None, Some(U2)).rests(Why::Paused);
}
