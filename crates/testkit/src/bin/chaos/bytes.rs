//! A Node in protobuf, edited without being understood.
//!
//! ```text
//! "k8s\0" Unknown { typeMeta: 1, raw: 2 } ── raw: Node { metadata: 1 { annotations: 12 { key: 1, value: 2 } } }
//! ```
//! A message that comes twice is merged, so that what is to be added can be put behind what is there.

use prost::encoding::encode_varint;

/// The content type.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const MAGIC: &[u8] = b"k8s\0";
/// Bytes that are no UTF-8, and the annotation that has them for its value.
const BYTES: &[u8] = b"\xff\xfe\x00raw";
const KEY: &str = "kubelet.example.com/bytes";

/// The Node with an annotation that is no text, and this one. `None` if it is no Node in protobuf.
pub(crate) fn with_bytes(node: &[u8], key: &str, value: &str) -> Option<Vec<u8>> {
    let (type_meta, raw) = unwrapped(node.strip_prefix(MAGIC)?)?;
    let mut metadata = annotation(KEY.as_bytes(), BYTES);
    metadata.extend(annotation(key.as_bytes(), value.as_bytes()));
    let mut raw = raw.to_vec();
    raw.extend(field(1, &metadata));
    Some([MAGIC, &field(1, type_meta), &field(2, &raw)].concat())
}

fn annotation(key: &[u8], value: &[u8]) -> Vec<u8> {
    field(12, &[field(1, key), field(2, value)].concat())
}

/// A field that holds bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut all = vec![number << 3 | 2];
    encode_varint(bytes.len() as u64, &mut all);
    all.extend_from_slice(bytes);
    all
}

/// The first two fields of the envelope.
fn unwrapped(mut unknown: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut next = |tag: u8| {
        let rest = unknown.strip_prefix(&[tag])?;
        let mut rest = rest;
        let length = prost::decode_length_delimiter(&mut rest).ok()?;
        let taken = rest.get(..length)?;
        unknown = &rest[length..];
        Some(taken)
    };
    Some((next(1 << 3 | 2)?, next(2 << 3 | 2)?))
}
