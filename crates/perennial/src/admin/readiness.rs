//! Readiness by handles: each part that must be ready before the process is holds one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Whether every part is ready. Clones share one state.
#[derive(Clone, Default)]
pub struct Readiness {
    /// The parts by name, and whether each is ready.
    parts: Arc<Mutex<BTreeMap<&'static str, bool>>>,
    /// What has to be so besides, now.
    conditions: Vec<(&'static str, Condition)>,
}

type Condition = Arc<dyn Fn() -> bool + Send + Sync>;

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

    /// The same, ready only while this is so, too. It is looked at whenever somebody asks.
    #[must_use]
    pub fn only_while(
        mut self,
        name: &'static str,
        holds: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        self.conditions.push((name, Arc::new(holds)));
        self
    }

    /// The parts that are not ready yet, and the conditions that do not hold now.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = parts.iter().filter(|(_, ready)| !**ready).map(|(name, _)| *name);
        let conditions = self.conditions.iter().filter(|(_, holds)| !holds()).map(|(name, _)| *name);
        parts.chain(conditions).collect()
    }

    fn set(&self, name: &'static str, ready: bool) {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).insert(name, ready);
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Readiness").field("missing", &self.missing()).finish_non_exhaustive()
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
    fn ready_only_while_every_condition_holds() {
        let holds = Arc::new(std::sync::atomic::AtomicBool::new(true));
        let asked = holds.clone();
        let now = move || asked.load(std::sync::atomic::Ordering::Relaxed);
        let readiness = Readiness::default().only_while("watches", now);
        assert!(readiness.missing().is_empty());
        holds.store(false, std::sync::atomic::Ordering::Relaxed);
        let keeper = readiness.handle("keeper");
        assert_eq!(readiness.missing(), ["keeper", "watches"]);
        keeper.mark();
        assert_eq!(readiness.missing(), ["watches"]);
    }

    #[test]
    fn nothing_to_wait_for_is_ready() {
        assert!(Readiness::default().missing().is_empty());
    }
}
