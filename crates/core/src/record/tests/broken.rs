//! Broken input of every kind.

use serde_json::{Value, json};

use super::record;
use crate::record::{ParseError, Record};

fn parse(text: &str) -> Result<Record, ParseError> {
    Record::parse("worker-1", Some(text))
}

/// A whole record, with every optional field there.
fn full() -> Value {
    let mut value: Value = serde_json::from_str(&record().to_json()).unwrap();
    let whole = json!({
        "waiting": { "node-role.kubernetes.io/db": { "value": "", "providerID": "m1" } },
        "previous": [{
            "incarnation": value["incarnation"],
            "kept": value["kept"],
            "waiting": { "node-role.kubernetes.io/db": { "value": "" } },
            "capturedAt": value["capturedAt"],
            "policy": value["policy"],
        }],
        "deletedAt": value["capturedAt"],
        "unproved": { "uid": value["incarnation"]["uid"], "from": "open" },
        "given": true,
        "paused": true,
    });
    value.as_object_mut().unwrap().extend(whole.as_object().unwrap().clone());
    value["incarnation"]["providerID"] = json!("m1");
    value["kept"]["annotations"] = json!({ "b": "2" });
    value["kept"]["taints"] = json!([{ "key": "k", "effect": "NoSchedule", "value": "v" }]);
    value["kept"]["unschedulable"] = json!(true);
    value
}

#[test]
fn a_whole_record_is_read() {
    let record = parse(&full().to_string()).unwrap();
    assert!(record.given && record.paused && record.kept.unschedulable);
    assert_eq!((record.waiting.len(), record.previous.len(), record.kept.taints.len()), (1, 1, 1));
}

#[test]
fn a_missing_key_is_told_as_missing() {
    assert_eq!(Record::parse("worker-1", None), Err(ParseError::Missing));
}

#[test]
fn what_is_not_json_is_malformed() {
    let bom = format!("\u{feff}{}", full());
    let twice = format!("{0}{0}", full());
    let nothing =
        ["", " ", "null", "[]", "{}", "42", "\"text\"", "true", "{", "not json", "\u{0}", "---\na: 1"];
    for text in nothing.into_iter().chain([bom.as_str(), twice.as_str()]) {
        assert!(matches!(parse(text), Err(ParseError::Malformed(_))), "{text:?}");
    }
}

#[test]
fn a_truncated_record_is_malformed_wherever_it_was_cut() {
    let text = record().to_json();
    for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
        assert!(matches!(parse(&text[..cut]), Err(ParseError::Malformed(_))), "cut at {cut}");
    }
}

/// Every place in a JSON value, as pointers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                places(value, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                places(value, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn a_wrong_type_in_any_field_is_malformed() {
    let whole = full();
    let mut all = Vec::new();
    places(&whole, "", &mut all);
    assert!(all.len() > 30, "{all:?}");
    let optional = ["/deletedAt", "/unproved", "/incarnation/providerID", "/previous/0/policy"];
    for place in &all {
        for wrong in [json!(-1), json!(1.5), json!([1]), json!({ "x": 1 }), json!(null), json!([[]])] {
            let mut broken = whole.clone();
            *broken.pointer_mut(place).unwrap() = wrong.clone();
            // Null is as good as leaving it out, where that is allowed.
            let absent =
                wrong.is_null() && (optional.contains(&place.as_str()) || place.ends_with("/providerID"));
            let result = parse(&broken.to_string());
            assert_eq!(result.is_ok(), absent, "{place} = {wrong}: {result:?}");
        }
    }
}

#[test]
fn a_missing_field_that_every_record_has_is_malformed() {
    for field in [
        "schema",
        "node",
        "state",
        "incarnation",
        "resourceVersion",
        "kept",
        "capturedAt",
        "sequence",
        "policy",
    ] {
        let mut broken = full();
        broken.as_object_mut().unwrap().remove(field);
        assert!(matches!(parse(&broken.to_string()), Err(ParseError::Malformed(_))), "{field}");
    }
}

#[test]
fn an_unknown_field_anywhere_is_malformed() {
    for place in ["", "/incarnation", "/kept", "/kept/taints/0", "/previous/0", "/unproved"] {
        let mut broken = full();
        broken.pointer_mut(place).unwrap()["surprise"] = json!(1);
        assert!(matches!(parse(&broken.to_string()), Err(ParseError::Malformed(_))), "{place}");
    }
}

#[test]
fn wrong_words_are_malformed() {
    for (place, wrong) in [
        ("/state", "Open"),
        ("/state", "ended"),
        ("/incarnation/uid", "worker-1"),
        ("/resourceVersion", "ten"),
        ("/resourceVersion", "-1"),
        ("/resourceVersion", ""),
        ("/resourceVersion", "99999999999999999999"),
        ("/capturedAt", "yesterday"),
        ("/policy", "abc"),
        ("/policy", "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"),
        ("/policy", "+1111111111111111111111111111111"),
        ("/unproved/from", "x"),
    ] {
        let mut broken = full();
        *broken.pointer_mut(place).unwrap() = json!(wrong);
        assert!(matches!(parse(&broken.to_string()), Err(ParseError::Malformed(_))), "{place} = {wrong:?}");
    }
}

#[test]
fn a_newer_schema_is_told_whatever_else_it_holds() {
    for text in [r#"{"schema":2}"#, r#"{"schema":99,"node":{"name":"x"},"state":7}"#] {
        assert!(matches!(parse(text), Err(ParseError::Newer { .. })), "{text}");
    }
    let mut newer = full();
    newer["schema"] = json!(2);
    assert_eq!(parse(&newer.to_string()), Err(ParseError::Newer { found: 2 }));
}

#[test]
fn a_schema_that_never_was_is_malformed() {
    for schema in [json!(0), json!("1"), json!(-1), json!(1.0), json!(null), json!([1])] {
        let mut broken = full();
        broken["schema"] = schema.clone();
        assert!(matches!(parse(&broken.to_string()), Err(ParseError::Malformed(_))), "{schema}");
    }
}

#[test]
fn a_record_of_another_node_is_told_with_both_names() {
    let mut other = full();
    other["node"] = json!("worker-2");
    let expected = ParseError::OtherNode { found: "worker-2".to_owned(), expected: "worker-1".to_owned() };
    assert_eq!(parse(&other.to_string()), Err(expected));
}

#[test]
fn a_field_that_stands_there_twice_is_malformed() {
    let text = full().to_string();
    for twice in
        [r#"{"schema":1,"#, r#"{"node":"worker-1","#, r#"{"state":"open","#, r#"{"kept":{"labels":{}},"#]
    {
        let broken = format!("{twice}{}", &text[1..]);
        assert!(matches!(parse(&broken), Err(ParseError::Malformed(_))), "{twice}");
    }
}

#[test]
fn of_a_label_that_stands_there_twice_the_last_counts() {
    let mut value = full();
    value["kept"]["labels"] = json!({ "x": "first" });
    let text = value.to_string().replace(r#""x":"first""#, r#""x":"first","x":"last""#);
    assert_eq!(parse(&text).unwrap().kept.labels["x"], "last");
}

#[test]
fn huge_and_deep_text_is_refused_without_harm() {
    let huge = format!("\"{}\"", "x".repeat(1 << 20));
    assert!(matches!(parse(&huge), Err(ParseError::Malformed(_))));
    assert!(matches!(parse(&"x".repeat(1 << 20)), Err(ParseError::Malformed(_))));
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        assert!(matches!(parse(&deep), Err(ParseError::Malformed(_))));
        let within = format!("{{\"schema\":1,\"node\":{deep}}}");
        assert!(matches!(parse(&within), Err(ParseError::Malformed(_))));
    }
}

#[test]
fn the_greatest_numbers_are_read() {
    let mut value = full();
    value["sequence"] = json!(u64::MAX);
    value["resourceVersion"] = json!(u64::MAX.to_string());
    let record = parse(&value.to_string()).unwrap();
    assert_eq!((record.sequence, record.version), (u64::MAX, u64::MAX));
}

#[test]
fn every_error_says_what_is_wrong() {
    for (text, word) in [("{", "EOF"), (r#"{"schema":7}"#, "newer"), (r#"{"schema":1}"#, "missing field")] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    assert!(Record::parse("x", None).unwrap_err().to_string().contains("record.json"));
}
