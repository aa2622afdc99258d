//! The index of a history: which versions there are, newest first.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::name::Name;

/// What this version writes, and the newest that it reads.
const SCHEMA: u32 = 1;

/// Which versions there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Index {
    page: String,
    /// Newest first.
    versions: Vec<Version>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) name: Name,
    /// How many endpoints it lists, if that is known.
    pub(super) endpoints: Option<usize>,
}

/// The index as it is written.
#[derive(Serialize, Deserialize)]
struct Shape {
    schema: u32,
    page: String,
    versions: Vec<VersionShape>,
}

#[derive(Serialize, Deserialize)]
struct VersionShape {
    path: String,
    /// For those who read it; the path says it, too.
    at: Timestamp,
    digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    endpoints: Option<usize>,
}

impl Index {
    pub(super) fn new(page: &str) -> Self {
        Self { page: page.to_owned(), versions: Vec::new() }
    }

    /// The key of the page that this is the history of.
    pub(super) fn page(&self) -> &str {
        &self.page
    }

    pub(super) fn versions(&self) -> &[Version] {
        &self.versions
    }

    /// Reads an index; `None` if it is none that we can read. Versions that bear no name of ours are left out of it.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let Shape { schema, page, versions } = serde_json::from_slice(bytes).ok()?;
        if schema > SCHEMA {
            return None;
        }
        let mut index = Self::new(&page);
        for VersionShape { path, endpoints, at: _, digest: _ } in versions {
            if let Some(name) = Name::parse(&path) {
                index.add(&name, endpoints);
            }
        }
        Some(index)
    }

    pub(super) fn to_json(&self) -> String {
        let version = |Version { name, endpoints }: &Version| VersionShape {
            path: name.to_string(),
            at: name.at(),
            digest: name.digest().to_owned(),
            endpoints: *endpoints,
        };
        let versions = self.versions.iter().map(version).collect();
        let shape = Shape { schema: SCHEMA, page: self.page.clone(), versions };
        serde_json::to_string_pretty(&shape).unwrap_or_default()
    }

    /// Adds a version in its place, once.
    pub(super) fn add(&mut self, name: &Name, endpoints: Option<usize>) {
        match self.versions.binary_search_by(|version| name.cmp(&version.name)) {
            Ok(known) => self.versions[known].endpoints = self.versions[known].endpoints.or(endpoints),
            Err(place) => self.versions.insert(place, Version { name: name.clone(), endpoints }),
        }
    }

    /// Drops what is over the limit, and answers what that is. The newest one stays in any case.
    pub(super) fn limit(&mut self, count: usize, age: Duration, now: Timestamp) -> Vec<Name> {
        let oldest = now.checked_sub(age).unwrap_or(Timestamp::MIN);
        let young = self.versions.iter().take_while(|version| version.name.at() >= oldest).count();
        let kept = young.min(count).max(1).min(self.versions.len());
        self.versions.split_off(kept).into_iter().map(|version| version.name).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(second: i64) -> Name {
        let at = Timestamp::from_second(second).unwrap();
        let text = at.strftime("%Y/%m/%d/%Y-%m-%dT%H-%M-%S.000Z-0a1b2c3d.html").to_string();
        Name::parse(&text).unwrap()
    }

    fn index(seconds: &[i64]) -> Index {
        let mut index = Index::new("index.html");
        for second in seconds {
            index.add(&name(*second), None);
        }
        index
    }

    fn seconds(index: &Index) -> Vec<i64> {
        index.versions().iter().map(|version| version.name.at().as_second()).collect()
    }

    #[test]
    fn versions_are_newest_first_and_there_once() {
        assert_eq!(seconds(&index(&[2, 3, 1, 3, 2])), [3, 2, 1]);
    }

    #[test]
    fn the_limit_is_by_count_and_by_age_and_never_the_newest() {
        let now = Timestamp::from_second(10).unwrap();
        for (count, age, kept) in [
            (10, 100, vec![9, 5, 1]),
            (2, 100, vec![9, 5]),
            (10, 5, vec![9, 5]),
            (10, 4, vec![9]),
            (1, 100, vec![9]),
            (10, 0, vec![9]),
        ] {
            let mut index = index(&[1, 5, 9]);
            let over = index.limit(count, Duration::from_secs(age), now);
            assert_eq!(seconds(&index), kept, "{count} {age}");
            assert_eq!(over.len() + kept.len(), 3);
        }
        assert_eq!(index(&[]).limit(1, Duration::ZERO, now), []);
    }

    #[test]
    fn what_is_no_index_is_told_from_one() {
        for broken in ["", "{}", "[]", "null", "<html>", r#"{"schema":1,"page":"p"}"#, r#"{"schema":"1"}"#] {
            assert_eq!(Index::parse(broken.as_bytes()), None, "{broken}");
        }
        assert_eq!(Index::parse(br#"{"schema":2,"page":"p","versions":[]}"#), None, "of a newer version");
        assert_eq!(Index::parse(br#"{"schema":1,"page":"p","versions":[]}"#), Some(Index::new("p")));
    }

    #[test]
    fn a_version_that_bears_no_name_of_ours_is_left_out() {
        let text = index(&[1]).to_json().replace("1970/01/01/1970-01-01T00", "../../1970-01-01T00");
        assert!(text.contains(".."), "{text}");
        assert_eq!(Index::parse(text.as_bytes()), Some(Index::new("index.html")));
    }

    proptest! {
        #[test]
        fn text_and_back(seconds in prop::collection::vec((0i64..100_000, prop::option::of(0usize..9)), 0..20)) {
            let mut index = Index::new("a \"page\"");
            for (second, endpoints) in seconds {
                index.add(&name(second), endpoints);
            }
            prop_assert_eq!(Index::parse(index.to_json().as_bytes()), Some(index));
        }

        #[test]
        fn no_bytes_break_anything(bytes: Vec<u8>) {
            let _ = Index::parse(&bytes);
        }
    }
}
