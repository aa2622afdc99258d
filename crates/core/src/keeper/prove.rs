//! Proving an end from history: a bisection over versions, as arithmetic.
//!
//! Between the version at which a record named an incarnation and a later one at which it was gone, history
//! reads *expired … alive … gone*, each once and in this order. The last version at which it was alive is its
//! end. Whoever drives this asks [`Proof::next`] which version to read and tells it with [`Proof::answer`]
//! what it found.

use crate::record::Version;

/// A bisection under way. `T` is what a read of the living incarnation brings.
#[derive(Clone, Debug)]
pub struct Proof<T> {
    /// Alive or expired here.
    low: Version,
    /// Gone here.
    high: Version,
    /// The latest living state found, with nothing but `low` known below it.
    alive: Option<T>,
}

/// What history says at one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// The incarnation lived, and this is what it was.
    Alive(T),
    /// It was not there, or another one was.
    Gone,
    /// History does not reach back this far.
    Expired,
}

/// How a proof came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<T> {
    /// Its last state, and the version of its deletion.
    Proved {
        /// What it was at the last.
        last: T,
        /// The first version at which it was gone.
        deleted: Version,
    },
    /// Its end lies before what history still holds.
    Lost,
}

impl<T> Proof<T> {
    /// Starts between `from`, where the record says it lived, and `to`, where it is known to be gone.
    #[must_use]
    pub fn new(from: Version, to: Version) -> Self {
        // `from` itself has to be read: what the record holds may be older than the version it names.
        Self { low: from.saturating_sub(1), high: to, alive: None }
    }

    /// The version to read next, or `None` when it is settled.
    #[must_use]
    pub fn next(&self) -> Option<Version> {
        (self.high - self.low.min(self.high) > 1).then(|| self.low + (self.high - self.low) / 2)
    }

    /// Takes in what history said at the version that [`Proof::next`] named.
    pub fn answer(&mut self, at: Version, answer: Answer<T>) {
        match answer {
            Answer::Alive(state) => {
                self.low = self.low.max(at);
                self.alive = Some(state);
            }
            Answer::Gone => self.high = self.high.min(at),
            Answer::Expired => {
                // History moved on while we asked: what was found below `at` need not be the last.
                self.low = self.low.max(at);
                self.alive = None;
            }
        }
    }

    /// How it came out, once [`Proof::next`] has nothing more to ask.
    #[must_use]
    pub fn verdict(self) -> Verdict<T> {
        match self.alive {
            Some(last) => Verdict::Proved { last, deleted: self.high },
            None => Verdict::Lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Plays a history in which the incarnation was last alive at `last` and history begins at `begin`.
    fn play(from: Version, to: Version, last: Version, begin: Version) -> (Verdict<Version>, usize) {
        let mut proof = Proof::new(from, to);
        let mut reads = 0;
        while let Some(at) = proof.next() {
            reads += 1;
            let answer = match at {
                at if at < begin => Answer::Expired,
                at if at <= last => Answer::Alive(at),
                _ => Answer::Gone,
            };
            proof.answer(at, answer);
        }
        (proof.verdict(), reads)
    }

    #[test]
    fn an_end_right_after_the_record_is_found() {
        assert_eq!(play(10, 1_000_000, 10, 0).0, Verdict::Proved { last: 10, deleted: 11 });
    }

    #[test]
    fn an_end_just_before_it_was_missed_is_found() {
        assert_eq!(play(10, 1_000, 999, 0).0, Verdict::Proved { last: 999, deleted: 1_000 });
    }

    #[test]
    fn an_end_before_the_compaction_is_lost() {
        assert_eq!(play(10, 1_000, 400, 401).0, Verdict::Lost);
    }

    #[test]
    fn a_span_without_a_version_between_asks_once() {
        assert_eq!(play(10, 11, 10, 0), (Verdict::Proved { last: 10, deleted: 11 }, 1));
        assert_eq!(play(11, 10, 10, 0).1, 0, "an impossible span asks nothing");
    }

    proptest! {
        #[test]
        fn every_end_within_history_is_found_in_about_log2_reads(
            from in 0u64..1 << 40, span in 1u64..1 << 40, at in 0.0f64..1.0, expired in 0.0f64..1.2,
        ) {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
            let part = |share: f64| (span as f64 * share) as u64;
            let (last, begin, to) = (from + part(at).min(span - 1), from + part(expired), from + span);
            let (verdict, reads) = play(from, to, last, begin);
            if last >= begin {
                prop_assert_eq!(verdict, Verdict::Proved { last, deleted: last + 1 });
            } else {
                prop_assert_eq!(verdict, Verdict::Lost);
            }
            prop_assert!(reads <= 42, "{} reads", reads);
        }
    }
}
