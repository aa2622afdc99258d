//! The part of a record that its ConfigMap's annotations repeat.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::moment;
use super::{Record, State, Version, record_name, record_node};
use crate::kept::{Digest, Pairs};

/// The annotation that carries the node's name, where the ConfigMap's name does not tell it.
const NODE: &str = "perennial.dev/node";
/// The one that carries the summary: `key=value` and flags, with a space between them. One annotation costs the API server,
/// and everybody who watches, less than ten.
const SUMMARY: &str = "perennial.dev/summary";

const SCHEMA: &str = "schema";
const STATE: &str = "state";
const UID: &str = "uid";
const VERSION: &str = "version";
const SEQUENCE: &str = "sequence";
const DIGEST: &str = "digest";
const POLICY: &str = "policy";
const PROVIDER: &str = "provider";
const SINCE: &str = "since";

const WAITING: &str = "waiting";
const GIVEN: &str = "given";
const PAUSED: &str = "paused";
const EMPTY: &str = "empty";
const UNPROVED: &str = "unproved";
const WENT_BACK: &str = "back";

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
        let mut text = format!(
            "{SCHEMA}={} {STATE}={} {UID}={uid} {VERSION}={version} {SEQUENCE}={sequence} {DIGEST}={digest} \
             {POLICY}={policy} {SINCE}={since}",
            self.schema,
            state.as_str(),
        );
        if let Some(provider) = provider {
            text.extend([" ", PROVIDER, "=", &provider.to_string()]);
        }
        let flags = [
            (waiting, WAITING),
            (given, GIVEN),
            (paused, PAUSED),
            (empty, EMPTY),
            (unproved, UNPROVED),
            (went_back, WENT_BACK),
        ];
        for (_, flag) in flags.into_iter().filter(|(set, _)| *set) {
            text.extend([" ", flag]);
        }
        let mut pairs = Pairs::from([(SUMMARY.to_owned(), text)]);
        let name = record_name(&self.node);
        if record_node(&name, None) != Some(&self.node) {
            pairs.insert(NODE.to_owned(), self.node.clone());
        }
        pairs
    }
}

impl Summary {
    /// Reads the annotations back; `None` where they are not whole or of another schema, so that the record
    /// itself has to be read and judged.
    #[must_use]
    pub fn from_annotations(pairs: &Pairs) -> Option<Self> {
        let words = Words::of(pairs)?;
        if words.schema?.parse() != Ok(super::SCHEMA) {
            return None;
        }
        let provider = match words.provider {
            Some(digest) => Some(Digest::parse(digest)?),
            None => None,
        };
        Some(Self {
            state: State::parse(words.state?)?,
            uid: words.uid?.parse().ok()?,
            version: words.version?.parse().ok()?,
            sequence: words.sequence?.parse().ok()?,
            digest: Digest::parse(words.digest?)?,
            policy: Digest::parse(words.policy?)?,
            provider,
            since: words.since?.parse().ok()?,
            waiting: words.waiting,
            given: words.given,
            paused: words.paused,
            empty: words.empty,
            unproved: words.unproved,
            went_back: words.went_back,
        })
    }

    /// The uid that the annotations name, whatever else is broken.
    #[must_use]
    pub fn uid_hint(pairs: &Pairs) -> Option<Uuid> {
        Words::of(pairs)?.uid?.parse().ok()
    }

    /// The node that the annotations name.
    #[must_use]
    pub fn node_hint(pairs: &Pairs) -> Option<&str> {
        pairs.get(NODE).map(String::as_str)
    }
}

/// What the annotation says, before anything is made of it.
#[derive(Default)]
struct Words<'a> {
    schema: Option<&'a str>,
    state: Option<&'a str>,
    uid: Option<&'a str>,
    version: Option<&'a str>,
    sequence: Option<&'a str>,
    digest: Option<&'a str>,
    policy: Option<&'a str>,
    provider: Option<&'a str>,
    since: Option<&'a str>,
    waiting: bool,
    given: bool,
    paused: bool,
    empty: bool,
    unproved: bool,
    went_back: bool,
}

impl<'a> Words<'a> {
    fn of(pairs: &'a Pairs) -> Option<Self> {
        let mut words = Self::default();
        for word in pairs.get(SUMMARY)?.split(' ') {
            match word.split_once('=') {
                Some((key, value)) => words.take(key, value),
                None => words.set(word),
            }
        }
        Some(words)
    }

    fn take(&mut self, key: &str, value: &'a str) {
        let place = match key {
            SCHEMA => &mut self.schema,
            STATE => &mut self.state,
            UID => &mut self.uid,
            VERSION => &mut self.version,
            SEQUENCE => &mut self.sequence,
            DIGEST => &mut self.digest,
            POLICY => &mut self.policy,
            PROVIDER => &mut self.provider,
            SINCE => &mut self.since,
            _ => return,
        };
        place.get_or_insert(value);
    }

    fn set(&mut self, flag: &str) {
        match flag {
            WAITING => self.waiting = true,
            GIVEN => self.given = true,
            PAUSED => self.paused = true,
            EMPTY => self.empty = true,
            UNPROVED => self.unproved = true,
            WENT_BACK => self.went_back = true,
            _ => {}
        }
    }
}
