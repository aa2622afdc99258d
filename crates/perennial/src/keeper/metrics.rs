//! What the keeper measures of itself. How the fleet stands is counted in [`Fleet`].

use std::sync::Arc;

use perennial_core::keeper::{Erasure, Notice, Why};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::fleet::Fleet;
use crate::metrics::ByKind;

/// The keeper's metrics.
#[derive(Debug)]
pub struct Metrics {
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) inflight: Gauge,
    pub(crate) brake: Gauge,
    pub(crate) dry_run: Gauge,
    pub(crate) saves: ByKind,
    pub(crate) erases: ByKind,
    pub(crate) skips: ByKind,
    pub(crate) notices: ByKind,
    pub(crate) proofs: ByKind,
    pub(crate) restores: Counter,
    pub(crate) after_ready: Counter,
    pub(crate) labels_restored: Counter,
    pub(crate) churn: Counter,
    pub(crate) refused: Counter,
    pub(crate) histories: Counter,
    pub(crate) unobserved: Counter,
    pub(crate) unobserved_seconds: Counter<f64, std::sync::atomic::AtomicU64>,
    pub(crate) restore_seconds: Histogram,
    pub(crate) queue_seconds: Histogram,
}

impl Metrics {
    /// Registers them.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let fleet = Arc::<Fleet>::default();
        registry.register_collector(Box::new(fleet.clone()));
        let by_kind = [
            ("saves", "Records written, by transition", vec!["save", "close", "give"]),
            ("erases", "Records removed, by reason", Erasure::ALL.map(Erasure::as_str).into()),
            (
                "skips",
                "Decisions to leave a node as it is though it is not settled, by reason",
                Why::SKIPS.map(Why::as_str).into(),
            ),
            ("notices", "What a person should look at, by reason", notices()),
            ("proofs", "Ends looked up in etcd's history, by outcome", vec!["proved", "lost"]),
        ];
        let [saves, erases, skips, notices, proofs] =
            by_kind.map(|(name, help, kinds)| ByKind::register(registry, name, help, kinds));
        let metrics = Self {
            fleet,
            inflight: Gauge::default(),
            brake: Gauge::default(),
            dry_run: Gauge::default(),
            saves,
            erases,
            skips,
            notices,
            proofs,
            restores: Counter::default(),
            after_ready: Counter::default(),
            labels_restored: Counter::default(),
            churn: Counter::default(),
            refused: Counter::default(),
            histories: Counter::default(),
            unobserved: Counter::default(),
            unobserved_seconds: Counter::default(),
            restore_seconds: Histogram::new(exponential_buckets(0.01, 2.0, 16)),
            queue_seconds: Histogram::new(exponential_buckets(0.001, 2.0, 18)),
        };
        metrics.name(registry);
        metrics
    }

    fn name(&self, registry: &mut Registry) {
        let gauges = [
            ("inflight", "Nodes worked on at this moment", &self.inflight),
            ("brake_engaged", "1 while collection and shrinking are stopped by the brake", &self.brake),
            (
                "dry_run",
                "1 in a dry run: nothing is written, and what is pending is what would be done",
                &self.dry_run,
            ),
        ];
        for (name, help, gauge) in gauges {
            registry.register(name, help, gauge.clone());
        }
        let counters = [
            ("restores", "Nodes that got back what they lacked", &self.restores),
            ("restored_after_ready", "Restores at which the node was Ready already", &self.after_ready),
            ("labels_restored", "Labels put back", &self.labels_restored),
            (
                "churn",
                "Times that what is kept of a node went back to the state that it had just left (A, B, A): something keeps setting old values",
                &self.churn,
            ),
            ("records_refused", "Records that would not fit into a ConfigMap", &self.refused),
            ("histories", "Times that the cluster turned out to have another history", &self.histories),
            (
                "unobserved",
                "Windows of the Node watch that the API server could not fill, so that nodes were listed anew",
                &self.unobserved,
            ),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        let help = "Seconds that those windows lasted";
        registry.register("unobserved_seconds", help, self.unobserved_seconds.clone());
        let help = "Seconds from a node's creation to its restore";
        registry.register("restore_seconds", help, self.restore_seconds.clone());
        let help = "Seconds from work that is due to its beginning";
        registry.register("queue_seconds", help, self.queue_seconds.clone());
    }
}

fn notices() -> Vec<&'static str> {
    Notice::ALL.map(Notice::reason).into_iter().chain(["RecordUnreadable"]).collect()
}
