//! Lists that came in one answer.

use bytes::Bytes;
use rand::Rng;
use serde_json::{Value, json};

use super::{event::INITIAL_EVENTS_END, plan::Items};

/// The list, as the faults leave it. What is no list stays as it is.
pub(super) fn bend(bytes: Bytes, items: &mut Items) -> Bytes {
    if items.untouched() {
        return bytes;
    }
    let Ok(mut list) = serde_json::from_slice::<Value>(&bytes) else { return bytes };
    let Some(all) = list.get_mut("items").and_then(Value::as_array_mut) else { return bytes };
    if items.empty {
        all.clear();
    }
    for (share, dice) in &mut items.thin {
        all.retain(|_| dice.random::<f64>() >= *share);
    }
    for edit in &items.edits {
        *all = std::mem::take(all).into_iter().map_while(|item| edit(item)).flatten().collect();
    }
    if items.empty
        && let Some(metadata) = list.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.remove("continue");
        metadata.remove("remainingItemCount");
    }
    Bytes::from(list.to_string())
}

/// The list as a stream would have it: an event for each item, and the bookmark that ends it.
pub(super) fn events(mut list: Value) -> Vec<Bytes> {
    let version = list["metadata"]["resourceVersion"].take();
    let kind = list["kind"].as_str().unwrap_or_default().trim_end_matches("List").to_owned();
    let group = list["apiVersion"].take();
    let items = list["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let added = items.into_iter().map(|mut item| {
        item["kind"] = json!(kind);
        item["apiVersion"] = group.clone();
        json!({ "type": "ADDED", "object": item })
    });
    let bookmark = json!({
        "type": "BOOKMARK",
        "object": {
            "kind": kind, "apiVersion": group,
            "metadata": { "resourceVersion": version, "annotations": { INITIAL_EVENTS_END: "true" } },
        },
    });
    added.chain([bookmark]).map(|event| Bytes::from(format!("{event}\n"))).collect()
}
