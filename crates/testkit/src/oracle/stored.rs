//! Objects as etcd stores them: in JSON, or in protobuf, which is what API servers store by default.
//!
//! ```text
//! "k8s\0" Unknown { raw: 2 } ── raw: Node { metadata: 1, spec: 2, status: 3 }, ConfigMap { metadata: 1, data: 2 }
//! ```
//! The numbers are those of Kubernetes' own `generated.proto` files, which never change.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use anyhow::{Context, anyhow, ensure};
use perennial_core::kept::{Pairs, Taint};
use prost::encoding::{WireType, decode_key, decode_varint};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

/// What every object in protobuf begins with.
const MAGIC: &[u8] = b"k8s\0";

/// A Node as it is stored.
#[derive(Debug, Default)]
pub(super) struct StoredNode {
    pub(super) uid: Uuid,
    pub(super) labels: Pairs,
    pub(super) annotations: Pairs,
    pub(super) terminating: bool,
    pub(super) taints: Vec<Taint>,
    pub(super) unschedulable: bool,
    /// A fingerprint of everything else, without what the API server writes of its own accord.
    pub(super) rest: u64,
}

/// A ConfigMap as it is stored.
#[derive(Debug, Default, Deserialize)]
pub(super) struct StoredMap {
    pub(super) metadata: MapMeta,
    #[serde(default)]
    pub(super) data: BTreeMap<String, String>,
}

/// Its metadata.
#[derive(Debug, Default, Deserialize)]
pub(super) struct MapMeta {
    #[serde(default)]
    pub(super) labels: Pairs,
    #[serde(default)]
    pub(super) annotations: Pairs,
}

impl StoredNode {
    pub(super) fn read(value: &[u8]) -> anyhow::Result<Self> {
        match value.strip_prefix(MAGIC) {
            Some(unknown) => Self::of_protobuf(message(unknown, 2)?),
            None => Self::of_json(value),
        }
    }

    fn of_json(value: &[u8]) -> anyhow::Result<Self> {
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
        #[derive(Default, Deserialize)]
        struct Spec {
            #[serde(default)]
            taints: Vec<JsonTaint>,
            #[serde(default)]
            unschedulable: bool,
        }
        #[derive(Deserialize)]
        struct JsonTaint {
            key: String,
            effect: String,
            #[serde(default)]
            value: String,
        }
        let mut object: Value = serde_json::from_slice(value)?;
        let mut metadata = object["metadata"].take();
        let Meta { uid, labels, annotations, deletion_timestamp } = Meta::deserialize(&metadata)?;
        let spec = Option::<Spec>::deserialize(&object["spec"])?.unwrap_or_default();
        remove(&mut metadata, &["labels", "annotations", "managedFields", "deletionTimestamp", "generation"]);
        remove(&mut object["spec"], &["taints", "unschedulable"]);
        let mut hasher = DefaultHasher::new();
        (object.to_string(), metadata.to_string()).hash(&mut hasher);
        let taint = |JsonTaint { key, effect, value }| Taint { key, effect, value };
        Ok(Self {
            uid,
            labels,
            annotations,
            terminating: deletion_timestamp.is_some(),
            taints: spec.taints.into_iter().map(taint).collect(),
            unschedulable: spec.unschedulable,
            rest: hasher.finish(),
        })
    }

    fn of_protobuf(node: &[u8]) -> anyhow::Result<Self> {
        let mut read = Self::default();
        let mut hasher = DefaultHasher::new();
        for (number, field) in fields(message(node, 1)?)? {
            match number {
                5 => read.uid = field.text()?.parse()?,
                // managedFields and generation: the API server writes them of its own accord.
                7 | 17 => {}
                9 => read.terminating = true,
                11 => read.labels.extend([pair(field)?]),
                12 => read.annotations.extend([pair(field)?]),
                _ => (number, field).hash(&mut hasher),
            }
        }
        for (number, field) in fields(message(node, 2)?)? {
            match number {
                4 => read.unschedulable = field.number()? != 0,
                5 => read.taints.push(taint(field)?),
                _ => (number, field).hash(&mut hasher),
            }
        }
        message(node, 3)?.hash(&mut hasher);
        Ok(Self { rest: hasher.finish(), ..read })
    }
}

impl StoredMap {
    pub(super) fn read(value: &[u8]) -> anyhow::Result<Self> {
        let Some(unknown) = value.strip_prefix(MAGIC) else { return Ok(serde_json::from_slice(value)?) };
        let map = message(unknown, 2)?;
        let mut read = Self::default();
        for (number, field) in fields(message(map, 1)?)? {
            match number {
                11 => read.metadata.labels.extend([pair(field)?]),
                12 => read.metadata.annotations.extend([pair(field)?]),
                _ => {}
            }
        }
        for (_, field) in fields(map)?.into_iter().filter(|(number, _)| *number == 2) {
            read.data.extend([pair(field)?]);
        }
        Ok(read)
    }
}

fn remove(object: &mut Value, keys: &[&str]) {
    if let Some(object) = object.as_object_mut() {
        for key in keys {
            object.remove(*key);
        }
    }
}

/// A field of a message.
#[derive(Clone, Copy, Debug, Hash)]
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    fn bytes(self) -> anyhow::Result<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Number(number) => Err(anyhow!("{number} in the place of a message or a text")),
        }
    }

    /// The text. The API server takes any bytes of those who write in protobuf: what is not UTF-8 reads as those see
    /// it who ask for JSON.
    fn text(self) -> anyhow::Result<String> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    fn number(self) -> anyhow::Result<u64> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Bytes(_) => Err(anyhow!("bytes in the place of a number")),
        }
    }
}

/// The fields of a message, with their numbers.
fn fields(mut rest: &[u8]) -> anyhow::Result<Vec<(u32, Field<'_>)>> {
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (number, wire) = decode_key(&mut rest)?;
        let field = match wire {
            WireType::Varint => Field::Number(decode_varint(&mut rest)?),
            WireType::LengthDelimited => {
                let length = usize::try_from(decode_varint(&mut rest)?)?;
                Field::Bytes(take(&mut rest, length)?)
            }
            WireType::SixtyFourBit => Field::Bytes(take(&mut rest, 8)?),
            WireType::ThirtyTwoBit => Field::Bytes(take(&mut rest, 4)?),
            WireType::StartGroup | WireType::EndGroup => anyhow::bail!("a group"),
        };
        all.push((number, field));
    }
    Ok(all)
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> anyhow::Result<&'a [u8]> {
    ensure!(length <= rest.len(), "it ends too early");
    let (taken, left) = rest.split_at(length);
    *rest = left;
    Ok(taken)
}

/// The last field of this number, which is a message; an empty one if there is none.
fn message(of: &[u8], wanted: u32) -> anyhow::Result<&[u8]> {
    let last = fields(of)?.into_iter().rev().find(|(number, _)| *number == wanted);
    last.map_or(Ok(&[]), |(_, field)| field.bytes())
}

/// An entry of a map.
fn pair(entry: Field<'_>) -> anyhow::Result<(String, String)> {
    let (mut key, mut value) = Default::default();
    for (number, field) in fields(entry.bytes()?)? {
        match number {
            1 => key = field.text()?,
            2 => value = field.text()?,
            _ => {}
        }
    }
    Ok((key, value))
}

fn taint(field: Field<'_>) -> anyhow::Result<Taint> {
    let mut taint = Taint { key: String::new(), effect: String::new(), value: String::new() };
    for (number, field) in fields(field.bytes()?).context("a taint")? {
        match number {
            1 => taint.key = field.text()?,
            2 => taint.value = field.text()?,
            3 => taint.effect = field.text()?,
            _ => {}
        }
    }
    Ok(taint)
}
