//! Machines, and the label that is bound to one.
//!
//! Where machines matter, whatever is set on a node tells the machine that it was set on: machine 1 bears the
//! value 1, machine 2 the value 2. So the oracle reads from every label where it was recorded. What is owed to a
//! machine is worked out from the whole history of the name, life by life, as far as who they were could be known.

use std::fmt;

use perennial_core::keeper::{Mark, Patch, Provider, Write};
use perennial_core::kept::{Kept, Pairs};
use perennial_core::record::{Past, Record, State as Phase, Version};

use super::state::{Node, PROVIDER, State, life};
use super::truth::{Broken, Ended, Eyes, bit};

/// The privileged label.
const ROLE: &str = "node-role.kubernetes.io/r";

/// The machine that a node runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Machine {
    /// Which one; 0 where machines do not matter.
    pub(crate) who: u8,
    /// Whether its `providerID` is set.
    pub(crate) told: bool,
    /// The value of the privileged label; 0 where there is none.
    pub(crate) role: u8,
}

impl Machine {
    pub(crate) const ANY: Self = Self { who: 0, told: false, role: 0 };

    /// As a read of the whole Node shows it.
    pub(crate) fn provider(self) -> Provider {
        match self.who {
            0 => Provider::Unread,
            who => Provider::Read(self.told.then(|| id(who))),
        }
    }

    pub(crate) fn role_pair(self) -> Option<(String, String)> {
        (self.role != 0).then(|| (ROLE.to_owned(), self.role.to_string()))
    }
}

/// The first life runs on machine 1, later ones on either, and nobody knows yet which one it is.
pub(crate) const UNTOLD: [&[Machine]; 2] = [
    &[Machine { who: 1, told: true, role: 1 }],
    &[Machine { who: 1, told: false, role: 0 }, Machine { who: 2, told: false, role: 0 }],
];

/// The same, but nobody knows the first one either.
pub(crate) const NEVER_TOLD: [&[Machine]; 2] = [&[Machine { who: 1, told: false, role: 1 }], UNTOLD[1]];

/// The same, but every machine is known from the start.
pub(crate) const TOLD: [&[Machine]; 2] =
    [UNTOLD[0], &[Machine { who: 1, told: true, role: 0 }, Machine { who: 2, told: true, role: 0 }]];

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { who, told, role } = self;
        match who {
            0 => Ok(()),
            _ => write!(f, " role {role} on {}{who}", if *told { "" } else { "untold " }),
        }
    }
}

fn id(who: u8) -> String {
    format!("machine-{who}")
}

/// The value of the privileged label.
pub(crate) fn role(labels: &Pairs) -> u8 {
    labels.get(ROLE).map_or(0, |value| value.parse().expect("a small number"))
}

/// What the oracle remembers of machines: lives, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Lives {
    /// A record named it.
    named: u8,
    /// A record named its machine.
    identified: u8,
    /// No record named it, and whoever gave or closed without it did not see its end.
    skipped: u8,
    /// It was given its privileged label.
    privileged: u8,
}

/// A label that the oracle follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    /// An ordinary one, where it is bound to the machine as well.
    Label,
    Role,
}

impl Key {
    fn on(self, node: Node) -> u8 {
        match self {
            Self::Label => node.labels.0[0],
            Self::Role => node.machine.role,
        }
    }

    fn of(self, kept: &Kept) -> u8 {
        match self {
            Self::Label => super::state::kept(kept).0[0],
            Self::Role => role(&kept.labels),
        }
    }
}

/// What may be owed of a label: its value, which tells the machine, and whether that machine is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Owed {
    value: u8,
    known: bool,
}

const NOTHING: Owed = Owed { value: 0, known: true };

impl State {
    /// Whether nothing at all is given to another machine.
    pub(crate) fn by_machine(&self) -> bool {
        self.replicas.iter().any(|replica| replica.policy == PROVIDER)
    }

    /// What may be owed after the ends up to a version.
    fn owed_to(&self, key: Key, upto: Version, eyes: Eyes) -> Vec<Owed> {
        let lives = self.truth.lives;
        let ends = self.server.ends().into_iter().filter(|end| end.deleted <= upto);
        ends.fold(vec![NOTHING], |before, end| {
            let mut after: Vec<Owed> =
                before.iter().flat_map(|owed| self.owed_after(key, *owed, end)).collect();
            let one = bit(end.node.life);
            if lives.skipped & one != 0 || lives.named & one == 0 && eyes.missed & one != 0 {
                after.extend(before);
            }
            after.sort_unstable();
            after.dedup();
            after
        })
    }

    /// What may be owed after one more end.
    fn owed_after(&self, key: Key, before: Owed, Ended { node, .. }: Ended) -> Vec<Owed> {
        let Node { mark, machine, .. } = node;
        let identified = self.truth.lives.identified & bit(node.life) != 0;
        let value = key.on(node);
        if value != 0 {
            let own = Owed { value, known: true };
            return match (machine.told, identified) {
                // What came from elsewhere tells no machine.
                _ if value != machine.who => vec![Owed { known: false, ..own }],
                (true, _) | (_, true) => vec![own],
                // Nobody could know. What is nobody's does not displace what is somebody's.
                (false, false) => vec![Owed { known: false, ..own }, before],
            };
        }
        let given = match key {
            Key::Label => mark != Mark::None,
            Key::Role => self.truth.lives.privileged & bit(node.life) != 0,
        };
        let other = machine.told && (machine.who != before.value || !before.known);
        if given {
            // It got its own back, and a person took it.
            vec![NOTHING]
        } else if before.value != 0 && (other || self.was_borne(key, node)) {
            // Another machine, or a hand before it was given: whether that was seen is a matter of time.
            vec![before, NOTHING]
        } else {
            vec![before]
        }
    }

    /// Whether a life bore this label at any time.
    fn was_borne(&self, key: Key, node: Node) -> bool {
        self.server.nodes.iter().flatten().any(|then| then.life == node.life && key.on(*then) != 0)
    }

    /// Judges what a record that was just written over `before` says of machines. Says whether that was all there
    /// is to judge.
    pub(crate) fn judge_machines(&mut self, before: Option<&Record>, write: &Write, eyes: Eyes) -> bool {
        if self.server.nodes.iter().flatten().all(|node| node.machine == Machine::ANY) {
            return false;
        }
        let record = &*write.record;
        let named = life(record.incarnation.uid);
        self.truth.lives.named |= bit(named);
        let machine =
            self.server.nodes.iter().flatten().find(|node| node.life == named).map(|node| node.machine);
        if machine.is_some_and(|machine| record.incarnation.provider_id == Some(id(machine.who))) {
            self.truth.lives.identified |= bit(named);
        }
        let unseen = eyes.missed & !self.truth.lives.named;
        self.truth.lives.skipped |= unseen;
        let then = self.server.node_at(record.version).filter(|node| node.life == named);
        if let Some(then) = then.filter(|_| record.state == Phase::Open) {
            if role(&record.kept.labels) != then.machine.role {
                self.breaks(Broken::Untrue);
            }
            let follows = before.is_some_and(|before| life(before.incarnation.uid) == named);
            if self.by_machine() && !follows && then.mark == Mark::None {
                self.judge_displacement(then, record, eyes);
            }
        }
        self.by_machine()
    }

    /// The record follows another life, to which nothing was given: another machine's, and what it displaces is
    /// remembered.
    fn judge_displacement(&mut self, node: Node, record: &Record, eyes: Eyes) {
        let born = self.server.born(node.life).expect("it lived");
        for key in [Key::Label, Key::Role] {
            let [Owed { value, known: true }] = self.owed_to(key, born, eyes)[..] else { continue };
            if value == 0 {
                continue;
            }
            if !node.machine.told || value == node.machine.who {
                self.breaks(Broken::Lost);
            }
            let remembers = |past: Past<'_>| {
                key.of(&Kept { labels: past.labels().into_owned(), ..past.kept.clone() }) == value
            };
            if !record.states().skip(1).any(remembers) {
                self.breaks(Broken::Effaced);
            }
        }
    }

    /// Judges what a patch that the API server is about to accept gives to a machine.
    pub(crate) fn judge_gift(&mut self, node: Node, patch: &Patch, eyes: Eyes) {
        let Machine { who, told, role: borne } = node.machine;
        let given = role(&patch.labels);
        if given != 0 && (given != who || !told) {
            self.breaks(Broken::Misgiven);
        }
        if given != 0 && borne != 0 {
            self.breaks(Broken::Overwritten);
        }
        if given != 0 || patch.mark == Mark::Full {
            if self.truth.lives.privileged & bit(node.life) != 0 {
                self.breaks(Broken::GivenTwice);
            }
            self.truth.lives.privileged |= bit(node.life);
        }
        if !self.by_machine() || node.mark != Mark::None {
            return;
        }
        let born = self.server.born(node.life).expect("it lives");
        let [Owed { value, known: true }] = self.owed_to(Key::Label, born, eyes)[..] else { return };
        let label = super::state::Labels::of(&patch.labels).0[0];
        if value != 0 && (value != who || !told) {
            self.breaks(Broken::Misgiven);
        } else if node.labels.0[0] == 0 && label != value {
            self.breaks(Broken::Lost);
        }
    }

    /// Nobody has anything to do or to hear any more: is everything where its machine is?
    pub(crate) fn judge_rest_of_machines(&self, eyes: Eyes) -> Option<Broken> {
        let record = self.server.record().map(|(_, stored)| &*stored.record);
        let Some(node) = self.server.node() else {
            let keys: &[Key] = if self.by_machine() { &[Key::Label, Key::Role] } else { &[Key::Role] };
            let lost = keys.iter().any(|key| {
                let owed = self.owed_to(*key, self.server.node_head(), eyes);
                matches!(owed[..], [Owed { value, known: true }] if value != 0 && !remembers(record, *key, value))
            });
            return lost.then_some(Broken::Lost);
        };
        let own = record.filter(|record| life(record.incarnation.uid) == node.life);
        if own.is_some_and(|record| role(&record.kept.labels) != node.machine.role)
            || record.is_none() && node.machine.role != 0
        {
            return Some(Broken::Unsettled);
        }
        // Whoever knows the machine has nothing to wait for.
        let waits = |record: &Record| record.waiting.values().any(|waiting| waiting.provider_id.is_some());
        if node.machine.told && own.is_some_and(waits) {
            return Some(Broken::Unsettled);
        }
        if self.by_machine() && !is_settled_by_machine(node, record) {
            return Some(Broken::Unsettled);
        }
        let born = self.server.born(node.life).expect("it lives");
        let lost = |key: Key| {
            let [Owed { value, known: true }] = self.owed_to(key, born, eyes)[..] else { return false };
            // It has it, or had it until a hand took it.
            let borne = self.was_borne(key, node);
            match node.machine {
                _ if value == 0 || borne => false,
                Machine { told: true, who, .. } => value == who,
                Machine { told: false, .. } => !remembers(record, key, value),
            }
        };
        let keys: &[Key] = if self.by_machine() { &[Key::Label, Key::Role] } else { &[Key::Role] };
        keys.iter().any(|key| lost(*key)).then_some(Broken::Lost)
    }
}

/// Whether a record holds this, and whose it is.
fn remembers(record: Option<&Record>, key: Key, value: u8) -> bool {
    let Some(record) = record else { return false };
    let own = key.of(&record.kept) == value && record.incarnation.provider_id == Some(id(value));
    let waits = record.waiting.values().any(|waiting| waiting.provider_id == Some(id(value)));
    own || key == Key::Role && waits
}

/// Where the record of a living node may rest when nothing is given to another machine.
fn is_settled_by_machine(node: Node, record: Option<&Record>) -> bool {
    let Some(record) = record else { return node.labels.0[0] == 0 };
    if life(record.incarnation.uid) != node.life {
        // Nobody knows yet who it is, or there was nothing to give and nothing to record.
        let nothing = record.is_empty() && node.labels.0[0] == 0;
        return record.state == Phase::Closed && (!node.machine.told || nothing);
    }
    record.state == Phase::Open && super::state::kept(&record.kept) == node.labels
}
