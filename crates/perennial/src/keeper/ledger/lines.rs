//! The lines, asleep and awake.
//!
//! A line that nobody works on is asleep: pressed into a hundred bytes or two, so that a hundred thousand of them take no
//! more than a small pod has. Whoever has something to say to it, or wants to know more than its [`Pulse`] tells, wakes
//! it; it goes back to sleep when it was looked at, or at the end of the turn.
//!
//! ```text
//!          wake                        sleep (not while somebody works on it)
//! Asleep ────────> Awake: an [`Entry`] ──────────────────────────────────────> Asleep: Pulse and pressed bytes
//! ```

use std::collections::HashMap;
use std::ops::Deref;

use bitflags::bitflags;
use perennial_core::keeper::{Provider, Seen, Why};
use perennial_core::record::Version;
use uuid::Uuid;

use super::Name;
use super::entry::Entry;
use super::press::Press;
use crate::keeper::window::Cell;

/// All lines, by the names of their nodes.
#[derive(Debug, Default)]
pub(super) struct Lines {
    slots: HashMap<Name, Slot>,
    /// Those that were woken in this turn, and not all of them sleep again.
    woken: Vec<Name>,
    press: Press,
}

#[derive(Debug)]
enum Slot {
    Awake(Box<Entry>),
    Asleep { pulse: Pulse, pressed: Box<[u8]> },
}

/// What is known of a line without waking it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pulse {
    /// The version at which the node was last seen, if it lives.
    pub(super) version: Version,
    /// See [`Entry::fingerprint`].
    pub(super) fingerprint: u64,
    /// See [`Entry::node_list`].
    pub(super) node_list: u32,
    /// See [`Entry::record_list`].
    pub(super) record_list: u32,
    /// The end of the living incarnation's uid.
    uid: u32,
    /// See [`Entry::cell`].
    pub(super) cell: Cell,
    signs: Signs,
}

bitflags! {
    /// What is asked of many lines, though few have it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) struct Signs: u8 {
        /// The node lives, and another version of it that shows nothing new is no news.
        const CALM = 1;
        /// It holds ends.
        const ENDS = 1 << 1;
        /// There is something to do about it.
        const PENDING = 1 << 2;
        /// See [`Entry::churn`].
        const CHURNED = 1 << 3;
        /// See [`Entry::held`].
        const HELD = 1 << 4;
        /// Its record may be collected one day.
        const SPENT = 1 << 5;
        /// See [`Counted::there`].
        const THERE = 1 << 6;
        /// See [`Counted::first`].
        const FIRST = 1 << 7;
    }
}

impl Pulse {
    fn of(entry: &Entry) -> Self {
        let live = entry.line.live();
        // A young node without a machine may have been told which one it is, and a line that lagged behind its record may
        // have caught up with it: both are looked at again.
        let calm = live.is_some_and(|live| live.provider != Provider::Read(None))
            && entry.skipped != Some(Why::Lagging);
        let mut signs = Signs::empty();
        signs.set(Signs::CALM, calm);
        signs.set(Signs::ENDS, !entry.line.ends.is_empty());
        signs.set(Signs::PENDING, entry.pending.is_some());
        signs.set(Signs::CHURNED, entry.churn > 0);
        signs.set(Signs::HELD, entry.held);
        signs.set(Signs::SPENT, entry.seen().is_some_and(Seen::is_spent));
        signs.set(Signs::THERE, entry.counted.there);
        signs.set(Signs::FIRST, entry.counted.first);
        Self {
            version: live.map_or(0, |live| live.version),
            fingerprint: entry.fingerprint,
            node_list: entry.node_list,
            record_list: entry.record_list,
            uid: live.map_or(0, |live| tail(live.uid)),
            cell: entry.cell,
            signs,
        }
    }

    /// Gives it to the line that wakes.
    fn quicken(self, entry: &mut Entry) {
        let Self { version, fingerprint, node_list, record_list, uid: _, cell, signs } = self;
        if let Some(live) = entry.line.live_mut() {
            live.version = version;
        }
        entry.fingerprint = fingerprint;
        entry.node_list = node_list;
        entry.record_list = record_list;
        entry.cell = cell;
        entry.counted.first = signs.contains(Signs::FIRST);
    }

    pub(super) fn has(&self, signs: Signs) -> bool {
        self.signs.contains(signs)
    }

    /// Whether it is this incarnation that lives.
    pub(super) fn is_of(&self, uid: Uuid) -> bool {
        self.uid == tail(uid)
    }
}

/// A line to look at.
#[derive(Debug)]
pub(crate) enum Glimpse<'a> {
    /// It is awake.
    Awake(&'a Entry),
    /// What it would be if it were.
    Dreamt(Box<Entry>),
}

impl Deref for Glimpse<'_> {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        match self {
            Self::Awake(entry) => entry,
            Self::Dreamt(entry) => entry,
        }
    }
}

impl Lines {
    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        self.slots.keys()
    }

    /// The name as the lines share it.
    pub(super) fn name(&self, name: &str) -> Option<&Name> {
        self.slots.get_key_value(name).map(|(name, _)| name)
    }

    /// A line as it is.
    pub(super) fn get(&self, name: &str) -> Option<Glimpse<'_>> {
        Some(match self.slots.get(name)? {
            Slot::Awake(entry) => Glimpse::Awake(entry),
            Slot::Asleep { pulse, pressed } => Glimpse::Dreamt(dreamt(&self.press, *pulse, pressed)),
        })
    }

    /// What is known of a line without waking it.
    pub(super) fn pulse(&self, name: &str) -> Option<Pulse> {
        self.slots.get(name).map(Slot::pulse)
    }

    /// The same, of all.
    pub(super) fn pulses(&self) -> impl Iterator<Item = (&Name, Pulse)> {
        self.slots.iter().map(|(name, slot)| (name, slot.pulse()))
    }

    /// The pulse of a line that sleeps, to change what may change in its sleep.
    pub(super) fn asleep(&mut self, name: &str) -> Option<&mut Pulse> {
        match self.slots.get_mut(name)? {
            Slot::Asleep { pulse, .. } => Some(pulse),
            Slot::Awake(_) => None,
        }
    }

    /// Wakes a line, if there is one.
    pub(super) fn wake(&mut self, name: &Name) -> Option<&mut Entry> {
        let slot = self.slots.get_mut(name)?;
        Some(slot.wake(name, &self.press, &mut self.woken))
    }

    /// Wakes a line, or begins one.
    pub(super) fn wake_or(&mut self, name: &Name, begin: impl FnOnce() -> Entry) -> &mut Entry {
        let woken = &mut self.woken;
        let slot = self.slots.entry(name.clone()).or_insert_with(|| {
            woken.push(name.clone());
            Slot::Awake(Box::new(begin()))
        });
        slot.wake(name, &self.press, woken)
    }

    /// A line goes back to sleep, unless somebody works on it.
    pub(super) fn sleep(&mut self, name: &Name) {
        if let Some(slot) = self.slots.get_mut(name) {
            slot.sleep(&mut self.press);
            if slot.is_asleep() && self.woken.last() == Some(name) {
                self.woken.pop();
            }
        }
    }

    /// All go back to sleep, but for those that somebody works on: they do when that is over.
    pub(super) fn sleep_all(&mut self) {
        for name in self.woken.drain(..) {
            if let Some(slot) = self.slots.get_mut(&name) {
                slot.sleep(&mut self.press);
            }
        }
    }

    /// Nobody works on a line any more.
    pub(super) fn released(&mut self, name: &Name) {
        if let Some(Slot::Awake(entry)) = self.slots.get_mut(name) {
            entry.busy = false;
            self.woken.push(name.clone());
        }
    }

    pub(super) fn remove(&mut self, name: &Name) {
        self.slots.remove(name);
    }

    /// Wakes every line whose pulse is such, one after the other.
    pub(super) fn each(&mut self, such: impl Fn(&Pulse) -> bool, mut act: impl FnMut(&Name, &mut Entry)) {
        let Self { slots, woken, press } = self;
        for (name, slot) in slots {
            if !such(&slot.pulse()) {
                continue;
            }
            let slept = slot.is_asleep();
            act(name, slot.wake(name, press, woken));
            if slept {
                woken.pop();
                slot.sleep(press);
            }
        }
    }

    /// Notes of every node that is there whether this replica comes first for it; all sleep on. For so many it does.
    pub(super) fn rank(&mut self, comes_first: impl Fn(&Name) -> bool) -> usize {
        let mut many = 0;
        for (name, slot) in &mut self.slots {
            let first = slot.pulse().has(Signs::THERE) && comes_first(name);
            match slot {
                Slot::Awake(entry) => entry.counted.first = first,
                Slot::Asleep { pulse, .. } => pulse.signs.set(Signs::FIRST, first),
            }
            many += usize::from(first);
        }
        many
    }

    /// What those that sleep were pressed into.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let pressed = |slot: &Slot| match slot {
            Slot::Asleep { pressed, .. } => pressed.len(),
            Slot::Awake(_) => 0,
        };
        self.slots.values().map(pressed).sum()
    }

    /// How many are awake.
    #[cfg(test)]
    pub(super) fn awake(&self) -> usize {
        self.slots.values().filter(|slot| !slot.is_asleep()).count()
    }
}

impl Slot {
    fn is_asleep(&self) -> bool {
        matches!(self, Self::Asleep { .. })
    }

    fn pulse(&self) -> Pulse {
        match self {
            Self::Awake(entry) => Pulse::of(entry),
            Self::Asleep { pulse, .. } => *pulse,
        }
    }

    fn wake(&mut self, name: &Name, press: &Press, woken: &mut Vec<Name>) -> &mut Entry {
        if let Self::Asleep { pulse, pressed } = self {
            *self = Self::Awake(dreamt(press, *pulse, pressed));
            woken.push(name.clone());
        }
        match self {
            Self::Awake(entry) => entry,
            Self::Asleep { .. } => unreachable!("it was woken"),
        }
    }

    fn sleep(&mut self, press: &mut Press) {
        let Self::Awake(entry) = self else { return };
        if entry.busy {
            return;
        }
        let pulse = Pulse::of(entry);
        let pressed = press.press(entry);
        debug_assert_eq!(*dreamt(press, pulse, &pressed), **entry, "it would wake as another");
        *self = Self::Asleep { pulse, pressed };
    }
}

fn tail(uid: Uuid) -> u32 {
    let [.., a, b, c, d] = *uid.as_bytes();
    u32::from_be_bytes([a, b, c, d])
}

fn dreamt(press: &Press, pulse: Pulse, pressed: &[u8]) -> Box<Entry> {
    let mut entry = press.open(pressed);
    pulse.quicken(&mut entry);
    entry
}
