//! What happened, one entry a change, in the order in which etcd took it.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use anyhow::Context;
use perennial_core::{
    kept::Pairs,
    record::{DATA_KEY, Record, Summary, record_node},
};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

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
    /// The hand that wrote last.
    pub hand: Option<String>,
    /// It has a deletionTimestamp.
    pub terminating: bool,
    /// A fingerprint of everything else: spec, status, finalizers, owners.
    pub rest: u64,
}

/// What the driver knows and history does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// Whoever may write now saw every life end, but for some that ended up to these versions.
    Missed {
        /// What ended up to this version may have been missed by one of them.
        by_one: u64,
        /// What ended up to this version may have been missed by all of them, or was seen by none who is able to act.
        by_all: u64,
    },
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
    #[derive(Deserialize)]
    struct Stored {
        metadata: Meta,
        #[serde(default)]
        data: BTreeMap<String, String>,
    }
    #[derive(Deserialize)]
    struct Meta {
        #[serde(default)]
        labels: Pairs,
        #[serde(default)]
        annotations: Pairs,
    }
    let Stored { metadata, data } = serde_json::from_slice(value).map_err(|error| error.to_string())?;
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
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Meta {
            uid: Uuid,
            #[serde(default)]
            labels: Pairs,
            #[serde(default)]
            annotations: Pairs,
            #[serde(default)]
            deletion_timestamp: Option<String>,
        }
        let mut object: Value = serde_json::from_slice(value)?;
        let mut rest = object["metadata"].take();
        let Meta { uid, labels, mut annotations, deletion_timestamp } = Meta::deserialize(&rest)?;
        // What is judged by itself, and what the API server writes of its own accord.
        if let Some(rest) = rest.as_object_mut() {
            for key in ["labels", "annotations", "managedFields", "deletionTimestamp", "generation"] {
                rest.remove(key);
            }
        }
        let mut hasher = DefaultHasher::new();
        (object.to_string(), rest.to_string()).hash(&mut hasher);
        let hand = annotations.remove(HAND);
        let terminating = deletion_timestamp.is_some();
        Ok(Self { uid, labels, annotations, hand, terminating, rest: hasher.finish() })
    }
}
