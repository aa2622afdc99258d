//! What shows that this may be another history.

use super::*;

/// A node that has a record, and changed since.
fn told() -> Fixture {
    let mut fleet = Fixture::synced();
    let name = fleet.apply("a", 1, 10, Some("blue")).unwrap();
    let (_, plan) = fleet.next().unwrap();
    fleet.write(&name, &plan, 20);
    fleet.apply("a", 1, 30, Some("green"));
    fleet
}

fn read(fleet: &mut Fixture, version: Version, label: &str) {
    let node = object("a", 1, version, Some(label));
    fleet.ledger.node_read(&"a".into(), node, "x", &fleet.policy, NOW);
}

#[test]
fn a_list_with_an_older_version_than_was_told_before_it_is_suspect() {
    let mut fleet = told();
    fleet.ledger.nodes_listing();
    fleet.apply("a", 1, 12, Some("blue"));
    assert_eq!(fleet.ledger.suspect(), Some(&Suspect::Node("a".into(), 30)));
    fleet.ledger.clear_suspect();
    fleet.apply("a", 1, 30, Some("green"));
    assert_eq!(fleet.ledger.suspect(), None);
}

#[test]
fn a_list_with_a_node_that_was_told_to_be_gone_at_a_later_version_is_suspect() {
    let mut fleet = told();
    fleet.delete("a", 1, 40, Some("green"));
    fleet.ledger.nodes_listing();
    fleet.apply("a", 1, 12, Some("blue"));
    assert_eq!(fleet.ledger.suspect(), Some(&Suspect::Node("a".into(), 40)));
}

#[test]
fn what_was_read_or_written_ahead_of_a_list_is_not_suspect() {
    let mut fleet = told();
    fleet.ledger.nodes_listing();
    read(&mut fleet, 50, "red");
    fleet.apply("a", 1, 40, Some("yellow"));
    assert_eq!(fleet.ledger.suspect(), None);
}

#[test]
fn an_answer_that_is_older_than_what_is_known_is_suspect() {
    let mut fleet = told();
    read(&mut fleet, 12, "blue");
    assert_eq!(fleet.ledger.suspect(), Some(&Suspect::Node("a".into(), 30)));
    fleet.ledger.clear_suspect();
    let (name, plan) = fleet.next().unwrap();
    let Plan::Save(write) = plan else { panic!("{plan:?}") };
    fleet.ledger.record_read(&name, &record_object(&write.record, 15));
    assert_eq!(fleet.ledger.suspect(), Some(&Suspect::Record("a".into(), 20)));
}
