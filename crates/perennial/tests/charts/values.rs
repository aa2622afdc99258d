//! docs/values.md, written from the schemas and the default values.

use std::fmt::Write as _;

use serde_json::Value;

use crate::rendered::{FLEET, PERENNIAL, chart, root};

const INTRODUCTION: &str = "\
# Values of the charts

Generated from the schemas: `UPDATE_DOCS=1 cargo test -p perennial --test charts values` writes it anew.

Helm checks values against the schema whenever it installs, upgrades or renders: a misspelt key or a value that is
not allowed is refused with its place. Examples are in `charts/*/examples`.
";

fn schema(name: &str) -> Value {
    let text = std::fs::read_to_string(chart(name).join("values.schema.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn defaults(name: &str) -> Value {
    serde_saphyr::from_str(&std::fs::read_to_string(chart(name).join("values.yaml")).unwrap()).unwrap()
}

/// What may be given, in a word or two.
fn allowed(schema: &Value) -> String {
    if let Some(words) = schema["enum"].as_array() {
        let words = words.iter().filter_map(Value::as_str).filter(|word| !word.is_empty());
        return words.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    }
    if let Some(any) = schema["oneOf"].as_array() {
        return any.iter().map(allowed).collect::<Vec<_>>().join(" or ");
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds[0].as_str().unwrap_or_default(),
        kind => kind.as_str().unwrap_or_default(),
    };
    let bounds = match (&schema["minimum"], &schema["maximum"]) {
        (Value::Number(least), Value::Number(most)) => format!(", {least} to {most}"),
        (Value::Number(least), _) => format!(", at least {least}"),
        _ => String::new(),
    };
    match (kind, schema["items"]["type"].as_str()) {
        ("array", Some(items)) => format!("list of {}", named(items)),
        (kind, _) => format!("{}{bounds}", named(kind)),
    }
}

fn named(kind: &str) -> &str {
    match kind {
        "string" => "text",
        "boolean" => "true or false",
        "integer" => "whole number",
        "array" => "list",
        "object" => "mapping",
        kind => kind,
    }
}

fn rows(page: &mut String, path: &str, schema: &Value, default: Option<&Value>) {
    let Some(properties) = schema["properties"].as_object() else { return };
    for (key, property) in properties {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let default = default.and_then(|default| default.get(key));
        let about = property["description"].as_str().unwrap_or_else(|| panic!("{path} has no description"));
        assert!(about.ends_with(['.', '…']), "{path}: {about}");
        if property["properties"].is_object() {
            writeln!(page, "| **`{path}`** | {about} | | |").unwrap();
            rows(page, &path, property, default);
        } else {
            let shown = match default {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(text)) if text.is_empty() => String::new(),
                Some(value) => format!("`{value}`"),
            };
            writeln!(page, "| `{path}` | {about} | {} | {shown} |", allowed(property)).unwrap();
            if property["items"]["properties"].is_object() {
                rows(page, &format!("{path}[]"), &property["items"], None);
            }
        }
    }
}

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for name in [PERENNIAL, FLEET] {
        write!(page, "\n## `charts/{name}`\n\n| value | | allowed | default |\n| --- | --- | --- | --- |\n")
            .unwrap();
        rows(&mut page, "", &schema(name), Some(&defaults(name)));
    }
    page
}

#[test]
fn the_page_of_values_is_what_the_schemas_say() {
    let (path, page) = (root().join("docs/values.md"), page());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        written, page,
        "docs/values.md is old: UPDATE_DOCS=1 cargo test -p perennial --test charts values"
    );
}

/// Keys of the schema that have no default of their own: those of a policy, and free mappings.
fn without_default(schema: &Value, default: &Value, path: &str, found: &mut Vec<String>) {
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}/{key}");
        match default.get(key) {
            None => found.push(path),
            Some(default) => without_default(property, default, &path, found),
        }
    }
}

#[test]
fn every_value_has_a_default_that_can_be_read_in_the_values() {
    for name in [PERENNIAL, FLEET] {
        let mut found = Vec::new();
        without_default(&schema(name), &defaults(name), "", &mut found);
        let free = ["/global", "/policy/", "resources/requests", "resources/limits", "resources/claims"];
        found.retain(|path| !free.iter().any(|part| path.contains(part)));
        assert!(found.is_empty(), "{name}: {found:?}");
    }
}
