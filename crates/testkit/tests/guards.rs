//! The guards that `make guards` takes out one by one: each patch still fits, its tests exist, and the page that
//! lists them is what they say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const BEGIN: &str =
    "<!-- guards: begin (written by UPDATE_DOCS=1 cargo test -p perennial-testkit --test guards) -->\n";
const HEAD: &str = "| without this guard … | … these tests fail |\n| --- | --- |\n";
const END: &str = "<!-- guards: end -->";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What the head of a patch says.
struct Guard {
    patch: PathBuf,
    what: String,
    /// The commands, without `cargo test`.
    tests: Vec<String>,
}

impl Guard {
    /// The filters of its tests.
    fn filters(&self) -> impl Iterator<Item = &str> {
        self.tests.iter().filter_map(|test| test.split_once(" -- ").map(|(_, filter)| filter.trim()))
    }
}

fn guards() -> Vec<Guard> {
    let mut patches: Vec<_> = std::fs::read_dir(root().join("dev/guards"))
        .expect("the folder of guards")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "patch"))
        .collect();
    patches.sort();
    patches.into_iter().map(read).collect()
}

fn read(patch: PathBuf) -> Guard {
    let text = std::fs::read_to_string(&patch).expect("a patch that can be read");
    let said = |what: &str| -> Vec<String> {
        let begin = format!("# {what}: ");
        text.lines().filter_map(|line| line.strip_prefix(&begin)).map(str::to_owned).collect()
    };
    let what = said("guard").pop().unwrap_or_else(|| panic!("{} names no guard", patch.display()));
    let tests = said("test");
    assert!(!tests.is_empty(), "{} names no test", patch.display());
    Guard { patch, what, tests }
}

/// Every line of Rust in the repository's crates, by file.
fn sources() -> BTreeMap<PathBuf, String> {
    let listed =
        Command::new("git").args(["ls-files", "crates/*.rs"]).current_dir(root()).output().expect("git");
    let names = String::from_utf8(listed.stdout).expect("names");
    let read = |name: &str| {
        let path = root().join(name);
        std::fs::read_to_string(&path).ok().map(|text| (path, text))
    };
    names.lines().filter_map(read).collect()
}

#[test]
fn every_patch_still_fits() {
    for Guard { patch, .. } in guards() {
        let check = Command::new("git").args(["apply", "--check"]).arg(&patch).current_dir(root()).output();
        let check = check.expect("git");
        let told = String::from_utf8_lossy(&check.stderr);
        assert!(check.status.success(), "{} does not fit any more: {told}", patch.display());
    }
}

#[test]
fn every_test_that_is_named_exists() {
    let sources = sources();
    for guard in guards() {
        for filter in guard.filters() {
            let last = filter.rsplit("::").next().unwrap_or(filter);
            let named = |text: &String| {
                text.contains(&format!("fn {last}")) || text.contains(&format!("mod {last};"))
            };
            assert!(sources.values().any(named), "{}: no test {filter}", guard.patch.display());
        }
    }
}

#[test]
fn the_page_lists_every_guard_and_what_catches_it() {
    let path = root().join("docs/reliability.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let (before, rest) = page.split_once(BEGIN).expect("where the guards begin");
    let (_, after) = rest.split_once(END).expect("where they end");
    let row = |guard: &Guard| {
        let filters: Vec<_> = guard.filters().map(|filter| format!("`{filter}`")).collect();
        format!("| {} | {} |\n", guard.what, filters.join("<br>"))
    };
    let rows: String = guards().iter().map(row).collect();
    let expected = format!("{before}{BEGIN}{HEAD}{rows}{END}{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).expect("writing the page");
    }
    let now = std::fs::read_to_string(&path).expect("the page");
    assert!(
        now == expected,
        "docs/reliability.md is old: UPDATE_DOCS=1 cargo test -p perennial-testkit --test guards"
    );
}
