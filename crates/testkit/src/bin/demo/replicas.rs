//! The replicas as the demo knows them: what it did to each, and what each last said of its own work.
//!
//! A replica that starts again counts from nothing, so what its former lives said is added up here. What it did
//! between its last word and a kill -9 nobody counts: these numbers show who does what, the verdict rests on none.

use std::collections::BTreeMap;

/// How one is, as far as we know: we start it, kill it, freeze it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Not started yet, or started and not ready.
    Starting,
    /// Ready.
    Up,
    /// Killed (SIGKILL).
    Killed,
    /// Frozen (SIGSTOP).
    Paused,
}

/// What replicas count of their work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Nodes that it gave labels back.
    pub(crate) restores: usize,
    /// Writes that it made in another's place.
    pub(crate) takeovers: usize,
    /// Writes that lost to another's.
    pub(crate) duplicates: usize,
    /// Ends that it proved from history.
    pub(crate) proofs: usize,
}

impl std::ops::Add for Work {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            restores: self.restores + other.restores,
            takeovers: self.takeovers + other.takeovers,
            duplicates: self.duplicates + other.duplicates,
            proofs: self.proofs + other.proofs,
        }
    }
}

impl std::ops::Sub for Work {
    type Output = Self;

    /// What was done since then.
    fn sub(self, then: Self) -> Self {
        Self {
            restores: self.restores.saturating_sub(then.restores),
            takeovers: self.takeovers.saturating_sub(then.takeovers),
            duplicates: self.duplicates.saturating_sub(then.duplicates),
            proofs: self.proofs.saturating_sub(then.proofs),
        }
    }
}

impl std::iter::Sum for Work {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, work| sum + work)
    }
}

/// What a replica says of itself at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Word {
    /// The share of the nodes for which it comes first, from 0 to 1.
    share: f64,
    work: Work,
}

impl Word {
    /// Picks what the demo shows from a replica's metrics.
    pub(crate) fn read(metrics: &BTreeMap<String, f64>) -> Self {
        let value = |name: &str| metrics.get(name).copied().unwrap_or_default();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "counters are whole and small"
        )]
        let count = |name: &str| value(name) as usize;
        let work = Work {
            restores: count("perennial_restores_total"),
            takeovers: count("perennial_member_takeovers_total"),
            duplicates: count("perennial_member_duplicates_total"),
            proofs: count("perennial_proofs_total{kind=\"proved\"}"),
        };
        Self { share: value("perennial_member_share"), work }
    }
}

/// One replica.
#[derive(Debug)]
pub(crate) struct Replica {
    pub(crate) name: String,
    pub(crate) state: State,
    pub(crate) kills: usize,
    pub(crate) pauses: usize,
    /// Its last word.
    word: Option<Word>,
    /// The last words of its former lives.
    former: Work,
}

impl Replica {
    /// The one with this place; it has not started yet.
    pub(crate) fn new(place: usize) -> Self {
        let name = format!("keeper-{}", place + 1);
        Self { name, state: State::Starting, kills: 0, pauses: 0, word: None, former: Work::default() }
    }

    /// It says something. What reaches us only when it is up no more is not counted: it may be said twice.
    pub(crate) fn said(&mut self, word: Word) {
        if self.state == State::Up {
            self.word = Some(word);
        }
    }

    /// It is killed.
    pub(crate) fn killed(&mut self) {
        self.former = self.work();
        // The share stands until somebody says otherwise.
        self.word = self.word.map(|word| Word { work: Work::default(), ..word });
        self.state = State::Killed;
        self.kills += 1;
    }

    /// It is frozen.
    pub(crate) fn paused(&mut self) {
        self.state = State::Paused;
        self.pauses += 1;
    }

    /// All its work, in all its lives.
    pub(crate) fn work(&self) -> Work {
        self.former + self.word.unwrap_or_default().work
    }

    /// Its last known share of the nodes, from 0 to 1.
    pub(crate) fn share(&self) -> Option<f64> {
        self.word.map(|word| word.share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(restores: usize) -> Word {
        Word { share: 0.5, work: Work { restores, takeovers: 1, ..Work::default() } }
    }

    #[test]
    fn what_former_lives_said_is_added_up() {
        let mut replica = Replica::new(1);
        assert_eq!((replica.name.as_str(), replica.share()), ("keeper-2", None));
        replica.state = State::Up;
        replica.said(word(7));
        replica.said(word(10));
        replica.killed();
        assert_eq!((replica.work().restores, replica.share()), (10, Some(0.5)));
        // Asked before it was killed, heard after.
        replica.said(word(11));
        assert_eq!(replica.work().restores, 10);
        replica.state = State::Up;
        replica.said(word(2));
        assert_eq!((replica.work().restores, replica.work().takeovers, replica.kills), (12, 2, 1));
    }

    #[test]
    fn metrics_are_read_and_those_that_are_not_there_count_nothing() {
        let metrics = [("perennial_member_share", 0.25), ("perennial_restores_total", 3.0)];
        let metrics = metrics.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
        let work = Work { restores: 3, ..Work::default() };
        assert_eq!(Word::read(&metrics), Word { share: 0.25, work });
    }
}
