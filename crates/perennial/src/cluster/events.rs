//! Kubernetes Events: best effort, and paced so that they never compete with the work itself.

use std::borrow::Cow;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::PostParams;
use kube::core::request::Request as Resource;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tracing::debug;
use uuid::Uuid;

use super::{ApiError, Cluster};

/// How many may wait. More are dropped and counted.
const WAITING: usize = 256;
/// The pace: ten a second.
const PACE: Duration = Duration::from_millis(100);
/// The most the API server takes as a message.
const MESSAGE: usize = 1024;

/// What an Event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    /// `None` for what has no namespace: its Events are in `default`.
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) uid: Option<Uuid>,
}

/// Something a person may want to see with `kubectl describe`.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) about: About,
    pub(crate) reason: Cow<'static, str>,
    pub(crate) message: String,
    pub(crate) warning: bool,
}

/// Takes Events to post; never waits.
#[derive(Clone)]
pub(crate) struct Teller {
    to: Sender<Told>,
    cluster: Cluster,
    /// An Event is a write too: the log has to do.
    dry_run: bool,
}

impl Teller {
    pub(crate) fn tell(&self, told: Told) {
        if !self.dry_run && self.to.try_send(told).is_err() {
            self.cluster.metrics().events_dropped.inc();
        }
    }
}

/// The taking end and the posting end.
pub(crate) fn teller(cluster: Cluster, dry_run: bool) -> (Teller, impl Future<Output = ()>) {
    let (to, from) = channel(WAITING);
    (Teller { to, cluster: cluster.clone(), dry_run }, post(from, cluster))
}

async fn post(mut from: Receiver<Told>, cluster: Cluster) {
    let mut pace = tokio::time::interval(PACE);
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while let Some(told) = from.recv().await {
        pace.tick().await;
        let namespace = told.about.namespace.as_deref().unwrap_or("default");
        let events = Resource::new(format!("/api/v1/namespaces/{namespace}/events"));
        let bytes = event(&told, namespace, cluster.now()).to_string().into_bytes();
        let request = events.create(&PostParams::default(), bytes);
        if let Err(error) = cluster.call::<serde::de::IgnoredAny>(request).await {
            let metrics = cluster.metrics();
            metrics.events_dropped.inc();
            metrics.error(error.kind());
            if matches!(error, ApiError::Forbidden(_)) {
                metrics.forbidden.tell(&error);
            }
            let About { kind, name, .. } = &told.about;
            debug!(kind, name, reason = %told.reason, %error, "cannot post an event");
        }
    }
}

fn event(told: &Told, namespace: &str, now: Timestamp) -> Value {
    let Told { about, reason, message, warning } = told;
    let now = format!("{now:.0}");
    let mut involved = json!({
        "apiVersion": about.api_version,
        "kind": about.kind,
        "name": about.name,
        // Where nobody knows the uid the name stands for it, as the kubelet does it for its Node.
        "uid": about.uid.map_or_else(|| about.name.clone(), |uid| uid.to_string()),
    });
    if let Some(namespace) = &about.namespace {
        involved["namespace"] = json!(namespace);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "generateName": "perennial.", "namespace": namespace },
        "involvedObject": involved,
        "reason": reason,
        "message": message.chars().take(MESSAGE).collect::<String>(),
        "type": if *warning { "Warning" } else { "Normal" },
        "source": { "component": "perennial" },
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    })
}
