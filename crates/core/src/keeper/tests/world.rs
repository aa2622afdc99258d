//! A small world: one node name, one record, some replicas whose views lag, and somebody who knows better.
//!
//! The API server's part is here in little: versions that grow, a history that can be read, compare-and-swap
//! on the record, a patch that carries uid and version. Replicas fold events in order but late, decide, and
//! may carry out a plan long after they made it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::dsl::*;
use crate::keeper::{
    Answer, Body, End, Hand, Line, Live, Mark, Patch, Plan, Proof, Provider, RecordSight, Seen, Sight,
    Verdict, Write, decide,
};
use crate::kept::{Content, Pairs};
use crate::policy::Policy;
use crate::record::{Record, State, Version};

/// A Node as the API server has it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) uid: Uuid,
    pub(super) version: Version,
    pub(super) labels: Pairs,
    pub(super) mark: Mark,
}

/// What a watch says.
#[derive(Clone, Debug)]
enum Event {
    Node(Node),
    Ended(Node, Version),
    Record(Version, Box<Record>),
    Removed(Version),
}

/// A replica: its line, what the watches have yet to tell it, and a plan it has not carried out yet.
#[derive(Debug, Default)]
pub(super) struct Replica {
    pub(super) line: Line,
    inbox: VecDeque<Event>,
    plan: Option<(Plan, Option<Version>)>,
}

/// What must come back, by somebody who saw everything: for each key, the values that would be right.
pub(super) type Owed = BTreeMap<String, BTreeSet<String>>;

#[derive(Debug)]
pub(super) struct World {
    pub(super) policy: Arc<Policy>,
    pub(super) now: Timestamp,
    version: Version,
    lives: u128,
    pub(super) node: Option<Node>,
    /// Every state of the name, from its version on.
    history: Vec<(Version, Option<Node>)>,
    /// History before this version was compacted.
    begin: Version,
    pub(super) record: Option<(Version, Record)>,
    pub(super) replicas: Vec<Replica>,
    /// Replicas may miss events: then only lives that a record named are owed.
    pub(super) gaps: bool,
    pub(super) owed: Owed,
    given: BTreeSet<Uuid>,
    pub(super) writes: usize,
}

impl World {
    pub(super) fn new(policy: Arc<Policy>, replicas: usize, gaps: bool) -> Self {
        let line = || Line { sight: Sight::Missing, record: RecordSight::None, ..Line::default() };
        Self {
            policy,
            now: NOW,
            version: 100,
            lives: 0,
            node: None,
            history: vec![(0, None)],
            begin: 0,
            record: None,
            replicas: (0..replicas).map(|_| Replica { line: line(), ..Replica::default() }).collect(),
            gaps,
            owed: Owed::new(),
            given: BTreeSet::new(),
            writes: 0,
        }
    }

    fn tell(&mut self, event: &Event) {
        for replica in &mut self.replicas {
            replica.inbox.push_back(event.clone());
        }
    }

    fn overwrites(&self) -> bool {
        self.policy.rule_for(&Pairs::new(), None).is_some_and(|rule| rule.overwrites_label("a"))
    }

    // What people and clouds do.

    pub(super) fn create(&mut self, labels: Pairs) {
        if self.node.is_none() {
            self.lives += 1;
            self.put(Node { uid: Uuid::from_u128(self.lives), version: 0, labels, mark: Mark::None });
        }
    }

    pub(super) fn label(&mut self, key: &str, value: Option<&str>) {
        let Some(mut node) = self.node.clone() else { return };
        match value {
            Some(value) => node.labels.insert(key.to_owned(), value.to_owned()),
            None => node.labels.remove(key),
        };
        self.put(node);
    }

    fn put(&mut self, mut node: Node) {
        self.version += 1;
        node.version = self.version;
        self.history.push((self.version, Some(node.clone())));
        self.node = Some(node.clone());
        self.tell(&Event::Node(node));
    }

    pub(super) fn delete(&mut self) {
        let Some(node) = self.node.take() else { return };
        self.version += 1;
        self.history.push((self.version, None));
        self.owe(&node);
        self.tell(&Event::Ended(node, self.version));
    }

    /// Whose word counts at an end, as DESIGN.md has it.
    fn owe(&mut self, node: &Node) {
        let own: Owed = node.labels.iter().map(|(k, v)| (k.clone(), BTreeSet::from([v.clone()]))).collect();
        let named = self.record.as_ref().filter(|(_, record)| record.incarnation.uid == node.uid);
        let state = named.map(|(_, record)| record.state);
        if node.mark != Mark::None || self.gaps && state == Some(State::Open) {
            self.owed = own;
            return;
        }
        let certain = !self.gaps || state.is_some();
        let overwrites = self.overwrites();
        for (key, values) in own {
            match self.owed.get_mut(&key) {
                Some(_) if certain && overwrites => {}
                Some(owed) if certain => *owed = values,
                Some(owed) => owed.extend(values),
                None if certain => drop(self.owed.insert(key, values)),
                None => {}
            }
        }
    }

    pub(super) fn compact(&mut self) {
        self.begin = self.version;
    }

    // What a replica sees.

    pub(super) fn deliver(&mut self, at: usize) {
        let Some(event) = self.replicas[at].inbox.pop_front() else { return };
        let (policy, now) = (self.policy.clone(), self.now);
        let line = &mut self.replicas[at].line;
        match event {
            Event::Node(node) => {
                line.node_seen(view(&node, Provider::Unread), &policy, now);
            }
            Event::Ended(node, version) => line.node_ended(last(&node, version, now)),
            Event::Record(version, record) => {
                line.record_seen(seen(version, Body::Summary(record.summary())));
            }
            Event::Removed(version) => line.record_removed(Uuid::nil(), version, version, true),
        }
    }

    /// The watch broke: whatever it had to tell is gone, and both lists are read anew.
    pub(super) fn relist(&mut self, at: usize) {
        self.replicas[at].inbox.clear();
        let (policy, now) = (self.policy.clone(), self.now);
        let line = &mut self.replicas[at].line;
        match &self.node {
            Some(node) => {
                line.node_seen(view(node, Provider::Unread), &policy, now);
            }
            None => line.node_missing(self.version),
        }
        match (&self.record, &mut line.record) {
            (Some((version, record)), _) => {
                line.record_seen(seen(*version, Body::Summary(record.summary())));
            }
            (None, RecordSight::Seen(known)) => known.body = Body::Unread { hint: None },
            (None, sight) => *sight = RecordSight::None,
        }
    }

    pub(super) fn restart(&mut self, at: usize) {
        self.replicas[at] = Replica::default();
        self.relist(at);
        let line = &mut self.replicas[at].line;
        if line.sight == Sight::Unlisted {
            line.sight = Sight::Missing;
        }
    }

    // What a replica does.

    pub(super) fn plan(&self, at: usize) -> Plan {
        decide(NODE, &self.replicas[at].line, &context(&self.policy, self.now, true, true))
    }

    /// Makes a plan, to be carried out later.
    pub(super) fn think(&mut self, at: usize) {
        let plan = self.plan(at);
        let replica = &mut self.replicas[at];
        if matches!(plan, Plan::Rest(why) if why.is_settled()) {
            replica.line.settle();
        }
        replica.plan = Some((plan, replica.line.seen().map(|seen| seen.version)));
    }

    /// Carries out the plan that was made, however late it is.
    pub(super) fn act(&mut self, at: usize) {
        let Some((plan, over)) = self.replicas[at].plan.take() else { return };
        match plan {
            Plan::Rest(_) | Plan::Wait { .. } | Plan::Tell { .. } => {}
            Plan::ReadRecord | Plan::SetAside => self.read_record(at),
            Plan::ReadNode => self.read_node(at),
            Plan::Prove { uid, from, to } => self.prove(at, uid, from, to),
            Plan::ReadEnd { uid, .. } => self.replicas[at].line.end_read(uid, None),
            Plan::Save(write) | Plan::Close(write) | Plan::Give(write) => self.write(at, write, over),
            Plan::Patch(patch) => self.patch(at, &patch),
            Plan::Erase(_) => self.erase(at, over),
        }
    }

    pub(super) fn step(&mut self, at: usize) {
        self.think(at);
        self.act(at);
    }

    fn read_record(&mut self, at: usize) {
        let line = &mut self.replicas[at].line;
        match &self.record {
            Some((version, record)) => {
                line.record_seen(seen(*version, Body::Whole(Box::new(record.clone()))));
            }
            None => line.record_absent(self.version, self.version, true),
        }
    }

    fn read_node(&mut self, at: usize) {
        // A read that overtakes the watch shows a life without those before it: that is a gap, too.
        while !self.gaps && !self.replicas[at].inbox.is_empty() {
            self.deliver(at);
        }
        let (policy, now) = (self.policy.clone(), self.now);
        let line = &mut self.replicas[at].line;
        match &self.node {
            Some(node) => {
                line.node_seen(view(node, Provider::Read(None)), &policy, now);
            }
            None => line.node_absent(self.version, now),
        }
    }

    fn prove(&mut self, at: usize, uid: Uuid, from: Version, to: Version) {
        let mut proof = Proof::new(from, to);
        while let Some(version) = proof.next() {
            let then = self.history.iter().rev().find(|(since, _)| *since <= version);
            let answer = match then.and_then(|(_, node)| node.as_ref()) {
                _ if version < self.begin => Answer::Expired,
                Some(node) if node.uid == uid => Answer::Alive(node.clone()),
                _ => Answer::Gone,
            };
            proof.answer(version, answer);
        }
        let line = &mut self.replicas[at].line;
        match proof.verdict() {
            Verdict::Proved { last: node, deleted } => line.node_ended(last(&node, deleted, self.now)),
            Verdict::Lost => line.lost = Some(uid),
        }
    }

    fn write(&mut self, at: usize, write: Write, over: Option<Version>) {
        if self.record.as_ref().map(|(version, _)| *version) != over {
            self.read_record(at);
            return;
        }
        if let Some((_, before)) = &self.record {
            assert!(write.record.version >= before.version, "the record's version only grows");
            assert_eq!(write.record.sequence, before.sequence + 1);
        }
        self.writes += 1;
        self.version += 1;
        self.record = Some((self.version, *write.record.clone()));
        self.tell(&Event::Record(self.version, write.record));
        self.read_record(at);
    }

    fn patch(&mut self, at: usize, patch: &Patch) {
        let fits = |node: &&Node| node.uid == patch.uid && node.version == patch.version;
        let Some(mut node) = self.node.as_ref().filter(fits).cloned() else {
            self.read_node(at);
            return;
        };
        assert!(self.given.insert(node.uid), "given twice");
        for (key, values) in &self.owed {
            let now = patch.labels.get(key).or(node.labels.get(key));
            let Some(now) = now else { panic!("{key} is missing after {patch:?}") };
            let lacked = !node.labels.contains_key(key) || self.overwrites();
            assert!(!lacked || values.contains(now), "{key}={now} instead of {values:?}");
        }
        if !self.gaps {
            let extra = patch.labels.keys().find(|key| !self.owed.contains_key(*key));
            assert_eq!(extra, None, "it was removed from a living node");
        }
        if !self.overwrites() {
            assert!(!patch.labels.keys().any(|key| node.labels.contains_key(key)), "only what is missing");
        }
        node.labels.extend(patch.labels.clone());
        node.mark = patch.mark;
        self.writes += 1;
        self.put(node);
        self.read_node(at);
    }

    fn erase(&mut self, at: usize, over: Option<Version>) {
        if self.record.as_ref().map(|(version, _)| *version) == over {
            self.writes += 1;
            self.version += 1;
            self.record = None;
            self.tell(&Event::Removed(self.version));
        }
        self.read_record(at);
    }

    /// Lets everybody see and do everything, until nobody has anything to do.
    pub(super) fn settle(&mut self) {
        for round in 0.. {
            assert!(round < 40, "no rest: {:?}", self.replicas.iter().map(|r| &r.line).collect::<Vec<_>>());
            let before = self.writes;
            let mut busy = false;
            for at in 0..self.replicas.len() {
                while !self.replicas[at].inbox.is_empty() {
                    self.deliver(at);
                }
                self.act(at);
                busy |= !matches!(self.plan(at), Plan::Rest(_));
                self.step(at);
            }
            self.now += SignedDuration::from_secs(4);
            if !busy && self.writes == before {
                return;
            }
        }
    }
}

fn view(node: &Node, provider: Provider) -> Live {
    let content = Content { labels: node.labels.clone(), ..Content::default() };
    Live { mark: node.mark, provider, content: Some(content), ..live(node.uid, node.version) }
}

fn last(node: &Node, version: Version, seen_at: Timestamp) -> End {
    let content = Content { labels: node.labels.clone(), ..Content::default() };
    let provider = Provider::Unread;
    End { content, mark: node.mark, hand: Hand::default(), provider, seen_at, ..end(node.uid, version) }
}

fn seen(version: Version, body: Body) -> Seen {
    Seen { uid: U4, version, foreign: false, sealed: true, body }
}
