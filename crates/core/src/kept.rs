//! What a node bears, and the part of it that is kept.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Label or annotation pairs, in the order of their keys.
pub type Pairs = BTreeMap<String, String>;

/// What a Node object bears, whole: the raw material that a policy's rule filters into [`Kept`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Content {
    /// `metadata.labels`.
    pub labels: Pairs,
    /// `metadata.annotations`.
    pub annotations: Pairs,
    /// `spec.taints`; empty where the watch carries metadata alone.
    #[serde(with = "crate::record::plain::taints")]
    pub taints: Vec<Taint>,
    /// `spec.unschedulable`: cordoned; false where the watch carries metadata alone.
    pub unschedulable: bool,
    /// Those of the labels that it was born with, until its mark says that they are its own.
    pub born: Pairs,
    /// It was born behind a gate, which is there until somebody opens it.
    pub gated: bool,
}

impl Content {
    /// What it bears of itself: without what it was born with.
    #[must_use]
    pub fn own(&self) -> Cow<'_, Self> {
        if self.born.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut own = Self { born: Pairs::new(), ..self.clone() };
        own.labels.retain(|key, _| !self.born.contains_key(key));
        Cow::Owned(own)
    }
}

/// The part of a node that the policy keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Kept {
    /// Kept labels.
    #[serde(default)]
    pub labels: Pairs,
    /// Kept annotations.
    #[serde(default, skip_serializing_if = "Pairs::is_empty")]
    pub annotations: Pairs,
    /// Kept taints, sorted by key and effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// Kept cordon.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unschedulable: bool,
}

/// A node taint. Key and effect together identify it, as they do for the API server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Taint {
    /// The taint's key.
    pub key: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
    /// The taint's value, often empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
}

impl Taint {
    /// Whether both name the same taint, whatever its value.
    #[must_use]
    pub fn same_slot(&self, other: &Self) -> bool {
        self.key == other.key && self.effect == other.effect
    }
}

impl Kept {
    /// Whether there is nothing here worth a record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { labels, annotations, taints, unschedulable } = self;
        labels.is_empty() && annotations.is_empty() && taints.is_empty() && !unschedulable
    }

    /// A short, stable digest: equal for equal kept state, in any binary and at any time.
    #[must_use]
    pub fn digest(&self) -> Digest {
        // serde_json writes maps in key order and taints are sorted, so equal state gives equal bytes.
        Digest::of(&serde_json::to_vec(self).unwrap_or_default())
    }
}

/// The first 16 bytes of a SHA-256, as the hexadecimal text that stands in annotations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest([u8; 16]);

impl Digest {
    /// The digest of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let full = Sha256::digest(bytes);
        let mut short = [0; 16];
        short.copy_from_slice(&full[..16]);
        Self(short)
    }

    /// A number made of it, to hash with.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// Reads back what [`std::fmt::Display`] wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let whole = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = whole.then(|| u128::from_str_radix(text, 16).ok())??;
        Some(Self(number.to_be_bytes()))
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Digest({self})")
    }
}
