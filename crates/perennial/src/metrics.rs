//! The registry of metrics, and what is measured of the process itself.
//!
//! Each module registers its own with `register(&mut Registry) -> Self`, beside the code it measures, on
//! [`section`], which gives every name the prefix `perennial_`. Only the process's own metrics bear no
//! prefix: `process_*` are the names that every dashboard and alert already knows.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

#[cfg(test)]
mod docs;
mod process;

/// One label whose values are fixed at compile time, so that their number is bounded.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Kind {
    kind: &'static str,
}

/// Counters by kind. Each kind is there from the start: of one that comes with its first count, the first is lost to
/// `rate`, and an alert on it cannot tell "never" from "not known".
#[derive(Clone, Debug)]
pub(crate) struct ByKind {
    family: Family<Kind, Counter>,
    kinds: Vec<&'static str>,
}

impl ByKind {
    pub(crate) fn register(
        registry: &mut Registry,
        name: &str,
        help: &str,
        kinds: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        let by_kind = Self { family: Family::default(), kinds: kinds.into_iter().collect() };
        for kind in &by_kind.kinds {
            drop(by_kind.family.get_or_create(&Kind { kind }));
        }
        registry.register(name, help, by_kind.family.clone());
        by_kind
    }

    pub(crate) fn inc(&self, kind: &'static str) {
        debug_assert!(self.kinds.contains(&kind), "{kind} is not among {:?}", self.kinds);
        self.family.get_or_create(&Kind { kind }).inc();
    }
}

/// Writes a gauge whose value was looked up for this scrape.
pub(crate) fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: impl EncodeGaugeValue,
) -> fmt::Result {
    ConstGauge::new(value).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
}

/// A registry with what every part of the process shares.
#[must_use]
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(process::Process));
    let build = Info::new(vec![
        ("version", env!("CARGO_PKG_VERSION")),
        ("os", std::env::consts::OS),
        ("arch", std::env::consts::ARCH),
    ]);
    section(&mut registry).register("build", "What this binary was built from", build);
    registry
}

/// Where modules register: everything here is named `perennial_…`.
pub fn section(registry: &mut Registry) -> &mut Registry {
    registry.sub_registry_with_prefix("perennial")
}

#[cfg(test)]
pub(crate) fn encode(registry: &Registry) -> String {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_begins_with_the_build_and_the_process() {
        let text = encode(&registry());
        assert!(
            text.contains(&format!("perennial_build_info{{version=\"{}\"", env!("CARGO_PKG_VERSION"))),
            "{text}"
        );
        assert!(text.contains("\nprocess_resident_memory_bytes "), "{text}");
    }

    #[test]
    fn every_section_has_the_prefix() {
        let mut registry = Registry::default();
        let counter = prometheus_client::metrics::counter::Counter::<u64>::default();
        section(&mut registry).register("saves", "Records saved", counter);
        assert!(encode(&registry).contains("perennial_saves_total 0"));
    }
}
