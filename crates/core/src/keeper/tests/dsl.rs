//! A few words to say a line and the plan that is expected of it.
//!
//! What was seen lies at [`THEN`], with sequence 7; what is decided lies at [`NOW`], with sequence 8.

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

pub(super) use super::case::*;
use crate::keeper::{End, Hand, Live, Mark, Notice, Patch, Provider, Write};
use crate::kept::{Content, Kept, Pairs, Taint};
use crate::policy::Policy;
use crate::record::{Incarnation, Record, SCHEMA, State, Unproved, Version, Waiting, WaitingKeys};

pub(super) const NODE: &str = "worker-1";
pub(super) const U1: Uuid = Uuid::from_u128(1);
pub(super) const U2: Uuid = Uuid::from_u128(2);
pub(super) const U3: Uuid = Uuid::from_u128(3);
pub(super) const U4: Uuid = Uuid::from_u128(4);
pub(super) const ROLE: &str = "node-role.kubernetes.io/db";
const SEQUENCE: u64 = 7;

/// When everything that is seen was written, unless said otherwise.
pub(super) const THEN: Timestamp = Timestamp::constant(1_800_000_000, 0);
/// When a plan is made: later than every short delay, earlier than every retention.
pub(super) const NOW: Timestamp = Timestamp::constant(1_800_000_600, 0);
pub(super) const CLOSE_AFTER: SignedDuration = SignedDuration::from_secs(5);
pub(super) const GATE: SignedDuration = SignedDuration::from_mins(2);
pub(super) const OPEN_AFTER: SignedDuration = SignedDuration::from_secs(3);

/// What bears labels: a living node, an end, a record.
pub(super) trait Bears: Sized {
    fn pairs(&mut self) -> (&mut Pairs, &mut Pairs, &mut Vec<Taint>, &mut bool);
    fn machine(self, id: &str) -> Self;

    fn label(mut self, key: &str, value: &str) -> Self {
        self.pairs().0.insert(key.to_owned(), value.to_owned());
        self
    }

    fn annotation(mut self, key: &str, value: &str) -> Self {
        self.pairs().1.insert(key.to_owned(), value.to_owned());
        self
    }

    fn taint(mut self, key: &str, value: &str) -> Self {
        self.pairs().2.push(taint(key, value));
        self
    }

    fn cordoned(mut self) -> Self {
        *self.pairs().3 = true;
        self
    }
}

impl Bears for Live {
    fn pairs(&mut self) -> (&mut Pairs, &mut Pairs, &mut Vec<Taint>, &mut bool) {
        let Content { labels, annotations, taints, unschedulable, born: _, gated: _ } =
            self.content.as_mut().expect("said before `settled`");
        (labels, annotations, taints, unschedulable)
    }

    fn machine(self, id: &str) -> Self {
        Self { provider: Provider::Read(Some(id.to_owned())), ..self }
    }
}

impl Bears for End {
    fn pairs(&mut self) -> (&mut Pairs, &mut Pairs, &mut Vec<Taint>, &mut bool) {
        let Content { labels, annotations, taints, unschedulable, born: _, gated: _ } = &mut self.content;
        (labels, annotations, taints, unschedulable)
    }

    fn machine(self, id: &str) -> Self {
        Self { provider: Provider::Read(Some(id.to_owned())), ..self }
    }
}

impl Bears for Record {
    fn pairs(&mut self) -> (&mut Pairs, &mut Pairs, &mut Vec<Taint>, &mut bool) {
        let Kept { labels, annotations, taints, unschedulable } = &mut self.kept;
        (labels, annotations, taints, unschedulable)
    }

    fn machine(mut self, id: &str) -> Self {
        self.incarnation.provider_id = Some(id.to_owned());
        self
    }
}

pub(super) fn taint(key: &str, value: &str) -> Taint {
    Taint { key: key.to_owned(), effect: "NoSchedule".to_owned(), value: value.to_owned() }
}

/// A living incarnation, long past its youth, whose providerID was not read.
pub(super) fn live(uid: Uuid, version: Version) -> Live {
    Live {
        uid,
        version,
        created: THEN - SignedDuration::from_hours(24),
        terminating: false,
        mark: Mark::None,
        hand: Hand::default(),
        digest: Kept::default().digest(),
        bare: true,
        wants_identity: false,
        provider: Provider::Unread,
        content: Some(Content::default()),
    }
}

pub(super) trait LiveWords: Sized {
    fn born(self, key: &str, value: &str) -> Self;
    fn marked(self) -> Self;
    fn marked_full(self) -> Self;
    fn paused(self, yes: bool) -> Self;
    fn forget(self) -> Self;
}

impl LiveWords for Live {
    fn born(mut self, key: &str, value: &str) -> Self {
        let content = self.content.get_or_insert_default();
        content.born.insert(key.to_owned(), value.to_owned());
        self.label(key, value)
    }

    fn marked(self) -> Self {
        Self { mark: Mark::Given, ..self }
    }

    fn marked_full(self) -> Self {
        Self { mark: Mark::Full, ..self }
    }

    fn paused(mut self, yes: bool) -> Self {
        self.hand.pause = Some(yes);
        self
    }

    fn forget(mut self) -> Self {
        self.hand.forget = true;
        self
    }
}

impl LiveWords for End {
    fn born(mut self, key: &str, value: &str) -> Self {
        self.content.born.insert(key.to_owned(), value.to_owned());
        self.label(key, value)
    }

    fn marked(self) -> Self {
        Self { mark: Mark::Given, ..self }
    }

    fn marked_full(self) -> Self {
        Self { mark: Mark::Full, ..self }
    }

    fn paused(mut self, yes: bool) -> Self {
        self.hand.pause = Some(yes);
        self
    }

    fn forget(mut self) -> Self {
        self.hand.forget = true;
        self
    }
}

/// What only a living node can be.
pub(super) trait Living {
    fn terminating(self) -> Self;
    fn young(self) -> Self;
    fn gated(self) -> Self;
    fn no_machine(self) -> Self;
}

impl Living for Live {
    fn terminating(self) -> Self {
        Self { terminating: true, ..self }
    }

    fn young(self) -> Self {
        Self { created: NOW, ..self }
    }

    /// It was born just now, behind a gate.
    fn gated(self) -> Self {
        let content = self.content.map(|content| Content { gated: true, ..content });
        Self { created: NOW, content, ..self }
    }

    /// Its providerID was read, and it has none.
    fn no_machine(self) -> Self {
        Self { provider: Provider::Read(None), ..self }
    }
}

/// An end that was seen long enough ago for everybody to act, of a life that had no providerID.
pub(super) fn end(uid: Uuid, version: Version) -> End {
    End {
        uid,
        version,
        content: Content::default(),
        mark: Mark::None,
        hand: Hand::default(),
        provider: Provider::Read(None),
        seen_at: THEN,
    }
}

fn record(state: State, uid: Uuid, version: Version) -> Record {
    Record {
        schema: SCHEMA,
        node: NODE.to_owned(),
        state,
        incarnation: Incarnation { uid, provider_id: None },
        version,
        kept: Kept::default(),
        waiting: WaitingKeys::new(),
        previous: Vec::new(),
        captured_at: THEN,
        kept_since: None,
        deleted_at: (state == State::Closed).then_some(THEN),
        sequence: SEQUENCE,
        policy: DEFAULT.digest(),
        unproved: None,
        given: false,
        paused: false,
    }
}

pub(super) fn open(uid: Uuid, version: Version) -> Record {
    record(State::Open, uid, version)
}

pub(super) fn closed(uid: Uuid, version: Version) -> Record {
    record(State::Closed, uid, version)
}

pub(super) fn giving(uid: Uuid, version: Version) -> Record {
    record(State::Giving, uid, version)
}

pub(super) trait RecordWords: Sized {
    fn given(self) -> Self;
    fn on_hold(self) -> Self;
    fn waits(self, key: &str, value: &str, machine: Option<&str>) -> Self;
    fn unproved(self, uid: Uuid, from: State) -> Self;
    fn later(self, key: &str, value: &str) -> Self;
    fn before(self, earlier: &Record) -> Self;
    fn under(self, policy: &Policy) -> Self;
}

impl RecordWords for Record {
    fn given(self) -> Self {
        Self { given: true, ..self }
    }

    fn on_hold(self) -> Self {
        Self { paused: true, ..self }
    }

    fn waits(mut self, key: &str, value: &str, machine: Option<&str>) -> Self {
        let waiting = Waiting { value: value.to_owned(), provider_id: machine.map(str::to_owned) };
        self.waiting.insert(key.to_owned(), waiting);
        self
    }

    fn unproved(self, uid: Uuid, from: State) -> Self {
        Self { unproved: Some(Unproved::new(uid, from)), ..self }
    }

    /// A later life bore this label over the end in doubt.
    fn later(mut self, key: &str, value: &str) -> Self {
        let doubt = self.unproved.as_mut().expect("an end in doubt");
        doubt.later.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Remembers `earlier` after what it remembers already.
    fn before(mut self, earlier: &Record) -> Self {
        self.previous.push(earlier.now().to_previous());
        self
    }

    fn under(self, policy: &Policy) -> Self {
        Self { policy: policy.digest(), ..self }
    }
}

/// The record as the first write of a name makes it.
pub(super) fn first(record: Record) -> Write {
    Write {
        record: Box::new(Record { sequence: 1, captured_at: NOW, ..record }),
        notice: None,
        braked: false,
    }
}

/// The record as the write after the one that was seen makes it.
///
/// One that remembers nothing before it holds what was seen.
pub(super) fn next(record: Record) -> Write {
    let mut write = first(record);
    write.record.sequence = SEQUENCE + 1;
    write.record.kept_since = write.record.previous.is_empty().then_some(THEN);
    write
}

pub(super) fn telling(notice: Notice, write: Write) -> Write {
    Write { notice: Some(notice), ..write }
}

/// A patch that adds the mark and these labels.
pub(super) fn patch(uid: Uuid, version: Version, mark: Mark, labels: &[(&str, &str)]) -> Patch {
    Patch {
        uid,
        version,
        labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        annotations: Pairs::new(),
        taints: Vec::new(),
        cordon: false,
        unset: Vec::new(),
        mark,
        stamp: None,
        opens: false,
        withheld: 0,
    }
}

pub(super) fn policy(yaml: &str) -> Policy {
    Policy::parse(yaml).expect("a policy that is allowed")
}
