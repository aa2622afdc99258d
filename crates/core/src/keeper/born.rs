//! What a node is born with.
//!
//! The webhook is asked before a Node exists, and answers from what its replica knows, which may be a little behind. So it
//! gives only what a kubelet may set on itself (the API server would refuse the registration otherwise), nothing that is no
//! label, nothing that rests on an identity it cannot see, and it *stamps* what it gave: until the node bears its mark, those pairs count as missing,
//! so that the restore that follows puts right what was behind.
//!
//! Where more is remembered than it may give, it may put a *gate* before the node: a taint that keeps workloads away until
//! the restore, which opens it.

use super::decide::{Case, Context};
use super::fold::Memory;
use super::line::Line;
use crate::kept::{Kept, Pairs};
use crate::policy::Identity;
use crate::policy::syntax::is_label;

/// The prefix of the stamp's key; the installation's name follows.
pub const STAMP_PREFIX: &str = "born.perennial.dev/";

/// The key of the taint that is the gate, and its effect.
pub const GATE: &str = "perennial.dev/unrestored";
/// See [`GATE`].
pub const GATE_EFFECT: &str = "NoSchedule";
/// The word in a stamp that says that there is a gate. No label is spelled like this.
const GATED: &str = "gated";

/// What a control-plane node bears. No gate is put before one.
pub const CONTROL_PLANE: [&str; 2] =
    ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

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

/// What a newborn is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Birth {
    /// Labels to add.
    pub labels: Pairs,
    /// More is remembered of it, which only the keeper may give: a gate may keep workloads away until it has.
    pub owed: bool,
}

/// What a Node that is about to be created with these labels, for this machine, is given. Nothing that it brings along is
/// touched.
#[must_use]
pub fn born(node: &str, labels: &Pairs, machine: Option<&str>, line: &Line, cx: &Context<'_>) -> Birth {
    let Some(memory) = (Case { node, line, cx }).remembered() else { return Birth::default() };
    let Some(rule) = cx.policy.rule_for(labels, Some(&memory.labels())) else { return Birth::default() };
    // Where no machine is told, the one that comes may be another: who it is, is seen later.
    let same = machine.is_some() && machine == memory.incarnation.provider_id.as_deref();
    let is_control_plane = memory.labels().keys().any(|key| CONTROL_PLANE.contains(&key.as_str()));
    if rule.identity() != Identity::Name && !same {
        return Birth { labels: Pairs::new(), owed: !memory.is_empty() && !is_control_plane };
    }
    let Memory { kept: Kept { labels: kept, annotations, taints, unschedulable }, waiting, .. } = memory;
    // A record may have been edited by hand.
    let missing = |(key, value): &(String, String)| {
        rule.keeps_label(key) && !labels.contains_key(key) && is_label(key, value)
    };
    let (given, rest): (Pairs, Pairs) =
        kept.into_iter().filter(missing).partition(|(key, _)| is_kubelets_own(key));
    let owed = !rest.is_empty()
        || !waiting.is_empty()
        || annotations.keys().any(|key| rule.keeps_annotation(key))
        || taints.iter().any(|taint| rule.keeps_taint(&taint.key))
        || unschedulable && rule.keeps_cordon();
    Birth { labels: given, owed: owed && !is_control_plane }
}

/// What the stamp says: `key=value`, with a space between them, which neither has in it, and last whether there is a gate.
#[must_use]
pub fn stamp(given: &Pairs, gate: bool) -> String {
    let words = given.iter().map(|(key, value)| format!("{key}={value}"));
    words.chain(gate.then(|| GATED.to_owned())).collect::<Vec<_>>().join(" ")
}

fn words<'a>(annotations: &'a Pairs, installation: &str) -> impl Iterator<Item = &'a str> {
    let said = annotations.iter().find(|(key, _)| key.strip_prefix(STAMP_PREFIX) == Some(installation));
    said.into_iter().flat_map(|(_, value)| value.split(' '))
}

/// Which labels of a node are there because it was born with them, as its stamp says and as they still are. Whoever forges a
/// stamp can name no label that a kubelet could not remove.
#[must_use]
pub fn stamped(labels: &Pairs, annotations: &Pairs, installation: &str) -> Pairs {
    let pairs = words(annotations, installation).filter_map(|word| word.split_once('='));
    pairs
        .filter(|(key, value)| is_kubelets_own(key) && labels.get(*key).is_some_and(|now| now == value))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// Whether a node was born behind a gate that is still to be opened, as its stamp says.
#[must_use]
pub fn is_gated(annotations: &Pairs, installation: &str) -> bool {
    words(annotations, installation).any(|word| word == GATED)
}
