//! Who shares the work, as this replica sees it at one moment.

use std::collections::BTreeSet;
use std::time::Duration;

use perennial_core::kept::Digest;
use perennial_core::ranks::{Ranks, Turn};

use super::others::Live;
use crate::config::MembersConfig;

/// What a member may do. Ranks are taken among those that do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Records nodes.
    Capture,
    /// Gives nodes their own back.
    Restore,
}

impl Role {
    /// As the Lease spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Capture => "capture",
            Self::Restore => "restore",
        }
    }

    /// Reads back what [`Role::as_str`] gave.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::Capture, Self::Restore].into_iter().find(|role| role.as_str() == text.trim())
    }
}

/// The members at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roster {
    capture: Ranks,
    restore: Ranks,
    takeover: Duration,
    /// Members that are alive, this replica among them.
    live: usize,
    /// The policies that the others run under.
    policies: BTreeSet<Digest>,
    /// Whether anybody looked. Until then others may be there, and they go first.
    known: bool,
}

impl Roster {
    /// Nobody else.
    pub(crate) fn alone(takeover: Duration) -> Self {
        let alone = || Ranks::new("", [""]);
        Self { capture: alone(), restore: alone(), takeover, live: 1, policies: BTreeSet::new(), known: true }
    }

    /// Nobody has looked yet.
    pub(crate) fn unknown(takeover: Duration) -> Self {
        Self { known: false, ..Self::alone(takeover) }
    }

    /// The members that are alive; this replica is one of them once it is `announced`.
    pub(crate) fn new(config: &MembersConfig, announced: bool, others: &[Live<'_>]) -> Self {
        let me = config.name.as_str();
        let among = |role: Role| {
            let mine = (announced && config.roles.contains(&role)).then_some(me);
            Ranks::new(me, others.iter().filter(|o| o.roles.contains(&role)).map(|o| o.name).chain(mine))
        };
        Self {
            capture: among(Role::Capture),
            restore: among(Role::Restore),
            takeover: config.takeover,
            live: others.len() + usize::from(announced),
            policies: others.iter().filter_map(|other| other.policy).collect(),
            known: true,
        }
    }

    fn ranks(&self, role: Role) -> &Ranks {
        match role {
            Role::Capture => &self.capture,
            Role::Restore => &self.restore,
        }
    }

    /// How many are alive.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// Whether another replica runs under another policy than this one.
    pub(crate) fn is_rollout(&self, policy: Digest) -> bool {
        self.policies.iter().any(|other| *other != policy)
    }

    /// This replica's place in line for a name.
    pub(crate) fn rank(&self, name: &str, role: Role) -> usize {
        if self.known { self.ranks(role).rank(name) } else { 1 }
    }

    /// How long this replica leaves a name to others, from when there is something to do about it.
    pub(crate) fn delay(&self, name: &str, role: Role, turn: Turn) -> Duration {
        let delay = self.ranks(role).delay(name, turn, self.takeover);
        if self.known { delay } else { delay + self.takeover }
    }
}
