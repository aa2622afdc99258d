//! The S3 servers against themselves: they are what they say.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs};

use http::{Method, StatusCode};
use perennial_testkit::{S3Builder, S3Server, eventually};

const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_bucket_is_closed_to_strangers_until_it_is_opened() {
    let s3 = S3Server::start().await.unwrap();
    s3.create_bucket("pages").await.unwrap();
    s3.ask(Method::PUT, "/pages/index.html", "hello").await.unwrap().good().unwrap();
    let closed = s3.get_as_stranger("/pages/index.html").await.unwrap();
    assert_eq!(closed.status, StatusCode::FORBIDDEN);
    s3.publish_bucket("pages").await.unwrap();
    let open = s3.get_as_stranger("/pages/index.html").await.unwrap();
    assert_eq!((open.status, open.text()), (StatusCode::OK, "hello".to_owned()));
}

#[tokio::test]
async fn what_it_has_survives_its_death() {
    let s3 = S3Server::start().await.unwrap();
    s3.create_bucket("pages").await.unwrap();
    s3.ask(Method::PUT, "/pages/index.html", "hello").await.unwrap().good().unwrap();
    s3.kill().await.unwrap();
    s3.ask(Method::GET, "/pages/index.html", "").await.unwrap_err();
    s3.start_again().await.unwrap();
    assert_eq!(s3.ask(Method::GET, "/pages/index.html", "").await.unwrap().text(), "hello");
}

#[tokio::test]
async fn a_full_disk_refuses_and_has_room_again() {
    let s3 = S3Server::builder().space("512k").start().await.unwrap();
    s3.create_bucket("pages").await.unwrap();
    s3.fill().await.unwrap();
    let refused = s3.ask(Method::PUT, "/pages/index.html", "hello").await.unwrap();
    assert!(!refused.status.is_success(), "{refused:?}");
    s3.empty().await.unwrap();
    s3.ask(Method::PUT, "/pages/index.html", "hello").await.unwrap().good().unwrap();
}

#[tokio::test]
async fn it_serves_by_tls() {
    let s3 = S3Server::builder().tls().start().await.unwrap();
    assert!(s3.url().starts_with("https://"), "{}", s3.url());
    s3.create_bucket("pages").await.unwrap();
}

async fn nothing_is_left(pid: u32, folder: &Path) -> anyhow::Result<()> {
    eventually(SOON, "process and folder are gone", || async {
        // A zombie is dead; it waits for whoever adopted it.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat.rsplit(") ").next().unwrap_or_default();
        anyhow::ensure!(stat.is_empty() || state.starts_with('Z'), "it lives: {state}");
        anyhow::ensure!(!folder.exists(), "{} exists", folder.display());
        Ok(Some(()))
    })
    .await
}

fn both() -> [S3Builder; 2] {
    [S3Server::builder(), S3Server::builder().space("512k")]
}

#[tokio::test]
async fn nothing_is_left_after_drop() {
    for builder in both() {
        let s3 = builder.start().await.unwrap();
        let (pid, folder) = (s3.pid().await.unwrap(), s3.folder().to_owned());
        drop(s3);
        nothing_is_left(pid, &folder).await.unwrap();
    }
}

/// What this program does when the test below runs it again as its child; otherwise nothing.
#[tokio::test]
async fn run_until_killed() {
    let Some(report) = env::var_os("REPORT_TO") else { return };
    let mut servers = Vec::new();
    let mut lines = String::new();
    for builder in both() {
        let s3 = builder.start().await.unwrap();
        writeln!(lines, "{} {}", s3.pid().await.unwrap(), s3.folder().display()).unwrap();
        servers.push(s3);
    }
    let draft = Path::new(&report).with_extension("draft");
    fs::write(&draft, lines).unwrap();
    fs::rename(draft, report).unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn nothing_is_left_when_the_owner_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    let mut owner = Command::new(env::current_exe().unwrap())
        .args(["--exact", "run_until_killed"])
        .env("REPORT_TO", &report)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = eventually(SOON, "the owner reports", || async { Ok(Some(fs::read_to_string(&report)?)) });
    let lines = lines.await.unwrap();
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert_eq!(lines.lines().count(), 2);
    for line in lines.lines() {
        let (pid, folder) = line.split_once(' ').unwrap();
        nothing_is_left(pid.parse().unwrap(), Path::new(folder)).await.unwrap();
    }
}
