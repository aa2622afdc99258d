//! A keeper that does not come up is told with its last words; one that runs can be frozen and killed.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use perennial_testkit::{KeeperProcess, eventually};

/// A stand-in: these tests are about the process, not about what it does.
fn program(folder: &Path, script: &str) -> anyhow::Result<std::path::PathBuf> {
    let path = folder.join("perennial");
    fs::write(&path, format!("#!/bin/sh\n{script}\n"))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

#[tokio::test]
async fn a_keeper_that_dies_at_start_shows_its_last_words() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), r#"echo "policy: no such file: $4" "$GREETING"; exit 2"#).unwrap();
    let start =
        KeeperProcess::builder(program, folder.path()).policy("p.yaml").env("GREETING", "hello").start();
    let error = start.await.unwrap_err().to_string();
    assert!(error.contains("died (exit status: 2)"), "{error}");
    assert!(error.contains("no such file: --policy hello"), "{error}");
}

#[tokio::test]
async fn a_keeper_that_is_never_ready_is_told_with_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "echo waiting for the moon; exec sleep 1000").unwrap();
    let keeper = KeeperProcess::builder(program, folder.path()).spawn().await.unwrap();
    let error = format!("{:#}", keeper.ready(Duration::from_millis(300)).await.unwrap_err());
    assert!(error.contains("waiting for the moon") && error.contains("/readyz answers"), "{error}");
    assert_eq!(keeper.log().unwrap(), "waiting for the moon\n");

    keeper.pause().await.unwrap();
    keeper.resume().await.unwrap();
    keeper.check().await.unwrap();
    let pid = keeper.pid().await.unwrap();
    keeper.kill9().await.unwrap();
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(keeper.pid().await, None);
    assert!(keeper.stop().await.unwrap_err().to_string().contains("is not running"));
}

#[tokio::test]
async fn a_paused_keeper_still_stops_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap 'echo goodbye; exit 7' TERM; echo up; while :; do sleep 0.1; done";
    let program = program(folder.path(), script).unwrap();
    let keeper = KeeperProcess::builder(program, folder.path()).spawn().await.unwrap();
    let log = || async { Ok(keeper.log()?.contains("up").then_some(())) };
    eventually(Duration::from_secs(5), "it is up", log).await.unwrap();
    keeper.pause().await.unwrap();
    assert_eq!(keeper.stop().await.unwrap().code(), Some(7));
    assert!(keeper.log().unwrap().contains("goodbye"));
}
