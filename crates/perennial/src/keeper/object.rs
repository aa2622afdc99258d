//! Nodes and records as the API server sends them: only the fields the keeper needs.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, DefaultHasher, Hash as _, Hasher as _, RandomState};

use jiff::{SignedDuration, Timestamp};
use perennial_core::keeper::born::{is_gated, stamped};
use perennial_core::keeper::{Body, End, Hand, Live, Mark, Provider, Seen};
use perennial_core::kept::{Content, Digest, Pairs, Taint};
use perennial_core::policy::Policy;
use perennial_core::record::{DATA_KEY, ParseError, Record, SEAL, Seals, Summary, Version, record_node};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::cluster::{Followed, Glance, Message, Meta, Outline, outline, version};

/// What stands for the policy of what a person wrote into a record.
const BY_HAND: &[u8] = b"a hand";
/// For so long after its birth a node is patched, and others write it at the same time.
const NEWBORN: SignedDuration = SignedDuration::from_mins(1);

/// A Node, whole or by its metadata alone.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct NodeObject {
    pub(crate) metadata: Meta,
    #[serde(default)]
    spec: Option<NodeSpec>,
}

#[derive(Clone, Debug, Deserialize)]
struct NodeSpec {
    #[serde(rename = "providerID", default)]
    provider_id: Option<String>,
    #[serde(default)]
    taints: Option<Vec<NodeTaint>>,
    #[serde(default)]
    unschedulable: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
struct NodeTaint {
    key: String,
    effect: String,
    #[serde(default)]
    value: Option<String>,
}

/// A Node as a patch is answered: with its status, which nothing is decided by.
#[derive(Debug, Deserialize)]
pub(crate) struct PatchedNode {
    metadata: Meta,
    #[serde(default)]
    spec: Option<NodeSpec>,
    #[serde(default)]
    status: Option<NodeStatus>,
}

#[derive(Debug, Deserialize)]
struct NodeStatus {
    #[serde(default)]
    conditions: Option<Vec<NodeCondition>>,
}

#[derive(Debug, Deserialize)]
struct NodeCondition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

impl PatchedNode {
    /// The node, and whether it is Ready.
    pub(crate) fn into_node(self) -> (NodeObject, bool) {
        let Self { metadata, spec, status } = self;
        let conditions = status.and_then(|status| status.conditions).unwrap_or_default();
        let ready = conditions.iter().any(|one| one.kind == "Ready" && one.status == "True");
        (NodeObject { metadata, spec }, ready)
    }
}

impl Followed for NodeObject {
    fn meta(&self) -> &Meta {
        &self.metadata
    }

    /// A heartbeat. What is heard of a newborn is passed on at once: its version is needed to patch it.
    fn glance<'a>(message: &'a Message, now: Timestamp, hasher: &RandomState) -> Option<Glance<'a>> {
        match message {
            Message::Json(line) => Self::glance_json(line, now, hasher),
            Message::Protobuf(frame) => Self::glance_protobuf(frame, now, hasher),
        }
    }

    fn of_metadata() -> Option<fn(Meta) -> Self> {
        Some(|metadata| Self { metadata, spec: None })
    }
}

impl NodeObject {
    fn glance_protobuf<'a>(frame: &'a [u8], now: Timestamp, hasher: &RandomState) -> Option<Glance<'a>> {
        let Outline { name, uid, version, created, terminating, bears: matters } = outline(frame, hasher)?;
        let passed_on = terminating || is_newborn(created, now);
        (!passed_on).then(|| Glance { name: name.into(), uid, version, matters })
    }

    fn glance_json<'a>(line: &'a [u8], now: Timestamp, hasher: &RandomState) -> Option<Glance<'a>> {
        #[derive(Deserialize)]
        struct Line<'a> {
            #[serde(rename = "type", borrow)]
            kind: Cow<'a, str>,
            #[serde(borrow)]
            object: Object<'a>,
        }
        #[derive(Deserialize)]
        struct Object<'a> {
            #[serde(borrow)]
            metadata: Metadata<'a>,
            #[serde(borrow, default)]
            spec: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metadata<'a> {
            #[serde(borrow)]
            name: Cow<'a, str>,
            uid: Uuid,
            #[serde(deserialize_with = "version")]
            resource_version: Version,
            creation_timestamp: Timestamp,
            #[serde(default)]
            deletion_timestamp: Option<IgnoredAny>,
            #[serde(borrow, default)]
            labels: Option<&'a RawValue>,
            #[serde(borrow, default)]
            annotations: Option<&'a RawValue>,
        }
        let Line { kind, object: Object { metadata, spec } } = serde_json::from_slice(line).ok()?;
        let newborn = is_newborn(metadata.creation_timestamp, now);
        if kind != "MODIFIED" || metadata.deletion_timestamp.is_some() || newborn {
            return None;
        }
        let matters =
            [metadata.labels, metadata.annotations, spec].map(|part| part.map_or("", RawValue::get));
        let matters = hasher.hash_one(matters);
        Some(Glance { name: metadata.name, uid: metadata.uid, version: metadata.resource_version, matters })
    }

    /// A fingerprint of everything a decision could depend on, but for the version. It is never 0.
    pub(crate) fn fingerprint(&self, policy: &Policy) -> u64 {
        let mut hasher = DefaultHasher::new();
        let Meta {
            name: _,
            namespace: _,
            generation: _,
            uid,
            resource_version: _,
            creation_timestamp: _,
            deletion_timestamp,
            labels,
            annotations,
        } = &self.metadata;
        (uid, deletion_timestamp.is_some(), labels).hash(&mut hasher);
        for pair in annotations.iter().flatten().filter(|(key, _)| matters(key, policy)) {
            pair.hash(&mut hasher);
        }
        if policy.needs_spec()
            && let Some(spec) = &self.spec
        {
            spec.unschedulable.hash(&mut hasher);
            for taint in spec.taints.iter().flatten() {
                (&taint.key, &taint.effect, &taint.value).hash(&mut hasher);
            }
        }
        hasher.finish().max(1)
    }

    /// Whether it bears its mark.
    pub(crate) fn is_marked(&self, installation: &str) -> bool {
        let annotations = self.metadata.annotations.as_ref();
        annotations.is_some_and(|pairs| Mark::read(pairs, installation, self.metadata.uid) != Mark::None)
    }

    /// The living incarnation this object shows.
    pub(crate) fn into_live(self, installation: &str, policy: &Policy, now: Timestamp) -> Live {
        let Self { metadata, spec } = self;
        let annotations = metadata.annotations.unwrap_or_default();
        let provider =
            spec.as_ref().map_or(Provider::Unread, |spec| Provider::Read(spec.provider_id.clone()));
        let labels = metadata.labels.unwrap_or_default();
        let mark = Mark::read(&annotations, installation, metadata.uid);
        let born =
            if mark == Mark::None { stamped(&labels, &annotations, installation) } else { Pairs::new() };
        let gated = is_gated(&annotations, installation);
        Live {
            uid: metadata.uid,
            version: metadata.resource_version,
            created: metadata.creation_timestamp.unwrap_or(now),
            terminating: metadata.deletion_timestamp.is_some(),
            mark,
            hand: Hand::read(&annotations),
            digest: Digest::of(&[]),
            bare: true,
            wants_identity: false,
            provider,
            content: Some(Content { born, gated, ..content(labels, annotations, spec, policy) }),
        }
    }

    /// `spec.providerID`, where this is a whole object that has one.
    pub(crate) fn provider_id(&self) -> Option<&str> {
        self.spec.as_ref()?.provider_id.as_deref()
    }

    /// The end this object is. A DELETED event carries the final object at the version of its deletion;
    /// a proof knows that version from elsewhere.
    pub(crate) fn into_end(
        self,
        deleted: Version,
        installation: &str,
        policy: &Policy,
        seen_at: Timestamp,
    ) -> End {
        let live = self.into_live(installation, policy, seen_at);
        End {
            uid: live.uid,
            version: deleted,
            content: live.content.unwrap_or_default(),
            mark: live.mark,
            hand: live.hand,
            provider: live.provider,
            seen_at,
        }
    }
}

/// Whether a node may have registered just now.
fn is_newborn(created: Timestamp, now: Timestamp) -> bool {
    now.duration_since(created) < NEWBORN
}

/// Whether an annotation can matter to a decision: many nodes carry large ones that never do.
fn matters(key: &str, policy: &Policy) -> bool {
    policy.keeps_annotations() || key.contains("perennial.dev/")
}

fn content(labels: Pairs, mut annotations: Pairs, spec: Option<NodeSpec>, policy: &Policy) -> Content {
    annotations.retain(|key, _| matters(key, policy));
    let (taints, unschedulable) = spec.map_or((None, None), |spec| (spec.taints, spec.unschedulable));
    let taint = |taint: NodeTaint| Taint {
        key: taint.key,
        effect: taint.effect,
        value: taint.value.unwrap_or_default(),
    };
    Content {
        labels,
        annotations,
        taints: taints.unwrap_or_default().into_iter().map(taint).collect(),
        unschedulable: unschedulable.unwrap_or_default(),
        ..Content::default()
    }
}

/// A ConfigMap, whole or by its metadata alone.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecordObject {
    pub(crate) metadata: Meta,
    #[serde(default)]
    pub(crate) data: Option<Pairs>,
    #[serde(default)]
    pub(crate) binary_data: Option<Pairs>,
}

impl Followed for RecordObject {
    fn meta(&self) -> &Meta {
        &self.metadata
    }

    fn of_metadata() -> Option<fn(Meta) -> Self> {
        Some(|metadata| Self { metadata, data: None, binary_data: None })
    }
}

impl RecordObject {
    /// The node whose record this is; `None` for any other ConfigMap.
    pub(crate) fn node(&self) -> Option<&str> {
        let annotated = self.metadata.annotations.as_ref().and_then(Summary::node_hint);
        record_node(&self.metadata.name, annotated)
    }

    /// The record as its metadata shows it. `known` is the sequence seen before, at another version: an event
    /// that does not raise it is a foreign edit.
    pub(crate) fn by_metadata(&self, known: Option<(Version, u64)>) -> Seen {
        let annotations = self.metadata.annotations.as_ref();
        let hint = annotations.and_then(Summary::uid_hint);
        let foreign_edit = |summary: &Summary| {
            known.is_some_and(|(version, sequence)| {
                version != self.metadata.resource_version && summary.sequence <= sequence
            })
        };
        let body = match annotations.and_then(Summary::from_annotations) {
            Some(summary) if !foreign_edit(&summary) => Body::Summary(summary),
            _ => Body::Unread { hint },
        };
        self.seen(body)
    }

    /// The record as its content shows it, if it is believed.
    pub(crate) fn whole(&self, node: &str, seals: Option<&Seals>) -> Seen {
        let text = self.data.as_ref().and_then(|data| data.get(DATA_KEY)).map(String::as_str);
        let annotations = self.metadata.annotations.as_ref();
        let hint = annotations.and_then(Summary::uid_hint);
        let believed = seals.map_or(Ok(()), |seals| seals.check(node, text.unwrap_or_default(), annotations));
        let body = match believed.map(|()| Record::parse(node, text)) {
            Err(why) => Body::Unreadable { why: why.to_owned(), hint, aside: false },
            Ok(Ok(mut record)) => {
                let told = annotations.and_then(Summary::from_annotations);
                if told.is_some_and(|told| told.digest != record.kept.digest()) {
                    // Somebody edited it: no policy chose that, and what it lacks may have been there.
                    record.policy = Digest::of(BY_HAND);
                }
                Body::Whole(Box::new(record))
            }
            Ok(Err(ParseError::Newer { .. })) => Body::Newer,
            Ok(Err(error)) => Body::Unreadable { why: error.to_string(), hint, aside: false },
        };
        self.seen(body)
    }

    /// The record of which this is the metadata, and which is known to hold just this.
    pub(crate) fn holding(&self, record: Box<Record>) -> Seen {
        self.seen(Body::Whole(record))
    }

    fn seen(&self, body: Body) -> Seen {
        let Meta { uid, resource_version: version, annotations, .. } = &self.metadata;
        let sealed = annotations.as_ref().is_some_and(|annotations| annotations.contains_key(SEAL));
        Seen { uid: *uid, version: *version, foreign: false, sealed, body }
    }
}
