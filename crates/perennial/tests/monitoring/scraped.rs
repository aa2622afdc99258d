//! A real run under a real Prometheus: every query of the dashboard and every alert finds what it asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use perennial_testkit::{ControlPlane, Fleet, KeeperProcess, Prometheus, S3Server, Sample, eventually};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::alerts;
use crate::dashboard::{committed, queries};
use crate::tools::filled;

const SOON: Duration = Duration::from_mins(2);
const NAMESPACE: &str = "perennial";
const NODES: usize = 6;

/// What is on no panel and in no alert, because another says more.
const ELSEWHERE: &[&str] = &[
    // By age, and the oldest.
    "perennial_pending",
    // Their limits are the cluster's to watch.
    "process_max_fds",
    "process_virtual_memory_bytes",
];

/// Three keepers, a lister, what they work on, and who watches them.
struct Run {
    prometheus: Prometheus,
    _replicas: Vec<KeeperProcess>,
    plane: ControlPlane,
    bucket: S3Server,
}

impl Run {
    async fn start() -> Self {
        let plane = ControlPlane::start().await.unwrap();
        plane.install_listings().await.unwrap();
        let keeper = plane.kubeconfig_for_keeper(NAMESPACE).await.unwrap();
        let lister = plane.kubeconfig_for_lister(NAMESPACE).await.unwrap();
        let roles = [("a", &keeper), ("b", &keeper), ("c", &keeper), ("lister", &lister)];
        let (mut replicas, mut targets) = (Vec::new(), Vec::new());
        for (pod, kubeconfig) in roles {
            let builder = KeeperProcess::builder(env!("CARGO_BIN_EXE_perennial"), plane.logs());
            let builder = builder.kubeconfig(kubeconfig).namespace(NAMESPACE).arg("--member").arg(pod);
            let role = if pod == "lister" { "--roles=lister" } else { "--roles=keeper" };
            let replica = builder.arg(role).arg("--close-after=100ms").start().await.unwrap();
            let labels = BTreeMap::from([("cluster", "test"), ("namespace", NAMESPACE), ("pod", pod)]);
            targets.push((replica.url().replace("http://", ""), labels));
            replicas.push(replica);
        }
        let prometheus = Prometheus::start(&targets, &alerts::path()).await.unwrap();
        let bucket = S3Server::start().await.unwrap();
        bucket.create_bucket("pages").await.unwrap();
        let run = Self { prometheus, _replicas: replicas, plane, bucket };
        // A rate needs a value from before the work.
        run.comes("min(sum_over_time(up[1m])) >= 2 and count(up == 1) == 4").await;
        run
    }

    /// Waits until an expression has a value.
    async fn comes(&self, expression: &str) -> Vec<Sample> {
        eventually(SOON, expression, || async {
            let samples = self.prometheus.query(expression).await?;
            Ok((!samples.is_empty()).then_some(samples))
        })
        .await
        .unwrap()
    }

    /// Nodes come, go, and come back bare; a page is published.
    async fn work(&self) {
        let fleet = Fleet::new(self.plane.admin());
        fleet.create(0..NODES).await.unwrap();
        self.comes(&format!("min(perennial_nodes_current) == {NODES}")).await;
        fleet.recreate(0..NODES).await.unwrap();
        self.comes(&format!("sum(perennial_restores_total) >= {NODES}")).await;
        let credentials = self.bucket.credentials();
        let object = |version: &str, kind: &str, name: &str, rest: Value| {
            let mut object = json!({
                "apiVersion": version, "kind": kind, "metadata": { "name": name, "namespace": NAMESPACE },
            });
            object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            object
        };
        let secret = json!({ "stringData": {
            "AWS_ACCESS_KEY_ID": credentials.access_key, "AWS_SECRET_ACCESS_KEY": credentials.secret_key,
        } });
        let slice = json!({
            "metadata": { "name": "web", "namespace": NAMESPACE, "labels": { "kubernetes.io/service-name": "web" } },
            "addressType": "IPv4",
            "endpoints": [{ "addresses": ["10.0.0.1"], "conditions": { "ready": true } }],
            "ports": [{ "port": 80 }],
        });
        let s3 = json!({
            "endpoint": self.bucket.url(), "bucket": "pages", "key": "index.html", "credentials": { "secret": "listing-bucket" },
        });
        let listing =
            json!({ "spec": { "service": "web", "destinations": [{ "name": "bucket", "s3": s3 }] } });
        for object in [
            object("v1", "Secret", "listing-bucket", secret),
            object("discovery.k8s.io/v1", "EndpointSlice", "web", slice),
            object("perennial.dev/v1alpha1", "Listing", "web", listing),
        ] {
            self.plane.kubectl_apply(&object.to_string()).await.unwrap();
        }
        self.comes("sum(perennial_listing_published_total) >= 1").await;
    }

    /// Waits until each expression has values, all of them numbers, and gives their labels. Those that have none are shown
    /// together.
    async fn answers(&self, expressions: Vec<String>) -> BTreeMap<String, Vec<BTreeMap<String, String>>> {
        let mut answered = BTreeMap::new();
        let found = Mutex::new(&mut answered);
        eventually(SOON, "every expression has data", || async {
            let mut found = found.lock().await;
            let mut missing = Vec::new();
            for expression in &expressions {
                if found.contains_key(expression) {
                    continue;
                }
                let samples = self.prometheus.query(expression).await?;
                if samples.is_empty() || !samples.iter().all(|sample| sample.value.is_finite()) {
                    missing.push(expression);
                } else {
                    let labels = samples.into_iter().map(|sample| sample.labels).collect();
                    found.insert(expression.clone(), labels);
                }
            }
            if missing.is_empty() { Ok(Some(())) } else { Err(anyhow::anyhow!("no data: {missing:#?}")) }
        })
        .await
        .unwrap();
        answered
    }

    /// Every metric that anybody exposes, histograms by the name of the whole.
    async fn metrics(&self) -> BTreeSet<String> {
        let names = self.prometheus.get("/api/v1/label/__name__/values").await.unwrap();
        let names = names.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
        let ours = names.filter(|name| name.starts_with("perennial_") || name.starts_with("process_"));
        let all: BTreeSet<&str> = ours.collect();
        let whole = |name: &&str| {
            let of =
                name.strip_suffix("_bucket").or(name.strip_suffix("_sum")).or(name.strip_suffix("_count"));
            of.filter(|of| all.contains(format!("{of}_bucket").as_str())).unwrap_or(name).to_owned()
        };
        all.iter().map(whole).collect()
    }
}

/// The labels that an expression groups by, where that is the last it does.
fn grouped(expression: &str) -> Vec<&str> {
    let begin = ["sum by (", "max by (", "min by (", "count by ("];
    let outer = expression.trim_start_matches("sort_desc(").trim_start_matches("round(");
    let Some(labels) = begin.iter().find_map(|begin| outer.strip_prefix(begin)) else { return Vec::new() };
    labels.split(')').next().unwrap().split(", ").collect()
}

#[tokio::test]
async fn every_query_and_every_alert_finds_what_it_asks_for_in_a_real_run() {
    let run = Run::start().await;
    run.work().await;
    let (queries, alerts) = (queries(&committed()), alerts::all());
    // What is absent here is what is there.
    let measures = alerts.iter().map(|alert| match alert.measure.strip_prefix("absent(") {
        Some(there) => there.trim_end_matches(')').to_owned(),
        None => alert.measure.clone(),
    });
    let asked: Vec<String> =
        queries.iter().map(|(_, expression, _)| filled(expression)).chain(measures).collect();
    let answered = run.answers(asked.clone()).await;
    for (title, expression, legend) in &queries {
        let series = &answered[&filled(expression)];
        let named = legend.split("{{").skip(1).map(|rest| rest.split("}}").next().unwrap());
        for label in grouped(expression).into_iter().chain(named) {
            let all = series.iter().all(|labels| labels.contains_key(label));
            assert!(all, "{title}: {expression} has no label {label}: {series:?}");
        }
    }
    // Nothing is wrong here, so that nothing is told.
    for alert in &alerts {
        run.comes(&format!("absent({} {} {})", alert.measure, alert.comparison, alert.threshold)).await;
    }
    let groups = run.prometheus.get("/api/v1/rules").await.unwrap();
    for rule in groups["groups"][0]["rules"].as_array().unwrap() {
        assert_eq!(rule["health"], "ok", "{rule}");
    }
    let (metrics, asked) = (run.metrics().await, asked.join(" "));
    assert!(metrics.len() > 40, "{metrics:?}");
    let words: BTreeSet<&str> = asked.split(|one: char| !one.is_ascii_alphanumeric() && one != '_').collect();
    let of_histogram =
        |name: &str| ["bucket", "count"].iter().any(|part| words.contains(&*format!("{name}_{part}")));
    let seen = |name: &str| words.contains(name) || of_histogram(name) || ELSEWHERE.contains(&name);
    let unseen: Vec<&String> = metrics.iter().filter(|name| !seen(name)).collect();
    assert!(unseen.is_empty(), "neither on the dashboard nor in an alert: {unseen:?}");
}
