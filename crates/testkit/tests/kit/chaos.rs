//! A short chaos with a fixed seed: its last line, its exit status, and that it can fail.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, time::Duration};

use perennial_testkit::{Assets, Launch};

const SOON: Duration = Duration::from_mins(5);

/// The exit status, and all that it said.
async fn chaos(arguments: &str) -> (Option<i32>, String) {
    let (folder, log) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
    let mut process = Launch::new("chaos", env!("CARGO_BIN_EXE_chaos"), log.path())
        .args(arguments.split(' '))
        .env("TMPDIR", folder.path())
        .env("KUBEBUILDER_ASSETS", Assets::find().unwrap().folder())
        .start()
        .unwrap();
    let status = process.wait(SOON).await.unwrap();
    (status.code(), fs::read_to_string(log.path()).unwrap())
}

#[tokio::test]
async fn three_replicas_keep_every_promise_while_everything_breaks() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    // First single servers fail, then everything does; the last round is a calm one: nothing goes wrong, and nothing is
    // excused.
    let shape = "--nodes 20 --api-servers 2 --etcd-members 3";
    let (code, said) = chaos(&format!("--seed 1 --from 3 --rounds 3 {shape}")).await;
    assert_eq!(code, Some(0), "{said}");
    let last = said.lines().last().unwrap_or_default();
    assert!(last.starts_with("chaos: kept every promise: 3 schedules"), "{said}");
    assert!(last.contains(" 0 unjudged)") && last.contains("wire") && last.contains("kill"), "{last}");
    assert!(last.contains(" api ") && last.contains(" member "), "{last}");
}

#[tokio::test]
async fn a_keeper_that_gives_nothing_back_is_found_out_with_a_timeline() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let (code, said) =
        chaos("--seed 1 --rounds 1 --nodes 5 --patience 5 --api-servers 1 --etcd-members 1 -- --no-restore")
            .await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("Records converge — broken for n00"), "{said}");
    assert!(said.contains("it did not get its own back") && said.contains("hand: node"), "{said}");
    assert!(said.contains("what replicas say about n00"), "{said}");
    assert!(said.contains("again: chaos --seed 1 --from 1 --rounds 1"), "{said}");
}
