//! Every example of every chart is accepted by the real API server, without a warning.

use std::path::Path;
use std::time::Duration;

use perennial_testkit::{ControlPlane, eventually};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::rendered::{FLEET, PERENNIAL, chart, examples, is, objects, render, render_example, root};

const SOON: Duration = Duration::from_mins(1);
/// Where pods are held to the restricted level: those that would be refused are warned of in what makes them.
const NAMESPACE: &str = "restricted";

/// The Prometheus operator's own definitions, of what the chart makes.
fn of_prometheus() -> Vec<Value> {
    let folder = perennial_testkit::prometheus_operator().unwrap();
    let kinds = ["servicemonitors", "prometheusrules"];
    kinds.iter().flat_map(|kind| read(&folder.join(format!("monitoring.coreos.com_{kind}.yaml")))).collect()
}

/// Runs kubectl with these objects; what it says on standard error, and whether it went well.
async fn kubectl(plane: &ControlPlane, arguments: &[&str], objects: &[Value]) -> (bool, String) {
    let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
    std::fs::write(file.path(), list.to_string()).unwrap();
    let output = Command::new(plane.assets().kubectl())
        .arg("--kubeconfig")
        .arg(plane.kubeconfig_for_admin().unwrap())
        .args(arguments)
        .arg("-f")
        .arg(file.path())
        .output()
        .await
        .unwrap();
    (output.status.success(), String::from_utf8(output.stderr).unwrap())
}

/// A control plane with the namespaces and kinds that the charts speak of.
pub(crate) async fn prepared() -> ControlPlane {
    let plane = ControlPlane::start().await.unwrap();
    let levels = ["enforce", "warn"].map(|mode| (format!("pod-security.kubernetes.io/{mode}"), "restricted"));
    let labels: Value =
        levels.into_iter().collect::<std::collections::BTreeMap<_, _>>().into_iter().collect();
    let namespaces = [NAMESPACE, "shop", "perennial"].map(|name| {
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": labels } })
    });
    apply(&plane, &namespaces).await;
    plane.install_listings().await.unwrap();
    apply(&plane, &of_prometheus()).await;
    eventually(SOON, "the kinds of the Prometheus operator are known", || async {
        let probe = |kind: &str, spec: Value| {
            let metadata = json!({ "name": "probe", "namespace": NAMESPACE });
            json!({ "apiVersion": "monitoring.coreos.com/v1", "kind": kind, "metadata": metadata, "spec": spec })
        };
        let probes = [
            probe("ServiceMonitor", json!({ "selector": {}, "endpoints": [] })),
            probe("PrometheusRule", json!({})),
        ];
        let (known, told) = kubectl(&plane, &["apply", "--dry-run=server"], &probes).await;
        if known { Ok(Some(())) } else { Err(anyhow::anyhow!(told)) }
    })
    .await
    .unwrap();
    plane
}

/// Applies objects, for good.
pub(crate) async fn apply(plane: &ControlPlane, objects: &[Value]) {
    let (applied, told) = kubectl(plane, &["apply", "--server-side"], objects).await;
    assert!(applied, "{told}");
}

/// Asks the API server about objects. Pods need their accounts to be there, so those are made.
async fn accepts(plane: &ControlPlane, what: &str, objects: &[Value]) {
    let accounts: Vec<Value> =
        objects.iter().filter(|object| is(object, "ServiceAccount")).cloned().collect();
    if !accounts.is_empty() {
        apply(plane, &accounts).await;
    }
    let arguments = ["apply", "--dry-run=server", "--validate=strict"];
    let (accepted, told) = kubectl(plane, &arguments, objects).await;
    assert!(accepted, "{what}: {told}");
    // The annotation that `kubectl apply` misses on what was applied by the server's own means.
    let warnings: Vec<&str> =
        told.lines().filter(|line| !line.contains("last-applied-configuration")).collect();
    assert!(warnings.is_empty(), "{what}: {warnings:#?}");
}

fn read(file: &Path) -> Vec<Value> {
    objects(&std::fs::read_to_string(file).unwrap())
}

#[tokio::test]
async fn every_example_of_every_chart_is_accepted_under_the_restricted_level() {
    let plane = prepared().await;
    for name in [PERENNIAL, FLEET] {
        for example in examples(name) {
            let rendered = render_example(name, NAMESPACE, example.as_deref());
            accepts(&plane, &format!("{name} with {example:?}"), &objects(&rendered)).await;
        }
    }
    // Everything at once that the examples do not have, and names of other releases.
    let all = [
        "--set",
        "fullnameOverride=other,lister.enabled=true,lister.namespace=shop,keeper.installation=blue,datadog.enabled=true",
        "--set",
        "serviceMonitor.enabled=true,prometheusRule.enabled=true,dashboard.enabled=true,image.digest=sha256:0000000000000000000000000000000000000000000000000000000000000000",
    ];
    accepts(&plane, "all values", &objects(&render(PERENNIAL, NAMESPACE, &all).unwrap())).await;
}

#[tokio::test]
async fn the_manifests_without_helm_are_accepted() {
    let plane = prepared().await;
    let beside = ["webhook.yaml", "webhook-strict.yaml", "metrics.yaml"];
    for file in ["perennial.yaml", "lister.yaml", "rbac.yaml", "rbac-lister.yaml"].into_iter().chain(beside) {
        accepts(&plane, file, &read(&root().join("deploy").join(file))).await;
    }
}

#[test]
fn no_role_grants_everything_of_a_kind_or_the_way_to_more() {
    let mut rules = Vec::new();
    for name in [PERENNIAL, FLEET] {
        for example in examples(name) {
            let rendered = objects(&render_example(name, NAMESPACE, example.as_deref()));
            let roles = rendered.iter().filter(|object| is(object, "Role") || is(object, "ClusterRole"));
            rules.extend(roles.flat_map(|role| role["rules"].as_array().cloned().unwrap_or_default()));
        }
    }
    assert!(rules.len() > 20, "{}", rules.len());
    let more = ["escalate", "bind", "impersonate", "nodes/proxy", "serviceaccounts/token", "pods/exec"];
    for rule in rules {
        for part in ["apiGroups", "resources", "verbs"] {
            for word in rule[part].as_array().unwrap() {
                let word = word.as_str().unwrap();
                assert!(!word.contains('*') && !more.contains(&word), "{word}: {rule}");
            }
        }
    }
}

#[test]
fn no_token_is_mounted_into_nginx() {
    for example in examples(FLEET) {
        let objects = objects(&render_example(FLEET, NAMESPACE, example.as_deref()));
        let deployment = objects.iter().find(|object| is(object, "Deployment")).unwrap();
        let pod = &deployment["spec"]["template"]["spec"];
        assert_eq!(pod["automountServiceAccountToken"], false);
        let mounts = |container: &Value| {
            let mounts = container["volumeMounts"].as_array().unwrap();
            mounts.iter().map(|mount| mount["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(pod["containers"].as_array().unwrap().len(), 1);
        assert_eq!(mounts(&pod["containers"][0]), ["page", "config", "tmp"]);
        assert!(mounts(&pod["initContainers"][0]).contains(&"token".to_owned()));
        assert_eq!(pod["containers"][0]["resources"]["requests"]["cpu"], "100m");
    }
}

#[test]
fn the_chart_and_the_binary_are_of_one_version() {
    for name in [PERENNIAL, FLEET] {
        let text = std::fs::read_to_string(chart(name).join("Chart.yaml")).unwrap();
        assert!(text.contains(concat!("appVersion: ", env!("CARGO_PKG_VERSION"))), "{name}: {text}");
    }
}
