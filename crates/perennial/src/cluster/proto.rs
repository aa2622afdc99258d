//! Events of a watch in protobuf: half as many bytes as in JSON, and a fraction of the work, for the API server as well.
//!
//! ```text
//! WatchEvent { type, object } ── object: "k8s\0" Unknown { kind, raw } ── raw: PartialObjectMetadata, or Status
//! ```
//! Only what is asked for by metadata alone comes like this. The numbers are those of Kubernetes' own `generated.proto`
//! files, which never change.

use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};

use bytes::{Buf as _, Bytes};
use jiff::Timestamp;
use kube::core::Status;
use kube::core::response::StatusDetails;
use perennial_core::kept::Pairs;
use perennial_core::record::Version;
use prost::{Message, decode_length_delimiter};
use uuid::Uuid;

use super::Meta;
use super::stream::Heard;

/// The content type.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// What every object in protobuf begins with.
pub(super) const MAGIC: &[u8] = b"k8s\0";

#[derive(Clone, PartialEq, Message)]
struct WatchEvent {
    #[prost(bytes = "bytes", tag = "1")]
    kind: Bytes,
    #[prost(message, optional, tag = "2")]
    object: Option<RawExtension>,
}

#[derive(Clone, PartialEq, Message)]
struct RawExtension {
    #[prost(bytes = "bytes", tag = "1")]
    raw: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct Unknown {
    #[prost(bytes = "bytes", tag = "2")]
    raw: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct PartialObjectMetadata {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
}

#[derive(Clone, PartialEq, Message)]
struct ObjectMeta {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, optional, tag = "3")]
    namespace: Option<String>,
    #[prost(bytes = "bytes", tag = "5")]
    uid: Bytes,
    #[prost(bytes = "bytes", tag = "6")]
    resource_version: Bytes,
    #[prost(int64, optional, tag = "7")]
    generation: Option<i64>,
    #[prost(message, optional, tag = "8")]
    creation_timestamp: Option<Time>,
    #[prost(message, optional, tag = "9")]
    deletion_timestamp: Option<Time>,
    #[prost(message, repeated, tag = "11")]
    labels: Vec<Pair>,
    #[prost(message, repeated, tag = "12")]
    annotations: Vec<Pair>,
}

/// An entry of a map, in bytes: a kubelet may write annotations that are not UTF-8, and the API server takes them.
#[derive(Clone, PartialEq, Message)]
struct Pair {
    #[prost(bytes = "bytes", tag = "1")]
    key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    value: Bytes,
}

/// Metadata at a glance: nothing is made of what it bears.
#[derive(Debug)]
pub(crate) struct Outline<'a> {
    pub(crate) name: &'a str,
    pub(crate) uid: Uuid,
    pub(crate) version: Version,
    pub(crate) created: Timestamp,
    pub(crate) terminating: bool,
    /// Its labels and annotations as they were sent, hashed.
    pub(crate) bears: u64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Time {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

#[derive(Clone, PartialEq, Message)]
struct ProtoStatus {
    #[prost(bytes = "bytes", tag = "3")]
    message: Bytes,
    #[prost(bytes = "bytes", tag = "4")]
    reason: Bytes,
    #[prost(message, optional, tag = "5")]
    details: Option<ProtoDetails>,
    #[prost(int32, tag = "6")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct ProtoDetails {
    #[prost(int32, tag = "5")]
    retry_after_seconds: i32,
}

/// Reads an event. `make` makes an object of its metadata.
pub(super) fn event<T>(frame: Bytes, make: fn(Meta) -> T) -> Result<Heard<T>, String> {
    let (kind, raw) = unwrapped(frame)?;
    let metadata =
        |raw| decoded::<PartialObjectMetadata>(raw).map(|object| object.metadata.unwrap_or_default());
    Ok(match &*kind {
        b"ADDED" | b"MODIFIED" => Heard::Applied(make(metadata(raw)?.into_meta()?)),
        b"DELETED" => Heard::Deleted(make(metadata(raw)?.into_meta()?)),
        b"BOOKMARK" => {
            let ObjectMeta { resource_version, annotations, .. } = metadata(raw)?;
            Heard::bookmark(version(&resource_version).unwrap_or(0), &pairs(annotations))
        }
        b"ERROR" => Heard::Error(Box::new(decoded::<ProtoStatus>(raw)?.into())),
        other => return Err(format!("an event of the kind {:?}", String::from_utf8_lossy(other))),
    })
}

/// What a glance at an event shows of something that changed; `None` for any other event, and for what cannot be read at a
/// glance. Of all that is heard most is heartbeats: it goes through the bytes once, and copies none.
pub(crate) fn outline<'a>(frame: &'a [u8], hasher: &RandomState) -> Option<Outline<'a>> {
    if part(frame, 1)? != b"MODIFIED" {
        return None;
    }
    let raw = part(part(frame, 2)?, 1)?.strip_prefix(MAGIC)?;
    let mut metadata = part(part(raw, 2)?, 1)?;
    let (mut name, mut id, mut at, mut created) = (None, None, None, None);
    let (mut terminating, mut bears) = (false, hasher.build_hasher());
    while !metadata.is_empty() {
        match field(&mut metadata)? {
            (1, value) => name = Some(value),
            (5, value) => id = uid(value),
            (6, value) => at = version(value),
            (8, value) => created = Time::decode(value).ok().and_then(Time::into_timestamp),
            (9, _) => terminating = true,
            pair @ (11 | 12, _) => pair.hash(&mut bears),
            _ => {}
        }
    }
    Some(Outline {
        name: str::from_utf8(name?).ok()?,
        uid: id?,
        version: at?,
        created: created?,
        terminating,
        bears: bears.finish(),
    })
}

/// The namespace, the name and the version of the object of an event that cannot be read as a whole, as far as they can be.
pub(super) fn identity(frame: &[u8]) -> Option<(Option<String>, String, Option<Version>)> {
    let raw = part(part(frame, 2)?, 1)?.strip_prefix(MAGIC)?;
    let metadata = part(part(raw, 2)?, 1)?;
    let namespace = part(metadata, 3).map(text).filter(|namespace| !namespace.is_empty());
    Some((namespace, text(part(metadata, 1)?), part(metadata, 6).and_then(version)))
}

/// The last of a message's fields with this number.
fn part(mut message: &[u8], number: usize) -> Option<&[u8]> {
    let mut found = None;
    while !message.is_empty() {
        let (other, value) = field(&mut message)?;
        found = if other == number { Some(value) } else { found };
    }
    found
}

/// Takes the next field off a message: its number, and its bytes if it has any. `None` for what metadata does not have.
fn field<'a>(message: &mut &'a [u8]) -> Option<(usize, &'a [u8])> {
    // Keys, lengths and plain numbers are written alike.
    let key = decode_length_delimiter(&mut *message).ok()?;
    let length = match key & 7 {
        0 => decode_length_delimiter(&mut *message).map(|_| 0).ok()?,
        2 => decode_length_delimiter(&mut *message).ok()?,
        _ => return None,
    };
    let (value, rest) = message.split_at_checked(length)?;
    *message = rest;
    Some((key >> 3, value))
}

/// The API server's own words, if they are in protobuf: whoever asks for that gets refusals like that.
pub(super) fn status(body: &[u8]) -> Option<Status> {
    let object = body.starts_with(MAGIC).then(|| Bytes::copy_from_slice(body))?;
    Some(decoded::<ProtoStatus>(object_in(object).ok()?).ok()?.into())
}

fn unwrapped(frame: Bytes) -> Result<(Bytes, Bytes), String> {
    let WatchEvent { kind, object } = decoded(frame)?;
    Ok((kind, object_in(object.unwrap_or_default().raw)?))
}

fn object_in(mut raw: Bytes) -> Result<Bytes, String> {
    if !raw.starts_with(MAGIC) {
        return Err("it does not begin like an object of Kubernetes".to_owned());
    }
    raw.advance(MAGIC.len());
    Ok(decoded::<Unknown>(raw)?.raw)
}

fn decoded<M: Message + Default>(bytes: Bytes) -> Result<M, String> {
    M::decode(bytes).map_err(|error| error.to_string())
}

fn version(bytes: &[u8]) -> Option<Version> {
    str::from_utf8(bytes).ok()?.parse().ok()
}

fn pairs(pairs: Vec<Pair>) -> Pairs {
    pairs.into_iter().map(|Pair { key, value }| (text(&key), text(&value))).collect()
}

/// What the API server makes of these bytes for those who read JSON: each that is not UTF-8 becomes U+FFFD. What a watch
/// tells has to be what a read tells.
fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

fn uid(bytes: &[u8]) -> Option<Uuid> {
    Uuid::try_parse_ascii(bytes).ok()
}

impl Time {
    fn into_timestamp(self) -> Option<Timestamp> {
        Timestamp::new(self.seconds, self.nanos).ok()
    }
}

impl ObjectMeta {
    fn into_meta(self) -> Result<Meta, String> {
        let Self {
            name,
            namespace,
            uid: id,
            resource_version,
            generation,
            creation_timestamp,
            deletion_timestamp,
            labels,
            annotations,
        } = self;
        if name.is_empty() {
            return Err("it has no name".to_owned());
        }
        let wrong = |what, bytes: &Bytes| format!("{:?} is not a {what}", String::from_utf8_lossy(bytes));
        Ok(Meta {
            uid: uid(&id).ok_or_else(|| wrong("uid", &id))?,
            resource_version: version(&resource_version)
                .ok_or_else(|| wrong("resource version", &resource_version))?,
            name,
            namespace: namespace.filter(|namespace| !namespace.is_empty()),
            generation,
            creation_timestamp: creation_timestamp.and_then(Time::into_timestamp),
            deletion_timestamp: deletion_timestamp
                .map(|time| time.into_timestamp().ok_or_else(|| format!("{time:?} is no time")))
                .transpose()?,
            labels: Some(pairs(labels)),
            annotations: Some(pairs(annotations)),
        })
    }
}

impl From<ProtoStatus> for Status {
    fn from(ProtoStatus { message, reason, details, code }: ProtoStatus) -> Self {
        let details = details.map(|ProtoDetails { retry_after_seconds }| StatusDetails {
            name: String::new(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            causes: Vec::new(),
            retry_after_seconds: u32::try_from(retry_after_seconds).unwrap_or(0),
        });
        let code = u16::try_from(code).unwrap_or(0);
        Self { code, details, ..Self::failure(&text(&message), &text(&reason)) }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cluster::Followed as _;
    use crate::keeper::NodeObject;

    /// An event, as the API server would send it.
    fn sent(kind: &str, object: &impl Message) -> Bytes {
        let raw = written(object).into();
        WatchEvent { kind: kind.to_owned().into(), object: Some(RawExtension { raw }) }.encode_to_vec().into()
    }

    fn written(object: &impl Message) -> Vec<u8> {
        let unknown = Unknown { raw: object.encode_to_vec().into() };
        [MAGIC, &unknown.encode_to_vec()].concat()
    }

    /// A map, as it is written.
    fn map<K: Into<Bytes>, V: Into<Bytes>>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<Pair> {
        pairs.into_iter().map(|(key, value)| Pair { key: key.into(), value: value.into() }).collect()
    }

    /// The body of a refusal.
    pub(crate) fn refusal(code: i32, message: &str) -> Vec<u8> {
        let (message, reason) = (message.to_owned().into(), "NotFound".into());
        written(&ProtoStatus { message, reason, code, details: None })
    }

    fn metadata(name: &str, version: Version) -> ObjectMeta {
        ObjectMeta {
            name: name.to_owned(),
            uid: Uuid::from_u128(1).to_string().into(),
            resource_version: version.to_string().into(),
            ..ObjectMeta::default()
        }
    }

    fn of(metadata: ObjectMeta) -> PartialObjectMetadata {
        PartialObjectMetadata { metadata: Some(metadata) }
    }

    pub(crate) fn frame(kind: &str, name: &str, version: Version, born: &str, label: &str) -> Bytes {
        let seconds = born.parse::<Timestamp>().unwrap().as_second();
        let labels = map([("team", label.to_owned())]);
        let creation_timestamp = Some(Time { seconds, nanos: 0 });
        sent(kind, &of(ObjectMeta { creation_timestamp, labels, ..metadata(name, version) }))
    }

    pub(crate) fn expired() -> Bytes {
        let details = Some(ProtoDetails { retry_after_seconds: 7 });
        let status = ProtoStatus { message: "too old".into(), reason: "Expired".into(), code: 410, details };
        sent("ERROR", &status)
    }

    pub(crate) fn end_of_list(version: Version) -> Bytes {
        let annotations = map([("k8s.io/initial-events-end", "true")]);
        let resource_version = version.to_string().into();
        sent("BOOKMARK", &of(ObjectMeta { resource_version, annotations, ..ObjectMeta::default() }))
    }

    fn read(frame: Bytes) -> Result<Heard<Meta>, String> {
        event(frame, |meta| meta)
    }

    #[test]
    fn an_object_is_read_with_all_that_is_known_of_it() {
        let frame = frame("MODIFIED", "worker-1", 12, "2026-01-02T03:04:05Z", "blue");
        let Ok(Heard::Applied(meta)) = read(frame.clone()) else { panic!("not read") };
        assert_eq!((&*meta.name, meta.uid, meta.resource_version), ("worker-1", Uuid::from_u128(1), 12));
        assert_eq!(meta.creation_timestamp, Some("2026-01-02T03:04:05Z".parse().unwrap()));
        assert_eq!((meta.deletion_timestamp, &*meta.labels.unwrap()["team"]), (None, "blue"));
        let Outline { name, uid, version, created, terminating, bears: _ } =
            outline(&frame, &RandomState::new()).unwrap();
        assert_eq!((name, uid, version), ("worker-1", meta.uid, meta.resource_version));
        assert_eq!((Some(created), terminating), (meta.creation_timestamp, false));
    }

    #[test]
    fn a_glance_tells_apart_what_differs_in_anything_but_the_version() {
        let hasher = RandomState::new();
        let bears = |change: fn(&mut ObjectMeta)| {
            let pairs = map([("a", "b"), ("c", "")]);
            let (labels, annotations) = (pairs.clone(), pairs);
            let creation_timestamp = Some(Time { seconds: 1, nanos: 0 });
            let mut metadata =
                ObjectMeta { creation_timestamp, labels, annotations, ..metadata("worker-1", 12) };
            change(&mut metadata);
            outline(&sent("MODIFIED", &of(metadata)), &hasher).unwrap().bears
        };
        let one = bears(|_| ());
        assert_eq!(bears(|metadata| metadata.resource_version = "13".into()), one);
        let others = [
            bears(|metadata| metadata.labels.clear()),
            bears(|metadata| metadata.annotations.clear()),
            bears(|metadata| drop(metadata.annotations.remove(0))),
            bears(|metadata| metadata.labels.extend(map([("d", "")]))),
            bears(|metadata| metadata.labels[0].value = "bc".into()),
        ];
        assert!(others.iter().all(|other| *other != one), "{others:?}, {one}");
    }

    #[test]
    fn what_is_no_change_has_no_outline() {
        let born = "2026-01-02T03:04:05Z";
        for kind in ["ADDED", "DELETED", "BOOKMARK", "ERROR"] {
            let frame = frame(kind, "worker-1", 12, born, "blue");
            assert!(outline(&frame, &RandomState::new()).is_none(), "{kind}");
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_replaced_one_by_one_as_the_api_server_does_it() {
        // Go's encoding/json replaces every byte; `from_utf8_lossy` would replace the last three of these at once.
        assert_eq!(text(b"a\xff\xfeb\xf0\x9f\x98"), "a\u{fffd}\u{fffd}b\u{fffd}\u{fffd}\u{fffd}");
    }

    #[test]
    fn whose_event_it_is_can_be_told_where_the_event_cannot_be_read() {
        let metadata =
            ObjectMeta { uid: "x".into(), namespace: Some("default".to_owned()), ..metadata("a", 7) };
        let frame = sent("MODIFIED", &of(metadata));
        assert!(read(frame.clone()).is_err());
        assert_eq!(identity(&frame), Some((Some("default".to_owned()), "a".to_owned(), Some(7))));
        assert_eq!(identity(b"\x0a\x05ADDED"), None);
    }

    #[test]
    fn the_servers_words_are_read_with_how_long_to_wait() {
        let Ok(Heard::Error(status)) = read(expired()) else { panic!("not read") };
        assert_eq!((status.code, &*status.message, &*status.reason), (410, "too old", "Expired"));
        assert_eq!(status.details.unwrap().retry_after_seconds, 7);
    }

    #[test]
    fn what_is_not_an_object_is_refused_by_name() {
        let without = |change: fn(&mut ObjectMeta)| {
            let mut metadata = metadata("worker-1", 1);
            change(&mut metadata);
            read(sent("ADDED", &of(metadata))).unwrap_err()
        };
        assert!(without(|metadata| metadata.name.clear()).contains("no name"));
        assert!(without(|metadata| metadata.uid = "x".into()).contains("\"x\" is not a uid"));
        assert!(without(|metadata| metadata.resource_version.clear()).contains("not a resource version"));
        let never = Some(Time { seconds: i64::MAX, nanos: 0 });
        let refused = read(sent("ADDED", &of(ObjectMeta { deletion_timestamp: never, ..metadata("a", 1) })));
        assert!(refused.unwrap_err().contains("is no time"));
        assert!(read(sent("WHISPERED", &of(metadata("a", 1)))).unwrap_err().contains("WHISPERED"));
    }

    proptest! {
        #[test]
        fn a_glance_shows_what_a_reading_would(
            name in "[a-z0-9.-]{1,60}",
            at in any::<u64>(),
            seconds in 0..10_000_000_000_i64,
            dies in any::<bool>(),
            generation in any::<Option<i64>>(),
            pairs in prop::collection::btree_map(".{0,9}", ".{0,200}", 0..9),
        ) {
            let creation_timestamp = Some(Time { seconds, nanos: 0 });
            let deletion_timestamp = dies.then_some(Time { seconds, nanos: 0 });
            let (labels, annotations) = (map(pairs.clone()), map(pairs));
            let metadata = ObjectMeta {
                generation, creation_timestamp, deletion_timestamp, labels, annotations, ..metadata(&name, at)
            };
            let frame = sent("MODIFIED", &of(metadata));
            let glanced = outline(&frame, &RandomState::new()).unwrap();
            let Ok(Heard::Applied(meta)) = read(frame.clone()) else { panic!("not read") };
            prop_assert_eq!((glanced.name, glanced.uid), (&*meta.name, meta.uid));
            prop_assert_eq!((glanced.version, Some(glanced.created)), (meta.resource_version, meta.creation_timestamp));
            prop_assert_eq!(glanced.terminating, meta.deletion_timestamp.is_some());
        }

        #[test]
        fn whatever_bytes_a_map_holds_the_event_is_read(
            key in prop::collection::vec(any::<u8>(), 0..40),
            value in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let pairs = map([(key.clone(), value.clone())]);
            for kind in ["ADDED", "MODIFIED", "DELETED"] {
                let metadata = ObjectMeta { annotations: pairs.clone(), labels: pairs.clone(), ..metadata("a", 1) };
                let heard = read(sent(kind, &of(metadata)));
                let Ok(Heard::Applied(meta) | Heard::Deleted(meta)) = heard else { panic!("{kind}: {heard:?}") };
                let expected = Pairs::from([(text(&key), text(&value))]);
                prop_assert_eq!((meta.labels.unwrap(), meta.annotations.unwrap()), (expected.clone(), expected));
            }
        }

        #[test]
        fn text_that_is_utf8_is_left_as_it_is(whole in ".{0,40}") {
            prop_assert_eq!(text(whole.as_bytes()), whole);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(bytes.clone().into());
            let _ = outline(&bytes, &RandomState::new());
            let _ = status(&[MAGIC, &bytes].concat());
        }

        #[test]
        fn a_changed_byte_never_makes_it_panic(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut bytes = frame("MODIFIED", "worker-1", 12, "2026-01-02T03:04:05Z", "blue").to_vec();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = outline(&bytes, &RandomState::new());
            let _ = event(bytes.into(), NodeObject::of_metadata().unwrap());
        }
    }
}
