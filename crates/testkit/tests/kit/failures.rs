//! What is said when a control plane cannot start, and what is left when its owner is gone.

use std::{
    env, fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::Context;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use perennial_testkit::{ControlPlane, Pids, eventually};

const FOR: Duration = Duration::from_secs(20);

fn lives(pid: u32) -> bool {
    // A zombie is dead; it waits for whoever adopted it.
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(") ").next().unwrap_or_default().starts_with('Z'))
}

async fn nothing_is_left(pids: Pids, folder: &Path) -> anyhow::Result<()> {
    let Pids { etcd, apiserver } = pids;
    let pids = [etcd, apiserver].map(|pid| pid.expect("it ran"));
    eventually(FOR, "processes and folder are gone", || async {
        let living = pids.map(lives);
        anyhow::ensure!(!living[0] && !living[1], "etcd and API server live: {living:?}");
        anyhow::ensure!(!folder.exists(), "{} exists", folder.display());
        Ok(Some(()))
    })
    .await
}

/// The folder that an error names.
fn named_in(error: &str) -> &str {
    error.split("logs kept in ").nth(1).and_then(|rest| rest.split(')').next()).unwrap_or_default()
}

#[tokio::test]
async fn a_folder_without_binaries_is_named() {
    let empty = tempfile::tempdir().unwrap();
    let error = ControlPlane::builder().assets(empty.path()).start().await.err().unwrap().to_string();
    assert_eq!(error, format!("no etcd in {}", empty.path().display()));
}

#[tokio::test]
async fn a_binary_that_is_none_is_told() {
    let bad = tempfile::tempdir().unwrap();
    for name in ["etcd", "kube-apiserver"] {
        fs::write(bad.path().join(name), "not a program").unwrap();
    }
    let error = ControlPlane::builder().assets(bad.path()).start().await.err().unwrap();
    let error = format!("{error:#}");
    assert!(error.contains("failed to execute"), "{error}");
    fs::remove_dir_all(Path::new(named_in(&error)).parent().unwrap()).unwrap();
}

#[tokio::test]
async fn an_api_server_that_dies_at_start_shows_its_last_words() {
    let start = ControlPlane::builder().apiserver_flag("--no-such-flag").start();
    let error = format!("{:#}", start.await.err().unwrap());
    assert!(error.contains("kube-apiserver died (exit status: 1)"), "{error}");
    assert!(error.contains("unknown flag: --no-such-flag"), "{error}");
    let logs = Path::new(named_in(&error));
    assert!(logs.join("kube-apiserver.log").exists(), "{error}");
    assert!(!logs.with_file_name("etcd").exists(), "only logs are kept");
    fs::remove_dir_all(logs.parent().unwrap()).unwrap();
}

#[tokio::test]
async fn a_port_that_stays_taken_is_told_after_some_tries() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let flag = format!("--secure-port={}", taken.local_addr().unwrap().port());
    let error = format!("{:#}", ControlPlane::builder().apiserver_flag(flag).start().await.err().unwrap());
    assert!(error.contains("none of 3 tries found its ports free"), "{error}");
    assert!(error.contains("address already in use"), "{error}");
    fs::remove_dir_all(Path::new(named_in(&error)).parent().unwrap()).unwrap();
}

#[tokio::test]
async fn nothing_is_left_after_drop() {
    let controlplane = ControlPlane::start().await.unwrap();
    let (pids, folder) = (controlplane.pids().await, controlplane.folder().to_owned());
    drop(controlplane);
    nothing_is_left(pids, &folder).await.unwrap();
}

#[tokio::test]
async fn logs_are_left_after_a_panic_and_nothing_else() {
    let (tell, told) = tokio::sync::oneshot::channel();
    let panicked = tokio::spawn(async move {
        let controlplane = ControlPlane::start().await.unwrap();
        tell.send((controlplane.pids().await, controlplane.folder().to_owned())).unwrap();
        panic!("on purpose");
    });
    assert!(panicked.await.is_err());
    let (pids, folder) = told.await.unwrap();
    let mut left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["logs"]);
    fs::remove_dir_all(&folder).unwrap();
    nothing_is_left(pids, &folder).await.unwrap();
}

/// What this program does when the test below runs it again as its child.
#[tokio::test]
#[ignore = "run by nothing_is_left_when_the_owner_is_killed"]
async fn run_until_killed() {
    let Some(report) = env::var_os("REPORT_TO") else { return };
    let controlplane = ControlPlane::start().await.unwrap();
    let Pids { etcd, apiserver } = controlplane.pids().await;
    let (etcd, apiserver) = (etcd.unwrap(), apiserver.unwrap());
    let folder = controlplane.folder().display();
    let draft = Path::new(&report).with_extension("draft");
    fs::write(&draft, format!("{etcd}\n{apiserver}\n{folder}")).unwrap();
    fs::rename(draft, report).unwrap();
    std::future::pending::<()>().await;
}

async fn nothing_is_left_after(signal: Signal) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let report = folder.path().join("report");
    // A shell that starts jobs in the background has them ignore SIGINT, and so would the owner, unless told.
    let mut owner = Command::new("env")
        .arg("--default-signal=INT")
        .arg(env::current_exe()?)
        .args(["--exact", "failures::run_until_killed", "--ignored"])
        .env("REPORT_TO", &report)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let report = eventually(Duration::from_mins(1), "the owner reports", || async {
        Ok(Some(fs::read_to_string(&report)?))
    });
    let report = report.await?;
    let mut lines = report.lines();
    let mut line = || lines.next().context("a short report");
    let pids = Pids { etcd: Some(line()?.parse()?), apiserver: Some(line()?.parse()?) };
    let folder = Path::new(line()?);
    assert!(pids.etcd.is_some_and(lives) && folder.exists());

    kill(Pid::from_raw(i32::try_from(owner.id())?), signal)?;
    owner.wait()?;
    nothing_is_left(pids, folder).await
}

#[tokio::test]
async fn nothing_is_left_when_the_owner_is_killed() {
    nothing_is_left_after(Signal::SIGKILL).await.unwrap();
}

#[tokio::test]
async fn nothing_is_left_when_the_owner_is_interrupted() {
    nothing_is_left_after(Signal::SIGINT).await.unwrap();
}
