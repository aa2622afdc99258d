//! Every call that came through.

use std::collections::VecDeque;

use super::Call;

/// More than any scenario makes; a proxy that runs for an hour forgets the oldest.
const LIMIT: usize = 200_000;

/// A call, and what became of it so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The call.
    pub call: Call,
    /// What the API server answered, if it was asked and did.
    pub server: Option<u16>,
    /// What the sender was told, if it was told anything.
    pub sender: Option<u16>,
}

#[derive(Default)]
pub(super) struct Journal {
    entries: VecDeque<Entry>,
    next: u64,
}

impl Journal {
    /// How many calls came so far, and so the next one's index.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    pub(super) fn begin(&mut self, call: Call) {
        self.next += 1;
        self.entries.push_back(Entry { call, server: None, sender: None });
        if self.entries.len() > LIMIT {
            self.entries.pop_front();
        }
    }

    pub(super) fn entry(&mut self, index: u64) -> Option<&mut Entry> {
        let first = self.entries.front()?.call.index;
        self.entries.get_mut(usize::try_from(index.checked_sub(first)?).ok()?)
    }

    /// Those from this index on.
    pub(super) fn since(&self, index: u64) -> Vec<Entry> {
        let new = self.entries.iter().rev().take_while(|entry| entry.call.index >= index).count();
        self.entries.iter().skip(self.entries.len() - new).cloned().collect()
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        self.entries.iter().cloned().collect()
    }
}
