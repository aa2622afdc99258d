//! Kubernetes Events about Nodes: best effort, and paced so that they never compete with restores.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tracing::debug;
use uuid::Uuid;

use super::api::Api;
use super::ledger::Name;
use super::metrics::Metrics;
use crate::cluster::ApiError;

/// How many may wait. More are dropped and counted.
const WAITING: usize = 256;
/// The pace: ten a second.
const PACE: Duration = Duration::from_millis(100);

/// Something a person may want to see with `kubectl describe node`.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) node: Name,
    pub(crate) uid: Option<Uuid>,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) warning: bool,
}

/// Takes Events to post; never waits.
#[derive(Clone)]
pub(crate) struct Teller {
    to: Sender<Told>,
    metrics: Arc<Metrics>,
    /// An Event is a write too: the log has to do.
    dry_run: bool,
}

impl Teller {
    pub(crate) fn tell(&self, told: Told) {
        if !self.dry_run && self.to.try_send(told).is_err() {
            self.metrics.events_dropped.inc();
        }
    }
}

/// The taking end and the posting end.
pub(crate) fn teller(api: Api, metrics: Arc<Metrics>, dry_run: bool) -> (Teller, impl Future<Output = ()>) {
    let (to, from) = channel(WAITING);
    (Teller { to, metrics: metrics.clone(), dry_run }, post(from, api, metrics))
}

async fn post(mut from: Receiver<Told>, api: Api, metrics: Arc<Metrics>) {
    let mut pace = tokio::time::interval(PACE);
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while let Some(told) = from.recv().await {
        pace.tick().await;
        if let Err(error) = api.post_event(&event(&told, Timestamp::now())).await {
            metrics.events_dropped.inc();
            let calls = api.cluster().metrics();
            calls.error(error.kind());
            if matches!(error, ApiError::Forbidden(_)) {
                calls.forbidden.tell(&error);
            }
            debug!(node = %told.node, uid = told.uid.map(display), %error, "cannot post an event");
        }
    }
}

fn event(told: &Told, now: Timestamp) -> Value {
    let now = format!("{now:.0}");
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "generateName": "perennial.", "namespace": "default" },
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Node",
            "name": &*told.node,
            "uid": told.uid.map_or_else(|| told.node.to_string(), |uid| uid.to_string()),
        },
        "reason": told.reason,
        "message": told.message,
        "type": if told.warning { "Warning" } else { "Normal" },
        "source": { "component": "perennial" },
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    })
}
