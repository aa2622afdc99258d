//! An event of a watch: a line of JSON.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

/// The annotation on the bookmark that ends a streamed list.
pub(super) const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// What faults need to know of it, and the line itself.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) kind: String,
    pub(super) name: String,
    /// It is an item of a streamed list.
    pub(super) initial: bool,
    /// It ends the streamed list.
    pub(super) ends_list: bool,
    /// With its newline.
    pub(super) line: Bytes,
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    object: Object,
}

#[derive(Deserialize)]
struct Object {
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
    annotations: Option<std::collections::BTreeMap<String, String>>,
}

impl Event {
    /// Reads a line; one that is no event is an event of no type.
    pub(super) fn read(line: Bytes) -> Self {
        let Ok(Line { kind, object: Object { metadata } }) = serde_json::from_slice(&line) else {
            return Self { kind: String::new(), name: String::new(), initial: false, ends_list: false, line };
        };
        let Metadata { name, annotations } = metadata;
        let ends_list =
            kind == "BOOKMARK" && annotations.is_some_and(|all| all.contains_key(INITIAL_EVENTS_END));
        Self { kind, name, initial: false, ends_list, line }
    }

    pub(super) fn of(value: &Value) -> Self {
        Self::read(Bytes::from(format!("{value}\n")))
    }

    /// History's end, said in the stream.
    pub(super) fn expired() -> Self {
        Self::of(&json!({ "type": "ERROR", "object": super::answer::status(410) }))
    }

    /// Whether it says something about an object.
    pub(super) fn is_change(&self) -> bool {
        matches!(self.kind.as_str(), "ADDED" | "MODIFIED" | "DELETED")
    }
}
