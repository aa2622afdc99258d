//! The time, by the API server's clock.
//!
//! Records outlive the replica that wrote them, and nodes bear creation times of the API server. So whatever is compared with
//! either, or written for other replicas, is timed by the API server: by the `Date` of its answers, which has a
//! resolution of a second. In between the monotonic clock counts, which nobody sets.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderMap;
use http::header::DATE;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use tracing::{info, warn};

/// How far an answer may differ from the time that is known: its fraction of a second is cut off, and several API servers
/// are never quite in step. Following every answer would have the time jump to and fro.
const TOLERANCE: Duration = Duration::from_secs(2);

/// The API server's clock, as far as its answers tell; this machine's until one does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    anchor: Option<Anchor>,
    /// What the last answer said, if it contradicts the anchor. The next one decides.
    contradiction: Option<Anchor>,
}

/// A moment of the monotonic clock, and the time it was then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Anchor {
    at: Instant,
    time: Timestamp,
}

/// What an answer says about the time.
#[derive(Clone, Copy, Debug)]
struct Sample {
    date: Timestamp,
    sent: Instant,
    answered: Instant,
}

impl Clock {
    /// The time.
    pub(crate) fn now(&self) -> Timestamp {
        match self.known().anchor {
            Some(anchor) => anchor.time_at(Instant::now()),
            None => local(),
        }
    }

    /// Takes note of an answer to a request that was sent then.
    pub(super) fn answered(&self, headers: &HeaderMap, sent: Instant) {
        let date = headers.get(DATE).and_then(|date| DateTimeParser::new().parse_timestamp(date).ok());
        if let Some(date) = date {
            self.known().learn(Sample { date, sent, answered: Instant::now() }, local());
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// One answer that contradicts those before it may be a proxy's mistake: it takes two in a row.
    fn learn(&mut self, sample: Sample, local: Timestamp) {
        let anchor = self.anchor.unwrap_or(Anchor { at: sample.answered, time: local });
        if sample.agrees_with(anchor) {
            // From here on it does not matter whether somebody sets this machine's clock.
            *self = Self { anchor: Some(anchor), contradiction: None };
            return;
        }
        let seconds = anchor.time_at(sample.answered).duration_since(sample.date).as_secs();
        if self.anchor.is_none() {
            warn!(seconds, "this machine's clock differs from the API server's, which is used instead");
        } else if self.contradiction.is_some_and(|other| sample.agrees_with(other)) {
            info!(seconds, "the API server's clock was set: its new time is used");
        } else {
            self.contradiction = Some(sample.anchor());
            return;
        }
        *self = Self { anchor: Some(sample.anchor()), contradiction: None };
    }
}

impl Anchor {
    fn time_at(&self, at: Instant) -> Timestamp {
        let time = match at.checked_duration_since(self.at) {
            Some(later) => self.time.checked_add(later),
            None => self.time.checked_sub(self.at - at),
        };
        time.unwrap_or(self.time)
    }
}

impl Sample {
    fn anchor(self) -> Anchor {
        Anchor { at: self.answered, time: self.date }
    }

    /// Whether the anchor may be right. The answer was dated some time after its request was sent: one that took long,
    /// as all do after this process was frozen, contradicts little.
    fn agrees_with(self, anchor: Anchor) -> bool {
        let by_anchor = |at| anchor.time_at(at).duration_since(self.date);
        let tolerance = jiff::SignedDuration::try_from(TOLERANCE).unwrap_or_default();
        by_anchor(self.sent) <= tolerance && by_anchor(self.answered) >= -tolerance
    }
}

/// The clock of this machine.
#[expect(clippy::disallowed_methods, reason = "until an answer says better")]
fn local() -> Timestamp {
    Timestamp::now()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use jiff::SignedDuration;

    use super::*;

    const HOUR: SignedDuration = SignedDuration::from_hours(1);
    const LOCAL: Timestamp = Timestamp::UNIX_EPOCH;

    /// A day on which answers come.
    struct Day {
        began: Instant,
        known: Known,
    }

    impl Day {
        fn new() -> Self {
            Self { began: Instant::now(), known: Known::default() }
        }

        /// The time so many seconds after the day began, as an offset from the local clock's time then.
        fn offset(&self, seconds: u64) -> SignedDuration {
            let at = self.began + Duration::from_secs(seconds);
            self.known.anchor.unwrap().time_at(at).duration_since(LOCAL)
                - SignedDuration::try_from(Duration::from_secs(seconds)).unwrap()
        }

        /// An answer at this second, which took so long, by a server whose clock is off by this much.
        fn answer(&mut self, second: u64, took: u64, off: SignedDuration) {
            let at = |second| self.began + Duration::from_secs(second);
            let passed = SignedDuration::try_from(Duration::from_secs(second)).unwrap();
            let sample = Sample { date: LOCAL + passed + off, sent: at(second), answered: at(second + took) };
            self.known
                .learn(sample, LOCAL + SignedDuration::try_from(Duration::from_secs(second + took)).unwrap());
        }
    }

    fn seconds(seconds: i64) -> SignedDuration {
        SignedDuration::from_secs(seconds)
    }

    #[test]
    fn the_first_answer_counts_however_wrong_the_local_clock_is() {
        for off in [HOUR * 24 * 40, -HOUR * 2, seconds(5)] {
            let mut day = Day::new();
            day.answer(0, 0, off);
            assert_eq!((day.offset(0), day.offset(3600)), (off, off));
        }
    }

    #[test]
    fn answers_that_differ_by_a_second_do_not_move_the_time() {
        let mut day = Day::new();
        day.answer(0, 0, HOUR);
        for (second, off) in [(1, -1), (2, 1), (3, -2), (4, -1), (5, 2), (6, 2)] {
            day.answer(second, 0, HOUR + seconds(off));
            assert_eq!(day.offset(second), HOUR);
        }
        let mut day = Day::new();
        day.answer(0, 0, seconds(-1));
        assert_eq!(day.offset(0), SignedDuration::ZERO, "the local clock is finer than an answer");
    }

    #[test]
    fn one_answer_that_contradicts_the_others_is_not_believed_but_two_in_a_row_are() {
        for jump in [HOUR * 24 * 365, -HOUR * 24 * 2, seconds(10)] {
            let mut day = Day::new();
            day.answer(0, 0, HOUR);
            day.answer(1, 0, HOUR + jump);
            day.answer(2, 0, HOUR);
            day.answer(3, 0, HOUR + jump);
            assert_eq!(day.offset(3), HOUR);
            day.answer(4, 0, HOUR - jump);
            assert_eq!(day.offset(4), HOUR, "the two do not agree");
            day.answer(5, 0, HOUR + jump);
            day.answer(600, 0, HOUR + jump);
            assert_eq!(day.offset(600), HOUR + jump);
        }
    }

    #[test]
    fn an_answer_that_took_long_contradicts_nothing_that_it_may_agree_with() {
        let mut day = Day::new();
        day.answer(0, 0, HOUR);
        // They are dated when their requests came, or when they went out, a minute later.
        for off in [0, 60] {
            for second in [1, 2] {
                day.answer(second, 60, HOUR + seconds(off));
                assert_eq!(day.offset(second), HOUR);
            }
        }
        day.answer(200, 60, HOUR + seconds(90));
        day.answer(300, 60, HOUR + seconds(90));
        assert_eq!(day.offset(300), HOUR + seconds(30), "no later than the answer came");
    }

    #[test]
    fn answers_without_a_usable_date_leave_the_local_clock() {
        let clock = Clock::default();
        for date in [None, Some(""), Some("yesterday"), Some("Fri, 20 Nov 2026 25:51:11 GMT")] {
            let header = date.map(|date| (DATE, HeaderValue::from_static(date)));
            clock.answered(&header.into_iter().collect(), Instant::now());
            assert_eq!(clock.known().anchor, None, "{date:?}");
        }
        let off = clock.now().duration_since(local());
        assert!(off.abs() < HOUR, "{off:#}");
    }

    #[test]
    fn an_answers_date_is_read() {
        let clock = Clock::default();
        let date = HeaderValue::from_static("Fri, 20 Nov 2099 00:51:11 GMT");
        clock.answered(&[(DATE, date)].into_iter().collect(), Instant::now());
        let passed = clock.now().duration_since("2099-11-20T00:51:11Z".parse().unwrap());
        assert!(!passed.is_negative() && passed < HOUR, "{passed:#}");
    }
}
