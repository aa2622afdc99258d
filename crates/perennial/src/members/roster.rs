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
    /// Publishes listings.
    List,
}

impl Role {
    /// As the Lease spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Capture => "capture",
            Self::Restore => "restore",
            Self::List => "list",
        }
    }

    /// Reads back what [`Role::as_str`] gave.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::Capture, Self::Restore, Self::List].into_iter().find(|role| role.as_str() == text.trim())
    }
}

/// A replica that is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) roles: Vec<Role>,
    /// What it keeps, where that is known.
    pub(crate) policy: Option<Digest>,
}

/// The members at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roster {
    capture: Ranks,
    restore: Ranks,
    list: Ranks,
    takeover: Duration,
    /// Members that are alive, this replica among them.
    live: usize,
    /// The same by name, for people.
    members: Vec<Member>,
    /// Those among them that are others, whatever they do.
    others: usize,
    /// The policies that others run under; `None` where nobody can tell.
    policies: Option<BTreeSet<Digest>>,
    /// Whether anybody looked. Until then others may be there, and they go first.
    known: bool,
    /// This replica is about to leave: it waits for nobody, but where it is in doubt.
    leaving: bool,
}

impl Roster {
    /// Nobody else.
    pub(crate) fn alone(takeover: Duration) -> Self {
        let alone = || Ranks::new("", [""]);
        Self {
            capture: alone(),
            restore: alone(),
            list: alone(),
            takeover,
            live: 1,
            members: Vec::new(),
            others: 0,
            policies: Some(BTreeSet::new()),
            known: true,
            leaving: false,
        }
    }

    /// Nobody has looked yet.
    pub(crate) fn unknown(takeover: Duration) -> Self {
        Self { known: false, policies: None, ..Self::alone(takeover) }
    }

    /// The same for a replica that is about to leave.
    pub(crate) fn leaving(&self) -> Self {
        Self { leaving: true, ..self.clone() }
    }

    /// The members that are alive; this replica is one of them once it is `announced`. Ranks of keepers are taken
    /// among those that keep the same: another policy may see nothing to do where this one does.
    pub(crate) fn new(
        config: &MembersConfig,
        announced: bool,
        others: &[Live<'_>],
        policies: Option<BTreeSet<Digest>>,
    ) -> Self {
        let (me, own) = (config.name.as_str(), config.policy.borrow().digest());
        let alike = |other: &&Live<'_>| other.policy.is_none_or(|policy| policy == own);
        let among = |role: Role| {
            let mine = (announced && config.roles.contains(&role)).then_some(me);
            let theirs = others.iter().filter(|other| role == Role::List || alike(other));
            let theirs = theirs.filter(|other| other.roles.contains(&role));
            Ranks::new(me, theirs.map(|other| other.name).chain(mine))
        };
        let mine = announced.then_some((me, config.roles.as_slice(), Some(own)));
        let theirs = others.iter().map(|other| (other.name, other.roles, other.policy));
        let mut members: Vec<Member> = theirs
            .chain(mine)
            .map(|(name, roles, policy)| Member { name: name.to_owned(), roles: roles.to_vec(), policy })
            .collect();
        members.sort_by(|one, other| one.name.cmp(&other.name));
        Self {
            capture: among(Role::Capture),
            restore: among(Role::Restore),
            list: among(Role::List),
            takeover: config.takeover,
            live: others.len() + usize::from(announced),
            members,
            others: others.len(),
            policies,
            known: true,
            leaving: false,
        }
    }

    fn ranks(&self, role: Role) -> &Ranks {
        match role {
            Role::Capture => &self.capture,
            Role::Restore => &self.restore,
            Role::List => &self.list,
        }
    }

    /// Who is alive, by name.
    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    /// How many are alive.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// Whether another replica runs under another policy than this one, as far as anybody can tell.
    pub(crate) fn is_rollout(&self, policy: Digest) -> bool {
        self.policies.as_ref().is_none_or(|policies| policies.iter().any(|other| *other != policy))
    }

    /// This replica's place in line for a name.
    pub(crate) fn rank(&self, name: &str, role: Role) -> usize {
        if self.known { self.ranks(role).rank(name) } else { 1 }
    }

    /// How long it takes until each member had a turn.
    pub(crate) fn round(&self) -> Duration {
        self.takeover * u32::try_from(self.others + 1).unwrap_or(u32::MAX)
    }

    /// How long this replica leaves a name to others, from when there is something to do about it.
    pub(crate) fn delay(&self, name: &str, role: Role, turn: Turn) -> Duration {
        if self.leaving && turn != Turn::Everyone {
            return Duration::ZERO;
        }
        let delay = self.ranks(role).delay(name, turn, self.others, self.takeover);
        if self.known { delay } else { delay + self.takeover }
    }
}
