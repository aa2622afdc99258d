//! What `decide` may ask for. It performs none of it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::mark::Mark;
use crate::kept::{Pairs, Taint};
use crate::ranks::Turn;
use crate::record::{Record, Version};

/// One step for one node. After it was taken, the line is decided again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// Nothing to do until something changes.
    Rest(Why),
    /// Nothing to do before this time.
    Wait {
        /// When to decide again.
        until: Timestamp,
    },
    /// Read the record whole.
    ReadRecord,
    /// Read the Node by name, consistently: whether it is there, what it bears, who it is.
    ReadNode,
    /// Find the end of an incarnation in etcd's history.
    Prove {
        /// Whose end.
        uid: Uuid,
        /// It lived at this version.
        from: Version,
        /// It was gone at this one.
        to: Version,
    },
    /// Read the machine of an incarnation whose end is held, as it was right before its deletion.
    ReadEnd {
        /// Whose end.
        uid: Uuid,
        /// The version of its deletion.
        deleted: Version,
    },
    /// Write the record: it is open and follows the living node.
    Save(Write),
    /// Write the record: it is closed with an end.
    Close(Write),
    /// Write the record: it is about to be given to the incarnation it names.
    Give(Write),
    /// Patch the Node with what is missing, and mark it.
    Patch(Box<Patch>),
    /// Say in the Node's status that it has its own: nothing is owed to it.
    Tell {
        /// The incarnation.
        uid: Uuid,
        /// Since when.
        since: Timestamp,
    },
    /// Copy an unreadable record's bytes aside.
    SetAside,
    /// Remove the record.
    Erase(Erasure),
}

/// A record to write over the one that was seen, or in place of none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Write {
    /// What to write.
    pub record: Box<Record>,
    /// What a person should hear about it.
    pub notice: Option<Notice>,
    /// It shrinks a record without a person's hand on that node: the brake has a say.
    pub braked: bool,
}

/// What a person should hear about a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Notice {
    /// The end could not be proved: what is recorded is given, and may be older than the last state.
    Unproved,
    /// Another machine bears the name: nothing was given to it.
    OtherMachine,
    /// Privileged keys were dropped: another machine bears the name.
    PrivilegedDropped,
    /// An unreadable record was written anew.
    Rewritten,
}

impl Notice {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Unproved, Self::OtherMachine, Self::PrivilegedDropped, Self::Rewritten];

    /// The reason, as Kubernetes Events and metrics spell it.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Unproved => "EndUnproved",
            Self::OtherMachine => "OtherMachine",
            Self::PrivilegedDropped => "PrivilegedDropped",
            Self::Rewritten => "RecordRewritten",
        }
    }
}

/// What to add to a Node, exactly if it is still the version that was decided on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Patch {
    /// The incarnation.
    pub uid: Uuid,
    /// Its version.
    pub version: Version,
    /// Labels to set.
    pub labels: Pairs,
    /// Annotations to set, without the mark.
    pub annotations: Pairs,
    /// Taints to add, or to give their value back where the rule overwrites.
    pub taints: Vec<Taint>,
    /// Cordon it.
    pub cordon: bool,
    /// Labels to take back: it was born with them, and they are not remembered.
    pub unset: Vec<String>,
    /// The mark to set with it.
    pub mark: Mark,
    /// What the stamp goes on saying; it goes where this is `None`.
    pub stamp: Option<String>,
    /// Open the gate that it was born behind.
    pub opens: bool,
    /// Privileged labels that go on waiting for the machine's identity.
    pub withheld: usize,
}

/// Why a record is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Erasure {
    /// The node was away for longer than the retention.
    Expired,
    /// There are more absent records than the policy's cap.
    OverCap,
    /// Nothing was in it for its time.
    Empty,
    /// A person said so.
    Forgotten,
}

impl Erasure {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Expired, Self::OverCap, Self::Empty, Self::Forgotten];

    /// As metrics and logs spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::OverCap => "over_cap",
            Self::Empty => "empty",
            Self::Forgotten => "forgotten",
        }
    }

    /// Whether the brake has a say: everything but a person's word.
    #[must_use]
    pub fn is_braked(self) -> bool {
        self != Self::Forgotten
    }
}

/// Why there is nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Why {
    /// Node and record agree.
    Agreed,
    /// The first lists are not complete.
    NotSynced,
    /// What this replica sees is older than the record.
    Lagging,
    /// The policy keeps nothing of this node.
    NothingKept,
    /// No rule of the policy matches this node.
    Unmanaged,
    /// The node is away and its record is closed.
    Away,
    /// A person paused it.
    Paused,
    /// A person asked to forget it.
    Forgotten,
    /// It is being deleted and its record is not its own yet.
    Terminating,
    /// Restoring is switched off here.
    RestoreOff,
    /// Capturing is switched off here.
    CaptureOff,
    /// The machine's identity is not known yet.
    IdentityUnknown,
    /// The record was written by a newer binary.
    NewerSchema,
    /// The record is unreadable, and nothing may be given from it.
    Unreadable,
}

impl Why {
    /// Those for which a line that is not settled is left as it is.
    pub const SKIPS: [Self; 6] = [
        Self::Terminating,
        Self::RestoreOff,
        Self::CaptureOff,
        Self::IdentityUnknown,
        Self::NewerSchema,
        Self::Unreadable,
    ];

    /// As metrics and logs spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agreed => "agreed",
            Self::NotSynced => "not_synced",
            Self::Lagging => "lagging",
            Self::NothingKept => "nothing_kept",
            Self::Unmanaged => "unmanaged",
            Self::Away => "away",
            Self::Paused => "paused",
            Self::Forgotten => "forgotten",
            Self::Terminating => "terminating",
            Self::RestoreOff => "restore_off",
            Self::CaptureOff => "capture_off",
            Self::IdentityUnknown => "identity_unknown",
            Self::NewerSchema => "newer_schema",
            Self::Unreadable => "unreadable",
        }
    }

    /// Whether node and record are as the policy wants them: nobody has to act.
    #[must_use]
    pub fn is_settled(self) -> bool {
        matches!(
            self,
            Self::Agreed | Self::NothingKept | Self::Unmanaged | Self::Away | Self::Paused | Self::Forgotten
        )
    }
}

impl Plan {
    /// Whose turn it is: what rests on an end that nobody here saw leaves room for one who did.
    #[must_use]
    pub fn turn(&self) -> Turn {
        match self {
            Self::Prove { .. } => Turn::Witness,
            Self::Close(write) | Self::Give(write) if write.notice == Some(Notice::Unproved) => {
                Turn::Everyone
            }
            _ => Turn::Anyone,
        }
    }

    /// The plan's name, as metrics and logs spell it.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Rest(_) => "rest",
            Self::Wait { .. } => "wait",
            Self::ReadRecord => "read_record",
            Self::ReadNode => "read_node",
            Self::Prove { .. } => "prove",
            Self::ReadEnd { .. } => "read_end",
            Self::Save(_) => "save",
            Self::Close(_) => "close",
            Self::Give(_) => "give",
            Self::Patch(_) => "patch",
            Self::Tell { .. } => "tell",
            Self::SetAside => "set_aside",
            Self::Erase(_) => "erase",
        }
    }
}
