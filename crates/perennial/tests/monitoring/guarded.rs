//! Metrics by HTTPS under a real Prometheus: whoever may read them does, and nobody else.

use std::fs;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use perennial_testkit::{ControlPlane, KeeperProcess, Port, Prometheus, eventually};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_mins(2);
const NAMESPACE: &str = "perennial";
const NAME: &str = "perennial-metrics";

/// What an account shows, as a file.
async fn token(plane: &ControlPlane, account: &str) -> String {
    let kubeconfig = plane.kubeconfig_for_service_account("monitoring", account).await.unwrap();
    let kubeconfig: Value = serde_json::from_slice(&fs::read(kubeconfig).unwrap()).unwrap();
    kubeconfig["users"][0]["user"]["token"].as_str().unwrap().to_owned()
}

/// How one is scraped by somebody with this token.
fn job(name: &str, target: &str, ca: &Path, token: Option<&str>) -> Value {
    let server_name = format!("{NAME}.{NAMESPACE}.svc");
    let mut job = json!({
        "job_name": name,
        "scheme": "https",
        "tls_config": { "ca_file": ca, "server_name": server_name },
        "static_configs": [{ "targets": [target] }],
    });
    if let Some(token) = token {
        job["authorization"] = json!({ "credentials": token });
    }
    job
}

#[tokio::test]
async fn those_who_may_read_metrics_do_and_nobody_else() {
    let plane = ControlPlane::start().await.unwrap();
    let kubeconfig = plane.kubeconfig_for_keeper(NAMESPACE).await.unwrap();
    plane.install_metrics(NAMESPACE).await.unwrap();
    let port = Port::claim().unwrap();
    let keeper = KeeperProcess::builder(env!("CARGO_BIN_EXE_perennial"), plane.logs())
        .kubeconfig(kubeconfig)
        .namespace(NAMESPACE)
        .arg(format!("--metrics-address={}", port.address()))
        .start()
        .await
        .unwrap();
    let secrets: Api<Secret> = Api::namespaced(plane.admin(), NAMESPACE);
    let authority = eventually(SOON, "a certificate is made", || async {
        Ok(secrets.get(NAME).await?.data.unwrap_or_default().remove("ca.crt"))
    })
    .await
    .unwrap();
    let ca = plane.folder().join("ca.crt");
    fs::write(&ca, authority.0).unwrap();

    let [may, may_not] = ["prometheus", "somebody"].map(|account| token(&plane, account));
    let (may, may_not) = (may.await, may_not.await);
    let reader = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "reader" },
        "rules": [{ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }],
    });
    let bound = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": "reader" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader" },
        "subjects": [{ "kind": "ServiceAccount", "name": "prometheus", "namespace": "monitoring" }],
    });
    for object in [reader, bound] {
        plane.kubectl_apply(&object.to_string()).await.unwrap();
    }

    let (guarded, open) = (port.address(), keeper.url().replace("http://", ""));
    let jobs = [
        job("may", &guarded, &ca, Some(&may)),
        job("may-not", &guarded, &ca, Some(&may_not)),
        job("stranger", &guarded, &ca, Some("nonsense")),
        job("nobody", &guarded, &ca, None),
        json!({ "job_name": "where-probes-are", "static_configs": [{ "targets": [open] }] }),
    ];
    let prometheus = Prometheus::with_jobs(&jobs, &[]).await.unwrap();
    eventually(SOON, "who may read metrics does", || async {
        let nodes = prometheus.query("perennial_nodes{job=\"may\"} * on(job) up").await?;
        Ok((!nodes.is_empty()).then_some(()))
    })
    .await
    .unwrap();
    for (name, refused) in [("may-not", 403), ("stranger", 401), ("nobody", 401), ("where-probes-are", 403)] {
        let told = format!("HTTP status {refused}");
        eventually(SOON, &format!("{name} is refused with {refused}"), || async {
            let targets = prometheus.get("/api/v1/targets").await?;
            let targets = targets["activeTargets"].as_array().unwrap();
            let target = targets.iter().find(|target| target["labels"]["job"] == *name).unwrap();
            Ok(target["lastError"].as_str().unwrap().contains(&told).then_some(()))
        })
        .await
        .unwrap();
    }
    assert!(prometheus.query("perennial_nodes{job!=\"may\"}").await.unwrap().is_empty());
    keeper.stop().await.unwrap();
}
