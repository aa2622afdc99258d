use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;

use super::PERENNIAL;
use super::growth::{self, along, each};
use super::markdown::{GO, KOPF, behind, cell, goals, table};
use super::picture::picture;
use super::sizes::{self, heartbeats, mebibytes};
use super::{sharing, soaked};
use crate::replicas::{Sharing, Turn};
use crate::results::{Case, Results, Sample, Setting, Who};
use crate::soak::Soaked;
use crate::soak::tests::soaked as one_soaked;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn setting() -> Setting {
    Setting { began: "2026-01-01".to_owned(), commit: "abc".to_owned(), machine: "2 cores".to_owned() }
}

fn empty() -> Results {
    Results {
        setting: setting(),
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
    for (own, other) in [(3.0, 2.9), (3.2, 3.1)] {
        results.add(Case::ReturnP50, PERENNIAL, own);
        results.add(Case::ReturnP50, GO, other);
    }
    // Whoever did not finish is behind one who did, and the other way round.
    results.push(Case::Bytes, PERENNIAL, Sample::DidNotFinish { did_not_finish: String::new() });
    results.add(Case::Bytes, KOPF, 1.0);
    assert_eq!(
        behind(&results),
        [
            "re-created node to labels back, p50 (controller-runtime, within the spread of rounds)",
            "mass return (controller-runtime)",
            "sent by the API server for a start (kopf)",
        ]
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

#[test]
fn growth_is_what_a_node_adds() {
    let mut all = [empty(), empty(), empty()];
    for (results, (nodes, seconds)) in all.iter_mut().zip([(1000, 0.2), (10_000, 0.4), (101_000, 2.2)]) {
        results.nodes = nodes;
        results.add(Case::Start, PERENNIAL, seconds);
    }
    assert_eq!(each(&all, Case::Start).as_deref(), Some("20.0 µs"));
    assert_eq!(each(&all, Case::Mass), None, "a rate does not add up");
    assert_eq!(each(&all, Case::Bytes), None, "nobody measured it");
    assert_eq!(each(&all[..1], Case::Start), None, "one fleet is no growth");
    assert_eq!((along(&all, &all[0]), along(&all, &all[2])), (Some(0.0), Some(1.0)));
    assert!(along(&all, &all[1]).is_some_and(|middle| middle > 0.4 && middle < 0.6));
}

#[test]
fn replicas_are_beside_one_alone() {
    let turn = |replicas: usize, recorded: f64, shares: &[f64]| Turn {
        replicas,
        recorded,
        given: 200.0,
        shares: shares.to_vec(),
        computed: 4.0,
        memory: shares.iter().map(|_| 20.0).collect(),
    };
    let turns = vec![turn(1, 1000.0, &[1.0]), turn(3, 1200.0, &[0.3, 0.3, 0.4]), turn(1, 1400.0, &[1.0])];
    let table = sharing::table(&Sharing { setting: setting(), nodes: 100, rounds: 2, turns });
    let rows: Vec<&str> = table.lines().skip(2).collect();
    assert!(rows[0].starts_with("| 1 | 1200 (1000–1400) | 200 (200–200) | 100 (100–100) % |"), "{table}");
    assert!(rows[1].starts_with("| 3 | 1200<br>1.00 × | 200<br>1.00 × | 30.0 (30.0–40.0) % |"), "{table}");
    assert_eq!(rows[2], "| 5 | – | – | – % | – | – |");
}

#[test]
fn a_soak_is_told_by_quarters_and_drawn_over_time() {
    let soak = one_soaked(&[&[1.0, 2.0, 3.0, 4.0], &[20.0; 8]]);
    let table = soaked::table(&soak);
    assert!(table.contains("| replica 1 | 1.00 | 2.00 | 3.00 | 4.00 |\n| replica 2 | 20.0 |"), "{table}");
    assert!(table.contains("30 minutes, 100 nodes, 2 replicas") && table.contains("3 nodes"), "{table}");
    let picture = soaked::picture(&soak);
    assert_eq!(picture.matches("<polyline").count(), 2);
    assert!(picture.contains(">32</text>") && !picture.contains("NaN"), "{picture}");
    assert!(!soaked::picture(&one_soaked(&[&[]])).contains("NaN"));
}

/// The page says what the files of `bench/results` say, and shows a picture of each and one of all.
#[test]
fn the_page_is_of_these_figures() {
    let page = Path::new(ROOT).join("docs/performance.md");
    let mut text = fs::read_to_string(&page).unwrap();
    let all = results();
    assert_eq!(text.matches("nodes: begin").count(), all.len(), "one section for each file of bench/results");
    let mut made = Vec::new();
    for results in &all {
        text = filled(&text, &format!("{} nodes", results.nodes), &section(results));
        made.push((format!("performance-{}.svg", results.nodes), picture(results)));
    }
    text = filled(&text, "growth", &format!("{PICTURE_OF_GROWTH}\n\n{}\n", growth::table(&all)));
    made.push(("performance-growth.svg".to_owned(), growth::picture(&all)));
    let shared: Sharing = kept("replicas");
    let Setting { began, commit, machine } = &shared.setting;
    let how = format!(
        "Measured on {began} at {commit}, {machine}, {} nodes, {}: the median, the least and the most, and how many times what one \
         replica does.",
        shared.nodes,
        counted(shared.rounds)
    );
    text = filled(&text, "replicas", &format!("{how}\n\n{}\n", sharing::table(&shared)));
    let soak: Soaked = kept("soak");
    text = filled(&text, "soak", &format!("{PICTURE_OF_SOAK}\n\n{}\n", soaked::table(&soak)));
    made.push(("performance-soak.svg".to_owned(), soaked::picture(&soak)));
    made.push(("performance.md".to_owned(), text));
    let operate = fs::read_to_string(page.with_file_name("operate.md")).unwrap();
    made.push(("operate.md".to_owned(), filled(&operate, "sizes", &sizes::table(&all))));
    for (name, made) in made {
        let path = page.with_file_name(name);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&path, &made).unwrap();
        }
        let there = fs::read_to_string(&path).unwrap_or_default();
        assert!(there == made, "{} is old: UPDATE_DOCS=1 cargo test -p perennial-bench", path.display());
    }
}

/// The chart's own limits are for the largest fleet that was measured: it asks for what is needed there, and may take twice that.
#[test]
fn the_chart_gives_a_replica_what_the_largest_fleet_takes() {
    let values = fs::read_to_string(Path::new(ROOT).join("charts/perennial/values.yaml")).unwrap();
    let given = |what: &str| {
        let line = values.lines().find(|line| line.trim_start().starts_with(what)).unwrap();
        mebibytes(line.split("memory: ").nth(1).unwrap().trim_end_matches([' ', '}'])).unwrap()
    };
    let all = results();
    let largest = all.last().unwrap();
    let most = largest.median(Case::MemoryPeak, PERENNIAL).unwrap();
    assert!(given("requests:") >= most, "{} MiB, {most} MiB", given("requests:"));
    assert!(given("limits:") >= 2.0 * most, "{} MiB, {most} MiB", given("limits:"));
    let cpu = values.lines().find_map(|line| line.trim_start().strip_prefix("requests: { cpu: ")).unwrap();
    let cpu: f64 = cpu.split('m').next().unwrap().parse().unwrap();
    assert!(cpu >= heartbeats(largest).unwrap(), "{cpu}m");
}

const PICTURE_OF_GROWTH: &str =
    "![How memory, a start, a heartbeat and a change grow](performance-growth.svg)";
const PICTURE_OF_SOAK: &str = "![What each replica takes, over half an hour](performance-soak.svg)";

/// The page with this between two of its marks.
fn filled(page: &str, what: &str, with: &str) -> String {
    let begin = format!("<!-- {what}: begin (UPDATE_DOCS=1 cargo test -p perennial-bench) -->\n");
    let end = format!("<!-- {what}: end -->");
    let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("no {begin:?} in the page"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no {end:?} in the page"));
    format!("{before}{begin}{with}{end}{after}")
}

/// All comparisons that are kept, the smallest fleet first.
fn results() -> Vec<Results> {
    let mut sizes: Vec<usize> = fs::read_dir(Path::new(ROOT).join("bench/results"))
        .unwrap()
        .filter_map(|entry| entry.unwrap().path().file_stem()?.to_str()?.parse().ok())
        .collect();
    sizes.sort_unstable();
    sizes.into_iter().map(|nodes| kept(&nodes.to_string())).collect()
}

fn kept<T: DeserializeOwned>(name: &str) -> T {
    let path = Path::new(ROOT).join("bench/results").join(name).with_extension("json");
    let text = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap()
}

fn counted(rounds: usize) -> String {
    if rounds == 1 { "one round".to_owned() } else { format!("{rounds} rounds") }
}

fn section(results: &Results) -> String {
    let Results { setting: Setting { began, commit, machine }, nodes, rounds, manner, .. } = results;
    format!(
        "![Perennial, its peers and the limit at {nodes} nodes](performance-{nodes}.svg)\n\n\
         Measured on {began} at {commit}, {machine}, {nodes} nodes, {}: the median, the least and the most of the rounds, \
         and how many times Perennial's figure. The limit wrote by {manner}.\n\n{}\nWhat we set out to reach, at this size:\n\n{}\n",
        counted(*rounds),
        table(results),
        goals(results)
    )
}
