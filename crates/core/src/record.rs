//! What is remembered of one node.
//!
//! A [`Record`] is the content of one ConfigMap: [`Record::to_json`] writes its one key, [`Record::parse`]
//! reads it back and refuses whatever is not exactly a record of that node. A [`Summary`] is the part that
//! stands in the ConfigMap's annotations too, so that replicas can follow all records by metadata alone.
//!
//! ```text
//!                  the node changes: Save
//!                      ┌──────┐
//!    first seen        v      │   its end is seen, or proved: Close            a new incarnation: Give
//!   ───────────>  open(U1) ───┴──────────────────────────────> closed(U1) ──────────────────────────┐
//!                   ^                                                                               v
//!                   └───────── the Node is patched with what is missing, and marked ──────────  giving(U2)
//! ```

pub(crate) mod moment;
mod name;
pub mod plain;
mod seal;
mod shape;
mod states;
mod summary;

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::kept::{Digest, Kept, Pairs};
use shape::list_for_object;

pub use name::{record_name, record_node};
pub use seal::{SEAL, SealError, Seals};
pub use states::Past;
pub use summary::Summary;

/// The schema this binary writes. It never writes, gives or erases a record of a greater one.
///
/// An unknown field makes a record unreadable, so that nothing is lost by reading and writing it. So every change of the
/// fields, also one more that may be left out, raises this number: to an older build such a record is of a newer schema
/// and left alone, instead of broken and written anew. What the first release ships is schema 1; `tests/schema.rs`
/// freezes its fields. See "Schemas" in docs/design.md.
pub const SCHEMA: u32 = 1;

/// The one key of a record's ConfigMap.
pub const DATA_KEY: &str = "record.json";

/// What a record may take in its ConfigMap: the API server refuses more than 1 MiB of data, and metadata
/// and the undo history need room as well.
const MAX_BYTES: usize = 900 * 1024;

/// How many earlier kept states a record remembers for undo.
pub const PREVIOUS: usize = 5;

/// A `resourceVersion` of a Node. The API server's versions of one resource are comparable integers.
pub type Version = u64;

/// Where a record stands in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The incarnation lives; the record follows it and may lag.
    Open,
    /// The incarnation is dead and this is its end.
    Closed,
    /// This content is being given to the incarnation.
    Giving,
}

impl State {
    /// The word used in JSON, labels and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Giving => "giving",
        }
    }

    /// Reads back what [`State::as_str`] gave.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Open, Self::Closed, Self::Giving].into_iter().find(|state| state.as_str() == text)
    }
}

/// One life of a Node object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Incarnation {
    /// `metadata.uid`.
    pub uid: Uuid,
    /// `spec.providerID`, where it was read and set.
    #[serde(rename = "providerID", default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
}

/// A privileged label that waits until the machine's identity is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Waiting {
    /// The label's value.
    pub value: String,
    /// The `providerID` of the machine that bore it.
    #[serde(rename = "providerID", default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
}

/// Labels that wait, by key.
pub type WaitingKeys = BTreeMap<String, Waiting>;

/// An earlier kept state, for undo.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Previous {
    /// Whose it was.
    pub incarnation: Incarnation,
    /// What was kept.
    pub kept: Kept,
    /// Privileged labels that waited for their machine.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waiting: WaitingKeys,
    /// Since when it held: when it was recorded for the first time.
    pub captured_at: Timestamp,
    /// Digest of the policy that chose it. Where it is not known, nobody can tell what was there and not kept.
    #[serde(default, with = "known_digest_text", skip_serializing_if = "Option::is_none")]
    pub policy: Option<Digest>,
}

/// An end that could not be proved: history was gone before anybody looked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Unproved {
    /// Whose end is in doubt.
    pub uid: Uuid,
    /// The state the record was in: it says whose word counts should the real end turn up.
    pub from: State,
    /// What later lives bore, which did not get their own back: it lies over the real end, too.
    #[serde(default, skip_serializing_if = "Kept::is_empty")]
    pub later: Kept,
}

impl Unproved {
    /// The end of this incarnation is in doubt, and nothing came after it.
    #[must_use]
    pub fn new(uid: Uuid, from: State) -> Self {
        Self { uid, from, later: Kept::default() }
    }
}

/// What is remembered of one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Record {
    /// The schema version, [`SCHEMA`].
    pub schema: u32,
    /// The node's name.
    pub node: String,
    /// Where this record stands in its life.
    pub state: State,
    /// The incarnation it names.
    pub incarnation: Incarnation,
    /// The Node version at which this was true: saved from, seen at, or deleted at.
    #[serde(rename = "resourceVersion", with = "version_text")]
    pub version: Version,
    /// What is kept (open, closed) or to be given (giving).
    pub kept: Kept,
    /// Privileged labels whose machine is not known yet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waiting: WaitingKeys,
    /// Earlier kept states, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub previous: Vec<Previous>,
    /// When this was recorded.
    pub captured_at: Timestamp,
    /// When this content was recorded for the first time, if the record moved on with it since (closed, giving, open).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_since: Option<Timestamp>,
    /// When the incarnation's end was recorded (closed).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
    /// Grows by one with each write of ours; a new resourceVersion with an old sequence is a foreign edit.
    pub sequence: u64,
    /// Digest of the policy that chose what is kept, when it was first recorded.
    #[serde(with = "digest_text")]
    pub policy: Digest,
    /// The end that is in doubt, until its real end turns up or the mark is seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unproved: Option<Unproved>,
    /// The incarnation got its own back (open): older ends are never given to it again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given: bool,
    /// A person paused this node.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// Why some bytes are not a record that this binary may use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Written by a newer binary.
    #[error("schema {found} is newer than {SCHEMA}, the newest this binary knows: upgrade perennial")]
    Newer {
        /// The schema found.
        found: u64,
    },
    /// The key is not there.
    #[error("the key {DATA_KEY} is missing")]
    Missing,
    /// Not JSON, a missing or unknown field, a wrong type.
    #[error("{0}")]
    Malformed(String),
    /// A record of another node.
    #[error("it names the node {found:?} instead of {expected:?}")]
    OtherNode {
        /// The name in the record.
        found: String,
        /// The name the ConfigMap stands for.
        expected: String,
    },
}

/// A record does not fit into a ConfigMap: it takes so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it takes {0} bytes, which do not fit into a ConfigMap")]
pub struct TooLarge(pub usize);

impl Record {
    /// Since when its content holds.
    #[must_use]
    pub fn held_since(&self) -> Timestamp {
        self.kept_since.unwrap_or(self.captured_at)
    }

    /// Reads a record of `node` from the text of its [`DATA_KEY`].
    pub fn parse(node: &str, text: Option<&str>) -> Result<Self, ParseError> {
        /// The one field every schema has.
        #[derive(Deserialize)]
        struct Envelope {
            schema: u64,
        }
        let text = text.ok_or(ParseError::Missing)?;
        let malformed = |error: serde_json::Error| ParseError::Malformed(error.to_string());
        let found: Value = serde_json::from_str(text).map_err(malformed)?;
        if !found.is_object() {
            return Err(ParseError::Malformed("it is not an object".to_owned()));
        }
        let Envelope { schema } = Envelope::deserialize(&found).map_err(malformed)?;
        if schema > u64::from(SCHEMA) {
            return Err(ParseError::Newer { found: schema });
        }
        let record: Self = serde_json::from_str(text).map_err(malformed)?;
        if let Some(path) = list_for_object(&found, &json!(record)) {
            return Err(ParseError::Malformed(format!("{path} is a list instead of an object")));
        }
        if record.node != node {
            return Err(ParseError::OtherNode { found: record.node, expected: node.to_owned() });
        }
        if schema == 0 {
            return Err(ParseError::Malformed("schema 0 was never written".to_owned()));
        }
        Ok(record)
    }

    /// The text of [`DATA_KEY`], indented for the people who will read it with kubectl.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Makes it fit into a ConfigMap. Undo is worth less than what is undone: the earlier states go where there is no room
    /// for them. What does not fit even so is refused, never cut.
    pub fn fit(&mut self) -> Result<(), TooLarge> {
        let mut bytes = self.to_json().len();
        if bytes > MAX_BYTES && !self.previous.is_empty() {
            self.previous.clear();
            bytes = self.to_json().len();
        }
        if bytes > MAX_BYTES { Err(TooLarge(bytes)) } else { Ok(()) }
    }

    /// Every label remembered here, waiting ones too: what a rule's selector is matched against.
    #[must_use]
    pub fn labels(&self) -> Cow<'_, Pairs> {
        all_labels(&self.kept, &self.waiting)
    }

    /// Whether nothing is remembered here that could be given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.waiting.is_empty()
    }
}

/// Kept labels and waiting ones together.
pub(crate) fn all_labels<'a>(kept: &'a Kept, waiting: &WaitingKeys) -> Cow<'a, Pairs> {
    if waiting.is_empty() {
        return Cow::Borrowed(&kept.labels);
    }
    let mut labels = kept.labels.clone();
    for (key, waiting) in waiting {
        labels.entry(key.clone()).or_insert_with(|| waiting.value.clone());
    }
    Cow::Owned(labels)
}

mod version_text {
    //! Versions are text in Kubernetes JSON: numbers above 2^53 would not survive every reader.
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes every field by reference")]
    pub(super) fn serialize<S: Serializer>(version: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(version)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(|_| D::Error::custom(format!("{text:?} is not a resource version")))
    }
}

mod digest_text {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    use crate::kept::Digest;

    pub(super) fn serialize<S: Serializer>(digest: &Digest, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(digest)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Digest, D::Error> {
        let text = String::deserialize(from)?;
        Digest::parse(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is not a digest")))
    }
}

mod known_digest_text {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    use crate::kept::Digest;

    #[expect(clippy::ref_option, reason = "serde passes every field by reference")]
    pub(super) fn serialize<S: Serializer>(digest: &Option<Digest>, to: S) -> Result<S::Ok, S::Error> {
        match digest {
            Some(digest) => to.collect_str(digest),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Digest>, D::Error> {
        let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
        Digest::parse(&text).map(Some).ok_or_else(|| D::Error::custom(format!("{text:?} is not a digest")))
    }
}

#[cfg(test)]
mod tests;
