//! The annotations of ours that a Node may bear: the mark, and a person's word.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::kept::Pairs;

/// The prefix of the mark's key; the installation's name follows.
pub const MARK_PREFIX: &str = "restored.perennial.dev/";
/// A person's word: leave this node alone (`"false"` ends a pause that the record remembers).
pub const PAUSE: &str = "perennial.dev/pause";
/// A person's word: forget this node.
pub const FORGET: &str = "perennial.dev/forget";
/// After the uid: the privileged keys that waited were given as well.
const FULL: &str = ",privileged";

/// Whether an incarnation got its own back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Mark {
    /// It did not, or the mark is another incarnation's.
    #[default]
    None,
    /// It did; privileged keys may still wait.
    Given,
    /// It did, and the privileged keys that waited for its identity too.
    Full,
}

impl Mark {
    /// Reads the mark of `installation` from a node's annotations. Only its own uid counts: a mark copied by
    /// a backup tool, a manifest or a second installation does not.
    #[must_use]
    pub fn read(annotations: &Pairs, installation: &str, uid: Uuid) -> Self {
        let value = annotations
            .iter()
            .find(|(key, _)| key.strip_prefix(MARK_PREFIX) == Some(installation))
            .map_or("", |(_, value)| value.as_str());
        let (text, full) = value.strip_suffix(FULL).map_or((value, false), |text| (text, true));
        match (text.parse::<Uuid>().ok() == Some(uid), full) {
            (false, _) => Self::None,
            (true, false) => Self::Given,
            (true, true) => Self::Full,
        }
    }

    /// The annotation that says this of `uid`; `None` says nothing.
    #[must_use]
    pub fn annotation(self, installation: &str, uid: Uuid) -> Option<(String, String)> {
        let key = format!("{MARK_PREFIX}{installation}");
        match self {
            Self::None => None,
            Self::Given => Some((key, uid.to_string())),
            Self::Full => Some((key, format!("{uid}{FULL}"))),
        }
    }
}

/// What a person asked for by annotation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hand {
    /// `perennial.dev/pause`: yes, no, or nothing said.
    pub pause: Option<bool>,
    /// `perennial.dev/forget`.
    pub forget: bool,
}

impl Hand {
    /// Reads it from a node's annotations. Any value but `false` means yes.
    #[must_use]
    pub fn read(annotations: &Pairs) -> Self {
        let said = |key| annotations.get(key).map(|value| value != "false");
        Self { pause: said(PAUSE), forget: said(FORGET) == Some(true) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: Uuid = Uuid::from_u128(7);

    #[test]
    fn a_mark_is_read_back_as_it_was_written() {
        for mark in [Mark::Given, Mark::Full] {
            let pairs = Pairs::from_iter(mark.annotation("perennial", UID));
            assert_eq!(Mark::read(&pairs, "perennial", UID), mark);
        }
    }

    #[test]
    fn a_mark_of_another_incarnation_or_installation_does_not_count() {
        let pairs = Pairs::from_iter(Mark::Full.annotation("perennial", Uuid::from_u128(8)));
        assert_eq!(Mark::read(&pairs, "perennial", UID), Mark::None);
        let pairs = Pairs::from_iter(Mark::Full.annotation("other", UID));
        assert_eq!(Mark::read(&pairs, "perennial", UID), Mark::None);
    }

    #[test]
    fn a_broken_mark_does_not_count() {
        for value in ["", "true", ",privileged", "00000000-0000-0000-0000-00000000000", "7"] {
            let pairs = Pairs::from([(format!("{MARK_PREFIX}perennial"), value.to_owned())]);
            assert_eq!(Mark::read(&pairs, "perennial", UID), Mark::None, "{value:?}");
        }
    }

    #[test]
    fn pause_and_forget_are_read_from_annotations() {
        let pairs = |key: &str, value: &str| Pairs::from([(key.to_owned(), value.to_owned())]);
        assert_eq!(Hand::read(&pairs(PAUSE, "")).pause, Some(true));
        assert_eq!(Hand::read(&pairs(PAUSE, "false")).pause, Some(false));
        assert_eq!(Hand::read(&Pairs::new()), Hand::default());
        assert!(Hand::read(&pairs(FORGET, "true")).forget);
        assert!(!Hand::read(&pairs(FORGET, "false")).forget);
    }
}
