//! What was said of keys before. A fleet bears few keys on many nodes: each is matched against the globs once.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// More keys than these are matched every time.
const MOST: usize = 1000;

/// Whether each of some keys is kept. Two of them never differ: they say what the globs say.
#[derive(Default)]
pub(super) struct Verdicts(Mutex<BTreeMap<Box<str>, bool>>);

impl Verdicts {
    /// What was said of this key, or what is found out now.
    pub(super) fn recall(&self, key: &str, find_out: impl FnOnce() -> bool) -> bool {
        // Whoever panicked in between left nothing half done.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(verdict) = known.get(key) {
            return *verdict;
        }
        let verdict = find_out();
        if known.len() < MOST {
            known.insert(key.into(), verdict);
        }
        verdict
    }
}

impl Clone for Verdicts {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Verdicts {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Verdicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verdicts")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_asked_about_once_and_too_many_every_time() {
        let verdicts = Verdicts::default();
        for number in 0..=MOST {
            assert!(verdicts.recall(&number.to_string(), || true));
        }
        assert!(verdicts.recall("0", || unreachable!()));
        assert!(!verdicts.recall(&MOST.to_string(), || false), "it was not remembered");
        assert!(!verdicts.clone().recall("0", || false), "a copy may belong to other globs");
    }
}
