//! A real ledger, filled without a cluster: plans are carried out in memory, and questions are answered as the keeper
//! answers them.
#![expect(clippy::disallowed_methods, reason = "there is no API server here")]

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use perennial_core::keeper::{Context, Patch, Plan};
use perennial_core::kept::Pairs;
use perennial_core::policy::Policy;
use perennial_core::record::{DATA_KEY, Record};
use perennial_testkit::node_name;
use serde_json::json;
use tokio::sync::mpsc::Receiver;
use tokio::time::Instant;
use uuid::Uuid;

use crate::keeper::ledger::{Ledger, Name, Next, View};
use crate::keeper::object::{NodeObject, RecordObject};
use crate::keeper::window::{Ask, Fleet, Kind, Story};
use crate::members::Roster;

const INSTALLATION: &str = "perennial";

/// A fleet of nodes whose records are in memory.
pub(super) struct Filled {
    ledger: Ledger,
    policy: Policy,
    roster: Roster,
    version: u64,
    /// What each node bears, and its uid.
    nodes: BTreeMap<String, (Uuid, Pairs)>,
    /// The records, which the ledger lets go of.
    records: BTreeMap<Name, RecordObject>,
    /// What nodes and records are made from: reading JSON a hundred thousand times takes long in a test.
    node: NodeObject,
    record: RecordObject,
    /// What the records of a filled fleet are like.
    like: Option<Record>,
    /// Nobody does anything about these.
    left: BTreeSet<String>,
    /// Nothing is told of what happens now.
    pub(super) quiet: bool,
    story: Story,
}

impl Filled {
    pub(super) fn new(story: Story) -> Self {
        let mut ledger = Ledger::default();
        ledger.nodes_listing();
        ledger.records_listing();
        ledger.nodes_listed(1);
        ledger.records_listed(0);
        let roster = Roster::alone(std::time::Duration::ZERO);
        let metadata = json!({ "name": "", "uid": Uuid::from_u128(99), "resourceVersion": "1" });
        let node = json!({ "metadata": metadata, "spec": { "providerID": "metal:///1" } });
        Self {
            records: BTreeMap::new(),
            node: serde_json::from_value(node).unwrap(),
            record: serde_json::from_value(json!({ "metadata": metadata })).unwrap(),
            ledger,
            policy: Policy::default(),
            roster,
            version: 10,
            nodes: BTreeMap::new(),
            left: BTreeSet::new(),
            like: None,
            quiet: false,
            story,
        }
    }

    /// So many nodes, each with its record. The first is recorded as the keeper does it; the others are like it.
    pub(super) fn fill(&mut self, nodes: usize) {
        let labels = Pairs::from([("team".to_owned(), "search".to_owned())]);
        for name in (0..nodes).map(node_name) {
            if let Some(like) = self.like.clone() {
                self.version += 1;
                let uid = Uuid::from_u128(u128::from(self.version));
                self.nodes.insert(name.clone(), (uid, labels.clone()));
                let object = self.record_object(&Record { node: name.clone(), ..like }, uid, self.version);
                self.ledger.record_applied(&RecordObject { data: None, ..object });
                self.apply(&name, &Pairs::new());
            } else {
                self.join(&name, labels.clone());
                self.settle();
                let text = &self.records[&*name].data.as_ref().unwrap()[DATA_KEY];
                self.like = Some(Record::parse(&name, Some(text)).unwrap());
            }
        }
        self.settle();
    }

    /// A record of this life, true at this version.
    fn record_object(&self, record: &Record, uid: Uuid, version: u64) -> RecordObject {
        let mut record = record.clone();
        (record.incarnation.uid, record.version) = (uid, version);
        let mut object = self.record.clone();
        object.metadata.name = format!("node-record.{}", record.node);
        object.metadata.resource_version = version;
        object.metadata.annotations = Some(record.annotations());
        object.data = Some([(DATA_KEY.to_owned(), record.to_json())].into());
        object
    }

    /// A person pauses it.
    pub(super) fn pause(&mut self, name: &str) {
        self.apply(name, &Pairs::from([("perennial.dev/pause".to_owned(), "true".to_owned())]));
        self.settle();
    }

    /// Reads a record that the ledger let go of.
    fn read(&mut self, name: &Name) {
        let written = self.records.get(name).cloned();
        let object = written.unwrap_or_else(|| {
            let entry = self.ledger.entry(name).unwrap();
            let seen = entry.seen().unwrap();
            let record = Record { node: name.to_string(), ..self.like.clone().unwrap() };
            self.record_object(&record, seen.names().unwrap(), seen.version)
        });
        self.ledger.record_read(name, &object);
    }

    pub(super) fn join(&mut self, name: &str, labels: Pairs) {
        self.version += 1;
        let uid = Uuid::from_u128(u128::from(self.version));
        self.nodes.insert(name.to_owned(), (uid, labels));
        self.apply(name, &Pairs::new());
    }

    /// It comes back without what it had.
    pub(super) fn come_back(&mut self, name: &str) {
        self.tell(Kind::Returned, name, "is back");
        self.join(name, Pairs::new());
    }

    pub(super) fn die(&mut self, name: &str) {
        self.version += 1;
        let Some((uid, labels)) = self.nodes.remove(name) else { return };
        let node = self.object(name, uid, &labels, &Pairs::new());
        let name = self.ledger.node_deleted(node, INSTALLATION, &self.policy, Timestamp::now());
        self.tell(Kind::Left, &name, "left the cluster");
        self.look(&name);
    }

    /// Somebody changes it, and nobody does anything about it.
    pub(super) fn change(&mut self, name: &str) {
        self.leave(name);
        if let Some((_, labels)) = self.nodes.get_mut(name) {
            labels.insert("example.com/by-hand".to_owned(), "yes".to_owned());
        }
        self.apply(name, &Pairs::new());
    }

    /// Somebody breaks its record.
    pub(super) fn break_record(&mut self, name: &str) {
        self.version += 1;
        let mut broken = self.record.clone();
        broken.metadata.name = format!("node-record.{name}");
        broken.metadata.resource_version = self.version;
        broken.data = Some([(DATA_KEY.to_owned(), "{".to_owned())].into());
        let name: Name = name.into();
        self.leave(&name);
        self.ledger.record_applied(&broken);
        self.ledger.record_read(&name, &broken);
        self.look(&name);
    }

    /// Nobody does anything about it.
    pub(super) fn leave(&mut self, name: &str) {
        self.left.insert(name.to_owned());
    }

    /// Whether changes are noted for somebody who looks.
    pub(super) fn notes(&self) -> bool {
        self.ledger.notes()
    }

    fn tell(&self, kind: Kind, name: &str, text: &'static str) {
        if !self.quiet {
            self.story.tell(kind, &name.into(), None, text, Timestamp::now());
        }
    }

    /// An hour in which what usually happens happened.
    pub(super) fn had_an_hour(&self) {
        let ago = |seconds: i64| Timestamp::now() - SignedDuration::from_secs(seconds);
        let keys = "restored example.com/cost-center, example.com/rack, example.com/tier, pool, team";
        let tell = |kind, node: usize, text: &'static str, seconds| {
            self.story.tell(kind, &node_name(node).into(), None, text, ago(seconds));
        };
        let restored = |node: usize, seconds: i64| {
            let waited = [0.4, 0.7, 0.9, 1.3, 0.6, 2.2, 0.8, 3.4][node % 8];
            let uid = Uuid::from_u128(1_000_000 + node as u128);
            self.story.restored(&node_name(node).into(), uid, waited, Some(keys.to_owned()), ago(seconds));
        };
        for minute in (1..60_i64).rev() {
            let node = 811 * usize::try_from(minute).unwrap_or_default();
            self.story.share(if minute % 17 == 5 { 0.9987 } else { 1.0 }, ago(60 * minute + 30));
            // Now and then a rack is rebooted.
            let many = if minute % 17 == 5 { 32 } else { usize::from(minute % 3 == 0) * 2 };
            (0..many).for_each(|at| tell(Kind::Left, node + at, "left the cluster", 60 * minute + 40));
            (0..many).for_each(|at| tell(Kind::Returned, node + at, "is back", 60 * minute + 12));
            (0..many).for_each(|at| restored(node + at, 60 * minute + 10));
            if minute % 7 == 1 {
                tell(Kind::Changed, node, "what is kept of it changed", 60 * minute + 5);
            }
        }
        tell(Kind::Joined, 90_003, "joined the cluster", 50);
        self.story.tell(Kind::Member, &"perennial-7c9d-m5zjr".into(), None, "a replica is at work", ago(44));
        tell(Kind::Returned, 5607, "is back", 32);
        let waits = "privileged labels, or all under `identity: provider`, wait until spec.providerID is known and matches";
        tell(Kind::Skipped, 5607, waits, 31);
        tell(Kind::Changed, 60_001, "what is kept of it changed", 12);
    }

    fn object(&self, name: &str, uid: Uuid, labels: &Pairs, annotations: &Pairs) -> NodeObject {
        let mut node = self.node.clone();
        node.metadata.name = name.to_owned();
        node.metadata.uid = uid;
        node.metadata.resource_version = self.version;
        node.metadata.labels = Some(labels.clone());
        node.metadata.annotations = Some(annotations.clone());
        node
    }

    fn apply(&mut self, name: &str, annotations: &Pairs) {
        self.version += 1;
        let (uid, labels) = self.nodes[name].clone();
        let node = self.object(name, uid, &labels, annotations);
        if let Some(name) = self.ledger.node_applied(node, INSTALLATION, &self.policy, Timestamp::now()) {
            self.look(&name);
        }
    }

    fn parts(&mut self) -> (&mut Ledger, View<'_>) {
        let cx = Context {
            policy: &self.policy,
            now: Timestamp::now(),
            capture: true,
            restore: true,
            close_after: SignedDuration::from_hours(1),
            gate: SignedDuration::ZERO,
            condition: false,
            seals: false,
            open_after: SignedDuration::ZERO,
            rollout: false,
        };
        (&mut self.ledger, View { cx, roster: &self.roster, at: Instant::now(), dry_run: false })
    }

    fn look(&mut self, name: &Name) {
        if self.left.contains(&**name) {
            self.ledger.hold(name);
        }
        let (ledger, view) = self.parts();
        ledger.look(name, &view);
    }

    /// Carries out all that is planned.
    pub(super) fn settle(&mut self) {
        loop {
            let (ledger, view) = self.parts();
            let (name, plan) = match ledger.next(&view) {
                None => return,
                Some(Next::Act(name, plan, _)) => (name, plan),
                Some(Next::Look(name)) => {
                    self.look(&name);
                    continue;
                }
            };
            self.ledger.done(&name);
            match plan {
                Plan::Save(write) | Plan::Close(write) | Plan::Give(write) => {
                    self.write(&name, &write.record);
                }
                Plan::Patch(patch) => self.patch(&name, &patch),
                Plan::ReadRecord => self.read(&name),
                other => panic!("{name}: {other:?}"),
            }
            self.look(&name);
        }
    }

    fn write(&mut self, name: &Name, record: &Record) {
        self.version += 1;
        let mut object = self.record_object(record, record.incarnation.uid, record.version);
        object.metadata.resource_version = self.version;
        self.ledger.record_written(name, &object, Box::new(record.clone()), None);
        self.records.insert(name.clone(), object);
    }

    fn patch(&mut self, name: &Name, patch: &Patch) {
        self.version += 1;
        let (uid, labels) = self.nodes.get_mut(&**name).unwrap();
        labels.extend(patch.labels.clone());
        let (uid, labels) = (*uid, labels.clone());
        let mut annotations = Pairs::new();
        annotations.extend(patch.mark.annotation(INSTALLATION, uid));
        let node = self.object(name, uid, &labels, &annotations);
        let now = Timestamp::now();
        self.ledger.node_applied(node, INSTALLATION, &self.policy, now);
        let keys: Vec<&str> = patch.labels.keys().map(String::as_str).collect();
        self.story.restored(name, uid, 0.8, Some(format!("restored {}", keys.join(", "))), now);
    }

    /// Answers, and does what is asked of it, until nobody asks any more.
    pub(super) async fn answer(mut self, mut asks: Receiver<Ask>, mut deeds: Receiver<Deed>) {
        loop {
            tokio::select! {
                Some(ask) = asks.recv() => match ask {
                    Ask::Fleet { all, to } => {
                        let started = std::time::Instant::now();
                        let cells = self.ledger.cells(all);
                        if all {
                            println!("measured: the whole fleet is answered in {:?}", started.elapsed());
                        }
                        let records = self.ledger.counts().records;
                        let churners = vec![(Name::from("web-00811"), 14), (Name::from("batch-00002"), 3)];
                        let fleet = Fleet { cells, synced: true, inflight: 0, records, braked: false, churners };
                        drop(to.send(fleet));
                    }
                    Ask::Line { name, to } => drop(to.send(self.ledger.line_view(&name, Instant::now()))),
                    Ask::Enough => self.ledger.note_nothing(),
                },
                deed = deeds.recv() => match deed {
                    Some(deed) => deed(&mut self),
                    None => return,
                },
            }
        }
    }
}

/// Something that happens to the fleet.
pub(super) type Deed = Box<dyn FnOnce(&mut Filled) + Send>;
