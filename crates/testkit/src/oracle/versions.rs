//! Sets of versions.

use std::fmt;

/// A set of versions, as ranges in ascending order that neither touch nor overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions(Vec<(u64, u64)>);

impl Versions {
    /// No version.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Every version.
    #[must_use]
    pub fn all() -> Self {
        Self(vec![(0, u64::MAX)])
    }

    /// Every version up to this one.
    #[must_use]
    pub fn up_to(last: u64) -> Self {
        Self(vec![(0, last)])
    }

    /// The versions after the first one, up to the second one.
    #[must_use]
    pub fn between(after: u64, last: u64) -> Self {
        if after < last { Self(vec![(after + 1, last)]) } else { Self::none() }
    }

    /// Whether this version is in the set.
    #[must_use]
    pub fn contains(&self, version: u64) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&version))
    }

    /// The versions that are in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut all: Vec<(u64, u64)> = self.0.iter().chain(&other.0).copied().collect();
        all.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::with_capacity(all.len());
        for (first, last) in all {
            match joined.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => joined.push((first, last)),
            }
        }
        Self(joined)
    }

    /// The versions that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let common = |(a, b): &(u64, u64), (c, d): &(u64, u64)| {
            let (first, last) = (*a.max(c), *b.min(d));
            (first <= last).then_some((first, last))
        };
        let ranges = self.0.iter().flat_map(|one| other.0.iter().filter_map(move |two| common(one, two)));
        Self(ranges.collect())
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |(first, last): &(u64, u64)| match *last {
            u64::MAX => format!("{first}.."),
            last => format!("{first}..={last}"),
        };
        let ranges: Vec<String> = self.0.iter().map(range).collect();
        if ranges.is_empty() { f.write_str("none") } else { f.write_str(&ranges.join(" ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_begins_after_its_first_version() {
        let some = Versions::between(3, 5);
        assert_eq!([3, 4, 5, 6].map(|version| some.contains(version)), [false, true, true, false]);
        assert_eq!(Versions::between(5, 5), Versions::none());
        assert!(Versions::up_to(5).contains(5) && !Versions::up_to(5).contains(6));
    }

    #[test]
    fn sets_are_joined_and_cut() {
        let two = Versions::between(10, 20).union(&Versions::between(30, 40));
        assert_eq!(two.to_string(), "11..=20 31..=40");
        assert_eq!(two.union(&Versions::between(20, 30)).to_string(), "11..=40");
        assert_eq!(two.intersection(&Versions::between(15, 35)).to_string(), "16..=20 31..=35");
        assert_eq!(two.intersection(&Versions::all()), two);
        assert_eq!(two.union(&Versions::all()), Versions::all());
        assert_eq!(two.intersection(&Versions::none()), Versions::none());
    }
}
