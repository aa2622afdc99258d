//! How the fleet stands: counted by the ledger as its lines change, read at each scrape, so that it cannot drift.
//!
//! ```text
//! line ── look ──> Counted (what it counts as) ── recount ──> Fleet ── scrape ──> gauges
//! ```
//! Ages are counted in whole seconds since the process began, so that a hundred thousand pending lines are a few
//! numbers here.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::metrics::gauge;

/// The youngest ages that lines are sorted by, in seconds; whatever is older is `longer`.
const AGES: [(u32, &str); 3] = [(10, "10s"), (60, "1m"), (600, "10m")];
const OLDER: &str = "longer";

/// Where a line stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Standing {
    /// Nothing is known yet, or nothing is there.
    #[default]
    Nothing,
    /// The node lives and its record is current.
    Current,
    /// The node is away and its record is closed.
    Away,
    /// Somebody has to act.
    Pending,
}

/// What a record counts as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Recorded {
    /// There is none.
    #[default]
    None,
    /// It follows a node, or is being given to one.
    Open,
    /// Its node is away.
    Closed,
    /// It cannot be read.
    Broken,
}

/// What one line counts as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counted {
    pub(crate) standing: Standing,
    pub(crate) recorded: Recorded,
    /// The node is there.
    pub(crate) there: bool,
    /// This replica comes first for it. In its pulse while it sleeps: other members change it for many.
    #[serde(skip)]
    pub(crate) first: bool,
    /// The node is there, and all that it bears is in its record.
    pub(crate) current: bool,
    /// It waits for a replica to act, and should not for long.
    pub(crate) waits: bool,
    /// It lives and waits for something to be given to it.
    pub(crate) unrestored: bool,
    /// Its restore failed again and again.
    pub(crate) failing: bool,
    /// It waits behind the brake.
    pub(crate) braked: bool,
    /// Since when it waits: whatever is given here, [`Fleet::recount`] knows.
    pub(crate) since: Ages,
}

/// Since when a line waits, in seconds since the process began; 0 where it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ages {
    /// For anything.
    pending: u32,
    /// For something to be given to it.
    unrestored: u32,
}

impl Ages {
    /// What goes on waiting keeps its age, whatever else becomes of it.
    fn of(before: Counted, after: Counted, now: u32) -> Self {
        let since = |waited, waits, since| match (waited, waits) {
            (_, false) => 0,
            (false, true) => now,
            (true, true) => since,
        };
        Self {
            pending: since(before.waits, after.waits, before.since.pending),
            unrestored: since(before.unrestored, after.unrestored, before.since.unrestored),
        }
    }
}

/// How many of what there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) nodes: usize,
    pub(crate) first: usize,
    pub(crate) current: usize,
    pub(crate) pending: usize,
    pub(crate) records: usize,
    pub(crate) absent: usize,
    pub(crate) unreadable: usize,
    pub(crate) unrestored: usize,
    pub(crate) failing: usize,
    pub(crate) braked: usize,
}

impl Counts {
    /// The numbers that a line adds to.
    fn of(&mut self, line: Counted) -> [(bool, &mut usize); 10] {
        let Counted {
            standing,
            recorded,
            there,
            first,
            current,
            waits: _,
            unrestored,
            failing,
            braked,
            since: _,
        } = line;
        [
            (there, &mut self.nodes),
            (first, &mut self.first),
            (current, &mut self.current),
            (standing == Standing::Pending, &mut self.pending),
            (recorded != Recorded::None, &mut self.records),
            (recorded == Recorded::Closed, &mut self.absent),
            (recorded == Recorded::Broken, &mut self.unreadable),
            (unrestored, &mut self.unrestored),
            (failing, &mut self.failing),
            (braked, &mut self.braked),
        ]
    }
}

/// Since when, and how many since then.
#[derive(Debug, Default)]
struct Since(BTreeMap<u32, usize>);

impl Since {
    fn add(&mut self, since: u32) {
        *self.0.entry(since).or_default() += 1;
    }

    fn remove(&mut self, since: u32) {
        if let Some(number) = self.0.get_mut(&since) {
            *number = number.saturating_sub(1);
            if *number == 0 {
                self.0.remove(&since);
            }
        }
    }

    /// The age of the oldest, in seconds.
    fn oldest(&self, now: u32) -> u32 {
        self.0.keys().next().map_or(0, |since| now.saturating_sub(*since))
    }

    /// How many there are of each age.
    fn by_age(&self, now: u32) -> [(&'static str, usize); 4] {
        let mut ages = [AGES[0].1, AGES[1].1, AGES[2].1, OLDER].map(|age| (age, 0));
        for (since, number) in &self.0 {
            let age = now.saturating_sub(*since);
            let place = AGES.iter().position(|(younger, _)| age < *younger).unwrap_or(AGES.len());
            ages[place].1 += number;
        }
        ages
    }
}

#[derive(Debug, Default)]
struct Inner {
    counts: Counts,
    pending: Since,
    unrestored: Since,
}

/// The fleet, counted.
#[derive(Debug)]
pub(crate) struct Fleet {
    began: Instant,
    inner: Mutex<Inner>,
}

impl Default for Fleet {
    fn default() -> Self {
        Self { began: Instant::now(), inner: Mutex::default() }
    }
}

impl Fleet {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seconds(&self, at: Instant) -> u32 {
        u32::try_from(at.saturating_duration_since(self.began).as_secs()).unwrap_or(u32::MAX)
    }

    /// A line counts as something else from `at` on.
    pub(crate) fn recount(&self, before: &mut Counted, mut after: Counted, at: Instant) {
        after.since = Ages::of(*before, after, self.seconds(at));
        if *before == after {
            return;
        }
        let mut inner = self.inner();
        let Inner { counts, pending, unrestored } = &mut *inner;
        for (counts_as, number) in counts.of(*before) {
            *number = number.saturating_sub(usize::from(counts_as));
        }
        for (counts_as, number) in counts.of(after) {
            *number += usize::from(counts_as);
        }
        for (line, is_new) in [(*before, false), (after, true)] {
            let of = [
                (line.waits, line.since.pending, &mut *pending),
                (line.unrestored, line.since.unrestored, &mut *unrestored),
            ];
            for (counts_as, since, all) in of {
                match (counts_as, is_new) {
                    (false, _) => {}
                    (true, true) => all.add(since),
                    (true, false) => all.remove(since),
                }
            }
        }
        *before = after;
    }

    /// This replica comes first for so many.
    pub(crate) fn ranked(&self, first: usize) {
        self.inner().counts.first = first;
    }

    /// For how many seconds a line has been waiting for a replica to act.
    pub(crate) fn pending_for(&self, line: &Counted, at: Instant) -> Option<u64> {
        line.waits.then(|| u64::from(self.seconds(at).saturating_sub(line.since.pending)))
    }

    /// How long the oldest is pending, and the oldest unrestored one waits, in seconds.
    #[cfg(test)]
    pub(crate) fn oldest(&self, at: Instant) -> (u32, u32) {
        let (now, inner) = (self.seconds(at), self.inner());
        (inner.pending.oldest(now), inner.unrestored.oldest(now))
    }

    pub(crate) fn counts(&self) -> Counts {
        self.inner().counts
    }

    /// Nothing is known any more.
    pub(crate) fn clear(&self) {
        *self.inner() = Inner::default();
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Age {
    age: &'static str,
}

impl Collector for Fleet {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let now = self.seconds(Instant::now());
        let inner = self.inner();
        let (pending_oldest, unrestored_oldest) = (inner.pending.oldest(now), inner.unrestored.oldest(now));
        let (counts, by_age) = (inner.counts, inner.pending.by_age(now));
        drop(inner);
        let Counts {
            nodes,
            current,
            pending,
            records,
            absent,
            unreadable,
            unrestored,
            failing,
            braked,
            first: _,
        } = counts;
        let gauges = [
            ("nodes", "Nodes that are there", nodes),
            ("nodes_current", "Nodes whose record is current", current),
            ("pending", "Nodes about which somebody has to act", pending),
            ("unrestored", "Living nodes that wait for something to be given back to them", unrestored),
            ("restore_failing", "Nodes whose restore failed five times in a row or more", failing),
            ("records", "Records", records),
            ("records_absent", "Records of nodes that are away", absent),
            ("records_unreadable", "Records that cannot be read, or that a newer version wrote", unreadable),
            ("brake_held", "Erasures and shrinkings of records that wait behind the brake", braked),
        ];
        for (name, help, number) in gauges {
            gauge(&mut encoder, name, help, count(number))?;
        }
        let help = "Share of nodes whose record is current: nodes_current divided by nodes";
        gauge(&mut encoder, "nodes_current_ratio", help, ratio(current, nodes))?;
        let help = "Seconds for which the oldest pending node waits; not behind the brake, nor for a restore that is off here, nor in a dry run";
        gauge(&mut encoder, "pending_oldest_seconds", help, i64::from(pending_oldest))?;
        let help = "Seconds for which the oldest unrestored node waits";
        gauge(&mut encoder, "unrestored_oldest_seconds", help, i64::from(unrestored_oldest))?;
        let help = "The same nodes by how long they wait, each in one bucket: younger than 10 s, 1 min, 10 min, or longer";
        let mut ages = encoder.encode_descriptor("pending_by_age", help, None, MetricType::Gauge)?;
        for (age, number) in by_age {
            ConstGauge::new(count(number)).encode(ages.encode_family(&Age { age })?)?;
        }
        Ok(())
    }
}

/// The part of a whole; all of it where there is nothing.
pub(crate) fn ratio(part: usize, whole: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a share of at most some million nodes")]
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

pub(super) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const PENDING: Counted = Counted {
        standing: Standing::Pending,
        recorded: Recorded::Open,
        there: true,
        first: false,
        current: false,
        waits: true,
        unrestored: false,
        failing: false,
        braked: false,
        since: Ages { pending: 0, unrestored: 0 },
    };
    const WAITING: Counted = Counted { unrestored: true, ..PENDING };
    const CURRENT: Counted = Counted { standing: Standing::Current, current: true, waits: false, ..PENDING };

    #[test]
    fn every_pending_line_is_in_one_bucket_of_its_age() {
        let fleet = Fleet::default();
        let at = |seconds| fleet.began + Duration::from_secs(seconds);
        for seconds in [0, 1, 500, 941, 995, 1000, 1000] {
            fleet.recount(&mut Counted::default(), PENDING, at(seconds));
        }
        let inner = fleet.inner();
        assert_eq!(inner.pending.by_age(1000), [("10s", 3), ("1m", 1), ("10m", 1), ("longer", 2)]);
        assert_eq!(inner.pending.oldest(1000), 1000);
        assert_eq!(inner.unrestored.oldest(1000), 0);
    }

    #[test]
    fn a_line_goes_on_ageing_while_it_waits_and_its_restore_has_an_age_of_its_own() {
        let fleet = Fleet::default();
        let at = |seconds| fleet.began + Duration::from_secs(seconds);
        let oldest = |seconds| fleet.oldest(at(seconds));
        let mut line = Counted::default();
        fleet.recount(&mut line, PENDING, at(0));
        fleet.recount(&mut line, Counted { failing: true, ..PENDING }, at(10));
        assert_eq!(oldest(20), (20, 0));
        fleet.recount(&mut line, WAITING, at(20));
        fleet.recount(&mut line, WAITING, at(25));
        assert_eq!(oldest(30), (30, 10));
        // Somebody switches restoring off: nobody is late, and it still lacks what is its own.
        fleet.recount(&mut line, Counted { waits: false, ..WAITING }, at(30));
        assert_eq!(oldest(40), (0, 20));
        fleet.recount(&mut line, WAITING, at(40));
        assert_eq!(oldest(50), (10, 30));
        fleet.recount(&mut line, CURRENT, at(50));
        assert_eq!(oldest(60), (0, 0));
    }

    #[test]
    fn whatever_a_line_counted_as_before_is_taken_back() {
        let fleet = Fleet::default();
        let mut line = Counted::default();
        let at = Instant::now();
        fleet.recount(&mut line, Counted { first: true, failing: true, braked: true, ..WAITING }, at);
        fleet.recount(&mut line, Counted { recorded: Recorded::Closed, ..CURRENT }, at);
        let expected = Counts { nodes: 1, current: 1, records: 1, absent: 1, ..Counts::default() };
        assert_eq!(fleet.counts(), expected);
        fleet.recount(&mut line, Counted::default(), at);
        assert_eq!(fleet.counts(), Counts::default());
        assert_eq!(fleet.oldest(at + Duration::from_secs(1)), (0, 0));
    }
}
