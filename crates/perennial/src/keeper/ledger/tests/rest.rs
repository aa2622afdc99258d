//! Lines that sleep, and what they remember.

use perennial_testkit::{company_labels, node_name};

use super::*;

#[test]
fn a_line_sleeps_while_nobody_works_on_it() {
    let mut fleet = Fixture::synced();
    fleet.apply("a", 1, 10, Some("blue"));
    fleet.apply("b", 2, 11, Some("blue"));
    assert_eq!(fleet.ledger.lines.awake(), 0, "both wait for their turn");
    let (name, plan) = fleet.next().unwrap();
    fleet.ledger.rest();
    assert_eq!(fleet.ledger.lines.awake(), 1, "one is at work");
    // Whatever comes meanwhile is said to the line, not to what it was.
    fleet.apply("a", 1, 12, Some("red"));
    fleet.write(&name, &plan, 20);
    fleet.ledger.rest();
    assert_eq!(fleet.ledger.lines.awake(), 0);
    let (name, plan) = fleet.next().unwrap();
    assert_eq!((&*name, plan.as_str()), ("b", "save"));
    let (name, plan) = fleet.next().unwrap();
    let Plan::Save(write) = plan else { panic!("{plan:?}") };
    assert_eq!((&*name, &*write.record.kept.labels["team"]), ("a", "red"));
}

#[test]
fn a_line_sleeps_again_when_work_on_it_is_over() {
    let mut fleet = Fixture::synced();
    fleet.apply("a", 1, 10, Some("blue"));
    let (name, _) = fleet.next().unwrap();
    for _ in 0..2 {
        fleet.ledger.rest();
        assert_eq!(fleet.ledger.lines.awake(), 1);
    }
    fleet.ledger.done(&name);
    fleet.ledger.rest();
    assert_eq!(fleet.ledger.lines.awake(), 0);
}

#[test]
fn whoever_wakes_a_line_without_looking_leaves_it_awake_until_the_turn_is_over() {
    let mut fleet = Fixture::synced();
    fleet.apply("a", 1, 10, Some("blue"));
    fleet.ledger.entry_mut(&"a".into()).churn = 3;
    assert_eq!(fleet.ledger.lines.awake(), 1);
    fleet.ledger.rest();
    assert_eq!(fleet.ledger.lines.awake(), 0);
    assert_eq!(fleet.ledger.churners(5), [("a".into(), 3)]);
}

#[test]
fn what_this_replica_wrote_need_not_be_read_before_it_is_written_again() {
    let mut fleet = Fixture::synced();
    fleet.apply("a", 1, 10, Some("blue"));
    let (name, plan) = fleet.next().unwrap();
    fleet.write(&name, &plan, 20);
    fleet.apply("a", 1, 30, Some("red"));
    let (_, plan) = fleet.next().unwrap();
    let Plan::Save(write) = plan else { panic!("{plan:?}") };
    assert_eq!((write.record.sequence, &*write.record.previous[0].kept.labels["team"]), (2, "blue"));
}

#[test]
fn what_another_wrote_since_is_read_first() {
    let mut fleet = Fixture::synced();
    fleet.apply("a", 1, 10, Some("blue"));
    let (name, plan) = fleet.next().unwrap();
    fleet.write(&name, &plan, 20);
    let Plan::Save(write) = plan else { panic!("{plan:?}") };
    let theirs = Record { sequence: 2, version: 11, ..*write.record };
    fleet.ledger.record_applied(&record_object(&theirs, 25)).unwrap();
    fleet.look(&name);
    fleet.apply("a", 1, 30, Some("red"));
    assert_eq!(fleet.next().unwrap().1, Plan::ReadRecord);
}

#[test]
fn a_record_that_was_removed_and_made_anew_is_read_first() {
    let mut fleet = Fixture::synced();
    fleet.apply("a", 1, 10, Some("blue"));
    let (name, plan) = fleet.next().unwrap();
    fleet.write(&name, &plan, 20);
    let Plan::Save(write) = plan else { panic!("{plan:?}") };
    fleet.ledger.record_deleted(&record_object(&write.record, 21), &fleet.policy, NOW).unwrap();
    fleet.ledger.record_applied(&record_object(&write.record, 22)).unwrap();
    fleet.look(&name);
    fleet.apply("a", 1, 30, Some("red"));
    assert_eq!(fleet.next().unwrap().1, Plan::ReadRecord);
}

#[test]
fn a_fleet_at_rest_takes_little_more_than_what_is_special_about_each_node() {
    let mut fleet = Fixture::synced();
    for index in 0..3000 {
        // Uids are random, and cannot be pressed.
        let uid =
            Uuid::from_u128((index as u128 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835));
        let mut node = object(&node_name(index), uid.as_u128(), 1000 + index as Version, None);
        // A privileged label would be asked whose it is.
        let labels = company_labels(index).into_iter().filter(|(key, _)| !key.starts_with("node-role."));
        node.metadata.labels = Some(labels.collect());
        let name = fleet.ledger.node_applied(node, "x", &fleet.policy, NOW).unwrap();
        fleet.look(&name);
        let (name, plan) = fleet.next().unwrap();
        fleet.write(&name, &plan, 10_000 + index as Version);
    }
    let bytes = fleet.ledger.lines.bytes() / 3000;
    assert!(bytes < 200, "{bytes} for a line that remembers its record");
}

#[test]
fn what_may_be_collected_is_closed_or_empty_and_found_without_waking_the_rest() {
    let mut fleet = Fixture::with_two_records();
    assert_eq!(fleet.ledger.spent().count(), 0);
    // One is away, and recorded as that; the other has nothing left.
    fleet.delete("a", 10, 30, Some("x"));
    fleet.apply("b", 20, 31, None);
    for version in [40, 41] {
        let (name, plan) = fleet.next().unwrap();
        fleet.write(&name, &plan, version);
    }
    fleet.ledger.rest();
    let mut spent: Vec<_> = fleet.ledger.spent().map(|(name, _)| name.to_string()).collect();
    spent.sort();
    assert_eq!(spent, ["a", "b"]);
    assert_eq!(fleet.ledger.lines.awake(), 0);
    // Whoever has something again is not.
    fleet.apply("b", 20, 50, Some("x"));
    let (name, plan) = fleet.next().unwrap();
    fleet.write(&name, &plan, 51);
    assert_eq!(fleet.ledger.spent().map(|(name, _)| name.to_string()).collect::<Vec<_>>(), ["a"]);
}
