//! The demo as a person runs it: its last line, its exit status, and what it leaves behind.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, path::Path, time::Duration};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use perennial_testkit::{Assets, Launch, Process, eventually};

const SOON: Duration = Duration::from_mins(3);

/// The demo, started in a folder of its own for whatever it writes.
struct Demo {
    process: Process,
    folder: tempfile::TempDir,
    log: tempfile::NamedTempFile,
}

impl Demo {
    fn start(arguments: &str) -> Self {
        let (folder, log) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
        let process = Launch::new("demo", env!("CARGO_BIN_EXE_demo"), log.path())
            .args(arguments.split(' '))
            .env("TMPDIR", folder.path())
            .env("KUBEBUILDER_ASSETS", Assets::find().unwrap().folder())
            .start()
            .unwrap();
        Self { process, folder, log }
    }

    /// Waits for its end: the exit status, and all that it said.
    async fn end(&mut self) -> (Option<i32>, String) {
        let status = self.process.wait(SOON).await.unwrap();
        (status.code(), self.said())
    }

    fn said(&self) -> String {
        fs::read_to_string(self.log.path()).unwrap()
    }

    fn leaves_nothing(&self) {
        let left: Vec<_> = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap()).collect();
        assert!(left.is_empty(), "{left:?}");
        let own = self.folder.path().to_str().unwrap();
        assert_eq!(running_with(own), Vec::<String>::new());
    }
}

/// Command lines of processes that name this folder.
fn running_with(folder: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = processes.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(folder)).collect()
}

/// `K`, `L` and `N` of the last line.
fn verdict(said: &str) -> (usize, usize, usize) {
    let last = said.lines().last().unwrap_or_default();
    let words: Vec<&str> = last.split(' ').collect();
    match words[..] {
        ["demo:", "kept", kept, "of", wanted, "labels", "on", nodes, "nodes"] => {
            (kept.parse().unwrap(), wanted.parse().unwrap(), nodes.parse().unwrap())
        }
        _ => panic!("{said}"),
    }
}

#[tokio::test]
async fn every_label_is_kept_and_nothing_is_left_behind() {
    let mut demo = Demo::start("--nodes 20 --for 3s");
    let (code, said) = demo.end().await;
    assert_eq!(code, Some(0), "{said}");
    let (kept, wanted, nodes) = verdict(&said);
    assert!(kept == wanted && wanted > 100 && nodes == 20, "{said}");
    assert!(said.contains("kill -9"), "{said}");
    assert!(!said.contains('\x1b'), "plain lines where there is no terminal: {said}");
    demo.leaves_nothing();
}

#[tokio::test]
async fn labels_that_stay_away_are_counted_named_and_an_error() {
    let mut demo = Demo::start("--nodes 20 --for 1s --patience 1s -- --no-restore");
    let (code, said) = demo.end().await;
    assert_eq!(code, Some(1), "{said}");
    let (kept, wanted, nodes) = verdict(&said);
    assert!(kept < wanted && kept > 0 && nodes == 20, "{said}");
    let named = said.lines().find(|line| line.contains(": missing: ")).unwrap_or_else(|| panic!("{said}"));
    assert!(named.contains("example.com/rack") && named.contains("team"), "{named}");
    let logs = said.lines().find_map(|line| line.strip_prefix("logs kept in "));
    assert!(Path::new(logs.unwrap_or_else(|| panic!("{said}"))).is_dir(), "{said}");
}

#[tokio::test]
async fn an_interrupt_ends_it_and_cleans_up() {
    let mut demo = Demo::start("--nodes 20 --for 1m");
    let began = || async { Ok(demo.said().contains("return bare").then_some(())) };
    eventually(SOON, "the first round is under way", began).await.unwrap();
    let own = demo.folder.path().to_str().unwrap();
    assert!(running_with(own).len() >= 3, "etcd, kube-apiserver, keeper");

    let pid = Pid::from_raw(demo.process.pid().try_into().unwrap());
    kill(pid, Signal::SIGINT).unwrap();
    let (code, said) = demo.end().await;
    assert_eq!(code, Some(130), "{said}");
    assert_eq!(said.lines().last(), Some("demo: ended by Ctrl-C, nothing is left running"));
    demo.leaves_nothing();
}

#[tokio::test]
async fn arguments_that_make_no_sense_are_refused() {
    let mut demo = Demo::start("--for 45");
    let (code, said) = demo.end().await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("expected a time such as 30s"), "{said}");
}
