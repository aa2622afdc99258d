//! What the keeper measures of itself.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::metrics::Kind;

/// The keeper's metrics.
#[derive(Debug)]
pub struct Metrics {
    pub(crate) nodes: Gauge,
    pub(crate) nodes_current: Gauge,
    pub(crate) current_ratio: Gauge<f64, std::sync::atomic::AtomicU64>,
    pub(crate) pending: Gauge,
    pub(crate) records: Gauge,
    pub(crate) absent: Gauge,
    pub(crate) unreadable: Gauge,
    pub(crate) inflight: Gauge,
    pub(crate) brake: Gauge,
    saves: Family<Kind, Counter>,
    pub(crate) restores: Counter,
    pub(crate) labels_restored: Counter,
    erases: Family<Kind, Counter>,
    skips: Family<Kind, Counter>,
    notices: Family<Kind, Counter>,
    proofs: Family<Kind, Counter>,
    pub(crate) churn: Counter,
    pub(crate) refused: Counter,
    pub(crate) histories: Counter,
    pub(crate) restore_seconds: Histogram,
}

impl Metrics {
    /// Registers them.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            nodes: Gauge::default(),
            nodes_current: Gauge::default(),
            current_ratio: Gauge::default(),
            pending: Gauge::default(),
            records: Gauge::default(),
            absent: Gauge::default(),
            unreadable: Gauge::default(),
            inflight: Gauge::default(),
            brake: Gauge::default(),
            saves: Family::default(),
            restores: Counter::default(),
            labels_restored: Counter::default(),
            erases: Family::default(),
            skips: Family::default(),
            notices: Family::default(),
            proofs: Family::default(),
            churn: Counter::default(),
            refused: Counter::default(),
            histories: Counter::default(),
            restore_seconds: Histogram::new(exponential_buckets(0.01, 2.0, 16)),
        };
        metrics.name(registry);
        metrics
    }

    fn name(&self, registry: &mut Registry) {
        let gauges = [
            ("nodes", "Nodes that are there", &self.nodes),
            ("nodes_current", "Nodes whose record is current", &self.nodes_current),
            ("pending", "Nodes about which somebody has to act", &self.pending),
            ("records", "Records", &self.records),
            ("records_absent", "Records of nodes that are away", &self.absent),
            ("records_unreadable", "Records that cannot be read", &self.unreadable),
            ("inflight", "Nodes worked on at this moment", &self.inflight),
            ("brake_engaged", "1 while collection and shrinking are stopped by the brake", &self.brake),
        ];
        for (name, help, gauge) in gauges {
            registry.register(name, help, gauge.clone());
        }
        let help = "Share of nodes whose record is current: nodes_current divided by nodes";
        registry.register("nodes_current_ratio", help, self.current_ratio.clone());
        let families = [
            ("saves", "Records written, by transition", &self.saves),
            ("erases", "Records removed, by reason", &self.erases),
            ("skips", "Decisions to leave a node as it is though it is not settled, by reason", &self.skips),
            ("notices", "What a person should look at, by reason", &self.notices),
            ("proofs", "Ends looked up in etcd's history, by outcome", &self.proofs),
        ];
        for (name, help, family) in families {
            registry.register(name, help, family.clone());
        }
        let counters = [
            ("restores", "Nodes that got back what they lacked", &self.restores),
            ("labels_restored", "Labels put back", &self.labels_restored),
            (
                "churn",
                "Saves of a state that the node had before: something keeps setting old values",
                &self.churn,
            ),
            ("records_refused", "Records that would not fit into a ConfigMap", &self.refused),
            ("histories", "Times that versions ran backwards", &self.histories),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        let help = "Seconds from a node's creation to its restore";
        registry.register("restore_seconds", help, self.restore_seconds.clone());
    }

    pub(crate) fn save(&self, transition: &'static str) {
        self.saves.get_or_create(&Kind { kind: transition }).inc();
    }

    pub(crate) fn erase(&self, why: &'static str) {
        self.erases.get_or_create(&Kind { kind: why }).inc();
    }

    pub(crate) fn skip(&self, why: &'static str) {
        self.skips.get_or_create(&Kind { kind: why }).inc();
    }

    pub(crate) fn notice(&self, reason: &'static str) {
        self.notices.get_or_create(&Kind { kind: reason }).inc();
    }

    pub(crate) fn proof(&self, outcome: &'static str) {
        self.proofs.get_or_create(&Kind { kind: outcome }).inc();
    }
}
