//! A Service whose containers come and go, and the page that lists them: what the lister is for.
//!
//! The demo plays the controller that writes the Service's slices, and reads the page where the replicas publish it.

use std::{
    convert::Infallible,
    time::{Duration, Instant},
};

use k8s_openapi::api::{core::v1::ConfigMap, discovery::v1::EndpointSlice};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use perennial_testkit::{ControlPlane, eventually};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::board::Shared;

/// The Service, and the ConfigMap that its page is published in.
const SERVICE: &str = "web";
const PAGE: &str = "web-page";
/// The most containers there are.
const MOST: u8 = 12;
/// How often the page is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// The Service and its page.
pub(crate) struct Web {
    slices: Api<EndpointSlice>,
    pages: Api<ConfigMap>,
    board: Shared,
    random: StdRng,
    /// Counts containers, so that each has an address that none had before it.
    born: u16,
    running: Vec<u16>,
}

impl Web {
    /// Creates the Listing. Its page follows as soon as there is a replica.
    pub(crate) async fn create(plane: &ControlPlane, namespace: &str, board: Shared) -> anyhow::Result<Self> {
        let listing = json!({
            "apiVersion": "perennial.dev/v1alpha1",
            "kind": "Listing",
            "metadata": { "name": SERVICE, "namespace": namespace },
            "spec": {
                "service": SERVICE,
                "template": { "format": "text" },
                "destinations": [{ "name": "page", "configMap": { "name": PAGE } }],
            },
        });
        plane.kubectl_apply(&listing.to_string()).await?;
        let seed = board.lock().seed;
        Ok(Self {
            slices: Api::namespaced(plane.admin(), namespace),
            pages: Api::namespaced(plane.admin(), namespace),
            board,
            random: StdRng::seed_from_u64(seed),
            born: 0,
            running: Vec::new(),
        })
    }

    /// Scales the Service up and down, and waits for the page each time, for ever.
    pub(crate) async fn scale(&mut self) -> anyhow::Result<Infallible> {
        loop {
            let wanted = self.random.random_range(1..=MOST);
            self.scale_to(wanted).await?;
            while self.page().await? != self.truth() {
                sleep(LOOK).await;
            }
            self.board.lock().page.followed();
            sleep(Duration::from_millis(self.random.random_range(50..500))).await;
        }
    }

    /// Scales a last time, and waits until the page is true.
    pub(crate) async fn finish(&mut self, patience: Duration) -> anyhow::Result<()> {
        self.scale_to(MOST / 2).await?;
        eventually(patience, "the page lists what is there", || async {
            let page = self.page().await?;
            if page == self.truth() { Ok(Some(())) } else { anyhow::bail!("it says {page:?}") }
        })
        .await?;
        self.board.lock().page.followed();
        Ok(())
    }

    /// Starts containers, or stops some, and replaces one: as a rollout does.
    async fn scale_to(&mut self, wanted: u8) -> anyhow::Result<()> {
        if !self.running.is_empty() {
            let gone = self.random.random_range(0..self.running.len());
            self.running.remove(gone);
        }
        self.running.truncate(usize::from(wanted));
        while self.running.len() < usize::from(wanted) {
            self.born += 1;
            self.running.push(self.born);
        }
        let endpoints: Vec<Value> = self
            .running
            .iter()
            .map(|born| json!({ "addresses": [address(*born)], "conditions": { "ready": true } }))
            .collect();
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": { "name": SERVICE, "labels": { "kubernetes.io/service-name": SERVICE } },
            "addressType": "IPv4",
            "endpoints": endpoints,
            "ports": [{ "port": 80, "protocol": "TCP" }],
        });
        self.board.lock().page.changed(self.running.len());
        self.slices.patch(SERVICE, &PatchParams::apply("demo").force(), &Patch::Apply(slice)).await?;
        Ok(())
    }

    /// What the page should say.
    fn truth(&self) -> String {
        self.running.iter().map(|born| address(*born) + "\n").collect()
    }

    async fn page(&self) -> anyhow::Result<String> {
        let map = self.pages.get_opt(PAGE).await?;
        let page = map.and_then(|map| map.data?.remove("index.html"));
        Ok(page.unwrap_or_default())
    }
}

fn address(born: u16) -> String {
    let [high, low] = born.to_be_bytes();
    format!("10.1.{high}.{low}")
}

/// What is known of the page.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) endpoints: usize,
    /// From a change to the page that shows it, for every one that was followed.
    pub(crate) latencies: Vec<Duration>,
    changed: Option<Instant>,
}

impl Page {
    fn changed(&mut self, endpoints: usize) {
        self.endpoints = endpoints;
        self.changed = Some(Instant::now());
    }

    fn followed(&mut self) {
        self.latencies.extend(self.changed.take().map(|changed| changed.elapsed()));
    }
}
