//! The part of a record that its ConfigMap's annotations repeat.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::moment;
use super::{Record, State, Version};
use crate::kept::{Digest, Pairs};

/// The annotation that carries the node's name.
const NODE: &str = "perennial.dev/node";
const SCHEMA: &str = "perennial.dev/schema";
const STATE: &str = "perennial.dev/state";
const UID: &str = "perennial.dev/uid";
const VERSION: &str = "perennial.dev/version";
const SEQUENCE: &str = "perennial.dev/sequence";
const DIGEST: &str = "perennial.dev/digest";
const POLICY: &str = "perennial.dev/policy";
const PROVIDER: &str = "perennial.dev/provider";
const SINCE: &str = "perennial.dev/since";
const FLAGS: &str = "perennial.dev/flags";

/// What a replica knows of a record from its metadata alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Summary {
    /// See [`Record::state`].
    pub state: State,
    /// The uid of [`Record::incarnation`].
    pub uid: Uuid,
    /// See [`Record::version`].
    pub version: Version,
    /// See [`Record::sequence`].
    pub sequence: u64,
    /// Digest of [`Record::kept`].
    pub digest: Digest,
    /// See [`Record::policy`].
    pub policy: Digest,
    /// Digest of the incarnation's `providerID`, where it has one.
    pub provider: Option<Digest>,
    /// When the content was recorded, or the end for a closed one.
    #[serde(with = "moment")]
    pub since: Timestamp,
    /// Some keys wait for identity.
    pub waiting: bool,
    /// See [`Record::given`].
    pub given: bool,
    /// See [`Record::paused`].
    pub paused: bool,
    /// There is nothing in it.
    pub empty: bool,
    /// An end is in doubt, see [`Record::unproved`].
    pub unproved: bool,
    /// See [`Record::went_back`].
    pub went_back: bool,
}

impl Record {
    /// The part of this record that its annotations repeat.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary {
            state: self.state,
            uid: self.incarnation.uid,
            version: self.version,
            sequence: self.sequence,
            digest: self.kept.digest(),
            policy: self.policy,
            provider: self.incarnation.provider_id.as_ref().map(|id| Digest::of(id.as_bytes())),
            since: self.deleted_at.unwrap_or(self.captured_at),
            waiting: !self.waiting.is_empty(),
            given: self.given,
            paused: self.paused,
            empty: self.is_empty(),
            unproved: self.unproved.is_some(),
            went_back: self.went_back(),
        }
    }

    /// The annotations of this record's ConfigMap.
    #[must_use]
    pub fn annotations(&self) -> Pairs {
        let Summary {
            state,
            uid,
            version,
            sequence,
            digest,
            policy,
            provider,
            since,
            waiting,
            given,
            paused,
            empty,
            unproved,
            went_back,
        } = self.summary();
        let flags = [
            (waiting, "waiting"),
            (given, "given"),
            (paused, "paused"),
            (empty, "empty"),
            (unproved, "unproved"),
            (went_back, "back"),
        ];
        let flags: Vec<_> = flags.into_iter().filter_map(|(set, name)| set.then_some(name)).collect();
        let mut pairs = Pairs::from(
            [
                (NODE, self.node.clone()),
                (SCHEMA, self.schema.to_string()),
                (STATE, state.as_str().to_owned()),
                (UID, uid.to_string()),
                (VERSION, version.to_string()),
                (SEQUENCE, sequence.to_string()),
                (DIGEST, digest.to_string()),
                (POLICY, policy.to_string()),
                (SINCE, since.to_string()),
                (FLAGS, flags.join(",")),
            ]
            .map(|(key, value)| (key.to_owned(), value)),
        );
        if let Some(provider) = provider {
            pairs.insert(PROVIDER.to_owned(), provider.to_string());
        }
        pairs
    }
}

impl Summary {
    /// Reads the annotations back; `None` where they are not whole or of another schema, so that the record
    /// itself has to be read and judged.
    #[must_use]
    pub fn from_annotations(pairs: &Pairs) -> Option<Self> {
        let text = |key: &str| pairs.get(key).map(String::as_str);
        if text(SCHEMA)? != super::SCHEMA.to_string() {
            return None;
        }
        let flags: Vec<&str> = text(FLAGS)?.split(',').collect();
        let provider = match text(PROVIDER) {
            Some(digest) => Some(Digest::parse(digest)?),
            None => None,
        };
        Some(Self {
            state: State::parse(text(STATE)?)?,
            uid: Self::uid_hint(pairs)?,
            version: text(VERSION)?.parse().ok()?,
            sequence: text(SEQUENCE)?.parse().ok()?,
            digest: Digest::parse(text(DIGEST)?)?,
            policy: Digest::parse(text(POLICY)?)?,
            provider,
            since: text(SINCE)?.parse().ok()?,
            waiting: flags.contains(&"waiting"),
            given: flags.contains(&"given"),
            paused: flags.contains(&"paused"),
            empty: flags.contains(&"empty"),
            unproved: flags.contains(&"unproved"),
            went_back: flags.contains(&"back"),
        })
    }

    /// The uid that the annotations name, whatever else is broken.
    #[must_use]
    pub fn uid_hint(pairs: &Pairs) -> Option<Uuid> {
        pairs.get(UID)?.parse().ok()
    }

    /// The node that the annotations name.
    #[must_use]
    pub fn node_hint(pairs: &Pairs) -> Option<&str> {
        pairs.get(NODE).map(String::as_str)
    }
}
