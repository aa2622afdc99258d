//! Each row: what the record remembers, what the node bears, what is done about it.

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::*;
use crate::keeper::{Hand, Mark, Provider};
use crate::record::{Previous, SCHEMA, State, WaitingKeys};

const NOON: Timestamp = Timestamp::constant(1_800_000_000, 0);
const U1: Uuid = Uuid::from_u128(1);
const ROLE: &str = "node-role.kubernetes.io/db";

fn pairs(pairs: &[(&str, &str)]) -> Pairs {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn labels(labels: &[(&str, &str)]) -> Kept {
    Kept { labels: pairs(labels), ..Kept::default() }
}

fn at(minutes: i64) -> Timestamp {
    NOON + SignedDuration::from_mins(minutes)
}

fn record(kept: Kept, minutes: i64) -> Record {
    Record {
        schema: SCHEMA,
        node: "worker-1".to_owned(),
        state: State::Closed,
        incarnation: Incarnation { uid: U1, provider_id: Some("m1".to_owned()) },
        version: 10,
        kept,
        waiting: WaitingKeys::new(),
        previous: Vec::new(),
        captured_at: at(minutes),
        kept_since: None,
        deleted_at: Some(at(minutes)),
        sequence: 7,
        policy: Policy::default().digest(),
        unproved: None,
        given: false,
        paused: false,
    }
}

fn before(mut record: Record, kept: Kept, minutes: i64) -> Record {
    let past = record.now().to_previous();
    record.previous.push(Previous { kept, captured_at: at(minutes), ..past });
    record
}

fn live(machine: Option<&str>, bears: &[(&str, &str)]) -> Live {
    Live {
        uid: Uuid::from_u128(2),
        version: 20,
        created: NOON,
        terminating: false,
        mark: Mark::None,
        hand: Hand::default(),
        digest: Digest::of(b""),
        bare: false,
        wants_identity: false,
        provider: Provider::Read(machine.map(str::to_owned)),
        content: Some(Content { labels: pairs(bears), ..Content::default() }),
    }
}

/// The undo of a node whose record holds all that it bears, and held `past` under this same policy before.
fn undone(past: &Kept, live: &Live, policy: &str, scope: Scope) -> Result<Undo, Refusal> {
    let policy = Policy::parse(policy).unwrap();
    let content = live.content.as_ref().unwrap();
    let kept = policy.rule_for(&content.labels, None).unwrap().keep(content);
    let mut record = before(record(kept, 30), past.clone(), 10);
    record.previous[0].policy = Some(policy.digest());
    undo(&record, &in_force(&record, at(10)).unwrap(), live, content, &policy, scope)
}

/// The record of a node that is away, rewritten to what it held at a quarter past.
fn rewritten(record: &Record, scope: Scope) -> Option<Record> {
    rewrite(record, &in_force(record, at(15)).unwrap(), &Policy::default(), scope, at(40)).unwrap()
}

fn set(changes: &[(&str, Option<&str>)]) -> Changes {
    changes.iter().map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned))).collect()
}

#[test]
fn the_state_in_force_is_the_last_that_was_recorded_by_then() {
    let record =
        before(before(record(labels(&[("a", "3")]), 30), labels(&[("a", "2")]), 20), labels(&[]), 10);
    let found = |minutes| in_force(&record, at(minutes)).map(|past| past.captured_at);
    assert_eq!(found(31), Some(at(30)));
    assert_eq!(found(30), Some(at(30)));
    assert_eq!(found(29), Some(at(20)));
    assert_eq!(found(10), Some(at(10)));
    assert_eq!(found(9), None);
}

#[test]
fn a_state_holds_since_it_was_first_recorded_however_often_the_record_moves_on_with_it() {
    let first = record(labels(&[("a", "1")]), 10);
    let moved = |before: &Record, kept: Kept, minutes| *next(Some(before), record(kept, minutes)).record;
    let returned = moved(&moved(&first, labels(&[("a", "1")]), 20), labels(&[("a", "1")]), 30);
    assert_eq!((returned.captured_at, returned.held_since()), (at(30), at(10)));
    assert_eq!(in_force(&returned, at(15)).map(|past| past.captured_at), Some(at(10)));

    let changed = moved(&returned, labels(&[]), 40);
    assert_eq!((changed.held_since(), changed.previous[0].captured_at), (at(40), at(10)));
    assert_eq!(in_force(&changed, at(15)).map(|past| past.kept), Some(&labels(&[("a", "1")])));
}

#[test]
fn each_scope_goes_as_far_as_it_says_and_nothing_is_taken_unasked() {
    let past = labels(&[("gone", "1"), ("other", "1"), ("same", "1")]);
    let node =
        live(Some("m1"), &[("other", "2"), ("same", "1"), ("came", "1"), ("kubernetes.io/os", "linux")]);
    let expect = |scope, changes: &[(&str, Option<&str>)]| {
        assert_eq!(undone(&past, &node, "", scope).unwrap().labels, set(changes), "{scope:?}");
    };
    expect(Scope::Missing, &[("gone", Some("1"))]);
    expect(Scope::Reset, &[("gone", Some("1")), ("other", Some("1"))]);
    expect(Scope::Exact, &[("gone", Some("1")), ("other", Some("1")), ("came", None)]);
}

#[test]
fn taints_and_cordon_come_back_and_go_as_labels_do() {
    let taint = |key: &str, value: &str| Taint {
        key: key.to_owned(),
        effect: "NoSchedule".to_owned(),
        value: value.to_owned(),
    };
    let policy = "rules: [{ taints: { include: ['*'] }, cordon: true }]";
    let past =
        Kept { taints: vec![taint("a", "1"), taint("b", "1")], unschedulable: true, ..Kept::default() };
    let mut node = live(Some("m1"), &[]);
    node.content.as_mut().unwrap().taints = vec![taint("b", "2"), taint("c", "1")];
    let missing = undone(&past, &node, policy, Scope::Missing).unwrap();
    assert_eq!((missing.taints, missing.cordon), (vec![taint("a", "1")], Some(true)));
    let exact = undone(&past, &node, policy, Scope::Exact).unwrap();
    assert_eq!(exact.taints, [taint("a", "1"), taint("b", "1")]);
    assert_eq!(exact.untaint, [taint("c", "1")]);
    node.content.as_mut().unwrap().unschedulable = true;
    let schedulable = labels(&[("a", "1")]);
    assert_eq!(undone(&schedulable, &node, policy, Scope::Reset).unwrap().cordon, None);
    assert_eq!(undone(&schedulable, &node, policy, Scope::Exact).unwrap().cordon, Some(false));
}

#[test]
fn privileged_labels_come_back_onto_the_same_machine_alone() {
    let past = labels(&[(ROLE, ""), ("a", "1")]);
    let same = undone(&past, &live(Some("m1"), &[]), "", Scope::Reset).unwrap();
    assert_eq!(same.labels, set(&[(ROLE, Some("")), ("a", Some("1"))]));
    let other = undone(&past, &live(Some("m2"), &[]), "", Scope::Reset).unwrap();
    assert_eq!((other.labels, other.withheld), (set(&[("a", Some("1"))]), vec![ROLE.to_owned()]));
}

#[test]
fn another_machines_state_is_not_laid_onto_this_one_where_machines_are_told_apart() {
    let policy = "rules: [{ identity: provider }]";
    let past = labels(&[("a", "1")]);
    assert!(undone(&past, &live(Some("m1"), &[]), policy, Scope::Reset).is_ok());
    assert_eq!(undone(&past, &live(Some("m2"), &[]), policy, Scope::Reset), Err(Refusal::OtherMachine));
    let mut unread = live(None, &[]);
    unread.provider = Provider::Unread;
    assert_eq!(undone(&past, &unread, policy, Scope::Reset), Err(Refusal::OtherMachine));
}

#[test]
fn a_rewritten_record_is_the_next_one_and_remembers_what_it_said() {
    let record = before(record(labels(&[("b", "2"), ("c", "3")]), 30), labels(&[("a", "1"), ("b", "1")]), 10);
    let next = rewritten(&record, Scope::Reset).unwrap();
    assert_eq!(next.kept, labels(&[("a", "1"), ("b", "1"), ("c", "3")]));
    assert_eq!((next.sequence, next.version, next.state), (8, 10, State::Closed));
    assert_eq!((next.captured_at, next.deleted_at), (at(40), Some(at(30))));
    assert_eq!(next.previous[0].kept, record.kept);
    let exact = rewritten(&record, Scope::Exact).unwrap();
    assert_eq!(exact.kept, labels(&[("a", "1"), ("b", "1")]));
    let again = in_force(&exact, at(40)).unwrap();
    assert_eq!(rewrite(&exact, &again, &Policy::default(), Scope::Exact, at(50)), Ok(None));
}

#[test]
fn privileged_labels_of_another_machine_wait_for_it_in_a_rewritten_record() {
    let mut record = before(record(labels(&[("a", "1")]), 30), labels(&[(ROLE, "")]), 10);
    record.previous[0].incarnation.provider_id = Some("m0".to_owned());
    let next = rewritten(&record, Scope::Reset).unwrap();
    assert!(!next.kept.labels.contains_key(ROLE));
    assert_eq!(next.waiting[ROLE].provider_id.as_deref(), Some("m0"));
}

#[test]
fn a_rewritten_record_does_not_mix_machines_where_they_are_told_apart() {
    let policy = Policy::parse("rules: [{ identity: provider }]").unwrap();
    let mut record = before(record(labels(&[("a", "1")]), 30), labels(&[("b", "1")]), 10);
    record.previous[0].incarnation = Incarnation { uid: Uuid::nil(), provider_id: Some("m0".to_owned()) };
    let past = in_force(&record, at(15)).unwrap();
    assert_eq!(rewrite(&record, &past, &policy, Scope::Reset, at(40)), Err(Refusal::OtherMachine));
}

mod history;
mod taking;
