//! How often a page may go out, as arithmetic on numbers.
//!
//! Times are durations since any fixed start; the caller's clock must not run backwards.

use std::time::Duration;

use crate::kept::Digest;

/// How often a page may go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pace {
    min: Duration,
    max: Duration,
}

/// A pace that nobody can keep.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the longest wait ({max:?}) must not be shorter than the shortest ({min:?})")]
pub struct PaceError {
    min: Duration,
    max: Duration,
}

impl Pace {
    /// Pages are at least `min` apart, and a change waits no longer than `max` for quiet.
    pub fn new(min: Duration, max: Duration) -> Result<Self, PaceError> {
        if max < min { Err(PaceError { min, max }) } else { Ok(Self { min, max }) }
    }

    /// The shortest time between two pages.
    #[must_use]
    pub fn min(self) -> Duration {
        self.min
    }

    /// The longest that a change waits for quiet.
    #[must_use]
    pub fn max(self) -> Duration {
        self.max
    }
}

/// What was published, and what has changed since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Paced {
    published: Option<(Digest, Duration)>,
    change: Option<Change>,
}

/// A page that is not published yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Change {
    digest: Digest,
    first: Duration,
    last: Duration,
}

impl Paced {
    /// This is the page now. Call it whenever a page was made: an equal one changes nothing, and one that went back
    /// to what is published leaves nothing to do.
    pub fn see(&mut self, page: Digest, now: Duration) {
        if self.published.is_some_and(|(published, _)| published == page) {
            self.change = None;
            return;
        }
        match &mut self.change {
            Some(change) if change.digest == page => {}
            Some(change) => {
                change.digest = page;
                change.last = now;
            }
            none => *none = Some(Change { digest: page, first: now, last: now }),
        }
    }

    /// This page was published, here or by another replica. What changed while it was on its way is still to do.
    pub fn publish(&mut self, page: Digest, now: Duration) {
        self.published = Some((page, now));
        self.change = self.change.filter(|change| change.digest != page);
    }

    /// When the page that was seen last may go out; none where it is published already.
    ///
    /// | the change came | it goes out |
    /// | --- | --- |
    /// | and nothing was published yet | at once |
    /// | when `min` since the last page was over | at once |
    /// | earlier | after `min` of quiet, but no later than `max` after the first of such changes, and never before `min` after the last page |
    #[must_use]
    pub fn due(&self, pace: Pace) -> Option<Duration> {
        let Change { first, last, .. } = self.change?;
        let Some((_, published)) = self.published else { return Some(first) };
        let soonest = published.saturating_add(pace.min);
        if first >= soonest {
            return Some(first);
        }
        let quiet = last.saturating_add(pace.min);
        let patience = first.saturating_add(pace.max);
        Some(quiet.min(patience).max(soonest))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn pace() -> Pace {
        Pace::new(ms(1000), ms(5000)).unwrap()
    }

    fn page(number: u64) -> Digest {
        Digest::of(&number.to_be_bytes())
    }

    /// When the last of these changes may go out after a page at `published`.
    fn due(published: Option<u64>, changes: &[u64]) -> Option<u64> {
        let mut paced = Paced::default();
        if let Some(at) = published {
            paced.publish(page(0), ms(at));
        }
        for (number, at) in (1..).zip(changes) {
            paced.see(page(number), ms(*at));
        }
        paced.due(pace()).map(|due| u64::try_from(due.as_millis()).unwrap())
    }

    #[test]
    fn without_a_change_nothing_is_due() {
        assert_eq!(due(None, &[]), None);
        assert_eq!(due(Some(0), &[]), None);
    }

    #[test]
    fn the_first_page_goes_at_once() {
        assert_eq!(due(None, &[70]), Some(70));
        assert_eq!(due(None, &[70, 80, 90]), Some(70));
    }

    #[test]
    fn a_change_after_quiet_goes_at_once() {
        assert_eq!(due(Some(0), &[1000]), Some(1000));
        assert_eq!(due(Some(0), &[7000, 7001]), Some(7000));
    }

    #[test]
    fn a_change_soon_after_a_page_waits_for_quiet() {
        assert_eq!(due(Some(0), &[1]), Some(1001));
        assert_eq!(due(Some(0), &[999]), Some(1999));
        assert_eq!(due(Some(0), &[100, 900, 1700]), Some(2700));
    }

    #[test]
    fn nothing_waits_longer_than_the_longest_wait() {
        let restless: Vec<u64> = (1..50).map(|step| step * 100).collect();
        assert_eq!(due(Some(0), &restless), Some(5100));
    }

    #[test]
    fn a_change_that_went_back_is_none() {
        let mut paced = Paced::default();
        paced.publish(page(0), ms(0));
        paced.see(page(1), ms(10));
        paced.see(page(0), ms(20));
        assert_eq!(paced.due(pace()), None);
        paced.see(page(1), ms(3000));
        assert_eq!(paced.due(pace()), Some(ms(3000)));
    }

    #[test]
    fn an_equal_page_is_no_change() {
        let mut paced = Paced::default();
        paced.publish(page(0), ms(0));
        for at in [10, 500, 900] {
            paced.see(page(1), ms(at));
        }
        assert_eq!(paced.due(pace()), Some(ms(1010)));
    }

    #[test]
    fn what_changed_while_a_page_was_on_its_way_is_still_to_do() {
        let mut paced = Paced::default();
        paced.see(page(1), ms(0));
        paced.see(page(2), ms(300));
        paced.publish(page(1), ms(400));
        assert_eq!(paced.due(pace()), Some(ms(1400)));
        paced.publish(page(2), ms(1400));
        assert_eq!(paced.due(pace()), None);
    }

    #[test]
    fn no_time_overflows() {
        let mut paced = Paced::default();
        paced.publish(page(0), Duration::MAX);
        paced.see(page(1), Duration::MAX);
        assert_eq!(paced.due(pace()), Some(Duration::MAX));
    }

    #[test]
    fn a_pace_that_nobody_can_keep_is_refused() {
        let error = Pace::new(ms(2), ms(1)).unwrap_err();
        assert!(error.to_string().contains("must not be shorter"), "{error}");
        assert!(Pace::new(ms(1), ms(1)).is_ok() && Pace::new(ms(0), ms(0)).is_ok());
    }

    proptest! {
        /// A world that changes at any times, and a publisher that acts exactly when something is due.
        #[test]
        fn pages_keep_the_pace_and_nothing_starves(
            steps in vec((0..3000_u64, 0..4_u64), 1..120),
            min in 0..2000_u64,
            more in 0..4000_u64,
        ) {
            let pace = Pace::new(ms(min), ms(min + more)).unwrap();
            let (mut paced, mut now) = (Paced::default(), Duration::ZERO);
            let (mut published, mut first, mut shown): (Option<Duration>, Option<Duration>, _) = (None, None, None);
            // The last step is far away: whatever is due by then went out.
            for (wait, number) in steps.into_iter().chain([(1_000_000, 9), (1_000_000, 9)]) {
                let next = now + ms(wait);
                while let Some(due) = paced.due(pace).filter(|due| *due <= next) {
                    prop_assert!(published.is_none_or(|at| due >= at + pace.min()), "too soon");
                    let latest = first.unwrap().max(published.unwrap_or_default());
                    let bound = (first.unwrap() + pace.max()).max(published.map_or(latest, |at| at + pace.min()));
                    prop_assert!(due <= bound, "too late");
                    let page = paced.change.unwrap().digest;
                    paced.publish(page, due);
                    (published, first, shown) = (Some(due), None, Some(page));
                }
                now = next;
                paced.see(page(number), now);
                first = if shown == Some(page(number)) { None } else { first.or(Some(now)) };
                prop_assert_eq!(paced.due(pace).is_some(), first.is_some());
            }
            prop_assert_eq!(shown, Some(page(9)), "the last state was never shown");
        }
    }
}
