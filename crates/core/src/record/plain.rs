//! Records for a process's own memory: every field in its place, without names.
//!
//! What is in a ConfigMap leaves out what is not set, and such text can only be read back where fields have names. This
//! form is smaller, and of no use to anybody but the process that made it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use super::moment;
use super::{Incarnation, Previous, Record, State, Unproved, Version, Waiting, WaitingKeys};
use crate::kept::{Digest, Kept, Pairs, Taint};

/// As `#[serde(with)]` wants it.
pub fn serialize<S: Serializer>(record: &Record, to: S) -> Result<S::Ok, S::Error> {
    Plain::from(record.clone()).serialize(to)
}

/// As `#[serde(with)]` wants it.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Box<Record>, D::Error> {
    Plain::deserialize(from).map(|plain| Box::new(plain.into()))
}

/// The same for a record that may not be there.
pub mod optional {
    use super::{Deserialize, Deserializer, Plain, Record, Serialize, Serializer};

    /// As `#[serde(with)]` wants it.
    pub fn serialize<S: Serializer>(record: &Option<Box<Record>>, to: S) -> Result<S::Ok, S::Error> {
        record.as_deref().cloned().map(Plain::from).serialize(to)
    }

    /// As `#[serde(with)]` wants it.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Box<Record>>, D::Error> {
        Ok(Option::<Plain>::deserialize(from)?.map(|plain| Box::new(plain.into())))
    }
}

/// The same for taints.
pub(crate) mod taints {
    use super::{Deserialize, Deserializer, PlainTaint, Serialize, Serializer, Taint, named_taints};

    pub(crate) fn serialize<S: Serializer>(taints: &[Taint], to: S) -> Result<S::Ok, S::Error> {
        let plain: Vec<_> = taints.iter().map(|Taint { key, effect, value }| (key, effect, value)).collect();
        plain.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Taint>, D::Error> {
        Vec::<PlainTaint>::deserialize(from).map(named_taints)
    }
}

/// A [`Taint`].
type PlainTaint = (String, String, String);

/// A [`Record`].
#[derive(Serialize, Deserialize)]
struct Plain {
    schema: u32,
    node: String,
    state: State,
    life: Life,
    version: Version,
    kept: PlainKept,
    waiting: BTreeMap<String, (String, Option<String>)>,
    previous: Vec<PlainPrevious>,
    #[serde(with = "moment")]
    captured_at: Timestamp,
    #[serde(with = "moment::optional")]
    kept_since: Option<Timestamp>,
    #[serde(with = "moment::optional")]
    deleted_at: Option<Timestamp>,
    sequence: u64,
    policy: Digest,
    unproved: Option<(Uuid, State, PlainKept)>,
    given: bool,
    paused: bool,
}

/// An [`Incarnation`].
#[derive(Serialize, Deserialize)]
struct Life(Uuid, Option<String>);

/// A [`Kept`].
#[derive(Serialize, Deserialize)]
struct PlainKept {
    labels: Pairs,
    annotations: Pairs,
    taints: Vec<PlainTaint>,
    unschedulable: bool,
}

/// A [`Previous`].
#[derive(Serialize, Deserialize)]
struct PlainPrevious {
    life: Life,
    kept: PlainKept,
    waiting: BTreeMap<String, (String, Option<String>)>,
    #[serde(with = "moment")]
    captured_at: Timestamp,
    policy: Option<Digest>,
}

impl From<Record> for Plain {
    fn from(record: Record) -> Self {
        let Record {
            schema,
            node,
            state,
            incarnation,
            version,
            kept,
            waiting,
            previous,
            captured_at,
            kept_since,
            deleted_at,
            sequence,
            policy,
            unproved,
            given,
            paused,
        } = record;
        Self {
            schema,
            node,
            state,
            life: incarnation.into(),
            version,
            kept: kept.into(),
            waiting: plain_waiting(waiting),
            previous: previous.into_iter().map(PlainPrevious::from).collect(),
            captured_at,
            kept_since,
            deleted_at,
            sequence,
            policy,
            unproved: unproved.map(|Unproved { uid, from, later }| (uid, from, later.into())),
            given,
            paused,
        }
    }
}

impl From<Plain> for Record {
    fn from(plain: Plain) -> Self {
        let Plain {
            schema,
            node,
            state,
            life,
            version,
            kept,
            waiting,
            previous,
            captured_at,
            kept_since,
            deleted_at,
            sequence,
            policy,
            unproved,
            given,
            paused,
        } = plain;
        Self {
            schema,
            node,
            state,
            incarnation: life.into(),
            version,
            kept: kept.into(),
            waiting: named_waiting(waiting),
            previous: previous.into_iter().map(Previous::from).collect(),
            captured_at,
            kept_since,
            deleted_at,
            sequence,
            policy,
            unproved: unproved.map(|(uid, from, later)| Unproved { uid, from, later: later.into() }),
            given,
            paused,
        }
    }
}

impl From<Incarnation> for Life {
    fn from(Incarnation { uid, provider_id }: Incarnation) -> Self {
        Self(uid, provider_id)
    }
}

impl From<Life> for Incarnation {
    fn from(Life(uid, provider_id): Life) -> Self {
        Self { uid, provider_id }
    }
}

impl From<Kept> for PlainKept {
    fn from(Kept { labels, annotations, taints, unschedulable }: Kept) -> Self {
        let taints = taints.into_iter().map(|Taint { key, effect, value }| (key, effect, value)).collect();
        Self { labels, annotations, taints, unschedulable }
    }
}

impl From<PlainKept> for Kept {
    fn from(PlainKept { labels, annotations, taints, unschedulable }: PlainKept) -> Self {
        Self { labels, annotations, taints: named_taints(taints), unschedulable }
    }
}

impl From<Previous> for PlainPrevious {
    fn from(Previous { incarnation, kept, waiting, captured_at, policy }: Previous) -> Self {
        let waiting = plain_waiting(waiting);
        Self { life: incarnation.into(), kept: kept.into(), waiting, captured_at, policy }
    }
}

impl From<PlainPrevious> for Previous {
    fn from(PlainPrevious { life, kept, waiting, captured_at, policy }: PlainPrevious) -> Self {
        let waiting = named_waiting(waiting);
        Self { incarnation: life.into(), kept: kept.into(), waiting, captured_at, policy }
    }
}

fn named_taints(taints: Vec<PlainTaint>) -> Vec<Taint> {
    taints.into_iter().map(|(key, effect, value)| Taint { key, effect, value }).collect()
}

fn plain_waiting(waiting: WaitingKeys) -> BTreeMap<String, (String, Option<String>)> {
    waiting.into_iter().map(|(key, Waiting { value, provider_id })| (key, (value, provider_id))).collect()
}

fn named_waiting(waiting: BTreeMap<String, (String, Option<String>)>) -> WaitingKeys {
    waiting.into_iter().map(|(key, (value, provider_id))| (key, Waiting { value, provider_id })).collect()
}
