//! The ledger's line for one node name: what was observed against what is recorded.
//!
//! A line is folded forward by what the watches, reads and writes say, in whatever order they say it: every
//! fold keeps the newer of two versions, so that an event that comes late, twice or out of order is harmless.

mod records;

use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::mark::{Hand, Mark};
use crate::kept::{Content, Digest, Pairs};
use crate::policy::Policy;
use crate::record::{Record, State, Summary, Version, moment, plain};

/// How long after its creation a node may still learn its `providerID` from a cloud controller.
pub const YOUTH: SignedDuration = SignedDuration::from_hours(1);

/// One node name in the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Line {
    /// What is known of the node now.
    pub sight: Sight,
    /// Ends that this replica saw or proved and no record holds yet, oldest first.
    pub ends: Vec<End>,
    /// What is known of its record.
    pub record: RecordSight,
    /// An incarnation that no record names vanished unseen after this version.
    pub vanished: Option<(Uuid, Version)>,
    /// The incarnation whose end was looked for in history, in vain.
    pub lost: Option<Uuid>,
    /// Under `identity: machine`, the newest record of the same machine under another name.
    pub kin: Option<Box<Kin>>,
    /// Somebody waits for this record to be closed.
    pub awaited: bool,
    /// There are more absent records than the policy's cap, and this is one of the oldest.
    pub over_cap: bool,
    /// Kept state and record sequence that were compared, in full and under different policies, and agree.
    pub agreed: Option<(Digest, u64)>,
    /// The incarnation whose status says that it has its own, as far as this replica said so.
    pub told: Option<Uuid>,
    /// The incarnation whose record this replica opened though its status could not be made to say so.
    pub untold: Option<Uuid>,
    /// What was last to be done about it did not happen, and may never.
    pub hindered: bool,
    /// The last removal of the record by somebody else, and what it takes along.
    pub removal: Option<Removal>,
    /// The ConfigMap that this replica erased, until the record watch reports its removal.
    pub erased: Option<Uuid>,
    /// This replica created the record, and the record watch has not reported it yet.
    pub created: Option<Created>,
}

/// Somebody else removed the record: the lives that had ended by then are forgotten with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Removal {
    /// The version of the removal.
    pub at: Version,
    /// Lives that ended up to this Node version are forgotten.
    pub until: Version,
    /// So is this one, whenever it ended: a closed record named it.
    pub life: Option<Uuid>,
}

/// A record that this replica created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Created {
    /// The ConfigMap's uid.
    pub uid: Uuid,
    /// Its first version.
    pub version: Version,
    /// The last removal that was known when the record was decided on. A create has no other precondition than absence,
    /// so one that arrives late may undo a later removal.
    pub knew: Version,
}

/// What is known of a Node now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Sight {
    /// The first list is not complete.
    #[default]
    Unlisted,
    /// A completed list did not have it. That alone counts for nothing: it must be read directly.
    Missing,
    /// It is gone: its deletion was seen, or a direct read did not find it.
    Absent {
        /// The version at which it was known to be gone.
        at: Version,
        /// When it was last read directly.
        #[serde(with = "moment::optional")]
        looked: Option<Timestamp>,
        /// A later list did not have it either, so the watch may have missed lives since.
        missing: bool,
    },
    /// It is there.
    Live(Box<Live>),
}

/// A living incarnation, as last seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Live {
    /// `metadata.uid`.
    pub uid: Uuid,
    /// `metadata.resourceVersion`.
    pub version: Version,
    /// `metadata.creationTimestamp`.
    #[serde(with = "moment")]
    pub created: Timestamp,
    /// It has a `deletionTimestamp`.
    pub terminating: bool,
    /// Whether it bears its mark. Sticky: a mark that was seen on this uid stays seen.
    pub mark: Mark,
    /// What a person asked for by annotation.
    pub hand: Hand,
    /// Digest of what the policy keeps of it.
    pub digest: Digest,
    /// The policy keeps nothing of it.
    pub bare: bool,
    /// The policy keeps something of it that is bound to the machine.
    pub wants_identity: bool,
    /// `spec.providerID`.
    pub provider: Provider,
    /// Everything it bears; dropped while the line is at rest.
    pub content: Option<Content>,
}

/// What is known of a node's `spec.providerID`, which a metadata watch does not carry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Provider {
    /// Not read yet.
    #[default]
    Unread,
    /// Read; `None` where it is not set.
    Read(Option<String>),
}

impl Provider {
    /// The id, where it is read and set.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Read(Some(id)) => Some(id),
            Self::Read(None) | Self::Unread => None,
        }
    }

    /// What two accounts of one life tell together. An id that is set once is never taken back.
    #[must_use]
    fn or(self, other: &Self) -> Self {
        match (&self, other) {
            (Self::Unread, _) | (Self::Read(None), Self::Read(Some(_))) => other.clone(),
            (Self::Read(_), _) => self,
        }
    }
}

/// The last version of an incarnation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct End {
    /// Whose end.
    pub uid: Uuid,
    /// The version of the deletion.
    pub version: Version,
    /// What it bore at the last.
    pub content: Content,
    /// Whether it bore its mark.
    pub mark: Mark,
    /// What a person asked for by annotation.
    pub hand: Hand,
    /// `spec.providerID`.
    pub provider: Provider,
    /// When this replica learned of it.
    #[serde(with = "moment")]
    pub seen_at: Timestamp,
}

/// What is known of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RecordSight {
    /// The first list of records is not complete.
    #[default]
    Unlisted,
    /// There is none.
    None,
    /// There is one.
    Seen(Box<Seen>),
}

/// A record as last seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Seen {
    /// The ConfigMap's uid.
    pub uid: Uuid,
    /// The ConfigMap's resourceVersion.
    pub version: Version,
    /// It was written in another history (an etcd restored, another cluster): its Node version means nothing.
    pub foreign: bool,
    /// It bears a seal, whatever that is worth.
    pub sealed: bool,
    /// What is known of its content.
    pub body: Body,
}

/// What is known of a record's content.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Body {
    /// Metadata alone.
    Summary(Summary),
    /// All of it.
    Whole(#[serde(with = "plain")] Box<Record>),
    /// Somebody else edited it: it must be read whole and judged.
    Unread {
        /// The incarnation its annotations name.
        hint: Option<Uuid>,
    },
    /// It is not a record.
    Unreadable {
        /// What is wrong with it.
        why: String,
        /// The incarnation its annotations name.
        hint: Option<Uuid>,
        /// Its bytes were copied aside.
        aside: bool,
    },
    /// Written by a newer binary.
    Newer,
}

impl Seen {
    /// The summary, where there is one; its version is 0 for a record of another history.
    #[must_use]
    pub fn summary(&self) -> Option<Summary> {
        let mut summary = match &self.body {
            Body::Summary(summary) => *summary,
            Body::Whole(record) => record.summary(),
            Body::Unread { .. } | Body::Unreadable { .. } | Body::Newer => return None,
        };
        if self.foreign {
            summary.version = 0;
        }
        Some(summary)
    }

    /// Whether it may be collected one day: its node is gone, or it has nothing to give.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        match &self.body {
            Body::Summary(summary) => summary.state == State::Closed || summary.empty,
            Body::Whole(record) => record.state == State::Closed || record.is_empty(),
            Body::Unread { .. } | Body::Unreadable { .. } | Body::Newer => false,
        }
    }

    /// The version of its node at which it was true, as it says itself; 0 where that is not known.
    #[must_use]
    pub fn node_version(&self) -> Version {
        match &self.body {
            Body::Summary(summary) => summary.version,
            Body::Whole(record) => record.version,
            Body::Unread { .. } | Body::Unreadable { .. } | Body::Newer => 0,
        }
    }

    /// The incarnation it names, as far as that is known.
    #[must_use]
    pub fn names(&self) -> Option<Uuid> {
        match &self.body {
            Body::Summary(summary) => Some(summary.uid),
            Body::Whole(record) => Some(record.incarnation.uid),
            Body::Unread { hint } | Body::Unreadable { hint, .. } => *hint,
            Body::Newer => None,
        }
    }
}

/// The record of the same machine under another name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kin {
    /// Its node is gone but its end is not recorded yet. This is the version it was recorded at.
    Open(Version),
    /// This is its end.
    Closed(#[serde(with = "plain")] Box<Record>),
}

impl Kin {
    /// The version at which it was true.
    #[must_use]
    pub fn version(&self) -> Version {
        match self {
            Self::Open(version) => *version,
            Self::Closed(record) => record.version,
        }
    }
}

impl Line {
    /// The living incarnation, if there is one.
    #[must_use]
    pub fn live(&self) -> Option<&Live> {
        match &self.sight {
            Sight::Live(live) => Some(live),
            Sight::Unlisted | Sight::Missing | Sight::Absent { .. } => None,
        }
    }

    /// The same, to change it.
    pub fn live_mut(&mut self) -> Option<&mut Live> {
        match &mut self.sight {
            Sight::Live(live) => Some(live),
            Sight::Unlisted | Sight::Missing | Sight::Absent { .. } => None,
        }
    }

    /// Whether a gate stands before it.
    #[must_use]
    pub fn is_gated(&self) -> bool {
        self.live().and_then(|live| live.content.as_ref()).is_some_and(|content| content.gated)
    }

    /// The record, if there is one.
    #[must_use]
    pub fn seen(&self) -> Option<&Seen> {
        match &self.record {
            RecordSight::Seen(seen) => Some(seen),
            RecordSight::Unlisted | RecordSight::None => None,
        }
    }

    /// The labels of the record, where its content is at hand.
    fn recorded_labels(&self) -> Option<Cow<'_, Pairs>> {
        match &self.seen()?.body {
            Body::Whole(record) => Some(record.labels()),
            _ => None,
        }
    }

    /// The version up to which the record, with the end of the life that it names, tells what became of the node; 0
    /// where there is none. Lives that began and ended after that are in nobody's record.
    #[must_use]
    pub fn accounted(&self) -> Version {
        let Some(record) = self.seen().and_then(Seen::summary) else { return 0 };
        let end = self.ends.iter().find(|end| end.uid == record.uid);
        end.map_or(record.version, |end| end.version.max(record.version))
    }

    /// The greatest Node version this line has seen.
    #[must_use]
    fn version(&self) -> Version {
        match &self.sight {
            Sight::Unlisted | Sight::Missing => 0,
            Sight::Absent { at, .. } => *at,
            Sight::Live(live) => live.version,
        }
    }

    /// Folds a version of the node. Returns false for one that is not newer than what is known.
    pub fn node_seen(&mut self, mut seen: Live, policy: &Policy, now: Timestamp) -> bool {
        // A direct read may repeat the version that is known, to fetch what was dropped or was never sent.
        let again = self.live().is_some_and(|known| known.uid == seen.uid && known.version == seen.version);
        if seen.version <= self.version() && !again {
            return false;
        }
        self.vanished = self.vanished.filter(|(uid, _)| *uid != seen.uid);
        match self.live() {
            Some(before) if before.uid == seen.uid => {
                seen.mark = seen.mark.max(before.mark);
                let ask = before.may_learn(now) && !again;
                if seen.provider == Provider::Unread && !ask {
                    seen.provider = before.provider.clone();
                }
            }
            _ => self.vanish(),
        }
        seen.judge(policy, self.recorded_labels().as_deref());
        self.sight = Sight::Live(Box::new(seen));
        self.forget_ends();
        true
    }

    /// A list that was complete at `listed` did not have the node. What is known to be newer stands.
    pub fn node_missing(&mut self, listed: Version) {
        if self.version() > listed {
            return;
        }
        self.vanish();
        match &mut self.sight {
            Sight::Absent { missing, .. } => *missing = true,
            sight => *sight = Sight::Missing,
        }
    }

    /// The living incarnation is no more, and its end was not seen. Where a record names it, the record is
    /// where its proof starts; otherwise what this replica saw of it is.
    fn vanish(&mut self) {
        if let Some(live) = self.live().filter(|live| !live.bare && self.seen().is_none()) {
            self.vanished = Some((live.uid, live.version));
        }
    }

    /// A direct, consistent read at `at` did not find the node.
    pub fn node_absent(&mut self, at: Version, now: Timestamp) {
        if at >= self.version() {
            self.vanish();
            self.sight = Sight::Absent { at, looked: Some(now), missing: false };
        }
    }

    /// Folds an end, seen or proved. It is held even when a newer incarnation is known already.
    pub fn node_ended(&mut self, mut end: End) {
        if let Some(live) = self.live().filter(|live| live.uid == end.uid) {
            end.mark = end.mark.max(live.mark);
            end.provider = end.provider.or(&live.provider);
        }
        if end.version > self.version() {
            self.sight = Sight::Absent { at: end.version, looked: None, missing: false };
        }
        self.vanished = self.vanished.filter(|(uid, _)| *uid != end.uid);
        self.lost = self.lost.filter(|uid| *uid != end.uid);
        if self.forgets_end(&end) {
            return;
        }
        if self.removal.is_some() && end.mark == Mark::None {
            // What it was born with may have come from a memory that was forgotten.
            end.content = end.content.own().into_owned();
        }
        if let Some(held) = self.ends.iter().find(|held| held.uid == end.uid) {
            end.provider = end.provider.or(&held.provider);
        }
        // One uid ends once: of two accounts the later one is right.
        self.ends.retain(|held| held.uid != end.uid || held.version > end.version);
        if !self.ends.iter().any(|held| held.uid == end.uid) {
            self.ends.push(end);
            self.ends.sort_by_key(|end| end.version);
        }
        self.forget_ends();
    }

    /// Folds the `providerID` that an incarnation had at its end; `None` where history does not tell it any more.
    pub fn end_read(&mut self, uid: Uuid, id: Option<String>) {
        if let Some(end) = self.ends.iter_mut().find(|end| end.uid == uid) {
            end.provider = std::mem::take(&mut end.provider).or(&Provider::Read(id));
        }
    }

    /// Lets go of what is held in full only while the line is pending: node and record agree. Returns the record, if it
    /// was one of that.
    pub fn settle(&mut self) -> Option<Box<Record>> {
        let summary = self.seen().and_then(Seen::summary);
        self.agreed = match (self.live(), summary) {
            (Some(live), Some(record)) if live.digest != record.digest => {
                Some((live.digest, record.sequence))
            }
            _ => None,
        };
        // Held on to where deciding again needs it: an older end, or a record that is another's.
        let own = match (self.live(), summary) {
            (Some(live), Some(record)) => record.state == State::Open && record.uid == live.uid,
            _ => true,
        };
        self.awaited = false;
        self.kin = None;
        if own && self.ends.is_empty() { self.let_go() } else { None }
    }

    fn let_go(&mut self) -> Option<Box<Record>> {
        if let Sight::Live(live) = &mut self.sight {
            live.content = None;
        }
        let RecordSight::Seen(seen) = &mut self.record else { return None };
        let summary = match &seen.body {
            Body::Whole(record) if record.state == State::Open => record.summary(),
            _ => return None,
        };
        match std::mem::replace(&mut seen.body, Body::Summary(summary)) {
            Body::Whole(record) => Some(record),
            _ => None,
        }
    }

    /// The record was read before, and is as it was then. Returns whether that is of any use: its content was let go.
    pub fn recall(&mut self, record: Box<Record>) -> bool {
        match &mut self.record {
            RecordSight::Seen(seen) if matches!(seen.body, Body::Summary(_)) => {
                seen.body = Body::Whole(record);
                true
            }
            _ => false,
        }
    }

    /// Lets go of the ends that a record holds: it is closed with it or later, or names a later incarnation
    /// whose mark was seen.
    fn forget_ends(&mut self) {
        if self.ends.is_empty() && self.lost.is_none() {
            return;
        }
        let Some(record) = self.seen().and_then(Seen::summary) else { return };
        let marked = |uid, mark| uid == record.uid && mark != Mark::None;
        let got_its_own = record.given
            || self.live().is_some_and(|live| marked(live.uid, live.mark))
            || self.ends.iter().any(|end| marked(end.uid, end.mark));
        // A summary does not say whose end is in doubt.
        let doubted = match self.seen().map(|seen| &seen.body) {
            Some(Body::Whole(record)) => record.unproved.as_ref().map(|doubt| doubt.uid),
            _ => None,
        };
        let in_doubt = |end: &End| record.unproved && doubted.is_none_or(|uid| uid == end.uid);
        self.ends.retain(|end| match record.state {
            State::Closed => {
                let held = end.version <= record.version || end.uid == record.uid;
                !held || in_doubt(end)
            }
            State::Open | State::Giving => {
                let held = got_its_own && end.uid != record.uid && end.version <= record.version;
                !held
            }
        });
        if self.lost.is_some_and(|uid| uid != record.uid) {
            self.lost = None;
        }
    }
}

impl Live {
    /// Whether a cloud controller may still be about to set its `providerID`.
    #[must_use]
    pub fn is_young(&self, now: Timestamp) -> bool {
        now.duration_since(self.created) < YOUTH
    }

    /// Whether it had no `providerID` when that was read, and may have got one with any version since: ask again.
    #[must_use]
    pub fn may_learn(&self, now: Timestamp) -> bool {
        self.provider == Provider::Read(None) && self.is_young(now)
    }

    /// Works out what the policy keeps of it, beside what is recorded.
    pub fn judge(&mut self, policy: &Policy, recorded: Option<&Pairs>) {
        let Some(content) = &self.content else { return };
        let rule = policy.rule_for(&content.labels, recorded);
        let kept = rule.map(|rule| rule.keep(content)).unwrap_or_default();
        self.digest = kept.digest();
        self.bare = kept.is_empty();
        self.wants_identity = rule.is_some_and(|rule| rule.needs_identity(&kept.labels));
    }
}
