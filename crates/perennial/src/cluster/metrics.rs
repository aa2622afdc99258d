//! What is measured on the way to the API server.

use std::collections::BTreeSet;
use std::sync::Mutex;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tracing::error;

use super::error::ApiError;
use crate::metrics::Kind;

/// What every part measures of its calls.
#[derive(Debug)]
pub struct Metrics {
    errors: Family<Kind, Counter>,
    pub(crate) relists: Counter,
    pub(crate) events_dropped: Counter,
    pub(crate) requests: Histogram,
    pub(crate) forbidden: Forbidden,
}

impl Metrics {
    /// Registers them.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            errors: Family::default(),
            relists: Counter::default(),
            events_dropped: Counter::default(),
            requests: Histogram::new(exponential_buckets(0.001, 2.0, 15)),
            forbidden: Forbidden::default(),
        };
        registry.register("errors", "Failed calls to the API server, by kind", metrics.errors.clone());
        let help = "Lists that were needed because the watch's history was gone";
        registry.register("relists", help, metrics.relists.clone());
        let help = "Kubernetes Events dropped rather than delaying the work";
        registry.register("events_dropped", help, metrics.events_dropped.clone());
        let help = "Seconds that calls to the API server took";
        registry.register("request_seconds", help, metrics.requests.clone());
        metrics
    }

    pub(crate) fn error(&self, kind: &'static str) {
        self.errors.get_or_create(&Kind { kind }).inc();
    }
}

/// Permissions that are missing, each told once.
#[derive(Debug, Default)]
pub(crate) struct Forbidden {
    told: Mutex<BTreeSet<String>>,
}

impl Forbidden {
    /// Logs a 403, unless the same permission was missing before. The API server's words name the verb and
    /// the resource to grant.
    pub(crate) fn tell(&self, refusal: &ApiError) {
        let words = refusal.to_string();
        // `nodes "a" is forbidden: User "u" cannot patch resource "nodes" …`: the part that is the same for all.
        let permission = words.split_once(" cannot ").map_or(words.as_str(), |(_, rest)| rest).to_owned();
        let mut told = self.told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if told.len() < 100 && told.insert(permission) {
            error!(
                error = words,
                "a permission is missing: grant it to perennial's account (retried slowly)"
            );
        }
    }
}
