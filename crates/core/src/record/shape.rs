//! serde takes a list for a struct, its fields in order. Nobody writes records like that: `"kept": []` is a
//! broken record, not one with nothing in it.

use serde_json::Value;

/// Where `found` has something else in the place of an object of `written`, which is what was understood.
pub(super) fn list_for_object(found: &Value, written: &Value) -> Option<String> {
    match (found, written) {
        (Value::Object(found), Value::Object(written)) => written.iter().find_map(|(key, written)| {
            let below = list_for_object(found.get(key)?, written)?;
            Some(format!("/{key}{below}"))
        }),
        (Value::Array(found), Value::Array(written)) => {
            found.iter().zip(written).enumerate().find_map(|(place, (found, written))| {
                Some(format!("/{place}{}", list_for_object(found, written)?))
            })
        }
        (_, Value::Object(_)) => Some(String::new()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_is_found_to_be_in_shape() {
        let whole = json!({ "kept": { "labels": { "a": "b" }, "taints": [{ "key": "k" }] }, "paused": true });
        assert_eq!(list_for_object(&whole, &whole), None);
        assert_eq!(list_for_object(&json!({ "kept": {} }), &json!({ "kept": { "labels": {} } })), None);
    }

    #[test]
    fn a_list_in_the_place_of_an_object_is_named() {
        let written = json!({ "kept": { "taints": [{ "key": "a" }, { "key": "k" }] } });
        assert_eq!(list_for_object(&json!({ "kept": [] }), &written).as_deref(), Some("/kept"));
        let taint = json!({ "kept": { "taints": [{ "key": "a" }, ["k", "NoSchedule"]] } });
        assert_eq!(list_for_object(&taint, &written).as_deref(), Some("/kept/taints/1"));
    }

    #[test]
    fn a_record_with_a_list_in_the_place_of_an_object_is_malformed() {
        let record = |kept: Value| {
            let uid = "00000000-0000-0000-0000-000000000007";
            json!({
                "schema": 1, "node": "a", "state": "open", "incarnation": { "uid": uid }, "resourceVersion": "5",
                "kept": kept, "capturedAt": "2026-01-01T00:00:00Z", "sequence": 1, "policy": "0".repeat(32),
            })
        };
        let parse = |record: Value| crate::record::Record::parse("a", Some(&record.to_string()));
        assert!(parse(record(json!({}))).is_ok());
        assert_eq!(parse(record(json!([]))).unwrap_err().to_string(), "/kept is a list instead of an object");
        assert_eq!(parse(json!([2, "a"])).unwrap_err().to_string(), "it is not an object");
    }
}
