//! Counts how often what is recorded of a node goes back to what it was: something keeps setting old values.
//!
//! Every replica sees every record change, so each counts all of them, whoever wrote them. What it takes is six bytes
//! a node.

use perennial_core::kept::Digest;

/// How often a record went back and forth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Churn {
    times: u16,
    /// A few bits of what was recorded before the present state; 0 where nothing was.
    before: u32,
}

impl Churn {
    /// How often it did, since this replica began to watch.
    pub(crate) fn times(self) -> u16 {
        self.times
    }

    /// The record held `from`, and holds `to` now.
    pub(crate) fn changed(&mut self, from: Digest, to: Digest) {
        if from == to {
            return;
        }
        if self.before == bits(to) {
            self.times = self.times.saturating_add(1);
        }
        self.before = bits(from);
    }
}

/// One in four thousand million is taken for another: enough to count by.
fn bits(digest: Digest) -> u32 {
    u32::try_from(digest.number() >> 32).unwrap_or_default().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_return_to_the_state_before_counts() {
        let [a, b, c] = ["a", "b", "c"].map(|text| Digest::of(text.as_bytes()));
        let mut churn = Churn::default();
        let mut held = a;
        for (to, times) in [(a, 0), (b, 0), (b, 0), (c, 0), (b, 1), (c, 2), (c, 2), (a, 2), (b, 2)] {
            churn.changed(held, to);
            held = to;
            assert_eq!(churn.times(), times);
        }
    }
}
