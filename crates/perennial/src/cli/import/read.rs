//! What is remembered of each node, in whatever form it is written down.

use jiff::Timestamp;
use perennial_core::kept::{Content, Digest, Pairs};
use perennial_core::policy::Policy;
use perennial_core::record::{
    DATA_KEY, Incarnation, Record, SCHEMA, State, Summary, WaitingKeys, record_name, record_node,
};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::cli::desk::POLICY_KEY;
use crate::cli::export::{FORMAT, Header};
use crate::keeper::BRAKE;

/// What the ConfigMaps of one older tool begin with.
const NODE_LABELS: &str = "node-labels-";
/// Their one key.
const STATE_JSON: &str = "state.json";
/// What stands for `/` in the keys of the other: both ways in which it was written.
const SLASHES: [&str; 2] = ["---SLASH---", "-SLASH-"];
/// Its own counter among the labels.
const LABEL_VERSION: &str = "label_version";
/// What is in every namespace.
const ROOT_CA: &str = "kube-root-ca.crt";
/// What stands for the policy of what an older tool remembered.
const OLDER_TOOL: &[u8] = b"an older tool";

/// One record, and where it was found, for whoever has to mend it.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) place: String,
    pub(super) record: Record,
}

/// Everything that was found, and what a person should know about it.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) found: Vec<Found>,
    pub(super) notes: Vec<String>,
}

/// A ConfigMap, as far as it matters here.
#[derive(Debug, Deserialize)]
pub(super) struct ConfigMap {
    metadata: Metadata,
    #[serde(default)]
    data: Option<Pairs>,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    annotations: Option<Pairs>,
}

/// The state of one older tool.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeLabels {
    #[serde(default)]
    node_name: Option<String>,
    labels: Pairs,
    #[serde(default)]
    captured_at: Option<Timestamp>,
}

/// Reads a file: an export, or what kubectl says of ConfigMaps, as JSON or YAML. The error is every problem in it.
pub(super) fn text(
    text: &str,
    policy: &Policy,
    skip_unknown: bool,
    now: Timestamp,
) -> Result<Read, Vec<String>> {
    let Some(first) = text.lines().find(|line| !line.trim().is_empty()) else {
        return Err(vec!["there is nothing in it".to_owned()]);
    };
    if let Ok(header) = serde_json::from_str::<Header>(first) {
        return lines(text, &header);
    }
    config_maps(objects(text)?, policy, skip_unknown, now)
}

/// Reads an export.
fn lines(text: &str, header: &Header) -> Result<Read, Vec<String>> {
    if header.perennial_export > FORMAT {
        let found = header.perennial_export;
        return Err(vec![format!(
            "line 1: format {found} is newer than {FORMAT}, the newest this binary knows"
        )]);
    }
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).skip(1);
    for (number, line) in lines {
        let place = format!("line {}", number + 1);
        let node = serde_json::from_str::<Value>(line)
            .ok()
            .and_then(|record| Some(record["node"].as_str()?.to_owned()));
        match Record::parse(node.as_deref().unwrap_or_default(), Some(line)) {
            Ok(record) => found.push(Found { place, record }),
            Err(error) => problems.push(format!("{place}: {error}")),
        }
    }
    let read = found.len() + problems.len();
    if read != header.records {
        problems.push(format!(
            "{} records were exported, and {read} are here: the file is not whole",
            header.records
        ));
    }
    if problems.is_empty() { Ok(Read { found, notes: Vec::new() }) } else { Err(problems) }
}

/// The objects of a document: one, several, or lists of them.
fn objects(text: &str) -> Result<Vec<ConfigMap>, Vec<String>> {
    let documents = match serde_json::from_str::<Value>(text) {
        Ok(document) => vec![document],
        Err(_) => serde_saphyr::from_multiple::<Value>(text)
            .map_err(|error| vec![format!("this is neither an export, nor JSON, nor YAML: {error}")])?,
    };
    let mut objects = Vec::new();
    for mut document in documents {
        let kind = document["kind"].as_str().map(str::to_owned);
        match kind.as_deref() {
            Some("ConfigMap") => objects.push(document),
            Some(kind) if kind.ends_with("List") => match document["items"].take() {
                Value::Array(items) => objects.extend(items),
                _ => return Err(vec![format!("a {kind} without items")]),
            },
            Some(kind) => return Err(vec![format!("a {kind} is neither an export nor a ConfigMap")]),
            None if document.is_null() => {}
            None => {
                return Err(vec![
                    "this is neither an export nor a list of ConfigMaps: it has no kind".to_owned(),
                ]);
            }
        }
    }
    let (mut maps, mut problems) = (Vec::new(), Vec::new());
    for (number, object) in objects.into_iter().enumerate() {
        let kind = object["kind"].as_str().unwrap_or("ConfigMap").to_owned();
        match ConfigMap::deserialize(object) {
            Ok(map) if kind == "ConfigMap" => maps.push(map),
            Ok(map) => problems.push(format!("{kind} {:?} is not a ConfigMap", map.metadata.name)),
            Err(error) => problems.push(format!("object {}: {error}", number + 1)),
        }
    }
    if problems.is_empty() { Ok(maps) } else { Err(problems) }
}

/// Reads ConfigMaps: Perennial's own records, or those of older tools.
pub(super) fn config_maps(
    maps: Vec<ConfigMap>,
    policy: &Policy,
    skip_unknown: bool,
    now: Timestamp,
) -> Result<Read, Vec<String>> {
    let (mut read, mut problems) = (Read::default(), Vec::new());
    for map in maps {
        let place = format!("ConfigMap {:?}", map.metadata.name);
        let data = map.data.unwrap_or_default();
        let annotated = map.metadata.annotations.as_ref().and_then(Summary::node_hint);
        let name = map.metadata.name.as_str();
        let record = if let Some(node) = record_node(name, annotated) {
            Record::parse(node, data.get(DATA_KEY).map(String::as_str)).map_err(|error| error.to_string())
        } else if let (Some(node), Some(state)) = (name.strip_prefix(NODE_LABELS), data.get(STATE_JSON)) {
            node_labels(node, state)
                .map(|(labels, at)| older(node, labels, at.unwrap_or(now), policy, &mut read.notes))
        } else if is_slashed(&data) {
            Ok(older(name, slashed(data), now, policy, &mut read.notes))
        } else if skip_unknown || is_beside_the_point(name, &data) {
            if name != ROOT_CA {
                read.notes.push(format!("{place} is passed over"));
            }
            continue;
        } else {
            Err("it is neither a record nor anything of an older tool (--skip-unknown passes it over)"
                .to_owned())
        };
        match record {
            Ok(record) => read.found.push(Found { place, record }),
            Err(why) => problems.push(format!("{place}: {why}")),
        }
    }
    if problems.is_empty() { Ok(read) } else { Err(problems) }
}

fn node_labels(node: &str, state: &str) -> Result<(Pairs, Option<Timestamp>), String> {
    let NodeLabels { node_name, labels, captured_at } =
        serde_json::from_str(state).map_err(|error| format!("{STATE_JSON}: {error}"))?;
    match node_name {
        Some(name) if name != node => {
            Err(format!("{STATE_JSON} names the node {name:?} instead of {node:?}"))
        }
        _ => Ok((labels, captured_at)),
    }
}

/// What is in every namespace, and what Perennial itself has beside its records.
fn is_beside_the_point(name: &str, data: &Pairs) -> bool {
    name == ROOT_CA
        || name == BRAKE
        || name.starts_with("node-record-aside.")
        || data.contains_key(POLICY_KEY)
}

/// Whether these are labels by the other tool's way of writing them.
fn is_slashed(data: &Pairs) -> bool {
    data.contains_key(LABEL_VERSION) || data.keys().any(|key| SLASHES.iter().any(|slash| key.contains(slash)))
}

fn slashed(data: Pairs) -> Pairs {
    let written = data.into_iter().filter(|(key, _)| key != LABEL_VERSION);
    written
        .map(|(key, value)| (SLASHES.iter().fold(key, |key, slash| key.replace(slash, "/")), value))
        .collect()
}

/// What an older tool remembered, as far as the policy keeps it. They kept labels alone, and often all of them.
fn older(node: &str, labels: Pairs, at: Timestamp, policy: &Policy, notes: &mut Vec<String>) -> Record {
    let content = Content { labels, ..Content::default() };
    let rule = policy.rule_for(&content.labels, None);
    let kept = rule.map(|rule| rule.keep(&content)).unwrap_or_default();
    let (all, left) = (content.labels.len(), content.labels.len() - kept.labels.len());
    if left > 0 {
        notes.push(format!("node/{node}: {left} of {all} labels left out, which the policy does not keep"));
    }
    Record {
        schema: SCHEMA,
        node: node.to_owned(),
        state: State::Closed,
        incarnation: Incarnation { uid: Uuid::nil(), provider_id: None },
        version: 0,
        kept,
        waiting: WaitingKeys::new(),
        previous: Vec::new(),
        captured_at: at,
        kept_since: None,
        deleted_at: None,
        sequence: 1,
        // No policy chose it: an older tool may have left out what this one would have kept.
        policy: Digest::of(OLDER_TOOL),
        unproved: None,
        given: false,
        paused: false,
    }
}

/// Where a record would go; so that two that go to the same place are found.
pub(super) fn goes_to(record: &Record) -> String {
    record_name(&record.node)
}
