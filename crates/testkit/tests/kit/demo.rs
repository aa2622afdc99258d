//! The demo as a person runs it: its last line, its exit status, and what it leaves behind.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    io::{self, Write as _},
    net::TcpStream,
    path::Path,
    time::Duration,
};

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

/// What the server at such an address answers, whole.
fn get(url: &str) -> io::Result<String> {
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET / HTTP/1.1\r\nhost: {address}\r\naccept: text/html\r\nconnection: close\r\n\r\n")?;
    io::read_to_string(stream)
}

/// `K`, `L` and `N` of the last line, and what else it says.
fn verdict(said: &str) -> (usize, usize, usize, &str) {
    let last = said.lines().last().unwrap_or_default();
    let (labels, rest) = last.split_once("; ").unwrap_or_else(|| panic!("{said}"));
    let words: Vec<&str> = labels.split(' ').collect();
    match words[..] {
        ["demo:", "kept", kept, "of", wanted, "labels", "on", nodes, "nodes"] => {
            (kept.parse().unwrap(), wanted.parse().unwrap(), nodes.parse().unwrap(), rest)
        }
        _ => panic!("{said}"),
    }
}

/// What is told of a replica at the end, and how many restores and takeovers that is.
fn replica<'s>(said: &'s str, name: &str) -> (&'s str, usize, usize) {
    let prefix = format!("demo: {name}: ");
    let told = said.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap_or_else(|| panic!("{said}"));
    let count = |noun: &str| {
        let part = told.split(", ").find(|part| part.contains(noun)).unwrap_or_else(|| panic!("{told}"));
        part.split(' ').next().unwrap().parse().unwrap()
    };
    (told, count(" restore"), count(" takeover"))
}

#[tokio::test]
async fn every_label_is_kept_given_once_and_nothing_is_left_behind() {
    let mut demo = Demo::start("--nodes 30 --for 1s -- --takeover 1s");
    let (code, said) = demo.end().await;
    assert_eq!(code, Some(0), "{said}");
    let (kept, wanted, nodes, rest) = verdict(&said);
    assert!(kept == wanted && wanted > 100 && nodes == 30, "{said}");
    assert!(rest.starts_with("given once each, on "), "{said}");
    for scene in ["keeper-2 is killed halfway (kill -9)", "keeper-3 wakes up", "nobody watches", "proofs"] {
        assert!(said.contains(scene), "{scene}: {said}");
    }
    assert!(!said.contains('\x1b'), "plain lines where there is no terminal: {said}");
    demo.leaves_nothing();

    let told = ["keeper-1", "keeper-2", "keeper-3"].map(|name| replica(&said, name));
    let suffered = [", killed once", ", killed twice", ", killed once, paused once"];
    for ((told, restores, _), suffered) in told.iter().zip(suffered) {
        assert!(*restores > 0, "each does its share: {said}");
        assert!(told.ends_with(suffered) && told.starts_with("share "), "{said}");
    }
    assert!(told.iter().map(|(_, _, takeovers)| takeovers).sum::<usize>() > 0, "{said}");
}

#[tokio::test]
async fn one_keeper_alone_does_it_too() {
    let mut demo = Demo::start("--nodes 10 --for 1s --replicas 1");
    let (code, said) = demo.end().await;
    assert_eq!(code, Some(0), "{said}");
    let (told, _, takeovers) = replica(&said, "keeper-1");
    assert!(told.starts_with("share 100 %, ") && takeovers == 0, "{said}");
    assert!(!said.contains("keeper-2"), "{said}");
}

#[tokio::test]
async fn one_that_stays_serves_the_status_page_until_it_is_interrupted() {
    let mut demo = Demo::start("--nodes 10 --for 1s --replicas 1 --stay");
    let stays = || async { Ok(demo.said().contains("all stays up until Ctrl-C").then(|| demo.said())) };
    let said = eventually(SOON, "it is over, and stays", stays).await.unwrap();
    assert!(said.contains(" labels on 10 nodes; given once each"), "{said}");
    let page = said.split_whitespace().find(|word| word.starts_with("http://127.0.0.1:")).unwrap().to_owned();
    let answer = get(&page).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("<title>Perennial"), "{answer}");

    kill(Pid::from_raw(demo.process.pid().try_into().unwrap()), Signal::SIGINT).unwrap();
    assert_eq!(demo.end().await.0, Some(130));
    demo.leaves_nothing();
}

#[tokio::test]
async fn labels_that_stay_away_are_counted_named_and_an_error() {
    let mut demo = Demo::start("--nodes 20 --for 1s --patience 1s -- --no-restore");
    let (code, said) = demo.end().await;
    assert_eq!(code, Some(1), "{said}");
    let (kept, wanted, nodes, rest) = verdict(&said);
    assert!(kept < wanted && kept > 0 && nodes == 20, "{said}");
    assert_eq!(rest, "nothing was given back", "{said}");
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
    assert!(running_with(own).len() >= 5, "etcd, kube-apiserver, three keepers");

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
