//! Whether the machine that bears a name now is the one that is remembered.

use super::line::{Live, Provider};
use crate::policy::{Identity, Rule};
use crate::record::{Waiting, WaitingKeys};

/// How a living machine compares with a remembered one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Likeness {
    /// The same machine, as far as the policy asks.
    Same,
    /// Its `providerID` has to be read first.
    Unread,
    /// It has none (yet), and the remembered one had.
    Unknown,
    /// Another machine.
    Other,
}

/// Compares a node with a remembered `providerID` as the rule's `identity` asks.
pub(super) fn likeness(rule: &Rule, remembered: Option<&str>, live: &Live) -> Likeness {
    match (rule.identity(), &live.provider) {
        (Identity::Name, _) => Likeness::Same,
        (Identity::Provider | Identity::Machine, Provider::Unread) => Likeness::Unread,
        (Identity::Provider | Identity::Machine, Provider::Read(now)) => match (remembered, now.as_deref()) {
            (None, None) => Likeness::Same,
            (Some(_), None) => Likeness::Unknown,
            (remembered, now) if remembered == now => Likeness::Same,
            _ => Likeness::Other,
        },
    }
}

/// Compares a node with the machine that bore a privileged label. Names alone are never enough for those.
pub(super) fn privileged_likeness(rule: &Rule, waiting: &Waiting, live: &Live) -> Likeness {
    let Provider::Read(now) = &live.provider else { return Likeness::Unread };
    match (waiting.provider_id.as_deref(), now.as_deref()) {
        (None, None) if rule.privileged_without_provider() => Likeness::Same,
        (None, _) | (Some(_), None) => Likeness::Unknown,
        (Some(then), Some(now)) if then == now => Likeness::Same,
        (Some(_), Some(_)) => Likeness::Other,
    }
}

/// The keys of `waiting` that compare like that.
pub(super) fn keys_like(waiting: &WaitingKeys, rule: &Rule, live: &Live, wanted: Likeness) -> WaitingKeys {
    let alike = |waiting: &Waiting| privileged_likeness(rule, waiting, live) == wanted;
    waiting.iter().filter(|(_, waiting)| alike(waiting)).map(|(k, w)| (k.clone(), w.clone())).collect()
}
