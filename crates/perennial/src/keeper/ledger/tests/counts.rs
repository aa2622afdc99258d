//! What lines are counted as, and which of them change back and forth.

use super::*;

/// A node that is recorded, gone and back without its label.
fn back() -> Fixture {
    let mut fleet = Fixture::synced();
    fleet.apply("a", 1, 10, Some("blue"));
    let (name, plan) = fleet.next().unwrap();
    fleet.write(&name, &plan, 20);
    fleet.delete("a", 1, 30, Some("blue"));
    fleet.apply("a", 2, 31, None);
    fleet
}

/// Takes one step, and is the API server to it. `record` is what it holds.
fn step(fleet: &mut Fixture, record: &mut Option<Record>, version: Version) -> Plan {
    let (name, plan) = fleet.next().unwrap();
    match &plan {
        Plan::ReadRecord => {
            fleet.ledger.done(&name);
            let known = fleet.ledger.entry(&name).unwrap().seen().unwrap().version;
            fleet.ledger.record_read(&name, &record_object(record.as_ref().unwrap(), known));
            fleet.look(&name);
        }
        Plan::Save(write) | Plan::Give(write) | Plan::Close(write) => {
            *record = Some(*write.record.clone());
            fleet.write(&name, &plan, version);
        }
        Plan::Patch(patch) => {
            let uid = patch.uid;
            let mut node = object(&name, uid.as_u128(), version, Some("blue"));
            let mark = [("restored.perennial.dev/x".to_owned(), uid.to_string())];
            node.metadata.annotations = Some(mark.into_iter().collect());
            fleet.ledger.done(&name);
            assert!(fleet.ledger.node_read(&name, node, "x", &fleet.policy, NOW));
            fleet.look(&name);
        }
        plan => panic!("{plan:?}"),
    }
    plan
}

#[test]
fn a_node_is_unrestored_from_its_return_until_it_got_its_own_back() {
    let mut fleet = Fixture::synced();
    let mut record = None;
    fleet.apply("a", 1, 10, Some("blue"));
    assert_eq!(fleet.ledger.counts().unrestored, 0);
    step(&mut fleet, &mut record, 20);
    fleet.delete("a", 1, 30, Some("blue"));
    fleet.apply("a", 2, 31, None);
    for (place, expected) in ["read_record", "give", "patch"].into_iter().enumerate() {
        assert_eq!(fleet.ledger.counts().unrestored, 1, "before {expected}");
        assert_eq!(step(&mut fleet, &mut record, 40 + place as Version).as_str(), expected);
    }
    assert_eq!(fleet.ledger.counts().unrestored, 0);
}

#[test]
fn a_restore_that_fails_five_times_in_a_row_is_failing() {
    let mut fleet = back();
    let name: Name = "a".into();
    for failed in 1..=5 {
        assert_eq!(fleet.ledger.counts().failing, 0, "after {failed}");
        fleet.ledger.put_off(&name, fleet.at, Urgency::Restore);
        fleet.look(&name);
    }
    assert_eq!(fleet.ledger.counts().failing, 1);
    fleet.ledger.succeeded(&name);
    fleet.look(&name);
    assert_eq!((fleet.ledger.counts().failing, fleet.ledger.counts().unrestored), (0, 1));
}

#[test]
fn what_waits_behind_the_brake_is_counted_until_it_is_something_else() {
    let mut fleet = Fixture::synced();
    let mut record = None;
    fleet.apply("a", 1, 10, Some("blue"));
    step(&mut fleet, &mut record, 20);
    fleet.delete("a", 1, 30, Some("blue"));
    step(&mut fleet, &mut record, 0);
    assert_eq!(step(&mut fleet, &mut record, 31).as_str(), "close");
    // One of too many. It is read once more before it is erased, and then the brake is on.
    let name: Name = "a".into();
    fleet.ledger.entry_mut(&name).line.over_cap = true;
    fleet.look(&name);
    assert_eq!(fleet.next().unwrap().1, Plan::ReadNode);
    fleet.ledger.done(&name);
    fleet.ledger.entry_mut(&name).line.node_absent(40, NOW);
    fleet.look(&name);
    assert_eq!(fleet.next().unwrap().1.as_str(), "erase");
    fleet.ledger.done(&name);
    fleet.ledger.braked(&name, fleet.at + TAKEOVER);
    fleet.look(&name);
    assert_eq!(fleet.ledger.counts().braked, 1);
    fleet.apply("a", 2, 50, None);
    assert_eq!((fleet.ledger.counts().braked, fleet.ledger.counts().unrestored), (0, 1));
}

#[test]
fn those_that_go_back_and_forth_most_come_first() {
    let mut fleet = Fixture::synced();
    for (place, (node, times)) in [("calm", 1), ("often", 7), ("seldom", 3)].into_iter().enumerate() {
        let mut record = None;
        for time in 0..times {
            let label = if time % 2 == 0 { "blue" } else { "red" };
            fleet.apply(node, place as u128 + 1, 10 + time, Some(label));
            while step(&mut fleet, &mut record, 20 + time) == Plan::ReadRecord {}
        }
    }
    let names = |most| fleet.ledger.churners(most).into_iter().map(|(name, times)| (name.to_string(), times));
    assert_eq!(names(9).collect::<Vec<_>>(), [("often".to_owned(), 5), ("seldom".to_owned(), 1)]);
    assert_eq!(names(1).count(), 1);
}
