//! What the webhook measures of itself.

use std::time::Duration;

use perennial_core::keeper::born::Birth;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::metrics::ByKind;

/// The webhook's metrics.
#[derive(Debug)]
pub struct Metrics {
    births: ByKind,
    deaths: ByKind,
    broken: Counter,
    seconds: Histogram,
    pub(super) certificate: Gauge,
}

impl Metrics {
    /// Registers them.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let help = "Nodes about to be created that the API server asked about: given their labels or a gate, given nothing because nothing is remembered, or unanswered because nobody could tell in time";
        let births = ByKind::register(registry, "births", help, ["given", "nothing", "unanswered"]);
        let help = "Nodes about to be deleted that the API server asked about: recorded, or refused because they were not recorded in time";
        let deaths = ByKind::register(registry, "deaths", help, ["recorded", "refused"]);
        let metrics = Self {
            births,
            deaths,
            broken: Counter::default(),
            seconds: Histogram::new(exponential_buckets(0.0001, 2.0, 18)),
            certificate: Gauge::default(),
        };
        let help = "Requests to the webhook that were no question";
        registry.register("webhook_broken", help, metrics.broken.clone());
        let help = "Seconds in which the webhook answered";
        registry.register("webhook_seconds", help, metrics.seconds.clone());
        let help = "1 while the webhook has a certificate to serve with";
        registry.register("webhook_certificate", help, metrics.certificate.clone());
        metrics
    }

    pub(super) fn born(&self, birth: Option<&Birth>, took: Duration) {
        self.seconds.observe(took.as_secs_f64());
        self.births.inc(match birth {
            Some(birth) if *birth == Birth::default() => "nothing",
            Some(_) => "given",
            None => "unanswered",
        });
    }

    pub(super) fn gone(&self, recorded: bool, took: Duration) {
        self.seconds.observe(took.as_secs_f64());
        self.deaths.inc(if recorded { "recorded" } else { "refused" });
    }

    pub(super) fn broken(&self) {
        self.broken.inc();
    }
}
