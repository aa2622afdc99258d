//! The alerts: well formed, each tested, each with a section that says what to do.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::rendered::{PERENNIAL, chart, root};
use crate::tools::promtool;

/// The plain file of rules.
pub(crate) fn path() -> PathBuf {
    chart(PERENNIAL).join("files/alerts.yaml")
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/monitoring/alerts.test.yaml")
}

fn yaml(path: &Path) -> Value {
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// One alert, as far as it is tuned.
#[derive(Debug)]
pub(crate) struct Alert {
    pub(crate) name: String,
    /// What is compared with the threshold.
    pub(crate) measure: String,
    pub(crate) comparison: String,
    pub(crate) threshold: String,
    pub(crate) wait: Option<String>,
    pub(crate) severity: String,
    annotations: Value,
}

/// The alerts of a list of groups.
pub(crate) fn alerts(groups: &Value) -> Vec<Alert> {
    let rules = groups.as_array().unwrap().iter().flat_map(|group| group["rules"].as_array().unwrap());
    let read = |rule: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{rule}")).to_owned();
        let expression = text(&rule["expr"]);
        let (rest, threshold) = expression.rsplit_once(' ').unwrap();
        let (measure, comparison) = rest.rsplit_once(' ').unwrap();
        assert!(
            [">", "<"].contains(&comparison) && threshold.parse::<f64>().is_ok(),
            "ends in no threshold: {expression}"
        );
        Alert {
            name: text(&rule["alert"]),
            measure: measure.to_owned(),
            comparison: comparison.to_owned(),
            threshold: threshold.to_owned(),
            wait: rule["for"].as_str().map(str::to_owned),
            severity: text(&rule["labels"]["severity"]),
            annotations: rule["annotations"].clone(),
        }
    };
    rules.map(read).collect()
}

/// Those of the plain file.
pub(crate) fn all() -> Vec<Alert> {
    alerts(&yaml(&path())["groups"])
}

#[test]
fn prometheus_takes_the_rules() {
    promtool(&["check", "rules"], &path()).unwrap_or_else(|told| panic!("{told}"));
}

#[test]
fn each_alert_fires_when_it_should_and_is_silent_when_it_should_be() {
    promtool(&["test", "rules"], &tests()).unwrap_or_else(|told| panic!("{told}"));
}

#[test]
fn each_alert_has_a_test_in_which_it_fires_and_one_in_which_it_does_not() {
    let file = yaml(&tests());
    let tests = file["tests"].as_array().unwrap();
    for Alert { name, .. } in all() {
        let asks = format!("count(ALERTS{{alertname=\"{name}\",alertstate=\"firing\"}})");
        let mut fires = 0;
        let mut silent = 0;
        for test in
            tests.iter().filter(|test| test["name"].as_str().unwrap().starts_with(&format!("{name} ")))
        {
            let checks = test["promql_expr_test"].as_array().unwrap();
            assert!(checks.iter().all(|check| check["expr"] == asks.as_str()), "{test}");
            let fired = checks.iter().any(|check| !check["exp_samples"].as_array().unwrap().is_empty());
            let says = test["name"].as_str().unwrap()[name.len() + 1..].starts_with("fires");
            assert_eq!(fired, says, "{}", test["name"]);
            *(if fired { &mut fires } else { &mut silent }) += 1;
        }
        assert!(fires > 0 && silent > 0, "{name}: fires in {fires} tests, is silent in {silent}");
    }
}

#[test]
fn each_alert_says_what_it_is_and_where_its_section_is() {
    let page = std::fs::read_to_string(root().join("docs/alerts.md")).unwrap();
    let sections: Vec<&str> = page.split("\n## ").skip(1).collect();
    let mut names = Vec::new();
    for alert in all() {
        let (name, told) = (&alert.name, &alert.annotations);
        assert!(["critical", "warning", "info"].contains(&alert.severity.as_str()), "{name}");
        assert_eq!(told["runbook_url"], format!("docs/alerts.md#{}", name.to_lowercase()), "{name}");
        assert!(!told["summary"].as_str().unwrap().contains("{{"), "{name}: a summary is the same each time");
        assert!(told["description"].as_str().unwrap().ends_with('.'), "{name}");
        let section = sections.iter().find(|section| section.lines().next() == Some(name));
        let section = section.unwrap_or_else(|| panic!("docs/alerts.md has no section on {name}"));
        for part in ["**It means**", "**Look at**", "**Do**"] {
            assert!(section.contains(part), "the section on {name} lacks {part}");
        }
        names.push(alert.name);
    }
    let headings: Vec<&str> = sections.iter().filter_map(|section| section.lines().next()).collect();
    let stale: Vec<&&str> = headings
        .iter()
        .filter(|heading| heading.starts_with("Perennial") && !names.iter().any(|name| name == *heading))
        .collect();
    assert!(stale.is_empty(), "docs/alerts.md speaks of what is not there: {stale:?}");
}

/// The table in docs/alerts.md.
fn table() -> String {
    let mut table = "| alert | severity | fires when | for |\n| --- | --- | --- | --- |\n".to_owned();
    for Alert { name, measure, comparison, threshold, wait, severity, .. } in all() {
        let (link, wait) = (name.to_lowercase(), wait.unwrap_or_else(|| "at once".to_owned()));
        let measure = measure.replace(" by (cluster, namespace, job)", "");
        writeln!(table, "| [{name}](#{link}) | {severity} | `{measure} {comparison} {threshold}` | {wait} |")
            .unwrap();
    }
    table
}

#[test]
fn the_table_of_alerts_is_what_the_rules_say() {
    let path = root().join("docs/alerts.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = (
        "<!-- the rules, by UPDATE_DOCS=1 cargo test -p perennial --test monitoring table -->\n",
        "<!-- end -->",
    );
    let (before, rest) = page.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    let made = format!("{before}{begin}{}{end}{after}", table());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &made).unwrap();
    } else {
        assert!(
            page == made,
            "docs/alerts.md is old: UPDATE_DOCS=1 cargo test -p perennial --test monitoring table"
        );
    }
}
