//! What a node is born with.
//!
//! The webhook is asked before a Node exists, and answers from what its replica knows, which may be a little behind. So it
//! gives only what a kubelet may set on itself (the API server would refuse the registration otherwise), nothing that rests
//! on an identity it cannot see, and it *stamps* what it gave: until the node bears its mark, those pairs count as missing,
//! so that the restore that follows puts right what was behind.

use super::decide::{Case, Context};
use super::line::Line;
use crate::kept::Pairs;
use crate::policy::Identity;

/// The prefix of the stamp's key; the installation's name follows.
pub const STAMP_PREFIX: &str = "born.perennial.dev/";

/// Labels under `kubernetes.io` and `k8s.io` that a kubelet may set on its own Node, whatever their prefix (the API server's
/// admission plugin `NodeRestriction`).
const KUBELETS_OWN: [&str; 11] = [
    "kubernetes.io/hostname",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
];

/// Whether a kubelet may set this label on its own Node.
#[must_use]
pub fn is_kubelets_own(key: &str) -> bool {
    let Some((prefix, _)) = key.split_once('/') else { return true };
    let below =
        |domain: &str| prefix.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    // `kubelet.kubernetes.io` and everything below it, and the same for `node.kubernetes.io`.
    let kubelets = below("kubelet.kubernetes.io") || below("node.kubernetes.io");
    !(below("kubernetes.io") || below("k8s.io")) || kubelets || KUBELETS_OWN.contains(&key)
}

/// What a Node that is about to be created with these labels, for this machine, is born with: pairs to add. Nothing that it
/// brings along is touched.
#[must_use]
pub fn born(node: &str, labels: &Pairs, machine: Option<&str>, line: &Line, cx: &Context<'_>) -> Pairs {
    let Some(memory) = (Case { node, line, cx }).remembered() else { return Pairs::new() };
    let Some(rule) = cx.policy.rule_for(labels, Some(&memory.labels())) else { return Pairs::new() };
    // Where no machine is told, the one that comes may be another: who it is, is seen later.
    let same = machine.is_some() && machine == memory.incarnation.provider_id.as_deref();
    if rule.identity() != Identity::Name && !same {
        return Pairs::new();
    }
    let given = memory.kept.labels.into_iter();
    let given =
        given.filter(|(key, _)| rule.keeps_label(key) && is_kubelets_own(key) && !labels.contains_key(key));
    given.collect()
}

/// What the stamp says: `key=value`, with a space between them. Neither has one in it.
#[must_use]
pub fn stamp(given: &Pairs) -> String {
    given.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}

/// Which labels of a node are there because it was born with them, as its stamp says and as they still are. Whoever forges a
/// stamp can name no label that a kubelet could not remove.
#[must_use]
pub fn stamped(labels: &Pairs, annotations: &Pairs, installation: &str) -> Pairs {
    let said = annotations.iter().find(|(key, _)| key.strip_prefix(STAMP_PREFIX) == Some(installation));
    let words = said.into_iter().flat_map(|(_, value)| value.split(' '));
    let pairs = words.filter_map(|word| word.split_once('='));
    pairs
        .filter(|(key, value)| is_kubelets_own(key) && labels.get(*key).is_some_and(|now| now == value))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}
