//! What a replica takes by the size of the fleet, for docs/operate.md; and whether the chart gives it that.

use std::fmt::Write as _;

use super::{PERENNIAL, short};
use crate::results::{Case, Results};

/// Every kubelet writes its node's status at least so often, in seconds.
const BEAT: f64 = 300.0;

/// One row a size.
pub(super) fn table(all: &[Results]) -> String {
    let mut table = String::from(
        "| nodes | memory at rest | at most | CPU for heartbeats | a start takes, and reads |\n| --- | --- | --- | --- | --- |\n",
    );
    for results in all {
        let figure = |case| results.median(case, PERENNIAL).map_or_else(|| "–".to_owned(), short);
        let beats = heartbeats(results).map_or_else(|| "–".to_owned(), short);
        let _ = writeln!(
            table,
            "| {} | {} MiB | {} MiB | {beats}m | {} s, {} MB |",
            results.nodes,
            figure(Case::MemorySteady),
            figure(Case::MemoryPeak),
            figure(Case::Start),
            figure(Case::Bytes)
        );
    }
    table
}

/// Thousandths of a core that a fleet's heartbeats take.
pub(super) fn heartbeats(results: &Results) -> Option<f64> {
    let a_second = f64::from(u32::try_from(results.nodes).ok()?) / BEAT;
    Some(a_second * results.median(Case::Heartbeat, PERENNIAL)? / 1000.0)
}

/// The mebibytes of a quantity such as the chart has them.
pub(super) fn mebibytes(quantity: &str) -> Option<f64> {
    quantity.strip_suffix("Mi")?.parse().ok()
}
