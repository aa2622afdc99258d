use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::PERENNIAL;
use super::markdown::{GO, KOPF, behind, cell, goals, table};
use super::picture::picture;
use crate::results::{Case, Results, Sample, Who};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn empty() -> Results {
    Results {
        began: "2026-01-01".to_owned(),
        commit: "abc".to_owned(),
        machine: "2 cores".to_owned(),
        nodes: 100,
        rounds: 3,
        manner: "HTTP/2".to_owned(),
        samples: BTreeMap::new(),
    }
}

#[test]
fn a_cell_has_the_median_how_far_apart_and_how_many_times() {
    let mut results = empty();
    for (own, other) in [(10.0, 31.0), (12.0, 29.0), (11.0, 33.0)] {
        results.add(Case::Start, PERENNIAL, own);
        results.add(Case::Start, GO, other);
    }
    assert_eq!(cell(&results, Case::Start, PERENNIAL), "**11.0 (10.0–12.0)**");
    assert_eq!(cell(&results, Case::Start, GO), "31.0 (29.0–33.0)<br>2.82 ×");
    assert_eq!(cell(&results, Case::Start, KOPF), "–");
}

#[test]
fn one_round_that_did_not_finish_is_the_result() {
    let mut results = empty();
    results.add(Case::Mass, KOPF, 100.0);
    let late = Sample::DidNotFinish { did_not_finish: "within 60 s".to_owned() };
    results.push(Case::Mass, KOPF, late);
    assert_eq!(results.median(Case::Mass, KOPF), None);
    assert_eq!(cell(&results, Case::Mass, KOPF), "did not finish within 60 s");
}

#[test]
fn whoever_is_better_is_named() {
    let mut results = empty();
    results.add(Case::Mass, PERENNIAL, 300.0);
    results.add(Case::Mass, GO, 301.0);
    results.add(Case::Start, PERENNIAL, 1.0);
    results.add(Case::Start, GO, 2.0);
    // Whoever did not finish is behind one who did, and the other way round.
    results.push(Case::Bytes, PERENNIAL, Sample::DidNotFinish { did_not_finish: String::new() });
    results.add(Case::Bytes, KOPF, 1.0);
    assert_eq!(
        behind(&results),
        ["mass return (controller-runtime)", "sent by the API server for a start (kopf)"]
    );
}

#[test]
fn figures_survive_their_file() {
    let mut results = empty();
    results.add(Case::ChangeP50, Who::Limit, 1.5);
    results.add(Case::ChangeP50, GO, 2.5);
    results.push(Case::ChangeP50, KOPF, Sample::DidNotFinish { did_not_finish: "x".to_owned() });
    let text = serde_json::to_string(&results).unwrap();
    let read: Results = serde_json::from_str(&text).unwrap();
    assert_eq!(read.samples, results.samples, "{text}");
    assert!(serde_json::from_str::<Results>(&text.replace("1.5", "\"fast\"")).is_err());
}

/// The page says what the files of `bench/results` say, and shows a picture of each.
#[test]
fn the_page_is_of_these_figures() {
    let page = Path::new(ROOT).join("docs/performance.md");
    let mut text = fs::read_to_string(&page).unwrap();
    let (mut files, mut pictures) = (results_files(), Vec::new());
    files.sort();
    assert_eq!(
        text.matches("nodes: begin").count(),
        files.len(),
        "one section for each file of bench/results"
    );
    for file in files {
        let results: Results = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let begin = format!(
            "<!-- {} nodes: begin (UPDATE_DOCS=1 cargo test -p perennial-bench) -->\n",
            results.nodes
        );
        let end = format!("<!-- {} nodes: end -->", results.nodes);
        let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("no {begin:?} in {page:?}"));
        let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no {end:?} in {page:?}"));
        text = format!("{before}{begin}{}{end}{after}", section(&results));
        let drawn = Path::new(ROOT).join(format!("docs/performance-{}.svg", results.nodes));
        pictures.push((drawn, picture(&results)));
    }
    for (path, made) in pictures.into_iter().chain([(page, text)]) {
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&path, &made).unwrap();
        }
        let there = fs::read_to_string(&path).unwrap_or_default();
        assert!(there == made, "{} is old: UPDATE_DOCS=1 cargo test -p perennial-bench", path.display());
    }
}

fn results_files() -> Vec<PathBuf> {
    // Git keeps no folder that is empty.
    let Ok(folder) = fs::read_dir(Path::new(ROOT).join("bench/results")) else { return Vec::new() };
    folder.map(|entry| entry.unwrap().path()).collect()
}

fn section(results: &Results) -> String {
    let Results { began, commit, machine, nodes, rounds, manner, .. } = results;
    format!(
        "![Perennial, its peers and the limit at {nodes} nodes](performance-{nodes}.svg)\n\n\
         Measured on {began} at {commit}, {machine}, {nodes} nodes, {rounds} rounds: the median, the least and the most of the rounds, \
         and how many times Perennial's figure. The limit wrote by {manner}.\n\n{}\nWhat we set out to reach, at this size:\n\n{}\n",
        table(results),
        goals(results)
    )
}
