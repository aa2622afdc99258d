//! Whose turn a line is, and for how long that is waited for.

use super::*;
use crate::config::{KeeperConfig, MembersConfig};
use crate::members::Live;

impl Fixture {
    /// The same among these other members, with everything.
    fn among(others: &[&str]) -> Self {
        let mut fixture = Self::synced();
        fixture.meet(others);
        fixture
    }

    fn meet(&mut self, others: &[&str]) {
        let policy = tokio::sync::watch::channel(Arc::new(Policy::default())).1;
        let config =
            MembersConfig { takeover: TAKEOVER, ..MembersConfig::new("me", &KeeperConfig::new("x", policy)) };
        let roles = &[Role::Capture, Role::Restore][..];
        let others: Vec<_> = others.iter().map(|name| Live { name, roles, policy: None }).collect();
        self.roster = Roster::new(&config, true, &others, Some(BTreeSet::new()));
    }

    /// A name for which this replica has that place in line.
    fn name_at(&self, rank: usize) -> String {
        let mut names = (0..).map(|number| format!("node-{number}"));
        names.find(|name| self.roster.rank(name, Role::Capture) == rank).unwrap()
    }

    /// Lets time pass, and looks at whatever is due then.
    fn pass(&mut self, time: Duration) {
        self.at += time;
        for name in self.ledger.due(self.at) {
            self.look(&name);
        }
    }

    /// Records a node, as whoever comes first would.
    fn recorded(&mut self, node: &str) -> Name {
        let roster = std::mem::replace(&mut self.roster, Roster::alone(TAKEOVER));
        self.apply(node, 1, 10, Some("blue"));
        let (name, plan) = self.next().unwrap();
        self.write(&name, &plan, 20);
        self.roster = roster;
        name
    }
}

#[test]
fn a_replica_that_has_just_listed_leaves_a_return_to_those_who_watched_meanwhile() {
    let returned = |others: &[&str], listed: Version, later: u32| {
        let mut fleet = Fixture::among(others);
        let node = fleet.name_at(0);
        let (name, record) = away(&mut fleet, &node, 20);
        fleet.ledger.nodes_listing();
        fleet.ledger.nodes_listed(listed);
        fleet.look(&name);
        fleet.pass(TAKEOVER * later);
        fleet.apply(&node, 2, 2000, None);
        assert_eq!(record.node, node);
        fleet
    };
    let gives = |fleet: &mut Fixture| matches!(fleet.next(), Some((_, Plan::Give(_))));
    let mut fleet = returned(&["a", "b"], 1000, 0);
    assert!(!gives(&mut fleet), "others may have seen a life that came and went before the list");
    fleet.pass(TAKEOVER);
    assert!(gives(&mut fleet), "each of them had a turn");
    assert!(gives(&mut returned(&["a", "b"], 1000, 3)), "whoever saw one has recorded it by now");
    assert!(gives(&mut returned(&["a", "b"], 29, 0)), "it was still there when it was listed");
    assert!(gives(&mut returned(&[], 1000, 0)), "there is nobody else");
}

#[test]
fn the_first_in_line_acts_at_once_and_the_third_after_two_takeovers() {
    let mut fleet = Fixture::among(&["a", "b"]);
    let (first, third) = (fleet.name_at(0), fleet.name_at(2));
    fleet.apply(&first, 1, 10, Some("blue"));
    fleet.apply(&third, 2, 11, Some("blue"));
    assert_eq!(&*fleet.next().unwrap().0, first);
    assert!(fleet.next().is_none());
    assert_eq!(fleet.ledger.next_timer(), Some(fleet.at + TAKEOVER * 2));
    fleet.pass(TAKEOVER * 2);
    assert_eq!(&*fleet.next().unwrap().0, third);
}

#[test]
fn what_another_did_in_time_is_not_done_again() {
    let mut fleet = Fixture::among(&["a"]);
    let second = fleet.name_at(1);
    fleet.recorded(&second);
    fleet.apply(&second, 1, 30, Some("red"));
    let red = Record { version: 30, sequence: 2, ..saved(&second, "red") };
    let name = fleet.ledger.record_applied(&record_object(&red, 31)).unwrap();
    fleet.look(&name);
    fleet.pass(TAKEOVER);
    assert!(fleet.next().is_none());
    assert!(fleet.ledger.pending().is_empty());
}

/// The first record of a node with this label, as another replica writes it.
fn saved(node: &str, label: &str) -> Record {
    let mut fleet = Fixture::synced();
    fleet.apply(node, 1, 10, Some(label));
    let Some((_, Plan::Save(write))) = fleet.next() else { panic!("a new node is saved") };
    *write.record
}

#[test]
fn a_node_that_changes_all_the_time_is_taken_over_all_the_same() {
    let mut fleet = Fixture::among(&["a"]);
    let second = fleet.name_at(1);
    for (version, second_of_many) in (10..).zip(0..10) {
        assert!(fleet.next().is_none(), "after {second_of_many} half seconds");
        fleet.apply(&second, 1, version, Some(if version % 2 == 0 { "blue" } else { "red" }));
        fleet.pass(Duration::from_millis(500));
    }
    assert!(fleet.next().is_some());
}

#[test]
fn a_record_that_another_writes_begins_the_wait_anew() {
    let mut fleet = Fixture::among(&["a"]);
    let second = fleet.name_at(1);
    let name = fleet.recorded(&second);
    fleet.apply(&second, 1, 30, Some("red"));
    fleet.pass(TAKEOVER * 4 / 5);
    // Somebody is at work: the record changes, and still does not agree.
    let ahead = Record { sequence: 2, ..saved(&second, "blue") };
    fleet.ledger.record_applied(&record_object(&ahead, 25)).unwrap();
    fleet.look(&name);
    fleet.pass(Duration::from_secs(1));
    assert!(fleet.next().is_none());
    fleet.pass(TAKEOVER);
    assert!(fleet.next().is_some());
}

#[test]
fn whoever_took_over_goes_on_without_another_wait() {
    let mut fleet = Fixture::among(&["a"]);
    let second = fleet.name_at(1);
    let name = fleet.recorded(&second);
    fleet.forget(&name);
    fleet.delete(&second, 1, 30, Some("blue"));
    fleet.apply(&second, 2, 31, None);
    fleet.pass(TAKEOVER);
    assert_eq!(fleet.next().unwrap().1, Plan::ReadRecord);
    fleet.ledger.done(&name);
    fleet.ledger.record_read(&name, &record_object(&saved(&second, "blue"), 20));
    fleet.look(&name);
    let (_, plan) = fleet.next().unwrap();
    let Plan::Give(write) = plan else { panic!("{plan:?}") };
    fleet.ledger.done(&name);
    fleet.ledger.record_written(&name, &record_object(&write.record, 32), write.record, None);
    fleet.look(&name);
    assert!(matches!(fleet.next(), Some((_, Plan::Patch(_)))));
}

#[test]
fn when_the_first_leaves_the_second_acts_at_once() {
    let mut fleet = Fixture::among(&["a"]);
    let second = fleet.name_at(1);
    fleet.apply(&second, 1, 10, Some("blue"));
    assert!(fleet.next().is_none());
    fleet.meet(&[]);
    for name in fleet.ledger.pending() {
        fleet.look(&name);
    }
    assert!(fleet.next().is_some());
}

#[test]
fn an_end_that_nobody_here_saw_leaves_room_for_a_witness() {
    let mut fleet = Fixture::among(&["a"]);
    let first = fleet.name_at(0);
    fleet.recorded(&first);
    fleet.apply(&first, 2, 40, None);
    assert!(fleet.next().is_none());
    fleet.pass(TAKEOVER);
    assert!(matches!(fleet.next(), Some((_, Plan::Prove { .. }))));
}

#[test]
fn an_end_that_history_does_not_tell_leaves_room_for_everybody() {
    let mut fleet = Fixture::among(&["a", "b"]);
    let first = fleet.name_at(0);
    let name = fleet.recorded(&first);
    fleet.apply(&first, 2, 40, None);
    fleet.ledger.entry_mut(&name).line.lost = Some(Uuid::from_u128(1));
    // What is in doubt is read at once, and acted on last.
    let object = record_object(&saved(&first, "blue"), 20);
    fleet.ledger.record_applied(&object);
    fleet.ledger.record_read(&name, &object);
    fleet.look(&name);
    fleet.pass(TAKEOVER * 2);
    assert!(fleet.next().is_none());
    fleet.pass(TAKEOVER);
    assert!(matches!(fleet.next(), Some((_, Plan::Give(_)))));
}

#[test]
fn a_line_that_waits_has_one_timer_however_often_it_changes() {
    let mut fleet = Fixture::among(&["a"]);
    let second = fleet.name_at(1);
    for version in 10..1000 {
        fleet.apply(&second, 1, version, Some(if version % 2 == 0 { "blue" } else { "red" }));
    }
    assert_eq!(fleet.ledger.timers.len(), 1);
}

#[test]
fn nodes_are_counted_as_its_own_by_whoever_comes_first() {
    let mut fleet = Fixture::among(&["a"]);
    let (first, second) = (fleet.name_at(0), fleet.name_at(1));
    fleet.apply(&first, 1, 10, Some("blue"));
    fleet.apply(&second, 2, 11, Some("blue"));
    assert_eq!(fleet.ledger.counts().first, 1);
    fleet.meet(&[]);
    let roster = fleet.roster.clone();
    fleet.ledger.rank_anew(&roster);
    assert_eq!((fleet.ledger.counts().first, fleet.ledger.lines.awake()), (2, 0), "counted in their sleep");
    fleet.delete(&second, 2, 12, Some("blue"));
    assert_eq!(fleet.ledger.counts().first, 1, "whatever was noted of it");
    fleet.delete(&first, 1, 13, Some("blue"));
    assert_eq!(fleet.ledger.counts().first, 0);
}
