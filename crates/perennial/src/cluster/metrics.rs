//! What is measured on the way to the API server.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tracing::error;

use super::error::ApiError;
use super::views::{Ages, Views};
use crate::metrics::ByKind;

/// What every part measures of its calls.
#[derive(Debug)]
pub struct Metrics {
    errors: ByKind,
    pub(crate) relists: Counter,
    pub(crate) events_dropped: Counter,
    requests: Histogram,
    requests_inflight: Gauge,
    pub(crate) forbidden: Forbidden,
    pub(super) views: Arc<Views>,
}

impl Metrics {
    /// Registers them.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let help = "Failed calls to the API server, and work that panicked, by kind";
        let kinds = ApiError::KINDS.into_iter().chain(["panic"]);
        let metrics = Self {
            errors: ByKind::register(registry, "errors", help, kinds),
            relists: Counter::default(),
            events_dropped: Counter::default(),
            requests: Histogram::new(exponential_buckets(0.001, 2.0, 15)),
            requests_inflight: Gauge::default(),
            forbidden: Forbidden::default(),
            views: Arc::default(),
        };
        registry.register_collector(Box::new(Ages(metrics.views.clone())));
        let help = "Lists that were needed because a watch could not go on";
        registry.register("relists", help, metrics.relists.clone());
        let help = "Kubernetes Events dropped rather than delaying the work";
        registry.register("events_dropped", help, metrics.events_dropped.clone());
        let help = "Seconds that calls to the API server took";
        registry.register("request_seconds", help, metrics.requests.clone());
        let help = "Calls to the API server under way, watches not counted";
        registry.register("requests_inflight", help, metrics.requests_inflight.clone());
        metrics
    }

    pub(crate) fn error(&self, kind: &'static str) {
        self.errors.inc(kind);
    }

    /// A call is under way until this is dropped, which is also when nobody waits for it any more.
    pub(crate) fn call(&self) -> Call<'_> {
        self.requests_inflight.inc();
        Call { metrics: self, started: Instant::now() }
    }
}

/// A call under way.
pub(crate) struct Call<'a> {
    metrics: &'a Metrics,
    started: Instant,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.metrics.requests_inflight.dec();
        self.metrics.requests.observe(self.started.elapsed().as_secs_f64());
    }
}

/// Permissions that are missing, each told once.
#[derive(Debug, Default)]
pub(crate) struct Forbidden {
    told: Mutex<BTreeSet<String>>,
}

impl Forbidden {
    /// Logs a 403, unless the same permission was missing before. The API server's words name the verb and
    /// the resource to grant, or the fence that is in the way.
    pub(crate) fn tell(&self, refusal: &ApiError) {
        let words = refusal.to_string();
        // `nodes "a" is forbidden: User "u" cannot patch resource "nodes" …`, or `nodes "a" is forbidden:
        // ValidatingAdmissionPolicy 'b' with binding 'c' denied request: …`: the part that is the same for all.
        let (fenced, reason) = match (words.split_once(" cannot "), words.split_once(" denied request: ")) {
            (_, Some((_, reason))) => (true, reason),
            (Some((_, permission)), None) => (false, permission),
            (None, None) => (false, words.as_str()),
        };
        let mut told = self.told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if told.len() >= 100 || !told.insert(reason.to_owned()) {
            return;
        }
        if fenced {
            error!(
                error = words,
                "policy and admission disagree: let the chart render the policy that is in use, or admit it \
                 (retried slowly)"
            );
        } else {
            error!(
                error = words,
                "a permission is missing: grant it to perennial's account (retried slowly)"
            );
        }
    }
}
