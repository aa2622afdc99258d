//! Folds of what is heard of a record.

use super::{Body, End, Line, RecordSight, Seen, Sight};
use crate::record::{State, Version};

impl Line {
    /// Folds a version of the record. Returns false for one that is not newer than what is known.
    pub fn record_seen(&mut self, seen: Seen) -> bool {
        if self.seen().is_some_and(|known| known.version > seen.version) {
            return false;
        }
        // The echo of a write, or of a read, must not replace the content by its summary.
        if let Some(known) = self.seen().filter(|known| known.version == seen.version)
            && matches!(seen.body, Body::Summary(_) | Body::Unread { .. })
            && !matches!(known.body, Body::Unread { .. })
        {
            return false;
        }
        self.pass_on(&seen);
        self.record = RecordSight::Seen(Box::new(seen));
        self.vanished = None;
        // It was one of the oldest as it was, not as it is.
        self.over_cap = false;
        self.forget_ends();
        true
    }

    /// The record goes on to another version.
    fn pass_on(&mut self, next: &Seen) {
        if self.ends.is_empty() && self.lost.is_none() {
            return;
        }
        let same = self.seen().is_some_and(|known| known.uid == next.uid && !known.foreign);
        let Some((known, next)) = self.seen().zip(next.summary()) else { return };
        let named = known.names();
        if known.summary().is_none_or(|known| known.version != next.version) {
            // There is another place to start looking from.
            self.lost = None;
        }
        // A record goes on to another life only with the end of the one it named: that is accounted for, whatever
        // came of it since. One that was made anew does not.
        if named != Some(next.uid) && same && !next.unproved {
            self.ends.retain(|end| Some(end.uid) != named);
        }
    }

    /// Whether it matters when the record was removed: somebody who removes that of a node that is away forgets
    /// what ended before, and nothing else.
    #[must_use]
    pub fn weighs_removal(&self) -> bool {
        self.seen().is_some() && self.live().is_none() && !self.ends.is_empty()
    }

    /// Somebody else removed the record, as of `version`.
    pub fn record_removed(&mut self, version: Version) {
        let Some(known) = self.seen() else {
            self.record = RecordSight::None;
            return;
        };
        if known.version > version {
            return;
        }
        let (written, named, recorded) = (known.version, known.names(), known.summary());
        self.record = RecordSight::None;
        self.over_cap = false;
        if matches!(self.sight, Sight::Live(_)) {
            return;
        }
        // Somebody who removes the record of a node that is away forgets that node. Where there was no more in it
        // than an end, or nothing, its time may as well have been over, and what happened after it is not in it.
        let own = |end: &End| Some(end.uid) == named;
        match recorded {
            Some(record) if record.state == State::Closed || record.empty => {
                self.ends.retain(|end| {
                    end.version > record.version && !(own(end) && record.state == State::Closed)
                });
            }
            None if !self.ends.iter().any(own) => {}
            // One etcd counts the versions of Nodes and of records: who died after the removal was not away then, or
            // had yet to be born. Where they are counted apart, the record seems older than the Node that it is of,
            // or the removal later than every end, and all of them go: rather than that nobody could be forgotten.
            Some(record) if written < record.version => self.ends.clear(),
            Some(_) | None => self.ends.retain(|end| end.version > version),
        }
    }

    /// The record that was seen is collected: its time was over. What happened after it is not forgotten.
    pub fn record_collected(&mut self) {
        let held = self.seen().and_then(Seen::summary).map_or(0, |record| record.version);
        self.record = RecordSight::None;
        self.over_cap = false;
        self.ends.retain(|end| end.version > held);
    }
}
