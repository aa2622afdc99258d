//! What a watch event says beside what was known: a node that came back, got its own, was changed by a hand. For
//! people who look; nothing is decided by it.

use jiff::Timestamp;
use perennial_core::keeper::{Live, Mark};
use perennial_core::kept::Digest;
use tokio::time::Instant;
use uuid::Uuid;

use super::Keeper;
use super::ledger::{Entry, Name};
use super::window::{Ask, Fleet, Kind, Story};
use crate::members::Roster;

/// How many of the nodes that go back and forth are named.
const CHURNERS: usize = 10;

/// What was known of a node before an event.
pub(super) struct Before {
    live: Option<(Uuid, Mark, Digest)>,
    remembered: bool,
}

impl Before {
    pub(super) fn of(entry: &Entry) -> Self {
        let remembered = entry.seen().is_some() || !entry.line.ends.is_empty();
        Self { live: entry.line.live().map(|live| (live.uid, live.mark, live.digest)), remembered }
    }
}

impl Keeper {
    /// Where to tell what happened, once it is news: the first lists are not.
    pub(super) fn story(&self) -> Option<&Story> {
        self.report.story.as_ref().filter(|_| self.synced)
    }

    /// Tells what an event says beside what was known.
    pub(super) fn observed(&self, name: &Name, before: Option<Before>, now: Timestamp) {
        let Some(story) = self.story() else { return };
        let Some(entry) = self.ledger.entry(name) else { return };
        let Some(&Live { uid, mark, digest, created, .. }) = entry.line.live() else { return };
        let remembered = before.as_ref().is_some_and(|before| before.remembered);
        match before.and_then(|before| before.live) {
            Some((same, unmarked, other)) if same == uid && unmarked == Mark::None && mark != Mark::None => {
                if other != digest {
                    let seconds = now.duration_since(created).as_secs_f64().max(0.0);
                    story.restored(name, uid, seconds, None, now);
                }
            }
            Some((same, _, other)) if same == uid => {
                if other != digest {
                    story.tell(Kind::Changed, name, Some(uid), "what is kept of it changed", now);
                }
            }
            _ if remembered => story.tell(Kind::Returned, name, Some(uid), "is back", now),
            _ => story.tell(Kind::Joined, name, Some(uid), "joined the cluster", now),
        }
    }

    /// Tells which replicas came and went.
    pub(super) fn tell_members(&self, now: &Roster) {
        let Some(story) = self.story() else { return };
        let names = |roster: &Roster| -> Vec<Name> {
            roster.members().iter().map(|member| member.name.as_str().into()).collect()
        };
        let (before, after) = (names(&self.roster), names(now));
        for name in after.iter().filter(|name| !before.contains(name)) {
            story.tell(Kind::Member, name, None, "a replica is at work", self.now());
        }
        for name in before.iter().filter(|name| !after.contains(name)) {
            story.tell(Kind::Member, name, None, "a replica is gone", self.now());
        }
    }

    /// Answers somebody who looks. One that went away meanwhile misses nothing.
    pub(super) fn answer(&mut self, ask: Ask) {
        match ask {
            Ask::Fleet { all, to } => {
                let fleet = Fleet {
                    cells: self.ledger.cells(all),
                    synced: self.synced,
                    inflight: self.work.len(),
                    records: self.records,
                    braked: self.brake.is_engaged(),
                    churners: self.ledger.churners(CHURNERS),
                };
                drop(to.send(fleet));
            }
            Ask::Line { name, to } => drop(to.send(self.ledger.line_view(&name, Instant::now()))),
            Ask::Enough => self.ledger.note_nothing(),
        }
    }
}
