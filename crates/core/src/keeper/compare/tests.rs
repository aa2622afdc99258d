//! Each row: what the record holds, what the node bears, and the word for it.

use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::kept::Digest;
use crate::record::SCHEMA;

const ROLE: &str = "node-role.kubernetes.io/db";

fn pairs(pairs: &[(&str, &str)]) -> Pairs {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn taint(key: &str, value: &str) -> Taint {
    Taint { key: key.to_owned(), effect: "NoSchedule".to_owned(), value: value.to_owned() }
}

fn record(kept: &Kept) -> Record {
    let text = json!({
        "schema": SCHEMA, "node": "worker-1", "state": "open", "incarnation": { "uid": Uuid::nil() },
        "resourceVersion": "1", "kept": kept, "waiting": { ROLE: { "value": "" } },
        "capturedAt": "2026-05-01T12:00:00Z", "sequence": 1, "policy": Digest::of(b"").to_string(),
    });
    Record::parse("worker-1", Some(&text.to_string())).unwrap()
}

/// What is said of each key.
fn told(live: Option<&Content>, record: Option<&Record>, policy: &str) -> Vec<(&'static str, String, How)> {
    let rows = compare(live, record, &Policy::parse(policy).unwrap());
    rows.into_iter().map(|row| (row.kind.as_str(), row.key, row.how)).collect()
}

#[test]
fn every_key_of_either_has_its_word() {
    let kept = Kept {
        labels: pairs(&[("a-same", "1"), ("b-differs", "1"), ("c-missing", "1"), ("d.example.com/x", "1")]),
        annotations: pairs(&[("note", "1")]),
        taints: vec![taint("gpu", "1")],
        unschedulable: true,
    };
    let content = Content {
        labels: pairs(&[
            ("a-same", "1"),
            ("b-differs", "2"),
            ("d.example.com/x", "1"),
            ("e-new", "1"),
            ("kubernetes.io/os", "linux"),
        ]),
        annotations: pairs(&[("note", "2"), ("other", "1")]),
        taints: vec![taint("gpu", "1"), taint("other", "")],
        unschedulable: false,
        ..Content::default()
    };
    let policy = "rules: [{ labels: { include: ['*'], exclude: ['d.example.com/*', 'kubernetes.io/*'] }, \
                  annotations: { include: [note] }, taints: { include: [gpu] }, cordon: true }]";
    let said = |kind, key: &str, how| (kind, key.to_owned(), how);
    assert_eq!(
        told(Some(&content), Some(&record(&kept)), policy),
        [
            said("label", "a-same", How::Same),
            said("label", "b-differs", How::Differs),
            said("label", "c-missing", How::Missing),
            said("label", "d.example.com/x", How::NoLongerKept),
            said("label", "e-new", How::Unrecorded),
            said("label", "kubernetes.io/os", How::NotKept),
            said("label", ROLE, How::Waits),
            said("annotation", "note", How::Differs),
            said("annotation", "other", How::NotKept),
            said("taint", "gpu:NoSchedule", How::Same),
            said("taint", "other:NoSchedule", How::NotKept),
            said("cordon", "unschedulable", How::Missing),
        ]
    );
    let away = told(None, Some(&record(&kept)), policy);
    let words: Vec<How> = away.into_iter().map(|(_, _, how)| how).collect();
    let remembered = How::Remembered;
    assert_eq!(
        words,
        [
            remembered,
            remembered,
            remembered,
            How::NoLongerKept,
            How::Waits,
            remembered,
            remembered,
            remembered
        ]
    );
}

#[test]
fn without_a_record_all_is_new_and_without_a_rule_nothing_is_kept() {
    let content = Content { labels: pairs(&[("team", "blue")]), ..Content::default() };
    let of = |how| [("label", "team".to_owned(), how)];
    assert_eq!(told(Some(&content), None, ""), of(How::Unrecorded));
    let nobodys = "rules: [{ selector: pool=web }]";
    assert_eq!(told(Some(&content), None, nobodys), of(How::NotKept));
    let mut recorded = record(&Kept { labels: pairs(&[("team", "blue")]), ..Kept::default() });
    recorded.waiting.clear();
    assert_eq!(told(Some(&content), Some(&recorded), nobodys), of(How::NoLongerKept));
}
