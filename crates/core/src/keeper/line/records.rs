//! Folds of what is heard of a record.

use uuid::Uuid;

use super::{Body, Created, End, Line, RecordSight, Removal, Seen};
use crate::record::{State, Summary, Version};

impl Line {
    /// Folds a version of the record. Returns false for one that is not newer than what is known.
    pub fn record_seen(&mut self, seen: Seen) -> bool {
        if self.last_removal() >= seen.version
            || self.seen().is_some_and(|known| known.version > seen.version)
        {
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
        self.created = self.created.filter(|created| created.uid == seen.uid);
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

    /// Whether a direct read that found this ConfigMap, or none, has to wait for the record watch: a removal may lie
    /// between that and what is known, and its version tells which lives are forgotten.
    #[must_use]
    pub fn needs_removal(&self, found: Option<Uuid>) -> bool {
        match (self.seen().map(|seen| seen.uid), found) {
            (known, Some(found)) => known != Some(found),
            (Some(_), None) => self.live().is_some() || !self.ends.is_empty(),
            (None, None) => false,
        }
    }

    /// The ConfigMap `uid` was removed at version `at`. `until` is the version that Nodes had reached by then: one etcd
    /// counts both. `due` says that another replica may have collected it.
    pub fn record_removed(&mut self, uid: Uuid, at: Version, until: Version, due: bool) {
        if self.erased.take_if(|erased| *erased == uid).is_none() {
            self.remove(at, until, due);
        } else if self.seen().is_some_and(|seen| seen.uid == uid) {
            self.record = RecordSight::None;
        }
    }

    /// The record watch was replaced by a list: removals from before that are not reported any more.
    pub fn records_listed(&mut self) {
        self.erased = None;
    }

    fn remove(&mut self, at: Version, until: Version, due: bool) {
        let before = self.removal.unwrap_or(Removal { at: 0, until: 0, life: None });
        if before.at >= at {
            return;
        }
        let (until, life) = match self.seen() {
            // This replica has removed it already, or never heard of it.
            None => {
                self.record = RecordSight::None;
                (before.until, before.life)
            }
            // A later one is known: this replica created it, or read it ahead of the watch.
            Some(known) if known.version > at => (until, before.life),
            Some(known) => {
                let forgets = self.forgets(known, until, due);
                self.record = RecordSight::None;
                self.over_cap = false;
                forgets
            }
        };
        let removal = Removal { at, until: until.max(before.until), life };
        self.removal = Some(removal);
        let named = self.seen().and_then(Seen::names);
        self.ends.retain(|end| !removal.forgets(end.uid, end.version) || Some(end.uid) == named);
    }

    /// A direct read at version `at` found no record.
    pub fn record_absent(&mut self, at: Version, until: Version, due: bool) {
        // An answer from before the record that is known says nothing.
        if self.seen().is_none_or(|known| known.version <= at) {
            self.remove(at, until, due);
        }
    }

    /// This replica removed the record that is known. A record that a person had forgotten takes the ends along that are
    /// not later than itself.
    pub fn record_erased(&mut self, forgotten: bool) {
        let Some(seen) = self.seen() else { return };
        let (uid, version) = (seen.uid, seen.version);
        if forgotten {
            self.remove(version, version, false);
        } else {
            self.record_collected();
        }
        self.erased = Some(uid);
    }

    /// What the removal of this record takes along: the lives that ended up to a version, and one life.
    ///
    /// A person who removes the record of a node that is away forgets that node.
    fn forgets(&self, known: &Seen, until: Version, due: bool) -> (Version, Option<Uuid>) {
        let named = known.names();
        let is_closed = |record: &Summary| record.state == State::Closed;
        let life = known.summary().filter(is_closed).and(named);
        match known.summary() {
            // What happened after it is not forgotten with a record that was collected.
            Some(record) if due && (is_closed(&record) || record.empty) => (record.version, life),
            // Where versions of Nodes and records are counted apart, the record seems older than the Node that it is
            // of, and all that is known is forgotten: otherwise nobody could be.
            Some(record) if known.version < record.version => {
                (self.ends.last().map_or(0, |end| end.version).max(self.version()), life)
            }
            // What was in it is not known: it may have been closed, and collected.
            None if due && !self.ends.iter().any(|end| Some(end.uid) == named) => (0, None),
            // Who died after the removal was not away then, or had yet to be born.
            Some(_) | None => (until, life),
        }
    }

    /// A direct read found this life. If removals up to `knew` were known when it was asked for, it survived those.
    pub fn node_found(&mut self, uid: Uuid, knew: Version) {
        let Some(version) = self.live().filter(|live| live.uid == uid).map(|live| live.version) else {
            return;
        };
        if let Some(removal) = self.removal.as_mut().filter(|removal| removal.at <= knew) {
            removal.until = removal.until.min(version.saturating_sub(1));
            removal.life = removal.life.filter(|life| *life != uid);
        }
    }

    /// The last removal of the record that is known.
    #[must_use]
    pub fn last_removal(&self) -> Version {
        self.removal.map_or(0, |removal| removal.at)
    }

    /// Whether a life that was last seen, or ended, at this version was forgotten with a record that was removed.
    #[must_use]
    pub fn is_forgotten(&self, uid: Uuid, version: Version) -> bool {
        self.removal.is_some_and(|removal| removal.forgets(uid, version))
    }

    /// Whether an end was forgotten, and no later record names that life.
    pub(super) fn forgets_end(&self, end: &End) -> bool {
        self.is_forgotten(end.uid, end.version) && self.seen().and_then(Seen::names) != Some(end.uid)
    }

    /// Folds the record that this replica created. `knew` is the last removal that was known when the record was decided
    /// on.
    pub fn record_created(&mut self, uid: Uuid, version: Version, knew: Version) {
        self.created = Some(Created { uid, version, knew });
    }

    /// The record watch reports this version. It reports removals in order, so none from before is to come.
    pub fn record_reported(&mut self, version: Version) {
        let late = self.is_created_late();
        self.created = self.created.filter(|created| late || created.version > version);
    }

    /// Whether this replica created the record without knowing that an earlier one had been removed meanwhile.
    #[must_use]
    pub fn is_created_late(&self) -> bool {
        let current = |created: &Created| self.seen().is_some_and(|seen| seen.uid == created.uid);
        let created = self.created.filter(current);
        created.zip(self.removal).is_some_and(|(created, removal)| created.knew < removal.at)
    }

    /// The record that was seen is collected: its time was over. What happened after it is not forgotten.
    fn record_collected(&mut self) {
        let held = self.seen().and_then(Seen::summary).map_or(0, |record| record.version);
        self.record = RecordSight::None;
        self.over_cap = false;
        self.ends.retain(|end| end.version > held);
    }
}

impl Removal {
    fn forgets(self, uid: Uuid, version: Version) -> bool {
        version <= self.until || self.life == Some(uid)
    }
}
