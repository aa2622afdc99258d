//! What there is: one node name and its record in an API server, some replicas, and the truth.

use std::sync::{Arc, LazyLock};

use jiff::{SignedDuration, Timestamp};
use perennial_core::keeper::{Context, End, Hand, Line, Live, Mark, Plan, Provider};
use perennial_core::kept::{Content, Digest, Kept, Pairs};
use perennial_core::policy::Policy;
use perennial_core::record::{Record, Version};
use uuid::Uuid;

use super::bounds::Budget;
use super::machines::Machine;
use super::truth::{Broken, Truth};

pub(crate) const NODE: &str = "n";
pub(crate) const KEYS: [&str; 2] = ["a", "b"];
pub(crate) const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);
/// Beyond every retention.
const MUCH_LATER: SignedDuration = SignedDuration::from_hours(24 * 60);

/// Keeps every key.
pub(crate) const WIDE: usize = 0;
/// Keeps the first key alone.
pub(crate) const NARROW: usize = 1;
/// Gives nothing to another machine of the same name.
pub(crate) const PROVIDER: usize = 2;

static POLICIES: LazyLock<[Policy; 3]> = LazyLock::new(|| {
    ["", "rules: [{labels: {include: [a]}}]", "rules: [{identity: provider}]"]
        .map(|yaml| Policy::parse(yaml).expect("a policy that is allowed"))
});

pub(crate) fn policy(at: usize) -> &'static Policy {
    &POLICIES[at]
}

/// The values of [`KEYS`]; 0 where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Labels(pub(crate) [u8; 2]);

pub(crate) const BARE: Labels = Labels([0, 0]);

impl Labels {
    pub(crate) fn of(pairs: &Pairs) -> Self {
        Self(KEYS.map(|key| pairs.get(key).map_or(0, |value| value.parse().expect("a small number"))))
    }

    pub(crate) fn pairs(self) -> Pairs {
        let set = KEYS.iter().zip(self.0).filter(|(_, value)| *value != 0);
        set.map(|(key, value)| ((*key).to_owned(), value.to_string())).collect()
    }

    /// What a node that bears this would bear after `from` was restored to it.
    pub(crate) fn over(self, from: Self) -> Self {
        Self(std::array::from_fn(|at| if self.0[at] == 0 { from.0[at] } else { self.0[at] }))
    }

    /// What `from` has and this lacks.
    pub(crate) fn lacks(self, from: Self) -> Self {
        Self(std::array::from_fn(|at| if self.0[at] == 0 { from.0[at] } else { 0 }))
    }

    pub(crate) fn kept_by(self, policy: usize) -> Self {
        Self(if policy == NARROW { [self.0[0], 0] } else { self.0 })
    }
}

/// A Node as the API server has it. `life` stands for its uid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) life: u8,
    pub(crate) labels: Labels,
    /// Those that it was born with, as its stamp says and as they still are.
    pub(crate) born: Labels,
    pub(crate) mark: Mark,
    pub(crate) machine: Machine,
}

pub(crate) fn uid(life: u8) -> Uuid {
    Uuid::from_u128(u128::from(life))
}

pub(crate) fn life(uid: Uuid) -> u8 {
    u8::try_from(uid.as_u128()).expect("a life of this world")
}

impl Node {
    fn content(self) -> Content {
        let mut labels = self.labels.pairs();
        labels.extend(self.machine.role_pair());
        let born = if self.mark == Mark::None { self.born.pairs() } else { Pairs::new() };
        Content { labels, born, ..Content::default() }
    }

    /// What it bears of itself, until its mark says that all of it is its own.
    pub(crate) fn own(self) -> Labels {
        if self.mark == Mark::None { self.born.lacks(self.labels) } else { self.labels }
    }

    /// What a watch of metadata can tell from another version of it.
    pub(crate) fn print(self) -> Self {
        Self { machine: Machine { told: false, ..self.machine }, ..self }
    }

    /// As a watch, or a read that knows `provider`, shows it.
    pub(crate) fn live(self, version: Version, provider: Provider) -> Live {
        // Young enough to be told its machine, where that matters.
        let age = SignedDuration::from_hours(if self.machine == Machine::ANY { 24 } else { 0 });
        Live {
            uid: uid(self.life),
            version,
            created: NOW - age,
            terminating: false,
            mark: self.mark,
            hand: Hand::default(),
            digest: Digest::of(&[]),
            bare: true,
            wants_identity: false,
            provider,
            content: Some(self.content()),
        }
    }

    /// As the event of its deletion, or a proof that knows `provider`, shows it.
    pub(crate) fn end(self, deleted: Version, provider: &Provider, seen_at: Timestamp) -> End {
        End {
            uid: uid(self.life),
            version: deleted,
            content: self.content(),
            mark: self.mark,
            hand: Hand::default(),
            provider: provider.clone(),
            seen_at,
        }
    }
}

/// A record as the API server has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stored {
    /// The ConfigMap's own uid: one that is created anew is another.
    pub(crate) uid: u8,
    pub(crate) record: Arc<Record>,
}

/// A record that is not there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Removed {
    /// The ConfigMap's uid.
    pub(crate) uid: u8,
    /// The version of the node when it was removed.
    pub(crate) node: Version,
}

pub(crate) fn kept(kept: &Kept) -> Labels {
    Labels::of(&kept.labels)
}

/// What the API server has. Nodes and records count their versions apart, so that states that differ in nothing that
/// matters are the same; only of a removal it matters what had become of the node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    /// The name's history: the state at version `at + 1`.
    pub(crate) nodes: Vec<Option<Node>>,
    /// History before this version is compacted.
    pub(crate) begin: Version,
    /// How many records were made.
    pub(crate) made: u8,
    /// The record's history, as far as somebody has yet to hear of it, and its present.
    pub(crate) records: Vec<(Version, Result<Stored, Removed>)>,
}

impl Server {
    pub(crate) fn node(&self) -> Option<Node> {
        self.nodes.last().copied().flatten()
    }

    pub(crate) fn node_head(&self) -> Version {
        self.nodes.len() as Version
    }

    /// The node as it was at a version.
    pub(crate) fn node_at(&self, version: Version) -> Option<Node> {
        let at = usize::try_from(version).ok()?.checked_sub(1)?;
        self.nodes.get(at).copied().flatten()
    }

    pub(crate) fn record(&self) -> Option<(Version, &Stored)> {
        let (version, stored) = self.records.last()?;
        Some((*version, stored.as_ref().ok()?))
    }

    /// Removes the record.
    pub(crate) fn remove_record(&mut self) {
        let uid = self.record().map_or(0, |(_, stored)| stored.uid);
        let removed = Removed { uid, node: self.node_head() };
        self.records.push((self.record_head() + 1, Err(removed)));
    }

    pub(crate) fn record_head(&self) -> Version {
        self.records.last().map_or(RECORDS, |(version, _)| *version)
    }
}

/// What a plan was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Basis {
    /// The record's uid and version: what a write is conditioned on.
    pub(crate) over: Option<(Uuid, Version)>,
    /// The last removal of the record that was known.
    pub(crate) removal: Version,
}

/// Versions of records are greater than those of nodes, as if one etcd counted both.
pub(crate) const RECORDS: Version = 100;

/// A replica: its line, how far its streams got, and a plan it has not carried out yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Replica {
    pub(crate) policy: usize,
    pub(crate) up: bool,
    pub(crate) line: Line,
    /// The versions its streams have told.
    pub(crate) nodes: Version,
    pub(crate) records: Version,
    /// As of when its node stream is without a gap: when it last listed.
    pub(crate) since: Version,
    /// The node as last folded: an equal one changes nothing.
    pub(crate) print: Option<Node>,
    /// Nothing more is done about it until it changes.
    pub(crate) held: bool,
    pub(crate) plan: Option<Box<(Plan, Basis)>>,
    /// The lives whose ends it saw or proved since it started.
    pub(crate) saw: u8,
    /// The lives whose ends its watch will not tell any more.
    pub(crate) missed: u8,
    /// The history it knows of.
    pub(crate) epoch: u8,
}

impl Replica {
    pub(crate) fn down(policy: usize) -> Self {
        Self {
            policy,
            up: false,
            line: Line::default(),
            nodes: 0,
            records: RECORDS,
            since: 0,
            print: None,
            held: false,
            plan: None,
            saw: 0,
            missed: 0,
            epoch: 0,
        }
    }
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) server: Server,
    pub(crate) replicas: Vec<Replica>,
    /// Lives begun, in all histories.
    pub(crate) lives: u8,
    /// How often history was turned back.
    pub(crate) epoch: u8,
    /// How far the histories before this one are the same.
    pub(crate) fork: Version,
    pub(crate) snapshot: Option<Box<(Server, Truth)>>,
    /// Every retention is over for what was written before.
    pub(crate) late: bool,
    /// Records may be collected.
    pub(crate) collecting: bool,
    pub(crate) budget: Budget,
    pub(crate) truth: Truth,
    pub(crate) broken: Option<Broken>,
}

impl State {
    pub(crate) fn now(&self) -> Timestamp {
        if self.late { NOW + MUCH_LATER } else { NOW }
    }

    pub(crate) fn context(&self, at: usize) -> Context<'static> {
        Context {
            policy: policy(self.replicas[at].policy),
            now: self.now(),
            capture: true,
            restore: true,
            close_after: SignedDuration::ZERO,
            gate: SignedDuration::ZERO,
            condition: false,
            seals: false,
            open_after: SignedDuration::ZERO,
            rollout: self.replicas.iter().any(|replica| replica.policy != self.replicas[at].policy),
        }
    }
}
