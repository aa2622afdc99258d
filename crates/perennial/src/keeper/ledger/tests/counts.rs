//! What lines are counted as, and which of them change back and forth.

use super::*;
use crate::keeper::window::Cell;

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
    for (place, expected) in ["give", "patch"].into_iter().enumerate() {
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

/// The write fails, and may have happened all the same.
fn fail(fleet: &mut Fixture, name: &Name) {
    fleet.ledger.done(name);
    fleet.ledger.record_doubted(name);
    fleet.ledger.put_off(name, fleet.at, Urgency::Restore);
    fleet.look(name);
}

#[test]
fn a_restore_that_fails_at_its_record_goes_on_waiting_while_that_is_read_again() {
    let mut fleet = Fixture::synced();
    let mut record = None;
    fleet.apply("a", 1, 10, Some("blue"));
    step(&mut fleet, &mut record, 20);
    fleet.forget(&"a".into());
    fleet.delete("a", 1, 30, Some("blue"));
    fleet.apply("a", 2, 31, None);
    for failed in 1..=6 {
        assert_eq!(step(&mut fleet, &mut record, 0), Plan::ReadRecord);
        let (name, plan) = fleet.next().unwrap();
        assert_eq!(plan.as_str(), "give");
        fail(&mut fleet, &name);
        let counts = fleet.ledger.counts();
        assert_eq!((counts.unrestored, counts.failing), (1, usize::from(failed >= 5)), "after {failed}");
        fleet.at += Duration::from_secs(10);
        fleet.look(&name);
        let waited = failed * 10;
        assert_eq!(fleet.ledger.fleet.oldest(fleet.at), (waited, waited), "after {failed}");
        let entry = fleet.ledger.entry("a").unwrap();
        assert_eq!((entry.cell, entry.role(&Plan::ReadRecord, true)), (Cell::Unrestored, Role::Restore));
    }
    for expected in ["read_record", "give", "patch"] {
        assert_eq!(fleet.ledger.counts().unrestored, 1, "before {expected}");
        assert_eq!(step(&mut fleet, &mut record, 40 + u64::from(expected == "patch")).as_str(), expected);
    }
    assert_eq!((fleet.ledger.counts().unrestored, fleet.ledger.fleet.oldest(fleet.at).1), (0, 0));
    assert_eq!(step(&mut fleet, &mut record, 50).as_str(), "save");
    let counts = fleet.ledger.counts();
    assert_eq!((counts.pending, counts.failing, counts.current), (0, 0, 1));
    assert_eq!(fleet.ledger.fleet.oldest(fleet.at), (0, 0));
}

#[test]
fn what_an_earlier_life_left_is_owed_while_the_record_of_this_one_is_read_again() {
    let mut other = Fixture::synced();
    other.apply("a", 2, 12, Some("red"));
    let Some((_, Plan::Save(write))) = other.next() else { panic!("nothing is saved") };
    let mut record = Some(*write.record);
    // Another replica saw the second life alone, and recorded it.
    let mut fleet = Fixture::synced();
    fleet.apply("a", 1, 10, Some("blue"));
    let name = fleet.delete("a", 1, 11, Some("blue"));
    fleet.apply("a", 2, 12, Some("red"));
    let object = record_object(record.as_ref().unwrap(), 20);
    fleet.ledger.record_applied(&object);
    fleet.ledger.record_read(&name, &object);
    fleet.look(&name);
    assert_eq!(fleet.next().unwrap().1.as_str(), "give");
    fail(&mut fleet, &name);
    assert_eq!(fleet.ledger.counts().unrestored, 1);
    assert_eq!(step(&mut fleet, &mut record, 0), Plan::ReadRecord);
    assert_eq!(fleet.ledger.counts().unrestored, 1);
}

#[test]
fn a_restore_that_turns_out_to_be_owed_no_more_waits_no_more() {
    let mut fleet = Fixture::synced();
    let mut record = None;
    fleet.apply("a", 1, 10, Some("blue"));
    step(&mut fleet, &mut record, 20);
    let name = fleet.delete("a", 1, 30, Some("blue"));
    fleet.apply("a", 2, 31, None);
    step(&mut fleet, &mut record, 0);
    assert_eq!(fleet.next().unwrap().1.as_str(), "give");
    fail(&mut fleet, &name);
    // Somebody removed the record meanwhile, and there is nothing on the node.
    fleet.ledger.entry_mut(&name).line.ends.clear();
    assert_eq!(fleet.next().unwrap().1, Plan::ReadRecord);
    fleet.ledger.done(&name);
    assert!(fleet.ledger.record_absent(&name, 40, &fleet.policy, NOW));
    fleet.look(&name);
    let counts = fleet.ledger.counts();
    assert_eq!((counts.unrestored, counts.pending, counts.current), (0, 0, 1));
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
    assert_eq!((fleet.ledger.counts().braked, fleet.ledger.counts().pending), (1, 1));
    fleet.at += Duration::from_hours(1);
    fleet.look(&name);
    assert_eq!(fleet.ledger.fleet.oldest(fleet.at), (0, 0), "a person decides how long that takes");
    assert_eq!(fleet.ledger.line_view("a", fleet.at).unwrap().pending_seconds, None);
    fleet.apply("a", 2, 50, None);
    assert_eq!((fleet.ledger.counts().braked, fleet.ledger.counts().unrestored), (0, 1));
    fleet.at += TAKEOVER;
    assert_eq!(fleet.ledger.fleet.oldest(fleet.at), (5, 5), "its return is for nobody to decide");
    assert_eq!(fleet.ledger.line_view("a", fleet.at).unwrap().pending_seconds, Some(5));
}

#[test]
fn a_record_that_the_brake_keeps_from_shrinking_is_current() {
    let mut fleet = Fixture::synced();
    let mut record = None;
    fleet.apply("a", 1, 10, Some("blue"));
    step(&mut fleet, &mut record, 20);
    fleet.policy = Policy::parse("{narrow: now, rules: [{labels: {include: [other]}}]}").unwrap();
    let policy = fleet.policy.clone();
    let name: Name = "a".into();
    fleet.ledger.node_read(&name, object("a", 1, 10, Some("blue")), "x", &policy, NOW);
    fleet.look(&name);
    let (_, Plan::Save(write)) = fleet.next().unwrap() else { panic!("it does not shrink") };
    assert!(write.braked);
    fleet.ledger.done(&name);
    fleet.ledger.braked(&name, fleet.at + TAKEOVER);
    fleet.look(&name);
    let counts = fleet.ledger.counts();
    assert_eq!((counts.braked, counts.pending, counts.current), (1, 1, 1));
}

#[test]
fn where_nothing_is_given_back_nodes_lack_what_is_theirs_and_nobody_is_late() {
    let mut fleet = Fixture::synced();
    let mut record = None;
    fleet.restore = false;
    fleet.apply("a", 1, 10, Some("blue"));
    step(&mut fleet, &mut record, 20);
    fleet.delete("a", 1, 30, Some("blue"));
    fleet.apply("a", 2, 31, None);
    while fleet.ledger.entry("a").unwrap().skipped.is_none() {
        step(&mut fleet, &mut record, 40);
    }
    fleet.at += TAKEOVER;
    let counts = fleet.ledger.counts();
    assert_eq!((counts.pending, counts.unrestored, counts.current), (1, 1, 0));
    assert_eq!(fleet.ledger.fleet.oldest(fleet.at), (0, 5));
}

#[test]
fn a_dry_run_owes_nothing_and_tells_what_it_would_do() {
    let mut fleet = back();
    fleet.dry_run = true;
    let name: Name = "a".into();
    fleet.apply("new", 3, 40, Some("blue"));
    for _ in 0..5 {
        fleet.ledger.put_off(&name, fleet.at, Urgency::Restore);
        fleet.look(&name);
    }
    fleet.at += Duration::from_hours(1);
    let counts = fleet.ledger.counts();
    assert_eq!((counts.pending, counts.unrestored, counts.failing, counts.current), (2, 0, 0, 0));
    assert_eq!(fleet.ledger.fleet.oldest(fleet.at), (0, 0));
}

#[test]
fn a_line_that_is_settled_by_the_time_it_is_its_turn_is_looked_at() {
    let mut fleet = Fixture::synced();
    let name = fleet.apply("a", 1, 10, Some("blue")).unwrap();
    assert!(fleet.ledger.is_pending("a"));
    // Whoever follows the line has to hear that nobody acts on it any more.
    fleet.policy = Policy::parse("rules: [{labels: {include: [other]}}]").unwrap();
    let (ledger, view) = fleet.parts();
    let next = ledger.next(&view);
    assert!(matches!(&next, Some(Next::Look(looked)) if *looked == name), "{next:?}");
    fleet.look(&name);
    assert!(!fleet.ledger.is_pending("a"));
    assert!(fleet.next().is_none());
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
