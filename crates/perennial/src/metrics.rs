//! The registry of metrics, and what is measured of the process itself.
//!
//! Each module registers its own with `register(&mut Registry) -> Self`, beside the code it measures, on
//! [`section`], which gives every name the prefix `perennial_`. Only the process's own metrics bear no
//! prefix: `process_*` are the names that every dashboard and alert already knows.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

mod process;

/// One label whose values are fixed at compile time, so that their number is bounded.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct Kind {
    pub(crate) kind: &'static str,
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
