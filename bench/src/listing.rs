//! How long from a change of a Service's endpoints to a page in a bucket, beside the bare upload of the same bytes?

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use http::Method;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{Patch, PatchParams};
use perennial_core::lister::{Facts, Format, Select, Slice, Template, merge};
use perennial_testkit::{ControlPlane, KeeperProcess, S3Server, eventually};
use serde_json::{Value, json};

use crate::report::{Times, ratio};

const NAMESPACE: &str = "perennial";
const SERVICE: &str = "web";
const BUCKET: &str = "pages";
const PAGE: &str = "/pages/index.html";
const COPY: &str = "/pages/copy.html";
/// As many as Kubernetes puts into one slice.
const A_SLICE: usize = 100;
/// How long anything may take.
const LONG: Duration = Duration::from_mins(2);
/// Longer than the least time between two pages, so that none waits for the one before it.
const APART: Duration = Duration::from_millis(400);

pub(crate) async fn run(replicas: usize) -> anyhow::Result<()> {
    println!("bench: listing, {replicas} replicas");
    let web = Web::start(replicas).await?;
    for (slices, changes) in [(1, 100), (100, 30)] {
        web.measure(slices, changes).await?;
    }
    render()
}

/// A Service and a page of it in a bucket.
struct Web {
    // Dropped in this order: first those who talk, then whom they talk to.
    _listers: Vec<KeeperProcess>,
    s3: S3Server,
    _plane: ControlPlane,
    slices: Api<EndpointSlice>,
}

impl Web {
    async fn start(replicas: usize) -> anyhow::Result<Self> {
        let plane = ControlPlane::builder().without_audit().start().await?;
        plane.install_listings().await?;
        let kubeconfig = plane.kubeconfig_for_lister(NAMESPACE).await?;
        let s3 = S3Server::start().await?;
        s3.create_bucket(BUCKET).await?;
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "name": "listing-bucket", "namespace": NAMESPACE },
            "stringData": {
                "AWS_ACCESS_KEY_ID": s3.credentials().access_key,
                "AWS_SECRET_ACCESS_KEY": s3.credentials().secret_key,
            },
        });
        let bucket = json!({
            "endpoint": s3.url(),
            "bucket": BUCKET,
            "credentials": { "secret": "listing-bucket" },
        });
        let listing = json!({
            "apiVersion": "perennial.dev/v1alpha1",
            "kind": "Listing",
            "metadata": { "name": SERVICE, "namespace": NAMESPACE },
            "spec": { "service": SERVICE, "destinations": [{ "name": "bucket", "s3": bucket }] },
        });
        plane.kubectl_apply(&secret.to_string()).await?;
        plane.kubectl_apply(&listing.to_string()).await?;
        let (program, mut listers) = (KeeperProcess::beside_current_exe()?, Vec::new());
        for number in 1..=replicas {
            let lister = KeeperProcess::builder(&program, plane.logs()).kubeconfig(&kubeconfig);
            let lister = lister.namespace(NAMESPACE).arg("--roles=lister").arg("--member");
            let lister = lister.arg(format!("replica-{number}"));
            listers.push(lister.start().await.context("starting a replica")?);
        }
        let slices = Api::namespaced(plane.admin(), NAMESPACE);
        Ok(Self { _listers: listers, s3, _plane: plane, slices })
    }

    /// Writes one slice of the Service.
    async fn write(&self, number: usize, change: usize) -> anyhow::Result<()> {
        let (patch, params) = (Patch::Apply(slice(number, change)), PatchParams::apply("bench").force());
        self.slices.patch(&format!("{SERVICE}-{number}"), &params, &patch).await?;
        Ok(())
    }

    /// What is said of an object without sending it: its tag.
    async fn tag(&self, path: &str) -> anyhow::Result<Option<String>> {
        Ok(self.s3.ask(Method::HEAD, path, "").await?.header("etag").map(str::to_owned))
    }

    /// Waits until the page bears this address. Returns it.
    async fn bears(&self, address: &str) -> anyhow::Result<Vec<u8>> {
        eventually(LONG, &format!("the page lists {address}"), || async {
            let page = self.s3.ask(Method::GET, PAGE, "").await?;
            Ok(page.text().contains(address).then(|| page.body.to_vec()))
        })
        .await
    }

    async fn measure(&self, slices: usize, changes: usize) -> anyhow::Result<()> {
        for number in 0..slices {
            self.write(number, 0).await?;
        }
        let mut page = self.bears(&address(slices - 1, 0, 0)).await?;
        let (mut raw, mut published) = (Vec::new(), Vec::new());
        for change in 1..=changes {
            tokio::time::sleep(APART).await;
            // Alternating, so that both meet the same machine.
            let started = Instant::now();
            self.s3.ask(Method::PUT, COPY, page.clone()).await?.good()?;
            raw.push(started.elapsed());
            let before = self.tag(PAGE).await?;
            self.write(change % slices, change).await?;
            let answered = Instant::now();
            while self.tag(PAGE).await? == before {
                ensure!(answered.elapsed() < LONG, "change {change} is not published");
            }
            published.push(answered.elapsed());
            page = self.bears(&address(change % slices, change, 0)).await?;
        }
        let (raw, published) = (Times::new(raw), Times::new(published));
        let (endpoints, bytes) = (slices * A_SLICE, page.len());
        println!("bench:   {endpoints:>5} endpoints, {bytes} bytes");
        println!("bench:     bare upload          {raw}");
        let [p50, p99] = [50, 99].map(|at| ratio(published.percentile(at), raw.percentile(at)));
        println!("bench:     change to published  {published}  ({p50:.1} x at p50, {p99:.1} x at p99)");
        Ok(())
    }
}

/// An address that no other change gives.
fn address(slice: usize, change: usize, endpoint: usize) -> String {
    format!("10.{slice}.{change}.{endpoint}")
}

fn slice(number: usize, change: usize) -> Value {
    let endpoints: Vec<Value> = (0..A_SLICE)
        .map(|endpoint| {
            json!({
                "addresses": [address(number, change, endpoint)],
                "conditions": { "ready": true },
                "nodeName": format!("node-{number}"),
                "zone": "a",
            })
        })
        .collect();
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": format!("{SERVICE}-{number}"),
            "labels": { "kubernetes.io/service-name": SERVICE },
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{ "name": "http", "port": 80, "protocol": "TCP" }],
    })
}

/// Makes pages of 10,000 endpoints, beside writing the same endpoints down as JSON.
fn render() -> anyhow::Result<()> {
    let slices: Vec<Value> = (0..100).map(|number| slice(number, 0)).collect();
    let read: Vec<Slice> = slices.iter().cloned().map(serde_json::from_value).collect::<Result<_, _>>()?;
    let written = times(|| serde_json::to_string(&slices).map(|text| text.len()))?;
    println!("bench:   {} endpoints, without a cluster", slices.len() * A_SLICE);
    println!("bench:     written as JSON      {written}");
    for (name, format) in [("text", Format::Text), ("JSON", Format::Json), ("HTML", Format::Html)] {
        let template = Template::standard(format);
        let made = times(|| {
            let endpoints = merge(&read, Select::Ready);
            let facts =
                Facts { service: SERVICE, namespace: NAMESPACE, endpoints: &endpoints, history: None };
            template.render(&facts).map(|page| page.len())
        })?;
        let beside = ratio(made.percentile(50), written.percentile(50));
        println!("bench:     merged, made {name:<7} {made}  ({beside:.1} x)");
    }
    Ok(())
}

/// How long something takes that has no side effects.
fn times<E>(make: impl Fn() -> Result<usize, E>) -> Result<Times, E> {
    let mut times = Vec::new();
    for _ in 0..50 {
        let started = Instant::now();
        std::hint::black_box(make()?);
        times.push(started.elapsed());
    }
    Ok(Times::new(times))
}
