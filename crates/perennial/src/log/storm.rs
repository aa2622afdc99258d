//! Keeps a storm from drowning the log: so many lines of one kind, then how many more there were.
//!
//! ```text
//! line ─> its kind's bucket ─┬─ something left: logged
//!                            └─ empty: counted ── every few seconds ─> "lines like this one were left out"
//! ```
//! A kind is one place in the code, so that a thousand restores do not hide the one error among them, and a thousand
//! errors are not hidden wholly either.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// How many lines of a kind may come at once.
const BURST: u32 = 100;
/// How many more a second.
const A_SECOND: u32 = 20;
/// How often it is told what was left out.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// What is left to one kind of line.
#[derive(Debug)]
struct Bucket {
    left: u32,
    filled: Instant,
    left_out: u64,
    level: Level,
    /// What the first line that was left out said.
    like: String,
}

impl Bucket {
    fn new(level: Level, now: Instant) -> Self {
        Self { left: BURST, filled: now, left_out: 0, level, like: String::new() }
    }

    /// Whether one more may be logged.
    fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.filled);
        let more = u32::try_from(passed.as_millis() * u128::from(A_SECOND) / 1000).unwrap_or(u32::MAX);
        if more > 0 {
            self.filled = now;
            self.left = self.left.saturating_add(more).min(BURST);
        }
        let some = self.left > 0;
        self.left = self.left.saturating_sub(1);
        some
    }
}

/// What was left out of one kind of line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub(super) level: Level,
    pub(super) like: String,
    pub(super) lines: u64,
}

/// All kinds of lines that were logged.
#[derive(Clone, Debug, Default)]
pub struct Storm(Arc<Mutex<HashMap<Identifier, Bucket>>>);

impl Storm {
    fn kinds(&self) -> MutexGuard<'_, HashMap<Identifier, Bucket>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was left out since this was last asked.
    pub(super) fn left_out(&self) -> Vec<LeftOut> {
        let mut kinds = self.kinds();
        let left_out = kinds.values_mut().filter(|bucket| bucket.left_out > 0).map(|bucket| LeftOut {
            level: bucket.level,
            like: std::mem::take(&mut bucket.like),
            lines: std::mem::take(&mut bucket.left_out),
        });
        left_out.collect()
    }

    /// Tells what was left out, at the level that it had.
    pub fn tell(&self) {
        for LeftOut { level, like, lines } in self.left_out() {
            match level {
                Level::ERROR => tracing::error!(left_out = lines, like, "lines like this one were left out"),
                Level::WARN => tracing::warn!(left_out = lines, like, "lines like this one were left out"),
                _ => tracing::info!(left_out = lines, like, "lines like this one were left out"),
            }
        }
    }

    /// Tells it every few seconds, for ever.
    pub async fn keep_telling(self) {
        loop {
            tokio::time::sleep(TELL_EVERY).await;
            self.tell();
        }
    }
}

impl<S: Subscriber> Layer<S> for Storm {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if metadata.target() == module_path!() {
            return true;
        }
        let now = Instant::now();
        let kind = || metadata.callsite();
        let mut kinds = self.kinds();
        let bucket = kinds.entry(kind()).or_insert_with(|| Bucket::new(*metadata.level(), now));
        if bucket.take(now) {
            return true;
        }
        if bucket.left_out > 0 {
            bucket.left_out += 1;
            return false;
        }
        // What a line says is worked out without the lock: that may take long, and may log something itself.
        drop(kinds);
        let mut like = String::new();
        event.record(&mut Message(&mut like));
        if let Some(bucket) = self.kinds().get_mut(&kind()) {
            if bucket.left_out == 0 {
                bucket.like = like;
            }
            bucket.left_out += 1;
        }
        false
    }
}

/// Reads what a line says.
struct Message<'a>(&'a mut String);

impl Visit for Message<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            *self.0 = format!("{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[test]
    fn a_burst_is_let_through_and_then_so_many_a_second() {
        let start = Instant::now();
        let mut bucket = Bucket::new(Level::INFO, start);
        let passed = (0..1000).filter(|_| bucket.take(start)).count();
        assert_eq!(passed, BURST as usize);
        let mut passed = 0;
        for millis in 0..10_000 {
            passed += usize::from(bucket.take(start + Duration::from_millis(millis)));
        }
        let fair = A_SECOND as usize * 10;
        assert!((fair - A_SECOND as usize..=fair).contains(&passed), "{passed}");
    }

    /// Something to log that looks whether others could log meanwhile.
    struct Looks<'a>(&'a Storm, &'a AtomicUsize);

    impl fmt::Debug for Looks<'_> {
        fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            let Self(storm, held_up) = self;
            held_up.fetch_add(usize::from(storm.0.try_lock().is_err()), Ordering::Relaxed);
            write!(out, "something long")
        }
    }

    #[test]
    fn nobody_waits_for_what_a_line_says_that_is_left_out() {
        let (storm, held_up) = (Storm::default(), AtomicUsize::new(0));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(storm.clone()), || {
            for _ in 0..BURST * 10 {
                tracing::warn!("{:?}", Looks(&storm, &held_up));
            }
        });
        let [LeftOut { level, like, lines }] = &storm.left_out()[..] else { panic!("one kind of line") };
        assert_eq!((*level, like.as_str()), (Level::WARN, "something long"));
        assert!(*lines > 0, "{lines}");
        assert_eq!(held_up.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_bucket_that_rested_holds_no_more_than_a_burst() {
        let start = Instant::now();
        let mut bucket = Bucket::new(Level::INFO, start);
        let later = start + Duration::from_hours(1_000_000);
        assert_eq!((0..1000).filter(|_| bucket.take(later)).count(), BURST as usize);
    }
}
