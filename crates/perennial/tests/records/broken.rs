//! Somebody broke a record: its bytes are copied aside, it is told, and no node loses or gets a label by it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use perennial_core::record::{DATA_KEY, Record, record_name};
use perennial_testkit::eventually;
use serde_json::{Value, json};

use crate::world::{Labels, SOON, World, pairs};

mod alive;
mod away;

const NODE: &str = "worker-1";

/// What the node bore.
fn labels() -> Labels {
    pairs([("team", "blue"), ("example.com/rack", "r12")])
}

impl World {
    /// Registers the node, and waits until it is recorded.
    async fn recorded_node(&self) -> Record {
        self.register(NODE, &labels()).await;
        self.recorded(NODE, &labels()).await
    }

    /// Replaces what is in the record, whatever it is. Its annotations stay.
    async fn put_into_record(&self, data: Value) -> ConfigMap {
        let patch = Patch::Merge(json!({ "data": data }));
        self.config_maps().patch(&record_name(NODE), &PatchParams::default(), &patch).await.unwrap()
    }

    async fn put_text(&self, text: &str) -> ConfigMap {
        self.put_into_record(json!({ DATA_KEY: text })).await
    }

    /// Replaces the whole ConfigMap by one that has nothing but text.
    async fn replace_record(&self, text: &str) -> ConfigMap {
        let patch = Patch::Merge(json!({
            "metadata": { "annotations": null, "labels": null },
            "data": { DATA_KEY: text },
        }));
        self.config_maps().patch(&record_name(NODE), &PatchParams::default(), &patch).await.unwrap()
    }

    /// Waits until these bytes stand in a ConfigMap of their own that names the node.
    async fn copied_aside(&self, broken: &ConfigMap) {
        eventually(SOON, "the bytes are copied aside", || async {
            let aside = self.set_aside().await;
            let node = BTreeMap::from([("perennial.dev/node".to_owned(), NODE.to_owned())]);
            let same = |copy: &ConfigMap| {
                copy.data == broken.data
                    && copy.binary_data == broken.binary_data
                    && copy.metadata.annotations.as_ref() == Some(&node)
            };
            Ok(aside.iter().any(same).then_some(()))
        })
        .await
        .unwrap();
    }
}

/// As much text as the API server takes.
fn mebibyte() -> String {
    "all work and no play\n\"ä\" ".repeat(1 << 16)[..1 << 20].to_owned()
}

/// The record with one value of a wrong type, for every field there is: the path and the text.
fn wrong_types(record: &Record) -> Vec<(&'static str, String)> {
    let whole = json!(record);
    let wrong = [
        ("/schema", json!("1")),
        ("/node", json!(7)),
        ("/state", json!(["open"])),
        ("/incarnation", json!("uid")),
        ("/incarnation/uid", json!(12)),
        ("/incarnation/providerID", json!({})),
        ("/resourceVersion", json!(5)),
        ("/kept", json!([])),
        ("/kept/labels", json!("team=blue")),
        ("/kept/labels/team", json!(1)),
        ("/kept/annotations", json!(5)),
        ("/kept/taints", json!({})),
        ("/kept/taints", json!([{ "key": 1, "effect": "NoSchedule" }])),
        ("/kept/unschedulable", json!("yes")),
        ("/waiting", json!([1])),
        ("/previous", json!({})),
        ("/capturedAt", json!(0)),
        ("/deletedAt", json!(true)),
        ("/sequence", json!("1")),
        ("/policy", json!(9)),
        ("/unproved", json!("no")),
        ("/given", json!("true")),
        ("/paused", json!(1)),
    ];
    let put = |(path, value): (&'static str, Value)| {
        let mut record = whole.clone();
        let (parent, field) = path.rsplit_once('/').unwrap();
        record.pointer_mut(parent).unwrap()[field] = value;
        (path, record.to_string())
    };
    wrong.map(put).into()
}
