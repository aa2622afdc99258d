//! What is measured of listings.

use std::sync::Arc;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::opening::PlaceError;
use super::places::{Done, Outcome};
use super::standings::Standings;
use crate::metrics::ByKind;

/// What the lister measures. Listings are counted, never named: their number has no bound.
#[derive(Debug)]
pub struct Metrics {
    pub(crate) standings: Arc<Standings>,
    published: Counter,
    pub(crate) held: Counter,
    failed: ByKind,
    publish_seconds: Histogram,
    pub(crate) render_seconds: Histogram,
}

impl Metrics {
    /// Registers them.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let standings = Arc::<Standings>::default();
        registry.register_collector(Box::new(standings.clone()));
        let help = "Pages that could not be written, by kind";
        let metrics = Self {
            standings,
            published: Counter::default(),
            held: Counter::default(),
            failed: ByKind::register(registry, "listing_failed", help, PlaceError::kinds()),
            publish_seconds: Histogram::new(exponential_buckets(0.001, 2.0, 16)),
            render_seconds: Histogram::new(exponential_buckets(0.0001, 2.0, 16)),
        };
        let Self { standings: _, published, held, failed: _, publish_seconds, render_seconds } = &metrics;
        registry.register("listing_published", "Pages written to a destination", published.clone());
        registry.register("listing_held", "Pages that a guard held back", held.clone());
        let help = "Seconds from a page that is to be published to its being there";
        registry.register("listing_publish_seconds", help, publish_seconds.clone());
        registry.register("listing_render_seconds", "Seconds to make a page", render_seconds.clone());
        metrics
    }

    /// Something came of one place.
    pub(crate) fn took(&self, done: &Done) {
        match &done.result {
            Ok(Outcome::Written) => {
                self.published.inc();
                self.publish_seconds.observe(done.took.as_secs_f64());
            }
            Ok(Outcome::There | Outcome::Lags(_)) => {}
            Err(error) => self.failed.inc(error.kind()),
        }
    }
}
