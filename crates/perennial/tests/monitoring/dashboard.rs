//! The dashboard: written from [`panels`], so that its queries share one shape and its panels cannot lie upon each other.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::rendered::{PERENNIAL, chart};
use crate::tools::{parses, schema};

mod panel;
mod panels;

/// So many columns wide is Grafana's grid.
const COLUMNS: u32 = 24;

/// Where the chart has it.
pub(crate) fn path() -> std::path::PathBuf {
    chart(PERENNIAL).join("files/dashboard.json")
}

/// A list that stands above the page, to choose from.
fn variable(name: &str, label: &str, metric: &str, all: bool) -> Value {
    let query = format!("label_values({metric}, {name})");
    let mut variable = json!({
        "name": name,
        "type": "query",
        "label": label,
        "datasource": panel::source(),
        "query": { "query": query, "refId": name },
        "refresh": 2,
        "sort": 1,
        "hide": 0,
        "multi": all,
        "includeAll": all,
        "options": [],
    });
    if all {
        variable["allValue"] = json!(".*");
        variable["current"] = json!({ "text": ["All"], "value": ["$__all"] });
    }
    variable
}

fn variables() -> Value {
    let source = json!({
        "name": "datasource", "type": "datasource", "label": "Prometheus", "query": "prometheus", "refresh": 1, "hide": 0,
        "multi": false, "includeAll": false, "options": [],
    });
    json!({ "list": [
        source,
        variable("cluster", "Cluster", "perennial_build_info", true),
        variable("namespace", "Namespace", r#"perennial_build_info{cluster=~"$cluster"}"#, false),
        variable("job", "Job", r#"perennial_build_info{cluster=~"$cluster",namespace=~"$namespace"}"#, true),
    ] })
}

/// All panels in their places: each row from left to right, a new line where the grid ends.
fn placed() -> Vec<Value> {
    let mut placed: Vec<Value> = Vec::new();
    let mut y = 0;
    for (question, panels) in panels::rows() {
        let place = json!({ "x": 0, "y": y, "w": COLUMNS, "h": 1 });
        let id = placed.len() + 1;
        placed.push(json!({ "id": id, "type": "row", "title": question, "collapsed": false, "gridPos": place, "panels": [] }));
        let (mut x, mut below) = (0, y + 1);
        y += 1;
        for panel in panels {
            if x + panel.width > COLUMNS {
                (x, y) = (0, below);
            }
            placed.push(panel.json(placed.len() + 1, x, y));
            x += panel.width;
            below = below.max(y + panel.height);
        }
        y = below;
    }
    placed
}

fn dashboard() -> Value {
    json!({
        "uid": "perennial",
        "title": "Perennial",
        "description": "Is every node's memory current? What came back, when, how fast? What was skipped, and why? Who does the work?",
        "tags": ["perennial", "kubernetes"],
        "schemaVersion": 41,
        "editable": true,
        "graphTooltip": 1,
        "timezone": "browser",
        "refresh": "30s",
        "time": { "from": "now-6h", "to": "now" },
        "annotations": { "list": [] },
        "templating": variables(),
        "panels": placed(),
    })
}

/// JSON that a person can read and compare: whatever fits stands on one line.
fn readable(value: &Value, indent: usize) -> String {
    let flat = value.to_string();
    if flat.len() + indent <= 180 {
        return flat;
    }
    let (inner, outer) = (" ".repeat(indent + 2), " ".repeat(indent));
    match value {
        Value::Array(items) => {
            let items: Vec<String> =
                items.iter().map(|item| format!("{inner}{}", readable(item, indent + 2))).collect();
            format!("[\n{}\n{outer}]", items.join(",\n"))
        }
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(key, value)| format!("{inner}{}: {}", json!(key), readable(value, indent + 2)))
                .collect();
            format!("{{\n{}\n{outer}}}", fields.join(",\n"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => flat,
    }
}

/// The dashboard as it is committed.
pub(crate) fn committed() -> Value {
    serde_json::from_str(&std::fs::read_to_string(path()).unwrap()).unwrap()
}

/// Every query of a dashboard: the panel's title, the expression, and how series are named.
pub(crate) fn queries(dashboard: &Value) -> Vec<(String, String, String)> {
    let panels = dashboard["panels"].as_array().unwrap();
    let of = |panel: &Value, target: &Value| {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&panel["title"]), text(&target["expr"]), text(&target["legendFormat"]))
    };
    panels
        .iter()
        .flat_map(|panel| {
            panel["targets"].as_array().into_iter().flatten().map(move |target| of(panel, target))
        })
        .collect()
}

#[test]
fn the_dashboard_is_what_the_panels_say() {
    let made = format!("{}\n", readable(&dashboard(), 0));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path(), &made).unwrap();
    }
    let written = std::fs::read_to_string(path()).unwrap_or_default();
    assert!(
        written == made,
        "dashboard.json is old: UPDATE_DOCS=1 cargo test -p perennial --test monitoring dashboard"
    );
}

#[test]
fn panels_have_ids_of_their_own_and_do_not_lie_upon_each_other() {
    let dashboard = committed();
    let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{}", panel["id"]);
        let side = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        assert!(side("x") + side("w") <= u64::from(COLUMNS), "{panel}");
        for x in side("x")..side("x") + side("w") {
            for y in side("y")..side("y") + side("h") {
                assert!(cells.insert((x, y)), "{} lies upon another at {x}, {y}", panel["title"]);
            }
        }
    }
    assert!(ids.len() > 40, "{}", ids.len());
}

#[test]
fn every_panel_says_what_it_shows_and_asks_the_chosen_installation_alone() {
    let dashboard = committed();
    for panel in dashboard["panels"].as_array().unwrap() {
        if panel["type"] != "row" {
            assert!(panel["description"].as_str().unwrap().ends_with('.'), "{}", panel["title"]);
            assert!(!panel["targets"].as_array().unwrap().is_empty(), "{}", panel["title"]);
        }
    }
    for (title, expression, _) in queries(&dashboard) {
        let chosen =
            expression.matches(r#"{cluster=~"$cluster",namespace=~"$namespace",job=~"$job"}"#).count();
        let metrics = expression.matches("perennial_").count() + expression.matches("process_").count();
        assert_eq!(chosen, metrics, "{title}: {expression}");
    }
}

#[test]
fn every_query_is_well_formed() {
    let queries = queries(&committed());
    assert!(queries.len() > 60, "{}", queries.len());
    parses(queries.into_iter().map(|(_, expression, _)| expression));
}

#[test]
fn grafanas_own_types_know_every_part_of_it() {
    schema(&path());
    // And they do notice: something unknown, and something of another type.
    for (pointer, wrong) in [
        ("/panels/1/options/colorMode", json!("sparkling")),
        ("/panels/1/options/reducer", json!({ "calcs": ["last"] })),
        ("/panels/1/gridPos/w", json!("wide")),
        ("/templating/list/0/hidden", json!(true)),
    ] {
        let mut broken = committed();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        broken.pointer_mut(parent).unwrap()[key] = wrong;
        let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
        std::fs::write(file.path(), broken.to_string()).unwrap();
        let refused = crate::tools::ask_schema(file.path()).unwrap_err();
        assert!(refused.contains(&pointer[1..].replace('/', ".")), "{pointer}: {refused}");
    }
}
