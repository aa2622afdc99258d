//! Readiness by handles: each part that must be ready before the process is holds one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Whether every part is ready. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    /// The parts by name, and whether each is ready.
    parts: Arc<Mutex<BTreeMap<&'static str, bool>>>,
}

/// A part's promise to become ready.
///
/// Dropped unmarked, the part stays missing: one that died on its way must not pass for ready.
#[derive(Debug)]
#[must_use = "a part is ready once its handle is marked"]
pub struct ReadyHandle {
    readiness: Readiness,
    name: &'static str,
}

impl Readiness {
    /// A handle for a part: from now on the process is ready only when the part is.
    pub fn handle(&self, name: &'static str) -> ReadyHandle {
        self.set(name, false);
        ReadyHandle { readiness: self.clone(), name }
    }

    /// The parts that are not ready yet.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.iter().filter(|(_, ready)| !**ready).map(|(name, _)| *name).collect()
    }

    fn set(&self, name: &'static str, ready: bool) {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).insert(name, ready);
    }
}

impl ReadyHandle {
    /// The part is ready. Saying it again changes nothing.
    pub fn mark(&self) {
        self.readiness.set(self.name, true);
    }

    /// The part is not ready any more.
    pub fn unmark(&self) {
        self.readiness.set(self.name, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_once_all_are_marked() {
        let readiness = Readiness::default();
        let (keeper, lister) = (readiness.handle("keeper"), readiness.handle("lister"));
        assert_eq!(readiness.missing(), ["keeper", "lister"]);
        lister.mark();
        assert_eq!(readiness.missing(), ["keeper"]);
        keeper.mark();
        keeper.mark();
        assert!(readiness.missing().is_empty());
    }

    #[test]
    fn a_part_that_died_on_its_way_stays_missing_and_one_that_was_ready_stays_ready() {
        let readiness = Readiness::default();
        drop(readiness.handle("keeper"));
        let lister = readiness.handle("lister");
        lister.mark();
        drop(lister);
        assert_eq!(readiness.missing(), ["keeper"]);
    }

    #[test]
    fn readiness_can_be_taken_back() {
        let readiness = Readiness::default();
        let keeper = readiness.handle("keeper");
        keeper.mark();
        keeper.unmark();
        assert_eq!(readiness.missing(), ["keeper"]);
    }

    #[test]
    fn nothing_to_wait_for_is_ready() {
        assert!(Readiness::default().missing().is_empty());
    }
}
