//! The programs that judge what is here: Prometheus' own, and Grafana's types.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::rendered::root;

/// What stands for the variables of the dashboard, and for what Grafana sets itself.
const VARIABLES: &[(&str, &str)] = &[
    ("$cluster", ".*"),
    ("$namespace", "perennial"),
    ("$job", ".*"),
    ("$__rate_interval", "1m"),
    ("$__range", "1h"),
];

/// An expression of the dashboard as Grafana sends it.
pub(crate) fn filled(expression: &str) -> String {
    let filled =
        VARIABLES.iter().fold(expression.to_owned(), |text, (name, value)| text.replace(name, value));
    assert!(!filled.contains('$'), "{expression} has a variable that nobody sets");
    filled
}

/// Runs `promtool`; what it says where it is not content is the error.
pub(crate) fn promtool(arguments: &[&str], file: &Path) -> Result<String, String> {
    let output = Command::new("promtool").args(arguments).arg(file).output();
    let output =
        output.unwrap_or_else(|error| panic!("promtool: {error} (dev/prerequisites prometheus installs it)"));
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() {
        Ok(text(output.stdout))
    } else {
        Err(text(output.stdout) + &text(output.stderr))
    }
}

/// Fails if one of these expressions is not one.
pub(crate) fn parses(expressions: impl IntoIterator<Item = String>) {
    let rules: Vec<Value> = expressions
        .into_iter()
        .enumerate()
        .map(|(number, expression)| json!({ "record": format!("query:{number}"), "expr": filled(&expression) }))
        .collect();
    let file = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
    std::fs::write(file.path(), json!({ "groups": [{ "name": "queries", "rules": rules }] }).to_string())
        .unwrap();
    promtool(&["check", "rules"], file.path()).unwrap_or_else(|told| panic!("{told}"));
}

/// Whether Grafana's types know every part of a dashboard, and what they do not know.
pub(crate) fn ask_schema(dashboard: &Path) -> Result<(), String> {
    let output = Command::new(root().join("dev/grafana/check")).arg(dashboard).output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8(output.stderr).unwrap()) }
}

/// The same, where they should.
pub(crate) fn schema(dashboard: &Path) {
    ask_schema(dashboard).unwrap_or_else(|told| panic!("{told}"));
}
