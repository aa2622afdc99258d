//! docs/tutorial.md does what it says: its commands are run in order, in one shell, against a real API server,
//! and what they print is compared with what the page shows.
#![allow(clippy::unwrap_used, reason = "what a test cannot go on without fails it")]

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

use perennial_testkit::{ControlPlane, Launch};

const SOON: Duration = Duration::from_mins(4);
/// Stands for any text in what the page shows.
const ANYTHING: char = '…';

/// Commands, and what the page says that they print.
#[derive(Debug, Default, PartialEq, Eq)]
struct Step {
    commands: String,
    printed: Option<String>,
}

/// The fenced blocks of a page: `sh` is run, a `text` after it is what it prints.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let mut block = String::new();
        for line in lines.by_ref().take_while(|line| *line != "```") {
            writeln!(block, "{line}").unwrap();
        }
        match (language, steps.last_mut()) {
            ("sh", _) => steps.push(Step { commands: block, printed: None }),
            ("text", Some(step)) if step.printed.is_none() => step.printed = Some(block),
            (other, _) => panic!("a block of {other:?} that nobody checks:\n{block}"),
        }
    }
    steps
}

/// Whether the text is what the page shows.
fn matches(shown: &str, printed: &str) -> bool {
    let mut parts = shown.trim_end().split(ANYTHING);
    let printed = printed.trim_end();
    let Some(mut rest) = printed.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// One shell runs it all; what each step prints goes to a file of its own.
fn script(steps: &[Step], out: &Path) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut script = format!(
        "set -euo pipefail\ntrap 'kill -9 $(jobs -p) 2>/dev/null || true' EXIT\ncd '{}'\n",
        root.display()
    );
    for (number, Step { commands, .. }) in steps.iter().enumerate() {
        let file = out.join(number.to_string());
        writeln!(script, "echo 'step {number}' >&2\nexec >'{}'\n{commands}", file.display()).unwrap();
    }
    script
}

/// A folder with a `perennial` that ends with the shell that started it, whatever end that comes to.
fn shim(folder: &Path) -> PathBuf {
    let bin = folder.join("bin");
    fs::create_dir(&bin).unwrap();
    let text =
        format!("#!/bin/sh\nexec setpriv --pdeathsig KILL -- '{}' \"$@\"\n", env!("CARGO_BIN_EXE_perennial"));
    fs::write(bin.join("perennial"), text).unwrap();
    fs::set_permissions(bin.join("perennial"), fs::Permissions::from_mode(0o755)).unwrap();
    bin
}

#[tokio::test]
async fn the_tutorial_does_what_it_says() {
    let page = include_str!("../../../docs/tutorial.md");
    let steps = steps(page);
    assert!(steps.iter().filter(|step| step.printed.is_some()).count() >= 7, "{steps:#?}");
    assert!(!page.contains("sleep"), "wait for what must become true");

    let plane = ControlPlane::start().await.unwrap();
    let out = plane.folder().join("out");
    fs::create_dir(&out).unwrap();
    let inherited = env::var_os("PATH").unwrap_or_default();
    let path = [shim(plane.folder()), plane.assets().folder().to_owned()]
        .into_iter()
        .chain(env::split_paths(&inherited));
    let log = plane.logs().join("tutorial.log");
    let mut shell = Launch::new("the tutorial", "bash", &log)
        .args(["-c", &script(&steps, &out)])
        .env("PATH", env::join_paths(path).unwrap())
        .env("KUBECONFIG", plane.kubeconfig_for_admin().unwrap())
        .env("TMPDIR", plane.folder())
        .start()
        .unwrap();
    let status = shell.wait(SOON).await;
    let told = fs::read_to_string(&log).unwrap();
    assert!(status.as_ref().is_ok_and(std::process::ExitStatus::success), "{status:?}\n{told}");

    for (number, Step { commands, printed }) in steps.iter().enumerate() {
        let Some(shown) = printed else { continue };
        let printed = fs::read_to_string(out.join(number.to_string())).unwrap();
        assert!(
            matches(shown, &printed),
            "step {number}:\n{commands}\nthe page shows:\n{shown}\nit prints:\n{printed}"
        );
    }
}

#[test]
fn pages_are_taken_apart_and_compared() {
    let page = "text\n```sh\na\nb\n```\nmore\n```text\nc\n```\n```sh\nd\n```\n";
    let step = |commands: &str, printed: Option<&str>| Step {
        commands: commands.to_owned(),
        printed: printed.map(str::to_owned),
    };
    assert_eq!(steps(page), [step("a\nb\n", Some("c\n")), step("d\n", None)]);

    assert!(matches("a\nb\n", "a\nb"));
    assert!(matches("{…\"x\":1…}", "{\"w\":0,\"x\":1,\"y\":2}"));
    for (shown, printed) in [("a", "a b"), ("a…c", "a b"), ("…b", "b a"), ("a…b…c", "a c"), ("a", "")]
    {
        assert!(!matches(shown, printed), "{shown:?} and {printed:?}");
    }
}
