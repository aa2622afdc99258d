//! Folds what the watches, reads and writes say into the lines.

use jiff::Timestamp;
use perennial_core::keeper::{Body, Erasure, Provider, RecordSight, Seen, Sight, Why, expired};
use perennial_core::policy::Policy;
use perennial_core::record::{Record, Summary, Version};

use super::lines::{Glimpse, Signs};
use super::{Ledger, Name, Suspect};
use crate::cluster::Unchanged;
use crate::keeper::object::{NodeObject, RecordObject};
use crate::keeper::window::Cell;

impl Ledger {
    /// A list of nodes begins. Whatever was told before it is in it, or newer.
    pub(crate) fn nodes_listing(&mut self) {
        self.node_list += 1;
        self.told_before = self.told;
    }

    /// A list of records begins.
    pub(crate) fn records_listing(&mut self) {
        self.record_list += 1;
        self.told_records_before = self.told_records;
    }

    /// An object that may show that this is another history.
    pub(crate) fn suspect(&self) -> Option<&Suspect> {
        self.suspect.as_ref()
    }

    /// It did not.
    pub(crate) fn clear_suspect(&mut self) {
        self.suspect = None;
    }

    /// A list or a watch shows a node at this version. What was told of it before the last list began cannot be newer.
    fn check_node(&mut self, name: &Name, version: Version) {
        if version < self.told_before {
            let known = self.entry_mut(name).node_version();
            if version < known && known <= self.told_before {
                self.suspect.get_or_insert_with(|| Suspect::Node(name.clone(), known));
            }
        }
    }

    /// The same for a record.
    fn check_record(&mut self, name: &Name, version: Version) {
        if version < self.told_records_before {
            let known = self.entry_mut(name).record_version();
            if version < known && known <= self.told_records_before {
                self.suspect.get_or_insert_with(|| Suspect::Record(name.clone(), known));
            }
        }
    }

    /// Whether a node is as it was when it was last folded, and only its version is another: that is folded here.
    pub(crate) fn node_beats(&mut self, node: &NodeObject, policy: &Policy) -> bool {
        let version = node.metadata.resource_version;
        let beats = self
            .lines
            .asleep(&node.metadata.name)
            .filter(|pulse| pulse.has(Signs::CALM) && pulse.fingerprint == node.fingerprint(policy));
        let Some(pulse) = beats.filter(|pulse| pulse.version <= version) else { return false };
        pulse.node_list = self.node_list;
        pulse.version = version;
        self.told = self.told.max(version);
        true
    }

    /// Folds a node as it is now. Returns its name if that could change a decision.
    pub(crate) fn node_applied(
        &mut self,
        node: NodeObject,
        installation: &str,
        policy: &Policy,
        now: Timestamp,
    ) -> Option<Name> {
        let name = self.name(&node.metadata.name);
        let list = self.node_list;
        let version = node.metadata.resource_version;
        self.told = self.told.max(version);
        self.check_node(&name, version);
        let fingerprint = node.fingerprint(policy);
        let entry = self.entry_mut(&name);
        entry.node_list = list;
        if let Sight::Live(live) = &mut entry.line.sight
            && entry.fingerprint == fingerprint
            && live.uid == node.metadata.uid
            && !live.may_learn(now)
        {
            live.version = live.version.max(version);
            // A line that lagged behind its record may have caught up with it.
            return (entry.skipped == Some(Why::Lagging)).then_some(name);
        }
        let live = node.into_live(installation, policy, now);
        if !entry.line.node_seen(live, policy, now) {
            return None;
        }
        entry.fingerprint = fingerprint;
        entry.held = false;
        Some(name)
    }

    /// Nodes are as they were, at other versions. Returns those of which a decision may be another now: a line that lagged
    /// may have caught up with its record, and a young node without a machine may have been told which one it is, which
    /// its metadata does not show.
    pub(crate) fn nodes_unchanged(
        &mut self,
        nodes: &[Unchanged],
        policy: &Policy,
        now: Timestamp,
    ) -> Vec<Name> {
        let mut news = Vec::new();
        for Unchanged { name, uid, version } in nodes {
            self.told = self.told.max(*version);
            if let Some(pulse) = self.lines.asleep(name)
                && pulse.is_of(*uid)
                && pulse.has(Signs::CALM)
            {
                pulse.version = pulse.version.max(*version);
                continue;
            }
            let name = self.name(name);
            let Some(entry) = self.lines.wake(&name) else { continue };
            if let Sight::Live(live) = &mut entry.line.sight
                && live.uid == *uid
            {
                // Where whole nodes are watched it would have been told as another one.
                let ask = *version > live.version && live.may_learn(now) && !policy.needs_spec();
                live.version = live.version.max(*version);
                if ask {
                    live.provider = Provider::Unread;
                }
                if ask || entry.skipped == Some(Why::Lagging) {
                    news.push(name);
                }
            }
        }
        news
    }

    /// Folds a node that was read directly: even what did not change may have been dropped before.
    ///
    /// Returns false for a life that the watch has not told of. It will, and in order: the ends of the lives
    /// before it are on their way, and what is given to it must not be decided without them.
    pub(crate) fn node_read(
        &mut self,
        name: &Name,
        node: NodeObject,
        installation: &str,
        policy: &Policy,
        now: Timestamp,
    ) -> bool {
        let fingerprint = node.fingerprint(policy);
        let told = self.told;
        let (uid, version) = (node.metadata.uid, node.metadata.resource_version);
        let known = self.entry_mut(name).node_version();
        if version < known {
            self.suspect.get_or_insert_with(|| Suspect::Node(name.clone(), known));
        }
        let entry = self.entry_mut(name);
        // An answer that is older than what the watch told since is no news: it is passed over below.
        let untold = match &entry.line.sight {
            Sight::Live(live) => live.uid != uid && version > live.version,
            Sight::Absent { at, missing: false, .. } => version > *at,
            Sight::Absent { missing: true, .. } | Sight::Unlisted | Sight::Missing => version > told,
        };
        if untold {
            return false;
        }
        let live = node.into_live(installation, policy, now);
        if entry.line.node_seen(live, policy, now) {
            entry.fingerprint = fingerprint;
        }
        true
    }

    /// A direct read at `version` found no node.
    ///
    /// Returns false for a node that was never seen here and whose record is of a later version than the watch has told:
    /// the watch is going to tell of that life, and of the ends of the lives before it.
    pub(crate) fn node_absent(&mut self, name: &Name, version: Version, now: Timestamp) -> bool {
        let told = self.told;
        let line = &mut self.entry_mut(name).line;
        let ahead = |record: Summary| record.version > told;
        if line.sight == Sight::Missing && line.seen().and_then(Seen::summary).is_some_and(ahead) {
            return false;
        }
        line.node_absent(version, now);
        true
    }

    /// The watch of nodes has told all up to `version`. Returns the lines that waited for it.
    pub(crate) fn nodes_reached(&mut self, version: Version) -> Vec<Name> {
        self.told = self.told.max(version);
        let mut released = Vec::new();
        self.lines.each(
            |pulse| pulse.has(Signs::HELD),
            |name, entry| {
                if matches!(entry.line.sight, Sight::Missing | Sight::Absent { missing: true, .. }) {
                    entry.held = false;
                    released.push(name.clone());
                }
            },
        );
        released
    }

    /// The watch of records has told all up to `version`.
    pub(crate) fn records_reached(&mut self, version: Version) {
        self.told_records = self.told_records.max(version);
    }

    /// Folds a node's end.
    pub(crate) fn node_deleted(
        &mut self,
        node: NodeObject,
        installation: &str,
        policy: &Policy,
        now: Timestamp,
    ) -> Name {
        let name = self.name(&node.metadata.name);
        let deleted = node.metadata.resource_version;
        self.told = self.told.max(deleted);
        let end = node.into_end(deleted, installation, policy, now);
        let entry = self.entry_mut(&name);
        entry.line.node_ended(end);
        entry.held = false;
        name
    }

    /// The list of nodes is complete. What it did not have is missing, which alone counts for nothing.
    pub(crate) fn nodes_listed(&mut self, version: Version) {
        self.nodes_listed = true;
        self.listed = (version, None);
        self.told = self.told.max(version);
        let list = self.node_list;
        self.lines.each(
            |pulse| pulse.has(Signs::HELD) || pulse.node_list != list,
            |_, entry| {
                // What was to be told since may be in the list, or never come.
                entry.held = false;
                if entry.node_list != list {
                    entry.line.node_missing(version);
                    entry.cell = Cell::Unknown;
                }
            },
        );
    }

    /// Folds a ConfigMap by its metadata. Returns the node's name if it is a record and could change a
    /// decision.
    pub(crate) fn record_applied(&mut self, object: &RecordObject) -> Option<Name> {
        let name = self.name(object.node()?);
        let list = self.record_list;
        let version = object.metadata.resource_version;
        self.told_records = self.told_records.max(version);
        self.check_record(&name, version);
        let entry = self.entry_mut(&name);
        entry.record_list = list;
        // Whatever follows what could not be read is somebody else's edit too: its annotations prove nothing.
        let sequence = |seen: &Seen| seen.summary().map_or(u64::MAX, |summary| summary.sequence);
        let mut seen = object.by_metadata(entry.line.seen().map(|known| (known.version, sequence(known))));
        entry.remember_name(&mut seen);
        let recorded = seen.node_version();
        entry.line.record_reported(seen.version);
        let news = entry.record_seen(seen);
        entry.held &= !news;
        self.recorded = self.recorded.max(recorded);
        if !news {
            return None;
        }
        self.index_machine(&name);
        Some(name)
    }

    /// A direct read at `version` found no record.
    ///
    /// Returns false where it matters when it was removed and the watch, which knew it, is going to tell that.
    pub(crate) fn record_absent(
        &mut self,
        name: &Name,
        version: Version,
        policy: &Policy,
        now: Timestamp,
    ) -> bool {
        let list = self.record_list;
        let due = self.is_due(name, policy, now);
        let entry = self.entry_mut(name);
        // What was written by this replica may be known later than its removal: the watch has told of that.
        let known = entry.seen().is_some_and(|seen| seen.version > entry.line.last_removal());
        if known && entry.record_list == list && entry.line.needs_removal(None) {
            return false;
        }
        entry.line.record_absent(version, version, due);
        true
    }

    /// Whether another replica may have collected a record, as far as this one can tell.
    fn is_due(&self, name: &Name, policy: &Policy, now: Timestamp) -> bool {
        let summary = |entry: Glimpse<'_>| entry.seen().and_then(Seen::summary);
        let over_cap = self.counts().absent > policy.max_absent();
        over_cap
            || self
                .entry(name)
                .and_then(summary)
                .is_some_and(|record| expired(&record, policy, now).is_some())
    }

    /// This replica removed the record: by a person's word, or because its time was over.
    pub(crate) fn record_erased(&mut self, name: &Name, version: Version, why: Erasure) {
        let line = &mut self.entry_mut(name).line;
        if line.seen().is_some_and(|seen| seen.version > version) {
            return;
        }
        line.record_erased(why == Erasure::Forgotten);
    }

    /// Folds a record that was read directly.
    ///
    /// Returns false where another one was removed before it, and the watch is going to report when.
    pub(crate) fn record_read(&mut self, name: &Name, object: &RecordObject) -> bool {
        let told = self.told_records;
        let entry = self.entry_mut(name);
        let known = entry.record_version();
        let (uid, version) = (object.metadata.uid, object.metadata.resource_version);
        let waits = version > told && known < version && entry.line.needs_removal(Some(uid));
        if version < known {
            self.suspect.get_or_insert_with(|| Suspect::Record(name.clone(), known));
        }
        if !waits {
            self.fold_record(name, object);
        }
        !waits
    }

    /// Folds a record that is known whole.
    fn fold_record(&mut self, name: &Name, object: &RecordObject) {
        let seen = object.whole(name, self.seals.as_deref());
        self.record_known(name, seen);
    }

    /// Folds a record as it is now.
    fn record_known(&mut self, name: &Name, mut seen: Seen) {
        let entry = self.entry_mut(name);
        // The same bytes judged again: what was found out about them holds.
        if let Some(known) = entry.line.seen().filter(|known| known.version == seen.version) {
            seen.foreign = known.foreign;
            if let (Body::Unreadable { aside, .. }, Body::Unreadable { aside: true, .. }) =
                (&mut seen.body, &known.body)
            {
                *aside = true;
            }
        }
        entry.remember_name(&mut seen);
        let recorded = seen.node_version();
        entry.record_seen(seen);
        self.recorded = self.recorded.max(recorded);
        self.index_machine(name);
    }

    /// A write of the record failed, and may have happened all the same: it has to be read again.
    pub(crate) fn record_doubted(&mut self, name: &Name) {
        if let RecordSight::Seen(seen) = &mut self.entry_mut(name).line.record {
            seen.body = Body::Unread { hint: seen.names() };
        }
    }

    /// A patch of the node failed, and may have happened all the same: it has to be read again.
    pub(crate) fn node_doubted(&mut self, name: &Name) {
        if let Sight::Live(live) = &mut self.entry_mut(name).line.sight {
            live.content = None;
        }
    }

    /// Folds a record that this replica wrote, so that nobody has to read it. Whoever has begun goes on: only another's
    /// write begins the wait for a turn anew.
    ///
    /// `created` is the last removal that was known when it was decided on, if there was no record before.
    pub(crate) fn record_written(
        &mut self,
        name: &Name,
        object: &RecordObject,
        record: Box<Record>,
        created: Option<Version>,
    ) {
        let (uid, version) = (object.metadata.uid, object.metadata.resource_version);
        if let Some(knew) = created {
            self.entry_mut(name).line.record_created(uid, version, knew);
        }
        self.record_known(name, object.holding(record));
        let entry = self.entry_mut(name);
        let over = entry.line.seen().map(|seen| seen.version);
        if let Some(pending) = &mut entry.pending
            && over == Some(version)
        {
            pending.over = over;
        }
    }

    /// Folds the content of a record that is known by its metadata. Whatever changed since is passed over.
    pub(crate) fn record_fetched(&mut self, object: &RecordObject) -> Option<Name> {
        let name = self.name(object.node()?);
        let known = self.entry(&name)?.seen()?.version;
        (known == object.metadata.resource_version).then(|| self.fold_record(&name, object))?;
        Some(name)
    }

    /// Folds a record's removal.
    pub(crate) fn record_deleted(
        &mut self,
        object: &RecordObject,
        policy: &Policy,
        now: Timestamp,
    ) -> Option<Name> {
        let name = self.name(object.node()?);
        let due = self.is_due(&name, policy, now);
        let version = object.metadata.resource_version;
        self.told_records = self.told_records.max(version);
        let entry = self.entry_mut(&name);
        entry.line.record_removed(object.metadata.uid, version, version, due);
        entry.held = false;
        Some(name)
    }

    /// The list of records is complete. One that it did not have has to be read before it counts as gone.
    pub(crate) fn records_listed(&mut self, version: Version) {
        self.records_listed = true;
        self.told_records = self.told_records.max(version);
        let list = self.record_list;
        self.lines.each(
            |pulse| pulse.record_list != list,
            |_, entry| {
                // Its removal was to be told, and never will be.
                entry.held = false;
                entry.line.records_listed();
                entry.cell = Cell::Unknown;
                match &mut entry.line.record {
                    RecordSight::Seen(seen) => {
                        seen.body = Body::Unread { hint: seen.names() };
                    }
                    RecordSight::Unlisted => entry.line.record = RecordSight::None,
                    RecordSight::None => {}
                }
            },
        );
    }

    /// The latest Node version that any record was seen to bear.
    pub(crate) fn recorded(&self) -> Version {
        self.recorded
    }

    /// Records whose Node version lies beyond `head` were written in another history, but for those that were
    /// written after `head` was read.
    pub(crate) fn judge_histories(&mut self, head: Version) -> Vec<Name> {
        let mut judged = Vec::new();
        if self.recorded <= head {
            return judged;
        }
        let beyond = |seen: &Seen| {
            seen.version <= head && seen.summary().is_some_and(|summary| summary.version > head)
        };
        for name in self.names() {
            if self.entry(&name).is_none_or(|entry| !entry.seen().is_some_and(beyond)) {
                continue;
            }
            if let RecordSight::Seen(seen) = &mut self.entry_mut(&name).line.record {
                seen.foreign = true;
                judged.push(name);
            }
        }
        judged
    }

    /// Another policy: every node and record that the next lists bring is judged anew.
    pub(crate) fn judge_anew(&mut self) {
        self.nodes_listed = false;
        self.records_listed = false;
        self.lines.each(
            |_| true,
            |_, entry| {
                entry.fingerprint = 0;
                // It lacks whatever only the new policy keeps.
                if let Sight::Live(live) = &mut entry.line.sight {
                    live.content = None;
                }
                entry.held = false;
                entry.line.agreed = None;
                entry.cell = Cell::Unknown;
            },
        );
    }

    /// Forgets everything: another history begins.
    pub(crate) fn reset(&mut self) {
        self.fleet.clear();
        *self = Self::counted_in(self.fleet.clone(), self.seals.take());
    }
}
