//! Nobody reads what is said: what changes the cluster is done all the same, and the exit status tells how it went.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use perennial_core::record::Record;
use serde_json::json;
use uuid::Uuid;

use crate::world::World;

/// More than fits into what the program holds back before it writes.
const RECORDS: usize = 60;
const WELL: &str = "2026-05-01T13:00:00Z";

fn name(number: usize) -> String {
    let part = "a".repeat(60);
    format!("worker-{number:02}.{part}.{part}.{part}")
}

/// An export of nodes that had another team once.
fn export() -> String {
    let nobody = json!({ "uid": Uuid::nil() });
    let record = |number| {
        json!({
            "schema": 1, "node": name(number), "state": "closed", "incarnation": nobody, "resourceVersion": "0",
            "kept": { "labels": { "team": "red" } },
            "previous": [{
                "incarnation": nobody, "kept": { "labels": { "team": "blue" } }, "capturedAt": "2026-05-01T12:00:00Z",
            }],
            "capturedAt": "2026-05-02T12:00:00Z", "sequence": 1, "policy": "0".repeat(32),
        })
    };
    let header = json!({ "perennialExport": 1, "exportedAt": "2026-05-02T12:00:00Z", "records": RECORDS });
    let lines = std::iter::once(header).chain((0..RECORDS).map(record)).map(|line| line.to_string());
    lines.collect::<Vec<_>>().join("\n")
}

/// Where nobody reads.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// Runs the program; gives back its exit status and what it told.
fn run(world: &World, words: &str, out: Stdio, err: Stdio) -> (Option<i32>, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_perennial"))
        .args(words.split_whitespace())
        .args(["-n", world.namespace(), "--installation", "perennial", "--policy"])
        .arg(world.default_policy())
        .env("KUBECONFIG", world.plane.kubeconfig_for_admin().unwrap())
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap();
    (done.status.code(), String::from_utf8(done.stderr).unwrap())
}

async fn teams(world: &World, range: std::ops::Range<usize>) -> Vec<String> {
    let mut teams = Vec::new();
    for number in range {
        let record: Option<Record> = world.record(&name(number)).await;
        teams.push(record.map_or_else(String::new, |record| record.kept.labels["team"].clone()));
    }
    teams
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_imported_and_nodes_rolled_back_though_nobody_reads_about_it() {
    let world = World::without_keeper("").await;
    let file = world.file("records.jsonl");
    std::fs::write(&file, export()).unwrap();
    let import = format!("import {}", file.display());
    assert_eq!(run(&world, &import, closed(), closed()).0, Some(0));
    assert_eq!(teams(&world, 0..RECORDS).await, vec!["red"; RECORDS]);

    // Who has not seen what would be done cannot have wanted it.
    let (code, told) = run(&world, &format!("rollback --all --to {WELL}"), closed(), Stdio::piped());
    assert_eq!(code, Some(1), "{told}");
    assert_eq!(teams(&world, 0..RECORDS).await, vec!["red"; RECORDS]);

    let last = RECORDS - 1;
    world.edit_record(&name(last), "{").await;
    let (code, told) = run(&world, &format!("rollback --all --to {WELL} --yes"), closed(), Stdio::piped());
    assert!(told.contains(&format!("{last} nodes rolled back, 1 failed.")), "{told}");
    assert_eq!(code, Some(1));
    assert_eq!(teams(&world, 0..last).await, vec!["blue"; last]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_stops_no_work_and_is_told() {
    let world = World::without_keeper("").await;
    let file = world.file("records.jsonl");
    std::fs::write(&file, export()).unwrap();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let (code, told) = run(&world, &format!("import {}", file.display()), full.into(), Stdio::piped());
    assert!(told.contains("error: cannot write: No space left on device"), "{told}");
    assert_eq!(code, Some(1));
    assert_eq!(teams(&world, 0..RECORDS).await, vec!["red"; RECORDS]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_only_looks_stops_quietly_and_a_backup_is_whole() {
    let world = World::without_keeper("").await;
    let file = world.file("records.jsonl");
    std::fs::write(&file, export()).unwrap();
    run(&world, &format!("import {}", file.display()), Stdio::null(), Stdio::piped());
    assert_eq!(run(&world, "nodes", closed(), Stdio::piped()), (Some(0), String::new()));
    // What differs is an answer too, though nobody sees it.
    world.register(&name(0)[..9], &crate::world::pairs([("team", "blue")])).await;
    assert_eq!(run(&world, "diff", closed(), Stdio::piped()), (Some(1), String::new()));
    let backup = world.file("backup.jsonl");
    world.edit_record(&name(0), "{").await;
    assert_eq!(run(&world, &format!("export -f {}", backup.display()), closed(), closed()).0, Some(1));
    assert_eq!(lines(&backup), RECORDS);
}

fn lines(file: &Path) -> usize {
    std::fs::read_to_string(file).unwrap_or_default().lines().count()
}
