//! Events that change nothing but an object's version: heartbeats, by far the most of all.
//!
//! They are recognised by the bytes that matter, before anything is made of them, and told together now and then:
//! nobody waits for a version alone. Their order among all others is kept.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use perennial_core::record::Version;
use tokio::time::Instant;
use uuid::Uuid;

/// How long they are held back at most.
const HELD: Duration = Duration::from_millis(250);
/// How many at most.
const MANY: usize = 1000;

/// What a glance at an event shows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Glance<'a> {
    /// Whose it is.
    pub(crate) name: Cow<'a, str>,
    pub(crate) uid: Uuid,
    pub(crate) version: Version,
    /// All that could matter to somebody, as it was sent: hashed.
    pub(crate) matters: u64,
}

/// An object that is as it was, at another version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unchanged {
    pub(crate) name: Box<str>,
    pub(crate) uid: Uuid,
    pub(crate) version: Version,
}

/// What objects were when they were last told of, and which have not changed since.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    hasher: RandomState,
    /// By the hash of a name, that of what matters. Two names that share one are told of every time.
    last: HashMap<u64, u64>,
    held: Vec<Unchanged>,
    due: Option<Instant>,
}

impl Quiet {
    /// Holds it back if nothing that matters changed since it was last told of; otherwise it is to be told.
    pub(super) fn holds(&mut self, glance: &Glance<'_>) -> bool {
        let (name, now) = self.hashes(glance);
        if self.last.get(&name) != Some(&now) {
            return false;
        }
        let Glance { name, uid, version, matters: _ } = glance;
        self.held.push(Unchanged { name: name.as_ref().into(), uid: *uid, version: *version });
        self.due.get_or_insert_with(|| Instant::now() + HELD);
        true
    }

    /// It is told of as it is now.
    pub(super) fn told(&mut self, glance: &Glance<'_>) {
        let (name, now) = self.hashes(glance);
        self.last.insert(name, now);
    }

    /// What is to be hashed with.
    pub(super) fn hasher(&self) -> &RandomState {
        &self.hasher
    }

    fn hashes(&self, glance: &Glance<'_>) -> (u64, u64) {
        let Glance { name, uid, version: _, matters } = glance;
        (self.hasher.hash_one(name.as_ref()), self.hasher.hash_one((name.as_ref(), uid, matters)))
    }

    /// When those that are held back are to be told.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whether that is now. A stream that never pauses does not come to wait for it.
    pub(super) fn is_due(&self) -> bool {
        self.held.len() >= MANY || self.due.is_some_and(|due| due <= Instant::now())
    }

    /// Those that were held back.
    pub(super) fn take(&mut self) -> Vec<Unchanged> {
        self.due = None;
        std::mem::take(&mut self.held)
    }

    /// It is gone.
    pub(super) fn forget(&mut self, name: &str) {
        self.last.remove(&self.hasher.hash_one(name));
    }

    /// Everything is listed anew, and may be anything.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glance(name: &str, version: Version, labels: &'static str) -> Glance<'static> {
        let name = name.to_owned().into();
        Glance { name, uid: Uuid::from_u128(1), version, matters: labels.len() as u64 }
    }

    impl Quiet {
        /// Whether it is held back; it is told otherwise.
        fn hears(&mut self, glance: &Glance<'_>) -> bool {
            let held = self.holds(glance);
            if !held {
                self.told(glance);
            }
            held
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_as_it_was_is_told_later_and_together() {
        let mut quiet = Quiet::default();
        assert!(!quiet.hears(&glance("a", 1, "x")));
        assert_eq!(quiet.due(), None);
        assert!(quiet.hears(&glance("a", 2, "x")));
        tokio::time::advance(HELD / 2).await;
        assert!(quiet.hears(&glance("a", 3, "x")));
        assert_eq!((quiet.due(), quiet.is_due()), (Some(Instant::now() + HELD / 2), false));
        tokio::time::advance(HELD / 2).await;
        assert!(quiet.is_due());
        let versions: Vec<Version> = quiet.take().into_iter().map(|one| one.version).collect();
        assert_eq!(versions, [2, 3]);
        assert_eq!((quiet.due(), quiet.is_due(), quiet.take()), (None, false, vec![]));
    }

    #[test]
    fn what_changed_is_told_also_when_it_changes_back() {
        let mut quiet = Quiet::default();
        assert!(!quiet.hears(&glance("a", 1, "x")));
        assert!(!quiet.hears(&glance("a", 2, "yy")));
        assert!(!quiet.hears(&glance("a", 3, "x")));
        let another_life = Glance { uid: Uuid::from_u128(2), ..glance("a", 4, "x") };
        assert!(!quiet.hears(&another_life));
        assert!(!quiet.hears(&glance("b", 5, "x")));
    }

    #[tokio::test]
    async fn after_a_list_or_an_end_nothing_is_known() {
        let mut quiet = Quiet::default();
        assert!(!quiet.hears(&glance("a", 1, "x")));
        quiet.forget("a");
        assert!(!quiet.hears(&glance("a", 2, "x")));
        assert!(quiet.hears(&glance("a", 3, "x")));
        quiet.clear();
        assert_eq!(quiet.take(), []);
        assert!(!quiet.hears(&glance("a", 4, "x")));
    }
}
