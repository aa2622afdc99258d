//! One rule: which nodes it speaks of, what it keeps of them and how that is given back.

use super::defaults::{self, Builtin};
use super::patterns::Patterns;
use super::selector::Selector;
use super::verdicts::Verdicts;
use crate::kept::{Content, Kept, Pairs, Taint};

/// One rule of a [`Policy`](super::Policy), checked and compiled.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    pub(super) name: String,
    pub(super) selector: Selector,
    pub(super) labels: Filter,
    pub(super) annotations: Filter,
    pub(super) taints: Filter,
    pub(super) cordon: bool,
    pub(super) overwrite: Patterns,
    pub(super) identity: Identity,
    pub(super) privileged_without_provider: bool,
}

/// What must agree before a node gets back what a record holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Identity {
    /// The name alone.
    #[default]
    Name,
    /// The name and `spec.providerID`: a recycled name can be another machine.
    Provider,
    /// `spec.providerID` alone: the machine is found under a new name too.
    Machine,
}

impl Identity {
    /// The word that stands in the policy.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Provider => "provider",
            Self::Machine => "machine",
        }
    }
}

/// Which keys of one kind are kept.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Filter {
    /// `*` stands among the includes.
    pub(super) everything: bool,
    /// The includes but `*`: asked for by name, which overrules the usual excludes.
    pub(super) named: Patterns,
    pub(super) exclude: Patterns,
    /// Whether the usual excludes hold under `*`.
    pub(super) exclude_usual: bool,
    /// What these said of keys before.
    pub(super) verdicts: Verdicts,
}

impl Filter {
    /// Whether no key can pass.
    fn keeps_nothing(&self) -> bool {
        !self.everything && self.named.is_empty()
    }

    /// `builtin` is always the same for one filter.
    fn keeps(&self, key: &str, builtin: &Builtin) -> bool {
        self.verdicts.recall(key, || self.matches(key, builtin))
    }

    fn matches(&self, key: &str, builtin: &Builtin) -> bool {
        let wanted = self.named.matches(key)
            || (self.everything && !(self.exclude_usual && builtin.usual.matches(key)));
        wanted && !self.exclude.matches(key) && !builtin.never.matches(key)
    }

    fn keep_pairs(&self, pairs: &Pairs, builtin: &Builtin) -> Pairs {
        if self.keeps_nothing() {
            return Pairs::new();
        }
        let kept = pairs.iter().filter(|(key, _)| self.keeps(key, builtin));
        kept.map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

impl Rule {
    /// The rule's name, for logs and messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which nodes it speaks of.
    #[must_use]
    pub fn selector(&self) -> &Selector {
        &self.selector
    }

    /// The part of a node that this rule keeps: taints sorted, one for each key and effect.
    #[must_use]
    pub fn keep(&self, content: &Content) -> Kept {
        let Content { labels, annotations, taints, unschedulable, born: _, gated: _ } = content;
        let mut taints: Vec<Taint> =
            taints.iter().filter(|taint| self.keeps_taint(&taint.key)).cloned().collect();
        taints.sort_unstable();
        taints.dedup_by(|a, b| a.same_slot(b));
        Kept {
            labels: self.labels.keep_pairs(labels, &defaults::LABELS),
            annotations: self.annotations.keep_pairs(annotations, &defaults::ANNOTATIONS),
            taints,
            unschedulable: self.cordon && *unschedulable,
        }
    }

    /// Whether a label of this key is kept.
    #[must_use]
    pub fn keeps_label(&self, key: &str) -> bool {
        self.labels.keeps(key, &defaults::LABELS)
    }

    /// Whether an annotation of this key is kept.
    #[must_use]
    pub fn keeps_annotation(&self, key: &str) -> bool {
        self.annotations.keeps(key, &defaults::ANNOTATIONS)
    }

    /// Whether a taint of this key is kept.
    #[must_use]
    pub fn keeps_taint(&self, key: &str) -> bool {
        self.taints.keeps(key, &defaults::TAINTS)
    }

    /// Whether `spec.unschedulable` is kept.
    #[must_use]
    pub fn keeps_cordon(&self) -> bool {
        self.cordon
    }

    /// Whether some annotation could be kept.
    pub(super) fn keeps_annotations(&self) -> bool {
        !self.annotations.keeps_nothing()
    }

    /// Whether some taint could be kept.
    pub(super) fn keeps_taints(&self) -> bool {
        !self.taints.keeps_nothing()
    }

    /// Whether a recorded label replaces another value on the newborn; otherwise it is given only if missing.
    #[must_use]
    pub fn overwrites_label(&self, key: &str) -> bool {
        self.overwrite.matches(key)
    }

    /// As [`Rule::overwrites_label`], for annotations.
    #[must_use]
    pub fn overwrites_annotation(&self, key: &str) -> bool {
        self.overwrite.matches(key)
    }

    /// As [`Rule::overwrites_label`], for the value of a taint of the same key and effect.
    #[must_use]
    pub fn overwrites_taint(&self, key: &str) -> bool {
        self.overwrite.matches(key)
    }

    /// What must agree before anything is given back.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Whether the node's `spec.providerID` must be known to decide about a node with these labels.
    #[must_use]
    pub fn needs_identity(&self, labels: &Pairs) -> bool {
        self.identity != Identity::Name
            || labels.keys().any(|key| is_privileged(key) && self.keeps_label(key))
    }

    /// Whether privileged labels come back where neither side has a providerID, as on bare metal.
    #[must_use]
    pub fn privileged_without_provider(&self) -> bool {
        self.privileged_without_provider
    }
}

/// Whether a label gives a node rights, so that it must not come back onto another machine of the same name.
///
/// These are the keys that a kubelet may not set on itself: `node-role.kubernetes.io/*`,
/// `node-restriction.kubernetes.io/*` and `*.node-restriction.kubernetes.io/*`.
#[must_use]
pub fn is_privileged(label_key: &str) -> bool {
    label_key.split_once('/').is_some_and(|(prefix, _)| {
        prefix == "node-role.kubernetes.io"
            || prefix
                .strip_suffix("node-restriction.kubernetes.io")
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}
