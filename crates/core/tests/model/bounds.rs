//! How much may happen: what makes a world finite.

use super::guards::Guard;
use super::machines::Machine;
use super::state::{BARE, Labels, WIDE};

/// How often each thing may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Budget {
    /// Creations, deletions and hands on labels.
    pub(crate) steps: u8,
    /// Of which creations.
    pub(crate) lives: u8,
    /// Replicas that crash, and start anew with nothing.
    pub(crate) crashes: u8,
    /// Replies that are lost after the commit.
    pub(crate) lost: u8,
    /// Plans that are carried out later than they were made.
    pub(crate) pauses: u8,
    /// Watches that break for longer than the server remembers.
    pub(crate) relists: u8,
    /// Lists that lack what is there.
    pub(crate) blanks: u8,
    /// Compactions of history.
    pub(crate) compactions: u8,
    /// Snapshots restored.
    pub(crate) restores: u8,
    /// Nodes that go back while the records stay.
    pub(crate) moves: u8,
    /// The retention passes.
    pub(crate) late: u8,
    /// A collector finds a record beyond the cap.
    pub(crate) over_cap: u8,
    /// A person removes the record.
    pub(crate) removals: u8,
}

/// One world to explore.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) name: &'static str,
    /// The policy of each replica that runs from the start.
    pub(crate) replicas: &'static [usize],
    /// The policy of each that joins later.
    pub(crate) joiners: &'static [usize],
    /// What the first life may be born with, and what later ones may.
    pub(crate) births: [&'static [Labels]; 2],
    /// The machines that the first life may run on, and those that later ones may.
    pub(crate) machines: [&'static [Machine]; 2],
    /// How many label keys a person may set, change and remove on a living node.
    pub(crate) keys: usize,
    /// A person may set and remove the privileged label as well.
    pub(crate) roles: bool,
    /// A webhook adds labels at birth that the name bore at any time.
    pub(crate) webhook: bool,
    pub(crate) budget: Budget,
    /// The guard that is taken out.
    pub(crate) without: Option<Guard>,
}

impl Config {
    /// Two replicas; the first life is born labelled, later ones bare, and all may be labelled by hand.
    pub(crate) const fn new(name: &'static str, steps: u8, lives: u8) -> Self {
        let budget = Budget {
            steps,
            lives,
            crashes: 0,
            lost: 0,
            pauses: 0,
            relists: 0,
            blanks: 0,
            compactions: 0,
            restores: 0,
            moves: 0,
            late: 0,
            over_cap: 0,
            removals: 0,
        };
        Self {
            name,
            replicas: &[WIDE, WIDE],
            joiners: &[],
            births: [&[Labels([1, 0])], &[BARE]],
            machines: [&[Machine::ANY]; 2],
            keys: 1,
            roles: false,
            webhook: false,
            budget,
            without: None,
        }
    }
}
