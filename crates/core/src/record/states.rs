//! The states that a record remembers, and what it means that one comes back.
//!
//! A state is what is kept together with the privileged labels that wait for their machine: while a node returns they
//! move from the one to the other and back, and nothing about the node has changed.
//!
//! **Churn** has one definition, and it stands here: what is kept of a node went back to the state that it had just
//! left (A, B, A). The keeper counts the writes that do so, the page those that it saw, and the command line
//! those among the states that the record remembers.

use std::borrow::Cow;

use jiff::Timestamp;

use super::{Incarnation, Previous, Record, WaitingKeys, all_labels};
use crate::kept::{Digest, Kept, Pairs};

/// A state that a record remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Past<'a> {
    /// Whose it was.
    pub incarnation: &'a Incarnation,
    /// What was kept.
    pub kept: &'a Kept,
    /// Privileged labels that waited for their machine.
    pub waiting: &'a WaitingKeys,
    /// Since when it held.
    pub captured_at: Timestamp,
    /// Digest of the policy that chose it, where that is known.
    pub policy: Option<Digest>,
}

impl<'a> Past<'a> {
    /// Every label of it, waiting ones too.
    #[must_use]
    pub fn labels(&self) -> Cow<'a, Pairs> {
        all_labels(self.kept, self.waiting)
    }

    /// Whether both are the same state, whoever bore it and whenever.
    #[must_use]
    pub fn is_same(&self, other: &Past<'_>) -> bool {
        let Kept { labels: _, annotations, taints, unschedulable } = self.kept;
        self.labels() == other.labels()
            && *annotations == other.kept.annotations
            && *taints == other.kept.taints
            && *unschedulable == other.kept.unschedulable
    }

    /// The same, to be remembered.
    pub(crate) fn to_previous(self) -> Previous {
        let Past { incarnation, kept, waiting, captured_at, policy } = self;
        Previous {
            incarnation: incarnation.clone(),
            kept: kept.clone(),
            waiting: waiting.clone(),
            captured_at,
            policy,
        }
    }
}

impl Record {
    /// What it says now, as a state.
    #[must_use]
    pub fn now(&self) -> Past<'_> {
        Past {
            incarnation: &self.incarnation,
            kept: &self.kept,
            waiting: &self.waiting,
            captured_at: self.held_since(),
            policy: Some(self.policy),
        }
    }

    /// All states that it remembers, the newest first: that is what it says now.
    pub fn states(&self) -> impl Iterator<Item = Past<'_>> {
        let before = self.previous.iter().map(|previous| {
            let Previous { incarnation, kept, waiting, captured_at, policy } = previous;
            Past { incarnation, kept, waiting, captured_at: *captured_at, policy: *policy }
        });
        std::iter::once(self.now()).chain(before)
    }

    /// Whether the write that made it what it is went back to the state that was just left: this is churn.
    #[must_use]
    pub fn went_back(&self) -> bool {
        let newest: Vec<_> = self.states().take(3).collect();
        // What only moved on with its content changed nothing.
        self.kept_since.is_none() && is_return(&newest)
    }

    /// How often it went back to the state that was just left, as far as it remembers.
    #[must_use]
    pub fn churn(&self) -> usize {
        let states: Vec<_> = self.states().collect();
        states.windows(3).filter(|three| is_return(three)).count()
    }
}

/// A, B, A: the newest of three states is the oldest, and not the one between.
fn is_return(newest: &[Past<'_>]) -> bool {
    matches!(newest, [now, left, before] if now.is_same(before) && !now.is_same(left))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Waiting;

    /// A record that held these values of one label, the newest last.
    fn held(values: &[&str]) -> Record {
        let (now, before) = values.split_last().expect("some");
        let mut record = super::super::tests::record();
        let kept = |value: &str| {
            let labels = Pairs::from([("node-role.kubernetes.io/db".to_owned(), value.to_owned())]);
            Kept { labels, ..Kept::default() }
        };
        record.kept = kept(now);
        let previous =
            before.iter().rev().map(|value| Previous { kept: kept(value), ..record.now().to_previous() });
        record.previous = previous.collect();
        record
    }

    #[test]
    fn only_a_return_to_the_state_that_was_just_left_counts() {
        for (values, back, times) in [
            (&["a"][..], false, 0),
            (&["a", "b"], false, 0),
            (&["a", "b", "a"], true, 1),
            (&["a", "b", "a", "b"], true, 2),
            (&["a", "b", "a", "c"], false, 1),
            (&["a", "b", "c", "a"], false, 0),
            (&["a", "b", "a", "b", "a", "b"], true, 4),
        ] {
            let record = held(values);
            assert_eq!((record.went_back(), record.churn()), (back, times), "{values:?}");
            assert_eq!(record.summary().went_back, back, "{values:?}");
        }
    }

    #[test]
    fn a_write_that_only_moves_on_with_its_content_did_not_go_back() {
        let record = Record { kept_since: Some(Timestamp::UNIX_EPOCH), ..held(&["a", "b", "a"]) };
        assert_eq!((record.went_back(), record.churn()), (false, 1));
    }

    #[test]
    fn a_label_that_waits_is_as_good_as_one_that_is_kept() {
        let mut record = held(&["a", "b", "a"]);
        for (key, value) in std::mem::take(&mut record.kept.labels) {
            record.waiting.insert(key, Waiting { value, provider_id: Some("m1".to_owned()) });
        }
        assert!(record.went_back());
        record.waiting.clear();
        assert!(!record.went_back());
    }
}
