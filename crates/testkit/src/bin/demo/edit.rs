//! What people do to labels: one change to one node.

use std::collections::BTreeMap;

use rand::{Rng, seq::IndexedRandom as _};

/// Labels by key.
pub(crate) type Labels = BTreeMap<String, String>;

const TEAMS: [&str; 6] = ["search", "payments", "checkout", "recommendations", "logistics", "platform"];
const TIERS: [&str; 3] = ["gold", "silver", "bronze"];
const WINDOWS: [&str; 4] = ["sun-03h", "tue-04h", "wed-02h", "sat-05h"];
const EVENTS: [&str; 3] = ["black-friday", "quarter-end", "load-test"];
/// What is put on a node for a while, and taken off again.
const PASSING: [&str; 3] = ["example.com/reserved-for", "example.com/incident", "kernel-test"];

/// A label that is set, or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) key: &'static str,
    pub(crate) value: Option<String>,
}

impl Edit {
    /// Something that somebody would do to a node with these labels. It always changes something.
    pub(crate) fn choose(labels: &Labels, random: &mut impl Rng) -> Self {
        let passing: Vec<&'static str> =
            PASSING.into_iter().filter(|key| labels.contains_key(*key)).collect();
        if let Some(key) = passing.choose(random)
            && random.random_bool(0.5)
        {
            return Self { key, value: None };
        }
        loop {
            let (key, value) = setting(random);
            if labels.get(key) != Some(&value) {
                return Self { key, value: Some(value) };
            }
        }
    }

    /// Does the same to what is known.
    pub(crate) fn apply(&self, labels: &mut Labels) {
        match &self.value {
            Some(value) => labels.insert(self.key.to_owned(), value.clone()),
            None => labels.remove(self.key),
        };
    }
}

fn setting(random: &mut impl Rng) -> (&'static str, String) {
    let one_of = |values: &[&str], random: &mut _| (*values.choose(random).unwrap_or(&"")).to_owned();
    match random.random_range(0..7) {
        0 => ("team", one_of(&TEAMS, random)),
        1 => ("example.com/tier", one_of(&TIERS, random)),
        2 => ("example.com/cost-center", format!("cc-{}", random.random_range(4_000..4_100))),
        3 => ("example.com/maintenance-window", one_of(&WINDOWS, random)),
        4 => ("example.com/reserved-for", one_of(&EVENTS, random)),
        5 => ("example.com/incident", format!("inc-{}", random.random_range(1_000..10_000))),
        _ => ("kernel-test", ["", "canary", "next"][random.random_range(0..3)].to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use perennial_testkit::company_labels;
    use rand::{SeedableRng as _, rngs::StdRng};

    use super::*;

    #[test]
    fn every_edit_changes_something_and_all_kinds_occur() {
        let (mut random, mut labels) = (StdRng::seed_from_u64(1), company_labels(7));
        let (mut added, mut removed, mut changed) = (0, 0, 0);
        for _ in 0..500 {
            let before = labels.clone();
            Edit::choose(&labels, &mut random).apply(&mut labels);
            assert_ne!(before, labels);
            match labels.len().cmp(&before.len()) {
                std::cmp::Ordering::Greater => added += 1,
                std::cmp::Ordering::Less => removed += 1,
                std::cmp::Ordering::Equal => changed += 1,
            }
        }
        assert!(added > 50 && removed > 50 && changed > 100, "{added} {removed} {changed}");
    }

    #[test]
    fn the_same_seed_makes_the_same_choices() {
        let edits = |seed| {
            let mut random = StdRng::seed_from_u64(seed);
            (0..20).map(|index| Edit::choose(&company_labels(index), &mut random)).collect::<Vec<_>>()
        };
        assert_eq!(edits(3), edits(3));
        assert_ne!(edits(3), edits(4));
    }
}
