//! Folds and queues, without any server.

use jiff::{SignedDuration, Timestamp};
use perennial_core::keeper::{Context, Plan};
use perennial_core::kept::Pairs;
use perennial_core::policy::Policy;
use perennial_core::record::{DATA_KEY, Record, Version};
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::cluster::Unchanged;
use crate::keeper::object::{NodeObject, RecordObject};

mod counts;
mod rest;
mod suspects;
mod turns;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const TAKEOVER: Duration = Duration::from_secs(5);

struct Fixture {
    ledger: Ledger,
    policy: Policy,
    roster: Roster,
    at: Instant,
    restore: bool,
    dry_run: bool,
}

impl Fixture {
    /// A ledger whose lists are complete and empty.
    fn synced() -> Self {
        let (ledger, policy, roster) = (Ledger::default(), Policy::default(), Roster::alone(TAKEOVER));
        let at = Instant::now();
        let mut fixture = Self { ledger, policy, roster, at, restore: true, dry_run: false };
        fixture.ledger.nodes_listing();
        fixture.ledger.records_listing();
        fixture.ledger.nodes_listed(1);
        fixture.ledger.records_listed(0);
        fixture
    }

    /// What is done with the ledger and what it is looked at with.
    fn parts(&mut self) -> (&mut Ledger, View<'_>) {
        let cx = Context {
            policy: &self.policy,
            now: NOW,
            capture: true,
            restore: self.restore,
            close_after: SignedDuration::ZERO,
            gate: SignedDuration::ZERO,
            condition: false,
            seals: false,
            open_after: SignedDuration::ZERO,
            rollout: false,
        };
        (&mut self.ledger, View { cx, roster: &self.roster, at: self.at, dry_run: self.dry_run })
    }

    fn apply(&mut self, node: &str, uid: u128, version: Version, label: Option<&str>) -> Option<Name> {
        let object = object(node, uid, version, label);
        if self.ledger.node_beats(&object, &self.policy) {
            return None;
        }
        let changed = self.ledger.node_applied(object, "x", &self.policy, NOW)?;
        self.look(&changed);
        Some(changed)
    }

    fn look(&mut self, name: &Name) -> Looked {
        let (ledger, view) = self.parts();
        ledger.look(name, &view)
    }

    fn beat(&mut self, beats: &[Unchanged]) -> Vec<Name> {
        self.ledger.nodes_unchanged(beats, &self.policy, NOW)
    }

    fn delete(&mut self, node: &str, uid: u128, version: Version, label: Option<&str>) -> Name {
        let name = self.ledger.node_deleted(object(node, uid, version, label), "x", &self.policy, NOW);
        self.look(&name);
        name
    }

    fn next(&mut self) -> Option<(Name, Plan)> {
        loop {
            let (ledger, view) = self.parts();
            match ledger.next(&view)? {
                Next::Act(name, plan, _due) => return Some((name, plan)),
                Next::Look(name) => drop(self.look(&name)),
            }
        }
    }

    /// Pretends that a planned record was written, and gives back its text.
    fn write(&mut self, name: &Name, plan: &Plan, version: Version) {
        let (Plan::Save(write) | Plan::Close(write) | Plan::Give(write)) = plan else {
            panic!("not a record write: {plan:?}")
        };
        self.ledger.done(name);
        let object = record_object(&write.record, version);
        let created = self.ledger.entry(name).is_none_or(|entry| entry.seen().is_none());
        self.ledger.record_written(name, &object, write.record.clone(), created.then_some(0));
        self.look(name);
    }

    /// As if another replica had written its record.
    fn forget(&mut self, name: &Name) {
        self.ledger.entry_mut(name).memo = None;
    }
}

fn object(node: &str, uid: u128, version: Version, label: Option<&str>) -> NodeObject {
    let labels: Pairs = label.map(|value| ("team".to_owned(), value.to_owned())).into_iter().collect();
    let metadata = json!({
        "name": node, "uid": Uuid::from_u128(uid), "resourceVersion": version.to_string(), "labels": labels,
    });
    serde_json::from_value(json!({ "metadata": metadata })).unwrap()
}

fn record_object(record: &Record, version: Version) -> RecordObject {
    let metadata = json!({
        "name": format!("node-record.{}", record.node),
        "uid": Uuid::from_u128(99),
        "resourceVersion": version.to_string(),
        "annotations": record.annotations(),
    });
    let data = json!({ DATA_KEY: record.to_json() });
    serde_json::from_value(json!({ "metadata": metadata, "data": data })).unwrap()
}

impl Fixture {
    /// Two nodes whose records say what they bear.
    fn with_two_records() -> Self {
        let mut fixture = Self::synced();
        for (node, version) in [("a", 10), ("b", 20)] {
            let name = fixture.apply(node, u128::from(version), version, Some("x")).unwrap();
            let (_, plan) = fixture.next().unwrap();
            fixture.write(&name, &plan, version + 1);
        }
        assert!(fixture.ledger.not_current().is_empty());
        fixture
    }

    fn not_current(&self) -> Vec<String> {
        self.ledger.not_current().iter().map(ToString::to_string).collect()
    }
}

#[test]
fn what_a_list_did_not_have_is_looked_at_again() {
    let mut fixture = Fixture::with_two_records();
    fixture.ledger.nodes_listing();
    fixture.apply("b", 20, 20, Some("x"));
    fixture.ledger.nodes_listed(30);
    assert_eq!(fixture.not_current(), ["a"], "no node");

    let mut fixture = Fixture::with_two_records();
    fixture.ledger.records_listing();
    let record = fixture.ledger.entry("a").unwrap().memo.clone().unwrap();
    fixture.ledger.record_applied(&record_object(&record, 11));
    fixture.ledger.records_listed(0);
    assert_eq!(fixture.not_current(), ["b"], "no record");
}

#[test]
fn under_another_policy_everything_is_looked_at_again() {
    let mut fixture = Fixture::with_two_records();
    fixture.ledger.judge_anew();
    assert_eq!(fixture.not_current(), ["a", "b"]);
}

#[test]
fn records_of_another_history_are_those_from_beyond_its_head() {
    let mut fixture = Fixture::with_two_records();
    assert!(fixture.ledger.judge_histories(30).is_empty());
    // Both were written before this was read, and one is of a later version of its node.
    let record = fixture.ledger.entry("b").unwrap().memo.clone().unwrap();
    let mut later = *record;
    later.version = 40;
    later.sequence += 1;
    fixture.ledger.record_applied(&record_object(&later, 22));
    assert_eq!(fixture.ledger.judge_histories(30), ["b".into()]);
    assert!(fixture.ledger.judge_histories(30).is_empty(), "they are told once");
}

fn beat(name: &str, uid: u128, version: Version) -> Unchanged {
    Unchanged { name: name.into(), uid: Uuid::from_u128(uid), version }
}

#[test]
fn a_heartbeat_moves_the_version_of_the_life_that_it_is_of_and_nothing_else() {
    let mut fixture = Fixture::synced();
    let name = fixture.apply("a", 1, 10, Some("x")).unwrap();
    let version = |fixture: &Fixture| fixture.ledger.entry("a").unwrap().line.live().unwrap().version;
    assert!(fixture.beat(&[beat("a", 1, 12), beat("a", 2, 13), beat("b", 1, 14)]).is_empty());
    assert_eq!(version(&fixture), 12);
    assert!(fixture.ledger.entry("b").is_none());
    // One that was told late does not turn it back.
    fixture.beat(&[beat("a", 1, 11)]);
    assert_eq!(version(&fixture), 12);
    fixture.delete(&name, 1, 15, Some("x"));
    assert!(fixture.beat(&[beat("a", 1, 14)]).is_empty());
    assert!(fixture.ledger.entry("a").unwrap().line.live().is_none());
}

#[test]
fn with_a_heartbeat_a_young_node_without_a_machine_may_have_got_one_and_is_read_again() {
    let mut fixture = Fixture::synced();
    fixture.policy = Policy::parse("rules: [{identity: provider}]").unwrap();
    let read = |fixture: &mut Fixture, version: Version, id: Option<&str>| {
        let (name, plan) = fixture.next().unwrap();
        assert_eq!(plan, Plan::ReadNode);
        let metadata = json!({
            "name": "a", "uid": Uuid::from_u128(1), "resourceVersion": version.to_string(), "labels": { "team": "x" },
        });
        let node =
            serde_json::from_value(json!({ "metadata": metadata, "spec": { "providerID": id } })).unwrap();
        fixture.ledger.done(&name);
        assert!(fixture.ledger.node_read(&name, node, "x", &fixture.policy, NOW));
        fixture.look(&name);
    };
    fixture.apply("a", 1, 10, Some("x"));
    read(&mut fixture, 11, None);
    let (name, plan) = fixture.next().unwrap();
    fixture.write(&name, &plan, 20);
    assert!(fixture.beat(&[beat("a", 1, 11)]).is_empty(), "that version was read");
    assert_eq!(fixture.beat(&[beat("a", 1, 12)]), ["a".into()]);
    fixture.look(&name);
    read(&mut fixture, 12, Some("machine"));
    let (_, plan) = fixture.next().unwrap();
    fixture.write(&name, &plan, 30);
    assert!(fixture.beat(&[beat("a", 1, 13)]).is_empty(), "it is known for good");
    assert!(fixture.next().is_none());
}

#[test]
fn a_heartbeat_changes_nothing_but_the_version() {
    let mut fleet = Fixture::synced();
    assert!(fleet.apply("a", 1, 10, Some("blue")).is_some());
    assert!(fleet.apply("a", 1, 11, Some("blue")).is_none());
    assert_eq!(fleet.ledger.entry("a").unwrap().line.live().unwrap().version, 11);
    assert!(fleet.apply("a", 1, 12, Some("red")).is_some());
}

#[test]
fn what_a_proof_found_is_written_before_the_next_proof_begins() {
    let mut fleet = Fixture::synced();
    for (place, node) in ["one", "two"].into_iter().enumerate() {
        fleet.apply(node, place as u128 + 1, 10, Some("blue"));
        let (name, plan) = fleet.next().unwrap();
        fleet.write(&name, &plan, 20);
    }
    // Both are other incarnations now, and nobody saw the ends of the first.
    for (place, node) in ["one", "two"].into_iter().enumerate() {
        fleet.apply(node, place as u128 + 11, 30, None);
    }
    let (name, plan) = fleet.next().unwrap();
    assert!(matches!((&*name, plan), ("one", Plan::Prove { .. })));
    fleet.ledger.done(&name);
    fleet.delete("one", 1, 25, Some("red"));
    let (name, plan) = fleet.next().unwrap();
    assert!(matches!((&*name, &plan), ("one", Plan::Give(_))), "{name}: {plan:?}");
    let (name, plan) = fleet.next().unwrap();
    assert!(matches!((&*name, plan), ("two", Plan::Prove { .. })), "{name}");
}

#[test]
fn restores_go_before_ends_and_ends_before_saves() {
    let mut fleet = Fixture::synced();
    // Three recorded nodes.
    for (place, node) in ["back", "gone", "kept"].into_iter().enumerate() {
        fleet.apply(node, place as u128 + 1, 10, Some("blue"));
        let (name, plan) = fleet.next().unwrap();
        fleet.write(&name, &plan, 20);
    }
    fleet.apply("kept", 3, 30, Some("red"));
    fleet.delete("gone", 2, 31, Some("blue"));
    fleet.delete("back", 1, 32, Some("blue"));
    fleet.apply("back", 4, 33, None);
    let mut order = Vec::new();
    while let Some((name, _)) = fleet.next() {
        order.push(name.to_string());
    }
    assert_eq!(order, ["back", "gone", "kept"], "\"back\" was queued by its end first, behind \"gone\"");
}

#[test]
fn a_line_is_worked_on_by_one_at_a_time() {
    let mut fleet = Fixture::synced();
    fleet.apply("a", 1, 10, Some("blue"));
    assert!(fleet.next().is_some());
    fleet.apply("a", 1, 11, Some("red"));
    assert!(fleet.next().is_none(), "work is under way");
    let name: Name = "a".into();
    fleet.ledger.done(&name);
    fleet.look(&name);
    let (_, plan) = fleet.next().unwrap();
    assert!(matches!(plan, Plan::Save(write) if write.record.kept.labels["team"] == "red"));
}

#[test]
fn a_node_that_a_list_lacks_has_to_be_read_before_anything_happens() {
    let mut fleet = Fixture::synced();
    fleet.apply("a", 1, 10, Some("blue"));
    let (name, plan) = fleet.next().unwrap();
    fleet.write(&name, &plan, 20);
    fleet.ledger.nodes_listing();
    fleet.ledger.nodes_listed(100);
    fleet.look(&name);
    assert_eq!(fleet.next().unwrap().1, Plan::ReadNode);
}

#[test]
fn a_life_that_was_read_but_not_told_waits_for_the_ends_before_it() {
    let mut fleet = Fixture::synced();
    fleet.apply("a", 1, 10, Some("blue"));
    let (name, plan) = fleet.next().unwrap();
    fleet.write(&name, &plan, 20);
    let policy = fleet.policy.clone();
    // A read that overtook the watch finds the third life; the second is still on its way.
    assert!(!fleet.ledger.node_read(&name, object("a", 3, 40, None), "x", &policy, NOW));
    assert_eq!(fleet.ledger.entry("a").unwrap().line.live().unwrap().uid, Uuid::from_u128(1));
    fleet.delete("a", 1, 30, Some("blue"));
    assert!(!fleet.ledger.node_read(&name, object("a", 3, 40, None), "x", &policy, NOW));
    fleet.apply("a", 2, 31, Some("red"));
    fleet.delete("a", 2, 39, Some("red"));
    fleet.apply("a", 3, 40, None);
    let (_, plan) = fleet.next().unwrap();
    assert!(matches!(plan, Plan::Give(_)), "{plan:?}");
    assert_eq!(fleet.ledger.entry("a").unwrap().line.ends.len(), 2, "both ends are held");
    // What a list lacks is taken from a direct read, unless the watch has yet to tell of it.
    fleet.ledger.nodes_listing();
    fleet.ledger.nodes_listed(100);
    assert!(!fleet.ledger.node_read(&name, object("a", 4, 101, None), "x", &policy, NOW));
    assert!(fleet.ledger.node_read(&name, object("a", 4, 50, None), "x", &policy, NOW));
}

#[test]
fn a_record_that_is_found_ahead_of_the_record_watch_waits_for_it() {
    let mut fleet = Fixture::synced();
    let name = fleet.apply("a", 1, 10, Some("blue")).unwrap();
    let (_, plan) = fleet.next().unwrap();
    let Plan::Save(write) = plan else { unreachable!() };
    let record = record_object(&write.record, 20);
    fleet.ledger.done(&name);
    assert!(!fleet.ledger.record_read(&name, &record), "another one may have been removed before it");
    assert!(fleet.ledger.entry("a").unwrap().seen().is_none());
    // A list that lacks it was wrong, and the watch is not going to tell of it.
    fleet.ledger.records_listing();
    fleet.ledger.records_listed(20);
    assert!(fleet.ledger.record_read(&name, &record));
    assert_eq!(fleet.ledger.entry("a").unwrap().seen().unwrap().version, 20);
}

#[test]
fn an_absent_node_whose_record_is_ahead_of_the_watch_waits_for_the_watch() {
    let mut fleet = Fixture::synced();
    fleet.apply("b", 9, 5, Some("blue"));
    let plan = fleet.next().unwrap().1;
    let Plan::Save(write) = &plan else { unreachable!() };
    let record = Record { node: "a".to_owned(), version: 15, ..*write.record.clone() };
    let name = fleet.ledger.record_applied(&record_object(&record, 20)).unwrap();
    fleet.look(&name);
    assert_eq!(fleet.next().unwrap(), (name.clone(), Plan::ReadNode));
    fleet.ledger.done(&name);
    assert!(!fleet.ledger.node_absent(&name, 30, NOW), "the ends of the lives before are on their way");
    // The watch got that far: nothing is to come.
    fleet.ledger.hold(&name);
    assert_eq!(fleet.ledger.nodes_reached(15), std::slice::from_ref(&name));
    fleet.look(&name);
    assert_eq!(fleet.next().unwrap(), (name.clone(), Plan::ReadNode));
    assert!(fleet.ledger.node_absent(&name, 30, NOW));
}

#[test]
fn a_read_that_is_older_than_what_the_watch_told_holds_nothing_up() {
    let mut fleet = Fixture::synced();
    fleet.apply("a", 1, 10, Some("blue"));
    let (name, plan) = fleet.next().unwrap();
    fleet.write(&name, &plan, 20);
    let policy = fleet.policy.clone();
    // The answer was on its way while the watch told of the end, and of the next life.
    fleet.delete("a", 1, 30, Some("blue"));
    assert!(fleet.ledger.node_read(&name, object("a", 1, 11, Some("blue")), "x", &policy, NOW));
    assert!(matches!(fleet.ledger.entry("a").unwrap().line.sight, Sight::Absent { at: 30, .. }));
    fleet.apply("a", 2, 31, None);
    assert!(fleet.ledger.node_read(&name, object("a", 1, 11, Some("blue")), "x", &policy, NOW));
    assert_eq!(fleet.ledger.entry("a").unwrap().line.live().unwrap().uid, Uuid::from_u128(2));
}

#[test]
fn a_list_lets_go_of_what_waited_for_the_watch() {
    let mut fleet = Fixture::synced();
    fleet.apply("a", 1, 10, Some("blue"));
    let name: Name = "a".into();
    fleet.ledger.hold(&name);
    fleet.ledger.nodes_listing();
    fleet.apply("a", 1, 10, Some("blue"));
    fleet.ledger.nodes_listed(100);
    fleet.look(&name);
    assert!(fleet.next().is_some());
}

#[test]
fn a_record_that_a_list_lacks_has_to_be_read_before_it_counts_as_gone() {
    let mut fleet = Fixture::synced();
    fleet.apply("a", 1, 10, Some("blue"));
    let (name, plan) = fleet.next().unwrap();
    fleet.write(&name, &plan, 20);
    fleet.ledger.records_listing();
    fleet.ledger.records_listed(0);
    fleet.look(&name);
    assert_eq!(fleet.next().unwrap().1, Plan::ReadRecord);
}

#[test]
fn an_event_with_an_old_sequence_is_a_foreign_edit() {
    let mut fleet = Fixture::synced();
    fleet.apply("a", 1, 10, Some("blue"));
    let (name, plan) = fleet.next().unwrap();
    fleet.write(&name, &plan, 20);
    let Plan::Save(write) = plan else { unreachable!() };
    assert!(fleet.ledger.record_applied(&record_object(&write.record, 20)).is_none(), "the echo");
    assert!(fleet.ledger.record_applied(&record_object(&write.record, 21)).is_some());
    fleet.look(&name);
    assert_eq!(fleet.next().unwrap().1, Plan::ReadRecord);
}

#[test]
fn what_is_put_off_waits_for_its_timer() {
    let mut fleet = Fixture::synced();
    fleet.apply("a", 1, 10, Some("blue"));
    let (name, _) = fleet.next().unwrap();
    fleet.ledger.done(&name);
    let later = fleet.at + Duration::from_secs(5);
    fleet.ledger.put_off(&name, later, Urgency::Restore);
    fleet.look(&name);
    assert!(fleet.next().is_none());
    assert_eq!(fleet.ledger.next_timer(), Some(later));
    assert_eq!(fleet.ledger.due(later), [name]);
}

#[test]
fn a_line_that_the_brake_put_off_restores_at_once() {
    let mut fleet = Fixture::synced();
    fleet.apply("a", 1, 10, Some("blue"));
    let (name, plan) = fleet.next().unwrap();
    fleet.write(&name, &plan, 20);
    fleet.ledger.put_off(&name, fleet.at + Duration::from_mins(1), Urgency::Later);
    fleet.delete("a", 1, 30, Some("blue"));
    fleet.apply("a", 2, 31, None);
    assert!(fleet.next().is_some(), "a return is more urgent than what was put off");
}

#[test]
fn a_line_that_lagged_is_looked_at_when_it_caught_up() {
    let mut fleet = Fixture::synced();
    fleet.apply("a", 1, 10, Some("blue"));
    let (name, plan) = fleet.next().unwrap();
    let Plan::Save(write) = &plan else { unreachable!() };
    let ahead = Record { version: 15, ..*write.record.clone() };
    fleet.ledger.done(&name);
    fleet.ledger.record_applied(&record_object(&ahead, 20));
    fleet.look(&name);
    assert!(fleet.apply("a", 1, 16, Some("blue")).is_some(), "nothing but the version changed");
    assert!(fleet.apply("a", 1, 17, Some("blue")).is_none());
}

#[test]
fn nodes_are_counted_as_current_once_their_record_is() {
    let mut fleet = Fixture::synced();
    fleet.apply("a", 1, 10, Some("blue"));
    fleet.apply("bare", 2, 11, None);
    let two = Counts { nodes: 2, first: 2, ..Counts::default() };
    assert_eq!(fleet.ledger.counts(), Counts { pending: 1, current: 1, ..two });
    let (name, plan) = fleet.next().unwrap();
    fleet.write(&name, &plan, 20);
    assert_eq!(fleet.ledger.counts(), Counts { current: 2, records: 1, ..two });
    fleet.delete("bare", 2, 21, None);
    let one = Counts { nodes: 1, first: 1, current: 1, records: 1, ..Counts::default() };
    assert_eq!(fleet.ledger.counts(), one);
    assert!(fleet.ledger.entry("bare").is_none(), "nothing is left to know of it");
}

/// A recorded node that is away, with its end held here: its record is of this version.
fn away(fleet: &mut Fixture, node: &str, version: Version) -> (Name, Record) {
    fleet.apply(node, 1, 10, Some("blue"));
    let (name, plan) = fleet.next().unwrap();
    fleet.write(&name, &plan, version);
    let Plan::Save(write) = plan else { panic!("not saved: {plan:?}") };
    fleet.ledger.record_applied(&record_object(&write.record, version));
    fleet.delete(node, 1, version + 10, Some("blue"));
    (name, *write.record)
}

#[test]
fn a_record_that_a_read_does_not_find_is_forgotten_as_of_when_the_watch_tells() {
    let mut fleet = Fixture::synced();
    let (name, record) = away(&mut fleet, "a", 20);
    fleet.delete("a", 2, 40, Some("red"));
    assert!(
        !fleet.ledger.record_absent(&name, 50, &fleet.policy, NOW),
        "the watch is going to tell when it was removed"
    );
    assert_eq!(fleet.ledger.entry("a").unwrap().line.ends.len(), 2);
    fleet.ledger.record_deleted(&record_object(&record, 35), &fleet.policy, NOW);
    let line = &fleet.ledger.entry("a").unwrap().line;
    assert_eq!((line.ends.len(), line.ends[0].version), (1, 40), "who died later is not forgotten");
}

#[test]
fn a_record_that_neither_a_list_nor_a_read_finds_is_gone() {
    let mut fleet = Fixture::synced();
    let (name, _) = away(&mut fleet, "a", 20);
    assert!(!fleet.ledger.record_absent(&name, 50, &fleet.policy, NOW));
    fleet.ledger.hold(&name);
    fleet.ledger.records_listing();
    fleet.ledger.records_listed(0);
    fleet.look(&name);
    assert_eq!(fleet.next().map(|(_, plan)| plan), Some(Plan::ReadRecord), "it is not held any more");
    assert!(fleet.ledger.record_absent(&name, 60, &fleet.policy, NOW));
    assert_eq!(fleet.ledger.entry("a").unwrap().line.ends.len(), 0);
}

#[test]
fn a_write_that_is_known_later_than_its_removal_waits_for_nobody() {
    let mut fleet = Fixture::synced();
    let (name, record) = away(&mut fleet, "a", 20);
    fleet.ledger.record_deleted(&record_object(&record, 28), &fleet.policy, NOW);
    fleet.ledger.record_read(&name, &record_object(&record, 25));
    assert!(fleet.ledger.record_absent(&name, 50, &fleet.policy, NOW), "the watch has told already");
}
