//! What is read, what is refused, and that nothing is lost on the way.

use perennial_core::keeper::undo::in_force;
use perennial_core::kept::{Digest, Pairs, Taint};
use perennial_core::policy::Policy;
use perennial_core::record::{Record, WaitingKeys};

use super::*;
use crate::cli::export::written;

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

fn record(node: &str, labels: &[(&str, &str)]) -> Record {
    let labels: Pairs = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let kept = perennial_core::kept::Kept { labels, ..Default::default() };
    let incarnation = Incarnation { uid: Uuid::from_u128(7), provider_id: Some("m1".to_owned()) };
    Record {
        schema: SCHEMA,
        node: node.to_owned(),
        state: State::Open,
        incarnation: incarnation.clone(),
        version: 900,
        kept: kept.clone(),
        waiting: WaitingKeys::new(),
        previous: vec![Previous {
            incarnation,
            kept,
            waiting: WaitingKeys::new(),
            captured_at: NOW,
            policy: Some(Digest::of(b"policy")),
        }],
        captured_at: NOW,
        kept_since: None,
        deleted_at: None,
        sequence: 12,
        policy: Digest::of(b"policy"),
        unproved: None,
        given: true,
        paused: false,
    }
}

fn read(text: &str) -> Result<Vec<Record>, Vec<String>> {
    let read = read::text(text, &Policy::default(), false, Timestamp::UNIX_EPOCH)?;
    Ok(check::check(read.found)?.into_iter().map(|found| found.record).collect())
}

fn labels(record: &Record) -> Vec<String> {
    record.kept.labels.iter().map(|(key, value)| format!("{key}={value}")).collect()
}

/// The problems, as one text.
fn problems(text: &str) -> String {
    read(text).unwrap_err().join("\n")
}

#[test]
fn what_was_exported_is_read_back_to_the_letter() {
    let records = [record("a", &[("team", "blue")]), record("b", &[("x.io/y", "")])];
    assert_eq!(read(&written(&records, NOW)).unwrap(), records);
}

#[test]
fn a_record_of_another_cluster_becomes_that_of_a_node_that_is_away() {
    let before = record("a", &[("team", "blue")]);
    let away = as_away(before.clone(), NOW);
    assert_eq!((away.state, away.version, away.sequence, away.given), (State::Closed, 0, 1, false));
    assert_eq!((away.incarnation.uid, away.deleted_at), (Uuid::nil(), Some(NOW)));
    assert_eq!((away.kept, away.incarnation.provider_id), (before.kept, before.incarnation.provider_id));
    assert_eq!(away.previous[0].incarnation.uid, Uuid::nil());
}

#[test]
fn what_is_overwritten_stays_among_the_former_states() {
    let there = record("a", &[("team", "red")]);
    let later = NOW + jiff::SignedDuration::from_mins(5);
    let next = over(&there, &as_away(record("a", &[("team", "blue")]), NOW), later);
    assert_eq!((next.sequence, next.version), (13, 0));
    assert_eq!(next.previous[0].kept, there.kept);
    // Before, it was not here.
    let found = in_force(&next, NOW).map(|past| past.kept);
    assert_eq!((next.held_since(), found), (later, Some(&there.kept)));
    let closed = Record { state: State::Closed, ..there };
    assert_eq!(over(&closed, &as_away(record("a", &[("team", "blue")]), NOW), later).version, 900);
}

#[test]
fn a_file_that_is_cut_short_or_broken_is_refused_with_the_line() {
    let whole = written(&[record("a", &[("team", "blue")]), record("b", &[("team", "red")])], NOW);
    let cut = whole.lines().take(2).collect::<Vec<_>>().join("\n");
    assert!(problems(&cut).contains("2 records were exported, and 1 are here"), "{}", problems(&cut));
    let half = &whole[..whole.len() - 30];
    assert!(problems(half).starts_with("line 3:"), "{}", problems(half));
    let newer = whole.replacen("\"perennialExport\":1", "\"perennialExport\":2", 1);
    assert!(problems(&newer).contains("newer"), "{}", problems(&newer));
    let schema = whole.replacen("\"schema\":1", "\"schema\":9", 1);
    assert!(problems(&schema).contains("line 2: schema 9 is newer"), "{}", problems(&schema));
}

#[test]
fn what_no_node_could_bear_is_refused_before_anything_is_written() {
    for (record, word) in [
        (record("not a name", &[]), "cannot be the name of a node"),
        (record("a", &[("no key", "x")]), "cannot be a label"),
        (record("a", &[("team", "no value!")]), "cannot be a label"),
    ] {
        let told = problems(&written(&[record], NOW));
        assert!(told.contains(word), "{told}");
    }
    let taint = |key: &str, effect: &str, value: &str| Taint {
        key: key.to_owned(),
        effect: effect.to_owned(),
        value: value.to_owned(),
    };
    let mut tainted = record("a", &[]);
    tainted.kept.taints = vec![taint("gpu", "NoExecute", ""), taint("gpu", "NoSchedule", "1")];
    assert!(read(&written(&[tainted.clone()], NOW)).is_ok());
    tainted.kept.taints.push(taint("gpu", "NoSchedule", "2"));
    let told = problems(&written(&[tainted], NOW));
    assert_eq!(told, "line 2: node \"a\": the taint \"gpu\" stands twice with the effect NoSchedule");
    // What the API server allows of annotations, to the byte, also of a former state.
    let mut annotated = record("a", &[]);
    let annotate = |bytes: usize| {
        let large = ("example.com/large".to_owned(), "x".repeat(bytes - 17 - 7));
        Pairs::from([large, ("small".to_owned(), "ok".to_owned())])
    };
    annotated.previous[0].kept.annotations = annotate(256 * 1024);
    assert!(read(&written(&[annotated.clone(), record("b", &[("x", "1")])], NOW)).is_ok());
    annotated.previous[0].kept.annotations = annotate(256 * 1024 + 1);
    let told = problems(&written(&[annotated], NOW));
    assert_eq!(
        told,
        "line 2: node \"a\": its annotations take 262145 bytes, most of them \"example.com/large\", and a node may bear 262144"
    );
    let twice = problems(&written(&[record("a", &[("x", "1")]), record("a", &[("x", "2")])], NOW));
    assert_eq!(twice, "line 3: node \"a\": it is in line 2 as well");
}

#[test]
fn the_state_of_one_older_tool_is_read() {
    let text = r#"
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: { name: kube-root-ca.crt, namespace: node-label-operator }
  data: { ca.crt: "-----BEGIN CERTIFICATE-----" }
- apiVersion: v1
  kind: ConfigMap
  metadata: { name: node-labels-worker-1 }
  data:
    state.json: |-
      {
        "nodeName": "worker-1",
        "labels": { "persist.demo/team": "blue", "persist.demo/tier": "1" },
        "capturedAt": "2026-05-01T12:00:00.123456Z"
      }
"#;
    let records = read(text).unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].node, "worker-1");
    assert_eq!(labels(&records[0]), ["persist.demo/team=blue", "persist.demo/tier=1"]);
    assert_eq!(records[0].captured_at, "2026-05-01T12:00:00.123456Z".parse().unwrap());
}

#[test]
fn the_labels_of_the_other_older_tool_are_read_without_its_own_and_what_others_assert() {
    let text = r#"{ "kind": "ConfigMapList", "items": [{
        "metadata": { "name": "worker-1" },
        "data": {
            "example.com-SLASH-team": "blue", "example.com---SLASH---tier": "1", "plain": "yes",
            "kubernetes.io-SLASH-hostname": "worker-1", "label_version": "3"
        }
    }] }"#;
    let records = read(text).unwrap();
    assert_eq!(labels(&records[0]), ["example.com/team=blue", "example.com/tier=1", "plain=yes"]);
}

#[test]
fn own_records_are_read_from_what_kubectl_says() {
    let record = record("worker-1", &[("team", "blue")]);
    let map = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "node-record.worker-1" },
        "data": { "record.json": record.to_json() },
    });
    assert_eq!(read(&map.to_string()).unwrap(), std::slice::from_ref(&record));
    let yaml = serde_saphyr::to_string(&map).unwrap();
    assert_eq!(read(&format!("---\n{yaml}\n---\n")).unwrap(), [record]);
}

#[test]
fn anything_else_is_refused_and_said_why() {
    for (text, word) in [
        ("", "nothing in it"),
        ("\n\n", "nothing in it"),
        ("hello", "no kind"),
        ("{", "neither an export, nor JSON, nor YAML"),
        ("kind: Pod\nmetadata: { name: a }", "a Pod is neither"),
        ("kind: ConfigMap\nmetadata: { name: app }\ndata: { a: b }", "--skip-unknown"),
        ("kind: ConfigMap\nmetadata: {}", "name"),
        ("kind: List", "without items"),
        ("kind: ConfigMap\nmetadata: { name: node-labels-a }\ndata: { state.json: '{' }", "state.json"),
        (
            "kind: ConfigMap\nmetadata: { name: node-labels-a }\ndata: { state.json: '{\"nodeName\":\"b\",\"labels\":{}}' }",
            "instead of \"a\"",
        ),
        (
            "kind: ConfigMap\nmetadata: { name: node-labels-a }\ndata: { state.json: '{\"labels\":[]}' }",
            "state.json",
        ),
        ("kind: ConfigMap\nmetadata: { name: node-record.a }\ndata: { record.json: '{}' }", "schema"),
        ("kind: ConfigMap\nmetadata: { name: a }\ndata: { x-SLASH-y-SLASH-z: b }", "cannot be a label"),
    ] {
        let told = problems(text);
        assert!(told.contains(word), "{text:?}: {told}");
    }
}
