//! A real ledger, filled without a cluster: plans are carried out in memory, and questions are answered as the keeper
//! answers them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use perennial_core::keeper::{Context, Patch, Plan};
use perennial_core::kept::Pairs;
use perennial_core::policy::Policy;
use perennial_core::record::{DATA_KEY, Record};
use perennial_testkit::{company_labels, node_name};
use serde_json::json;
use tokio::sync::mpsc::Receiver;
use tokio::time::Instant;
use uuid::Uuid;

use crate::keeper::ledger::{Ledger, Name, View};
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
    /// Nobody does anything about these.
    left: BTreeSet<String>,
    story: Story,
}

impl Filled {
    pub(super) fn new(story: Story) -> Self {
        let mut ledger = Ledger::default();
        ledger.nodes_listing();
        ledger.records_listing();
        ledger.nodes_listed(1);
        ledger.records_listed();
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
            story,
        }
    }

    /// So many nodes, each with its record.
    pub(super) fn fill(&mut self, nodes: usize) {
        for index in 0..nodes {
            self.join(&node_name(index), company_labels(index));
        }
        self.settle();
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
    pub(super) fn change(&mut self, name: &str, key: &str, annotations: &Pairs) {
        self.leave(name);
        if let Some((_, labels)) = self.nodes.get_mut(name) {
            labels.insert(key.to_owned(), "changed".to_owned());
        }
        self.apply(name, annotations);
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
        self.story.tell(kind, &name.into(), None, text, Timestamp::now());
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
            open_after: SignedDuration::ZERO,
            rollout: false,
        };
        (&mut self.ledger, View { cx, roster: &self.roster, at: Instant::now() })
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
            let Some((name, plan)) = ledger.next(&view) else { return };
            self.ledger.done(&name);
            match plan {
                Plan::Save(write) | Plan::Close(write) | Plan::Give(write) => {
                    self.write(&name, &write.record)
                }
                Plan::Patch(patch) => self.patch(&name, &patch),
                Plan::ReadRecord => self.ledger.record_read(&name, &self.records[&name]),
                other => panic!("{name}: {other:?}"),
            }
            self.look(&name);
        }
    }

    fn write(&mut self, name: &Name, record: &Record) {
        self.version += 1;
        let mut object = self.record.clone();
        object.metadata.name = format!("node-record.{name}");
        object.metadata.resource_version = self.version;
        object.metadata.annotations = Some(record.annotations());
        object.data = Some([(DATA_KEY.to_owned(), record.to_json())].into());
        self.ledger.record_written(name, &object);
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
                        let records = self.ledger.records().count();
                        drop(to.send(Fleet { cells, synced: true, inflight: 0, records, braked: false }));
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
