//! What Helm makes of a chart.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

pub(crate) const PERENNIAL: &str = "perennial";
pub(crate) const FLEET: &str = "nginx-fleet";

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

pub(crate) fn chart(name: &str) -> PathBuf {
    root().join("charts").join(name)
}

/// The example values of a chart, and none at all.
pub(crate) fn examples(name: &str) -> Vec<Option<PathBuf>> {
    let files = std::fs::read_dir(chart(name).join("examples")).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 1, "{files:?}");
    std::iter::once(None).chain(files.into_iter().map(Some)).collect()
}

/// Renders a chart into a namespace; what Helm has against it is the error.
pub(crate) fn render(name: &str, namespace: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(perennial_testkit::helm().unwrap())
        .args(["template", name])
        .arg(chart(name))
        .args(["--namespace", namespace])
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

/// Renders a chart with an example.
pub(crate) fn render_example(name: &str, namespace: &str, example: Option<&Path>) -> String {
    let file = example.map(|path| path.to_str().unwrap());
    let arguments: Vec<&str> = file.into_iter().flat_map(|file| ["--values", file]).collect();
    render(name, namespace, &arguments).unwrap_or_else(|error| panic!("{example:?}: {error}"))
}

/// The objects of a rendered chart.
pub(crate) fn objects(rendered: &str) -> Vec<Value> {
    let objects = serde_saphyr::from_multiple::<Option<Value>>(rendered).unwrap();
    objects.into_iter().flatten().collect()
}

pub(crate) fn is(object: &Value, kind: &str) -> bool {
    object["kind"] == kind
}
