//! A line to be decided, in a few words, and the plan that is expected of it.

use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use uuid::Uuid;

use super::dsl::{CLOSE_AFTER, GATE, NODE, NOW, OPEN_AFTER};
use crate::keeper::born::{Birth, born};
use crate::keeper::{
    Body, Context, End, Erasure, Kin, Line, Live, Patch, Plan, RecordSight, Seen, Sight, Why, Write, decide,
};
use crate::policy::Policy;
use crate::record::{Record, Version};

/// The default policy: compiled once, for globs take their time.
pub(super) static DEFAULT: LazyLock<Arc<Policy>> = LazyLock::new(Arc::default);

/// A line to be decided.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) line: Line,
    pub(super) policy: Arc<Policy>,
    pub(super) now: Timestamp,
    pub(super) capture: bool,
    pub(super) restore: bool,
    pub(super) rollout: bool,
    pub(super) seals: bool,
    pub(super) condition: bool,
}

/// Both lists are complete, and there is neither a node nor a record.
fn case(sight: Sight) -> Case {
    let line = Line { sight, record: RecordSight::None, ..Line::default() };
    Case {
        line,
        policy: DEFAULT.clone(),
        now: NOW,
        capture: true,
        restore: true,
        rollout: false,
        seals: false,
        condition: false,
    }
}

/// The node lives.
pub(super) fn node(live: Live) -> Case {
    case(Sight::Live(Box::new(live)))
}

/// The node was seen to be gone at a version; nobody looked since.
pub(super) fn gone(at: Version) -> Case {
    case(Sight::Absent { at, looked: None, missing: false })
}

/// A direct read just now did not find the node.
pub(super) fn looked(at: Version) -> Case {
    case(Sight::Absent { at, looked: Some(NOW), missing: false })
}

/// A list did not have the node.
pub(super) fn missing() -> Case {
    case(Sight::Missing)
}

/// The first list is not complete.
pub(super) fn unlisted() -> Case {
    case(Sight::Unlisted)
}

impl Case {
    pub(super) fn with(self, record: Record) -> Self {
        self.body(Body::Whole(Box::new(record)))
    }

    pub(super) fn with_summary(self, record: &Record) -> Self {
        self.body(Body::Summary(record.summary()))
    }

    pub(super) fn body(mut self, body: Body) -> Self {
        let seen = Seen { uid: Uuid::from_u128(99), version: 1000, foreign: false, sealed: true, body };
        self.line.record = RecordSight::Seen(Box::new(seen));
        self
    }

    pub(super) fn foreign(mut self) -> Self {
        if let RecordSight::Seen(seen) = &mut self.line.record {
            seen.foreign = true;
        }
        self
    }

    pub(super) fn records_unlisted(mut self) -> Self {
        self.line.record = RecordSight::Unlisted;
        self
    }

    pub(super) fn ends(mut self, ends: impl IntoIterator<Item = End>) -> Self {
        self.line.ends.extend(ends);
        self
    }

    pub(super) fn vanished(mut self, uid: Uuid, version: Version) -> Self {
        self.line.vanished = Some((uid, version));
        self
    }

    pub(super) fn lost(mut self, uid: Uuid) -> Self {
        self.line.lost = Some(uid);
        self
    }

    pub(super) fn kin(mut self, kin: Kin) -> Self {
        self.line.kin = Some(Box::new(kin));
        self
    }

    pub(super) fn awaited(mut self) -> Self {
        self.line.awaited = true;
        self
    }

    pub(super) fn over_cap(mut self) -> Self {
        self.line.over_cap = true;
        self
    }

    /// The content of the living node was dropped, as it is at rest.
    pub(super) fn settled(mut self) -> Self {
        self = self.judged();
        if let Sight::Live(live) = &mut self.line.sight {
            live.content = None;
        }
        self
    }

    /// Another replica runs under another policy.
    pub(super) fn rollout(self) -> Self {
        Self { rollout: true, ..self }
    }

    /// Records are sealed here, and this one is not.
    pub(super) fn unsealed(mut self) -> Self {
        if let RecordSight::Seen(seen) = &mut self.line.record {
            seen.sealed = false;
        }
        Self { seals: true, ..self }
    }

    /// What was last to be done about it did not happen.
    pub(super) fn hindered(mut self) -> Self {
        self.line.hindered = true;
        self
    }

    /// Nodes are told that they have their own; these two are, and are not, as far as is known.
    pub(super) fn tells(mut self, told: Option<Uuid>, untold: Option<Uuid>) -> Self {
        (self.line.told, self.line.untold) = (told, untold);
        Self { condition: true, ..self }
    }

    pub(super) fn context(&self) -> Context<'_> {
        let Self { line: _, policy, now, capture, restore, rollout, seals, condition } = self;
        Context {
            rollout: *rollout,
            seals: *seals,
            condition: *condition,
            ..context(policy, *now, *capture, *restore)
        }
    }

    pub(super) fn policy(self, policy: impl Into<Arc<Policy>>) -> Self {
        Self { policy: policy.into(), ..self }
    }

    pub(super) fn at(self, now: Timestamp) -> Self {
        Self { now, ..self }
    }

    pub(super) fn no_capture(self) -> Self {
        Self { capture: false, ..self }
    }

    pub(super) fn no_restore(self) -> Self {
        Self { restore: false, ..self }
    }

    /// Works out what a fold works out: the digest of what is kept.
    pub(super) fn judged(mut self) -> Self {
        let recorded = match self.line.seen().map(|seen| &seen.body) {
            Some(Body::Whole(record)) => Some(record.labels().into_owned()),
            _ => None,
        };
        if let Sight::Live(live) = &mut self.line.sight {
            live.judge(&self.policy, recorded.as_ref());
        }
        self
    }

    /// What a node that comes now with these labels, for this machine, is born with.
    pub(super) fn birth(self, labels: &[(&str, &str)], machine: Option<&str>) -> Birth {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        born(NODE, &labels, machine, &self.line, &self.context())
    }

    /// The labels of that.
    pub(super) fn bears(self, labels: &[(&str, &str)], machine: Option<&str>) -> Vec<(String, String)> {
        self.birth(labels, machine).labels.into_iter().collect()
    }

    pub(super) fn plan(self) -> Plan {
        let case = self.judged();
        let cx = case.context();
        decide(NODE, &case.line, &cx)
    }

    #[track_caller]
    pub(super) fn rests(self, why: Why) {
        assert_eq!(self.plan(), Plan::Rest(why));
    }

    #[track_caller]
    pub(super) fn saves(self, write: Write) {
        assert_eq!(self.plan(), Plan::Save(write));
    }

    /// A save of which only a part is of interest.
    #[track_caller]
    pub(super) fn plan_is_save_of(self, check: impl FnOnce(&Record)) {
        match self.plan() {
            Plan::Save(write) => check(&write.record),
            other => panic!("not a save: {other:?}"),
        }
    }

    #[track_caller]
    pub(super) fn closes(self, write: Write) {
        assert_eq!(self.plan(), Plan::Close(write));
    }

    #[track_caller]
    pub(super) fn gives(self, write: Write) {
        assert_eq!(self.plan(), Plan::Give(write));
    }

    #[track_caller]
    pub(super) fn patches(self, patch: Patch) {
        assert_eq!(self.plan(), Plan::Patch(Box::new(patch)));
    }

    #[track_caller]
    pub(super) fn erases(self, why: Erasure) {
        assert_eq!(self.plan(), Plan::Erase(why));
    }

    #[track_caller]
    pub(super) fn proves(self, uid: Uuid, from: Version, to: Version) {
        assert_eq!(self.plan(), Plan::Prove { uid, from, to });
    }

    #[track_caller]
    pub(super) fn reads_end(self, uid: Uuid, deleted: Version) {
        assert_eq!(self.plan(), Plan::ReadEnd { uid, deleted });
    }

    #[track_caller]
    pub(super) fn reads_node(self) {
        assert_eq!(self.plan(), Plan::ReadNode);
    }

    #[track_caller]
    pub(super) fn reads_record(self) {
        assert_eq!(self.plan(), Plan::ReadRecord);
    }

    #[track_caller]
    pub(super) fn waits(self, until: Timestamp) {
        assert_eq!(self.plan(), Plan::Wait { until });
    }
}

pub(super) fn context(policy: &Policy, now: Timestamp, capture: bool, restore: bool) -> Context<'_> {
    Context {
        policy,
        now,
        capture,
        restore,
        close_after: CLOSE_AFTER,
        gate: GATE,
        condition: false,
        seals: false,
        open_after: OPEN_AFTER,
        rollout: false,
    }
}
