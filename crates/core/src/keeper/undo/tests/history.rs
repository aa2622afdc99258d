//! What a record remembers of its states, write by write.

use super::*;

fn moved(before: &Record, record: Record) -> Record {
    *next(Some(before), record).record
}

fn waits(mut record: Record, machine: &str) -> Record {
    let provider_id = Some(machine.to_owned());
    record.waiting.insert(ROLE.to_owned(), Waiting { value: String::new(), provider_id });
    record
}

#[test]
fn a_return_whose_privileged_labels_wait_is_no_new_state() {
    let with_role = || labels(&[("a", "1"), (ROLE, "")]);
    let first = record(with_role(), 10);
    let given = moved(&first, waits(record(labels(&[("a", "1")]), 20), "m1"));
    let back = moved(&given, record(with_role(), 30));
    assert_eq!((given.previous.len(), back.previous.len()), (0, 0));
    assert_eq!((back.held_since(), back.went_back()), (at(10), false));
}

#[test]
fn privileged_labels_that_waited_in_vain_are_remembered_with_their_machine() {
    let first = record(labels(&[("a", "1"), (ROLE, "")]), 10);
    let given = moved(&first, waits(record(labels(&[("a", "1")]), 20), "m1"));
    let dropped = moved(&given, record(labels(&[("a", "1")]), 30));
    assert_eq!(dropped.previous.len(), 1);
    assert_eq!(dropped.previous[0].waiting, given.waiting);

    // They come back onto that machine alone, whoever's life they waited on.
    let past = in_force(&dropped, at(15)).unwrap();
    let onto = |machine: &str| {
        let node = live(Some(machine), &[("a", "1")]);
        let content = node.content.clone().unwrap();
        undo(&dropped, &past, &node, &content, &Policy::default(), Scope::Reset).unwrap()
    };
    assert_eq!(onto("m1").labels, set(&[(ROLE, Some(""))]));
    let other = onto("m2");
    assert_eq!((other.labels, other.withheld), (set(&[]), vec![ROLE.to_owned()]));
    assert_eq!(rewritten(&dropped, Scope::Reset).unwrap().waiting, given.waiting);
}

#[test]
fn labels_that_wait_still_are_left_to_the_keeper() {
    let record = waits(record(labels(&[("a", "1")]), 10), "m9");
    let node = live(Some("m1"), &[("a", "1")]);
    let content = node.content.clone().unwrap();
    let undo = undo(&record, &record.now(), &node, &content, &Policy::default(), Scope::Missing).unwrap();
    assert_eq!(undo, Undo::default());
}

#[test]
fn a_time_at_which_nothing_was_left_is_remembered_as_such() {
    let first = record(labels(&[("a", "1")]), 10);
    let none = moved(&first, record(labels(&[]), 20));
    let after = moved(&none, record(labels(&[("b", "1")]), 30));
    assert_eq!(in_force(&after, at(25)).map(|past| past.kept), Some(&labels(&[])));
    assert_eq!(in_force(&after, at(15)).map(|past| past.kept), Some(&labels(&[("a", "1")])));
}

#[test]
fn a_state_is_of_the_policy_under_which_it_was_first_recorded() {
    let (old, new) = (Digest::of(b"old"), Digest::of(b"new"));
    let under = |policy, kept, minutes| Record { policy, ..record(kept, minutes) };
    let first = under(old, labels(&[("a", "1")]), 10);
    let closed = moved(&first, under(new, labels(&[("a", "1")]), 20));
    assert_eq!(closed.policy, old, "nobody knows what that policy left out at first");
    let changed = moved(&closed, under(new, labels(&[("a", "2")]), 30));
    assert_eq!((changed.policy, changed.previous[0].policy), (new, Some(old)));
}
