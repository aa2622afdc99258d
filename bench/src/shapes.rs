//! What the bare requests write, and where.

use perennial_core::kept::Pairs;
use perennial_core::record::{DATA_KEY, Record};
use perennial_testkit::{company_labels, node_name};
use prost::Message;
use serde::Serialize;
use serde_json::{Value, json};

use crate::contender::NAMESPACE;

/// A ConfigMap, in JSON and in protobuf: the numbers are those of Kubernetes' own `generated.proto`.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct ConfigMap {
    #[prost(message, required, tag = "1")]
    pub(crate) metadata: Metadata,
    #[prost(btree_map = "string, string", tag = "2")]
    pub(crate) data: Pairs,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(btree_map = "string, string", tag = "11")]
    pub(crate) labels: Pairs,
    #[prost(btree_map = "string, string", tag = "12")]
    pub(crate) annotations: Pairs,
    #[prost(message, repeated, tag = "17")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    managed_fields: Vec<NoFields>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
struct NoFields {}

impl ConfigMap {
    /// The same, and the API server shall keep no books of whose its fields are.
    pub(crate) fn without_books(mut self) -> Self {
        self.metadata.managed_fields = vec![NoFields {}];
        self
    }
}

pub(crate) fn node_path(index: usize) -> String {
    format!("/api/v1/nodes/{}", node_name(index))
}

pub(crate) fn records_path() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps")
}

pub(crate) fn record_path(prefix: &str, index: usize) -> String {
    format!("{}/{prefix}-{}", records_path(), node_name(index))
}

/// A record as Perennial writes it.
pub(crate) fn record(index: usize, sequence: usize, prefix: &str) -> anyhow::Result<ConfigMap> {
    let node = node_name(index);
    let record = json!({
        "schema": 1,
        "node": node,
        "state": "open",
        "incarnation": { "uid": uid(index) },
        "resourceVersion": "1000",
        "kept": { "labels": Value::from_iter(company_labels(index)) },
        "capturedAt": "2026-11-16T09:15:24.722245307Z",
        "sequence": sequence,
        "policy": "b2664566637ead3c4a025f72e583bf69",
    });
    let record = Record::parse(&node, Some(&record.to_string()))?;
    let labels = [("app.kubernetes.io/managed-by", "perennial"), ("perennial.dev/state", "open")];
    let metadata = Metadata {
        name: format!("{prefix}-{node}"),
        labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        annotations: record.annotations(),
        managed_fields: Vec::new(),
    };
    Ok(ConfigMap { metadata, data: [(DATA_KEY.to_owned(), record.to_json())].into() })
}

/// A record with nothing but what it is for.
pub(crate) fn bare(index: usize, prefix: &str) -> ConfigMap {
    let labels = Value::from_iter(company_labels(index)).to_string();
    let metadata = Metadata { name: format!("{prefix}-{}", node_name(index)), ..Metadata::default() };
    ConfigMap { metadata, data: [("uid".to_owned(), uid(index)), ("labels".to_owned(), labels)].into() }
}

pub(crate) fn uid(index: usize) -> String {
    format!("00000000-0000-4000-8000-{index:012}")
}
