//! What the chart makes of the rules and of the dashboard.

use serde_json::{Value, json};

use crate::alerts::{self, Alert, alerts};
use crate::dashboard;
use crate::rendered::{PERENNIAL, chart, is, objects, render};
use crate::tools::promtool;

/// The object of this kind that the chart makes with these values.
fn made(kind: &str, values: &Value) -> Value {
    let mut all = json!({
        "serviceMonitor": { "enabled": true }, "prometheusRule": { "enabled": true }, "dashboard": { "enabled": true },
    });
    for (key, value) in values.as_object().unwrap() {
        match (all[key].as_object_mut(), value.as_object()) {
            (Some(all), Some(more)) => all.extend(more.clone()),
            _ => all[key] = value.clone(),
        }
    }
    let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    std::fs::write(file.path(), all.to_string()).unwrap();
    let arguments = ["--show-only", "templates/monitoring.yaml", "--values", file.path().to_str().unwrap()];
    let rendered = render(PERENNIAL, "perennial", &arguments).unwrap_or_else(|error| panic!("{error}"));
    objects(&rendered).into_iter().find(|object| is(object, kind)).unwrap()
}

fn tuned(values: &Value) -> Vec<Alert> {
    alerts(&made("PrometheusRule", &json!({ "prometheusRule": values }))["spec"]["groups"])
}

#[test]
fn the_rules_of_the_chart_are_those_of_the_file() {
    let rule = made("PrometheusRule", &json!({}));
    let plain: Value = serde_saphyr::from_str(&std::fs::read_to_string(alerts::path()).unwrap()).unwrap();
    assert_eq!(rule["spec"]["groups"], plain["groups"]);
    let file = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
    std::fs::write(file.path(), rule["spec"].to_string()).unwrap();
    promtool(&["check", "rules"], file.path()).unwrap_or_else(|told| panic!("{told}"));
}

#[test]
fn an_alert_can_be_switched_off_and_tuned_by_its_name() {
    let before = alerts::all();
    let after = tuned(&json!({ "alerts": {
        "PerennialUnobserved": { "enabled": false },
        "PerennialNodesUnrestored": { "threshold": 900, "for": "7m", "severity": "page" },
        "PerennialNotCurrent": { "threshold": "0.95" },
        "PerennialBrakeEngaged": { "severity": "critical" },
    } }));
    assert_eq!(after.len() + 1, before.len());
    assert!(after.iter().all(|alert| alert.name != "PerennialUnobserved"));
    for is in &after {
        let was = before.iter().find(|was| was.name == is.name).unwrap();
        assert_eq!((&is.measure, &is.comparison), (&was.measure, &was.comparison));
        let now = (is.threshold.as_str(), is.wait.as_deref(), is.severity.as_str());
        let expected = match is.name.as_str() {
            "PerennialNodesUnrestored" => ("900", Some("7m"), "page"),
            "PerennialNotCurrent" => ("0.95", was.wait.as_deref(), "warning"),
            "PerennialBrakeEngaged" => ("0", was.wait.as_deref(), "critical"),
            _ => (was.threshold.as_str(), was.wait.as_deref(), was.severity.as_str()),
        };
        assert_eq!(now, expected, "{}", is.name);
    }
}

#[test]
fn as_many_replicas_are_missed_as_the_chart_has() {
    let missed = |values: &Value| {
        let groups = &made("PrometheusRule", values)["spec"]["groups"];
        let alert = alerts(groups).into_iter().find(|alert| alert.name == "PerennialReplicasMissing");
        alert.unwrap().threshold
    };
    assert_eq!(missed(&json!({})), "3");
    let both =
        json!({ "lister": { "enabled": true, "replicas": 2 }, "keeper": { "split": true, "replicas": 4 } });
    let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    let mut values = both;
    values["split"] = json!(true);
    values["prometheusRule"] = json!({ "enabled": true });
    std::fs::write(file.path(), values.to_string()).unwrap();
    let rendered = render(PERENNIAL, "perennial", &["--values", file.path().to_str().unwrap()]).unwrap();
    let rule = objects(&rendered).into_iter().find(|object| is(object, "PrometheusRule")).unwrap();
    let alert =
        alerts(&rule["spec"]["groups"]).into_iter().find(|alert| alert.name == "PerennialReplicasMissing");
    assert_eq!(alert.unwrap().threshold, "10", "4 that record, 4 that give back, 2 that list");
    let own = json!({ "prometheusRule": { "alerts": { "PerennialReplicasMissing": { "threshold": 2 } } } });
    assert_eq!(missed(&own), "2");
}

#[test]
fn where_nothing_is_given_back_nobody_is_told_of_nodes_that_got_nothing() {
    let names = |values: &Value| -> Vec<String> {
        let groups = &made("PrometheusRule", values)["spec"]["groups"];
        alerts(groups).into_iter().map(|alert| alert.name).collect()
    };
    let all = names(&json!({}));
    let off = json!({ "extraArgs": ["--no-restore"] });
    let left_out =
        |name: &&String| ["PerennialNodesUnrestored", "PerennialNotCurrent"].contains(&name.as_str());
    assert_eq!(names(&off), all.iter().filter(|name| !left_out(name)).cloned().collect::<Vec<_>>());
    let mut wanted = off;
    wanted["prometheusRule"] = json!({ "alerts": { "PerennialNotCurrent": { "enabled": true } } });
    assert_eq!(names(&wanted).len() + 1, all.len());
    // There others give back, and in a dry run the metrics themselves say that nothing is owed.
    for values in [json!({ "split": true, "keeper": { "split": true } }), json!({ "dryRun": true })] {
        assert_eq!(names(&values), all);
    }
}

#[test]
fn labels_and_the_address_of_the_sections_are_on_every_alert() {
    let rule = made(
        "PrometheusRule",
        &json!({ "prometheusRule": { "alertLabels": { "team": "nodes" }, "runbookUrl": "https://wiki.example/alerts" } }),
    );
    for alert in rule["spec"]["groups"][0]["rules"].as_array().unwrap() {
        assert_eq!(alert["labels"]["team"], "nodes");
        let link = alert["annotations"]["runbook_url"].as_str().unwrap();
        assert!(link.starts_with("https://wiki.example/alerts#perennial"), "{link}");
    }
}

#[test]
fn the_schema_knows_the_alerts_by_name() {
    let text = std::fs::read_to_string(chart(PERENNIAL).join("values.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    let known = &schema["properties"]["prometheusRule"]["properties"]["alerts"]["propertyNames"]["enum"];
    let names: Vec<String> = alerts::all().into_iter().map(|alert| alert.name).collect();
    assert_eq!(*known, json!(names));
    let misspelt =
        render(PERENNIAL, "perennial", &["--set", "prometheusRule.alerts.PerennialGone.enabled=false"]);
    assert!(misspelt.unwrap_err().contains("PerennialGone"));
}

#[test]
fn the_dashboard_of_the_chart_is_the_file() {
    let map = made("ConfigMap", &json!({ "dashboard": { "annotations": { "grafana_folder": "Nodes" } } }));
    let shown: Value = serde_json::from_str(map["data"]["perennial.json"].as_str().unwrap()).unwrap();
    assert_eq!(shown, dashboard::committed());
    assert_eq!(map["metadata"]["labels"]["grafana_dashboard"], "1");
    assert_eq!(map["metadata"]["annotations"]["grafana_folder"], "Nodes");
}

#[test]
fn one_job_is_all_of_a_release() {
    let monitor = made("ServiceMonitor", &json!({}));
    assert_eq!(monitor["spec"]["jobLabel"], "app.kubernetes.io/instance");
    assert_eq!(monitor["spec"]["endpoints"][0]["port"], "admin");
    // Guarded metrics are asked for with a token, by whoever trusts the authority in the Secret alone.
    let guarded = made("ServiceMonitor", &json!({ "metrics": { "secure": true } }));
    let endpoint = &guarded["spec"]["endpoints"][0];
    assert_eq!((&endpoint["port"], &endpoint["scheme"]), (&json!("metrics"), &json!("https")));
    assert_eq!(
        endpoint["tlsConfig"]["ca"]["secret"],
        json!({ "name": "perennial-metrics", "key": "ca.crt" })
    );
    assert_eq!(endpoint["tlsConfig"]["serverName"], "perennial-metrics.perennial.svc");
    assert!(endpoint["bearerTokenFile"].is_string());
}
