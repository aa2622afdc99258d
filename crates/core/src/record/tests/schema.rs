//! What is in a record of the present schema, frozen: a build that knows other fields has to say so by its number.

use std::cell::Cell;
use std::collections::BTreeSet;

use serde::de::value::Error;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;

use crate::kept::{Kept, Taint};
use crate::record::{Incarnation, Previous, Record, SCHEMA, State, Unproved, Waiting};

/// A record of schema 1 with every field there is.
const GOLDEN: &str = include_str!("schema-1.json");

/// The fields of schema 1, and the words of its states.
const FIELDS: [(&str, &[&str]); 8] = [
    (
        "record",
        &[
            "schema",
            "node",
            "state",
            "incarnation",
            "resourceVersion",
            "kept",
            "waiting",
            "previous",
            "capturedAt",
            "keptSince",
            "deletedAt",
            "sequence",
            "policy",
            "unproved",
            "given",
            "paused",
        ],
    ),
    ("state", &["open", "closed", "giving"]),
    ("incarnation", &["uid", "providerID"]),
    ("kept", &["labels", "annotations", "taints", "unschedulable"]),
    ("taint", &["key", "effect", "value"]),
    ("waiting", &["value", "providerID"]),
    ("previous", &["incarnation", "kept", "waiting", "capturedAt", "policy"]),
    ("unproved", &["uid", "from", "later"]),
];

/// The words of the summary of schema 1, and its flags.
const SUMMARY: &str = "schema state uid version sequence digest policy since provider";
const FLAGS: &str = "waiting given paused empty unproved back";

const ADVICE: &str = "what a record is made of has changed. To a build that does not know this, such a record has to be of a \
    NEWER SCHEMA: otherwise it takes it for broken and writes it anew without what it does not know. So: raise \
    `record::SCHEMA` by one, add `tests/schema-N.json` with every field, set the lists in `record/tests/schema.rs` to \
    match, and see to it that records of all older schemas are still read (new fields have a default). Only before the \
    first release is it enough to change the lists and `schema-1.json`: what that one ships is schema 1. See \
    \"Schemas\" in docs/design.md";

/// Hears which fields a type asks for, and answers with an error.
struct Asked<'a>(&'a Cell<&'static [&'static str]>);

impl<'de> Deserializer<'de> for Asked<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("nothing is here"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        self.0.set(fields);
        Err(Error::custom("nothing is here"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        self.0.set(variants);
        Err(Error::custom("nothing is here"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map identifier ignored_any
    }
}

fn fields<T: Deserialize<'static>>() -> &'static [&'static str] {
    let asked = Cell::new(&[][..]);
    assert!(T::deserialize(Asked(&asked)).is_err());
    asked.get()
}

#[test]
fn the_fields_are_those_of_this_schema() {
    let found: [&[&str]; 8] = [
        fields::<Record>(),
        fields::<State>(),
        fields::<Incarnation>(),
        fields::<Kept>(),
        fields::<Taint>(),
        fields::<Waiting>(),
        fields::<Previous>(),
        fields::<Unproved>(),
    ];
    for ((what, frozen), found) in FIELDS.into_iter().zip(found) {
        assert_eq!(found, frozen, "{what}: {ADVICE}");
    }
    assert_eq!(SCHEMA, 1, "the lists here are those of schema 1: {ADVICE}");
}

#[test]
fn the_golden_record_is_read_and_written_to_the_letter() {
    let record = Record::parse("worker-1", Some(GOLDEN)).unwrap_or_else(|error| panic!("{error}: {ADVICE}"));
    assert_eq!(record.to_json(), GOLDEN.trim_end(), "{ADVICE}");
}

#[test]
fn every_field_is_in_the_golden_record() {
    let mut found = BTreeSet::new();
    names(&serde_json::from_str(GOLDEN).unwrap(), &mut found);
    let frozen = FIELDS.into_iter().filter(|(what, _)| *what != "state").flat_map(|(_, fields)| fields);
    let missing: Vec<_> = frozen.filter(|field| !found.contains(**field)).collect();
    assert!(missing.is_empty(), "{missing:?}: {ADVICE}");
}

fn names(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                found.insert(key.clone());
                names(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|value| names(value, found)),
        _ => {}
    }
}

#[test]
fn the_summary_is_that_of_this_schema() {
    let mut record = Record::parse("worker-1", Some(GOLDEN)).unwrap();
    let summary = |record: &Record| record.annotations()["perennial.dev/summary"].clone();
    let keys = |text: &str| {
        text.split(' ').filter_map(|word| Some(word.split_once('=')?.0.to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(keys(&summary(&record)).join(" "), SUMMARY, "{ADVICE}");

    let flags = |record: &Record| {
        let text = summary(record);
        text.split(' ').filter(|word| !word.contains('=')).map(str::to_owned).collect::<BTreeSet<_>>()
    };
    record.kept_since = None;
    let mut told = flags(&record);
    (record.kept, record.waiting) = (Kept::default(), crate::record::WaitingKeys::new());
    told.extend(flags(&record));
    assert_eq!(told, FLAGS.split(' ').map(str::to_owned).collect(), "{ADVICE}");
}
