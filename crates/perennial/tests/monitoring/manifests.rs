//! The small Prometheus and the small Grafana: accepted by the real API server, with what they are configured by.

use std::path::PathBuf;

use perennial_testkit::ControlPlane;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::rendered::{objects, root};
use crate::tools::promtool;

fn folder() -> PathBuf {
    root().join("deploy/monitoring")
}

fn read(file: &str) -> Vec<Value> {
    objects(&std::fs::read_to_string(folder().join(file)).unwrap())
}

/// The ConfigMaps that a Deployment mounts.
fn mounted(objects: &[Value]) -> Vec<String> {
    let deployments = objects.iter().filter(|object| object["kind"] == "Deployment");
    let volumes = deployments.flat_map(|object| {
        object["spec"]["template"]["spec"]["volumes"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|volume| volume["configMap"]["name"].as_str().map(str::to_owned))
    });
    volumes.collect()
}

/// Both with all they need, in a namespace of the restricted level, the server asked and nothing warned of.
#[tokio::test]
async fn prometheus_and_grafana_are_accepted_under_the_restricted_level() {
    let plane = ControlPlane::start().await.unwrap();
    let levels = json!({
        "pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted",
    });
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "perennial", "labels": levels } });
    plane.kubectl_apply(&namespace.to_string()).await.unwrap();
    let kubeconfig = plane.kubeconfig_for_admin().unwrap();
    let kubectl = format!("{} --kubeconfig {}", plane.assets().kubectl().display(), kubeconfig.display());
    let output = Command::new(folder().join("apply"))
        .args(["perennial", "--dry-run=server", "--validate=strict", "-o", "name"])
        .env("KUBECTL", kubectl)
        .output()
        .await
        .unwrap();
    let (out, told) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success() && told.is_empty(), "{told}");
    let both: Vec<Value> = ["prometheus.yaml", "grafana.yaml"].into_iter().flat_map(read).collect();
    for name in mounted(&both) {
        assert!(
            out.lines().any(|line| line == format!("configmap/{name}")),
            "{name} is mounted, and not in\n{out}"
        );
    }
    assert_eq!(out.lines().count(), both.len() + 2, "{out}");
}

#[test]
fn prometheus_takes_its_configuration() {
    let text = std::fs::read_to_string(folder().join("prometheus.yml")).unwrap();
    let mut config: Value = serde_saphyr::from_str(&text).unwrap();
    // Debian's is built without what finds pods: that part is looked at here, the rest by Prometheus.
    let job = config["scrape_configs"][0].as_object_mut().unwrap();
    let found = job.remove("kubernetes_sd_configs").unwrap();
    assert_eq!(found, json!([{ "role": "pod", "namespaces": { "own_namespace": true } }]));
    job.insert("static_configs".to_owned(), json!([{ "targets": ["127.0.0.1:1"] }]));
    let file = tempfile::NamedTempFile::with_suffix(".yml").unwrap();
    std::fs::write(file.path(), config.to_string()).unwrap();
    promtool(&["check", "config", "--syntax-only"], file.path()).unwrap_or_else(|told| panic!("{told}"));
    // The labels that the dashboard chooses by.
    for label in ["namespace", "pod", "job"] {
        assert!(text.contains(&format!("target_label: {label} ")), "{label}");
    }
}
