//! How each listing stands: told by its actor, added up at each scrape.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use tokio::time::Instant;

use crate::metrics::gauge;

/// How one listing stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// How many endpoints its page has.
    pub(crate) endpoints: usize,
    /// A guard holds a page back.
    pub(crate) held: bool,
    /// There is no page to publish, or a destination that cannot be written.
    pub(crate) failing: bool,
    /// Since when the page that is wanted is not everywhere.
    pub(crate) stale: Option<Instant>,
}

/// All listings that are followed, by number: one that is followed anew is another.
#[derive(Debug, Default)]
pub(crate) struct Standings(Mutex<BTreeMap<u64, Standing>>);

impl Standings {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Standing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A listing that is followed until this is dropped.
    pub(crate) fn follow(self: &Arc<Self>) -> Stands {
        let now = Standing::default();
        let mut all = self.all();
        let number = all.keys().next_back().map_or(0, |last| last + 1);
        all.insert(number, now);
        Stands { all: self.clone(), number, now }
    }
}

/// Tells how one listing stands.
#[derive(Debug)]
pub(crate) struct Stands {
    all: Arc<Standings>,
    number: u64,
    now: Standing,
}

impl Stands {
    pub(crate) fn tell(&mut self, now: Standing) {
        if self.now != now {
            self.now = now;
            self.all.all().insert(self.number, now);
        }
    }
}

impl Drop for Stands {
    fn drop(&mut self) {
        self.all.all().remove(&self.number);
    }
}

impl Collector for Standings {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let standings: Vec<Standing> = self.all().values().copied().collect();
        let number = |which: fn(&Standing) -> usize| {
            i64::try_from(standings.iter().map(which).sum::<usize>()).unwrap_or(i64::MAX)
        };
        let gauges = [
            ("listings", "Listings that are followed", number(|_| 1)),
            (
                "listing_endpoints",
                "Endpoints on the pages of all listings together",
                number(|one| one.endpoints),
            ),
            ("listings_held", "Listings whose page a guard holds back", number(|one| usize::from(one.held))),
            (
                "listings_failing",
                "Listings without a page to publish, or with a destination that cannot be written",
                number(|one| usize::from(one.failing)),
            ),
        ];
        for (name, help, value) in gauges {
            gauge(&mut encoder, name, help, value)?;
        }
        let stale = standings.iter().filter_map(|one| one.stale).min();
        let stale = stale.map_or(0.0, |since| since.elapsed().as_secs_f64());
        let help = "Longest time for which the wanted page of a listing is not published";
        gauge(&mut encoder, "listing_stale_seconds", help, stale)
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn listings_are_added_up_and_gone_with_their_actor() {
        let standings = Arc::<Standings>::default();
        let mut registry = Registry::default();
        registry.register_collector(Box::new(standings.clone()));
        let (mut one, mut two) = (standings.follow(), standings.follow());
        one.tell(Standing { endpoints: 3, failing: true, ..Standing::default() });
        two.tell(Standing { endpoints: 4, held: true, stale: Some(Instant::now()), ..Standing::default() });
        let text = crate::metrics::encode(&registry);
        for line in ["listings 2", "listing_endpoints 7", "listings_held 1", "listings_failing 1"] {
            assert!(text.lines().any(|one| one == line), "{line} is not in\n{text}");
        }
        drop((one, two));
        let text = crate::metrics::encode(&registry);
        assert!(text.contains("\nlistings 0\n") && text.contains("\nlisting_stale_seconds 0.0\n"), "{text}");
    }
}
