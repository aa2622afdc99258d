//! What happened, one entry a change, in the order in which etcd took it.

use anyhow::Context;
use perennial_core::{
    keeper::Hand,
    kept::{Content, Kept, Pairs, Taint},
    record::{DATA_KEY, Record, Summary, record_node},
};
use uuid::Uuid;

use super::{
    stored::{StoredMap, StoredNode},
    versions::Versions,
};

/// The annotation that people and kubelets of a test change with every write of theirs, each time to a value that
/// was never there before. Whatever else changes a Node is a keeper.
pub const HAND: &str = "hand.example.com/write";

/// The label by which a starting replica finds closed records.
const STATE_LABEL: &str = "perennial.dev/state";

/// One change, at its revision in etcd, which is also the object's resource version.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The revision.
    pub version: u64,
    /// What changed.
    pub fact: Fact,
}

/// What changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// A Node was written, or is gone.
    Node {
        /// Its name.
        name: String,
        /// As it is now; nothing where it was deleted.
        seen: Option<Sighting>,
    },
    /// A record was written, or is gone.
    Record {
        /// The node's name.
        node: String,
        /// As it is now, or why it cannot be read; nothing where it was deleted.
        found: Option<Result<Box<Record>, String>>,
    },
    /// The driver told something.
    Told(Told),
}

/// A Node as it was at some version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Which incarnation.
    pub uid: Uuid,
    /// Its labels.
    pub labels: Pairs,
    /// Its annotations but for [`HAND`].
    pub annotations: Pairs,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// It is cordoned.
    pub unschedulable: bool,
    /// The hand that wrote last.
    pub hand: Option<String>,
    /// It has a deletionTimestamp.
    pub terminating: bool,
    /// A fingerprint of everything else: the rest of the spec, status, finalizers, owners.
    pub rest: u64,
}

/// What the driver knows and history does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The replicas that may write now saw every life end, but for some that ended at these versions.
    Missed {
        /// One of the replicas may have missed what ended at these versions.
        by_one: Versions,
        /// Every replica may have missed what ended at these versions, or no replica that saw it is able to act.
        by_all: Versions,
    },
    /// A person is about to remove the record of this node. Its next removal is theirs.
    Removing(String),
    /// That removal is over, whether or not there was a record.
    Removed(String),
    /// All replicas are in step, and nothing is being done to them.
    Calm,
    /// etcd has forgotten, or a replica was told so, what lies before this version.
    Compacted(u64),
    /// etcd was turned back to what it was at this version. Late writes may still come from the other history.
    Restored(u64),
    /// Every replica has noticed that, and is in step again: nothing comes from the other history any more.
    Noticed,
    /// Nothing kept changes from here on: no keeper may write.
    Quiet,
    /// A replica asked for a write, whatever came of it.
    Asked {
        /// Who.
        replica: String,
        /// For what.
        what: String,
    },
    /// Things may change again.
    Loud,
    /// The API server refused a Node.
    Refused {
        /// The node.
        node: String,
        /// What it said.
        why: String,
    },
    /// Something to show in timelines.
    Note(String),
}

impl Entry {
    /// Reads one from what etcd stores as JSON under `key`: `None` if it is neither a Node nor a record.
    pub(super) fn read(version: u64, key: &str, value: Option<&[u8]>) -> anyhow::Result<Option<Self>> {
        let mut path = key.split('/').skip(2);
        let fact = match (path.next(), path.next(), path.next()) {
            (Some("minions"), Some(name), None) => {
                let seen = value.map(Sighting::read).transpose();
                Fact::Node { name: name.to_owned(), seen: seen.with_context(|| key.to_owned())? }
            }
            (Some("configmaps"), Some(_), Some(name)) => {
                let Some(node) = record_node(name, None) else { return Ok(None) };
                let found = value.map(|value| read_record(node, value));
                Fact::Record { node: node.to_owned(), found }
            }
            _ => return Ok(None),
        };
        Ok(Some(Self { version, fact }))
    }

    /// Whether it still holds after etcd was turned back to this revision.
    pub(super) fn stays(&self, revision: u64) -> bool {
        match &self.fact {
            Fact::Told(Told::Quiet | Told::Loud) => false,
            // What lies after this was not forgotten by anybody: it has yet to happen.
            Fact::Told(Told::Compacted(at)) => *at <= revision,
            Fact::Told(_) => true,
            Fact::Node { .. } | Fact::Record { .. } => self.version <= revision,
        }
    }

    /// The node it is about.
    #[must_use]
    pub fn node(&self) -> Option<&str> {
        match &self.fact {
            Fact::Node { name, .. } => Some(name),
            Fact::Record { node, .. } | Fact::Told(Told::Refused { node, .. }) => Some(node),
            Fact::Told(_) => None,
        }
    }
}

fn read_record(node: &str, value: &[u8]) -> Result<Box<Record>, String> {
    let StoredMap { metadata, data } = StoredMap::read(value).map_err(|error| error.to_string())?;
    let text = data.get(DATA_KEY).map(String::as_str);
    let record = Record::parse(node, text).map_err(|error| error.to_string())?;
    // Replicas follow records by their metadata alone: what that says is as good as the record itself.
    let summary = Summary::from_annotations(&metadata.annotations);
    if summary != Some(record.summary()) {
        return Err(format!("its annotations say {summary:?}, but it says {:?}", record.summary()));
    }
    let label = metadata.labels.get(STATE_LABEL).map(String::as_str);
    if label != Some(record.state.as_str()) {
        return Err(format!("its label says {label:?}, but it is {}", record.state.as_str()));
    }
    Ok(Box::new(record))
}

impl Sighting {
    fn read(value: &[u8]) -> anyhow::Result<Self> {
        let StoredNode { uid, labels, mut annotations, terminating, taints, unschedulable, rest } =
            StoredNode::read(value)?;
        let hand = annotations.remove(HAND);
        Ok(Self { uid, labels, annotations, taints, unschedulable, hand, terminating, rest })
    }

    /// What it bears, as a policy is asked about it.
    pub(super) fn content(&self) -> Content {
        let Self { labels, annotations, taints, unschedulable, .. } = self;
        Content {
            labels: labels.clone(),
            annotations: annotations.clone(),
            taints: taints.clone(),
            unschedulable: *unschedulable,
            ..Content::default()
        }
    }

    /// Everything that it bears, as one set of pairs; see [`flat`].
    pub(super) fn pairs(&self) -> Pairs {
        let Content { labels, annotations, taints, unschedulable, .. } = self.content();
        flat(&Kept { labels, annotations, taints, unschedulable })
    }

    /// What people asked for by annotation.
    pub(super) fn asked(&self) -> Hand {
        Hand::read(&self.annotations)
    }
}

/// Labels, annotations, taints and cordon as one set of pairs, so that all are judged alike. Labels keep their keys; the
/// keys of all others contain a space, which no key of Kubernetes does.
pub(super) fn flat(kept: &Kept) -> Pairs {
    let Kept { labels, annotations, taints, unschedulable } = kept;
    let mut all = labels.clone();
    all.extend(annotations.iter().map(|(key, value)| (format!("annotation {key}"), value.clone())));
    let taints =
        taints.iter().map(|Taint { key, effect, value }| (format!("taint {key}:{effect}"), value.clone()));
    all.extend(taints);
    all.extend(unschedulable.then(|| ("the cordon".to_owned(), "yes".to_owned())));
    all
}
