//! What is measured of the replicas' work with each other.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The members' metrics.
#[derive(Debug, Default)]
pub struct Metrics {
    pub(crate) live: Gauge,
    pub(crate) share: Gauge<f64, AtomicU64>,
    pub(crate) takeovers: Counter,
    pub(crate) duplicates: Counter,
    pub(crate) renewals_failed: Counter,
}

impl Metrics {
    /// Registers them.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let section = registry.sub_registry_with_prefix("member");
        section.register("live", "Replicas that are alive, as this one sees them", metrics.live.clone());
        let help = "Share of the nodes for which this replica comes first";
        section.register("share", help, metrics.share.clone());
        let help = "Writes made in place of a replica that comes first and did not make them in time";
        section.register("takeovers", help, metrics.takeovers.clone());
        let help = "Writes that lost to another replica's: work done twice, which harms nothing";
        section.register("duplicates", help, metrics.duplicates.clone());
        let help = "Renewals of this replica's Lease that failed";
        section.register("renewals_failed", help, metrics.renewals_failed.clone());
        metrics
    }
}
