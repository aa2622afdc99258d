//! What the bare requests write, and where.

use perennial_core::record::{DATA_KEY, Record};
use perennial_testkit::{company_labels, node_name};
use serde_json::{Value, json};

use crate::contender::NAMESPACE;

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
pub(crate) fn record(index: usize, sequence: usize, prefix: &str) -> anyhow::Result<Value> {
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
    Ok(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": format!("{prefix}-{node}"),
            "labels": { "app.kubernetes.io/managed-by": "perennial", "perennial.dev/state": "open" },
            "annotations": record.annotations(),
        },
        "data": { DATA_KEY: record.to_json() },
    }))
}

pub(crate) fn uid(index: usize) -> String {
    format!("00000000-0000-4000-8000-{index:012}")
}
