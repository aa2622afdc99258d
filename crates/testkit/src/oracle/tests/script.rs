//! A history of one node, written down step by step.

use jiff::Timestamp;
use perennial_core::{
    kept::{Digest, Kept, Pairs},
    policy::Policy,
    record::{Incarnation, Record, SCHEMA, State, Unproved},
};
use uuid::Uuid;

use crate::oracle::{Breach, Entry, Fact, Judge, Sighting, Told, Versions};

const NODE: &str = "n";
const MARK: &str = "restored.perennial.dev/perennial";

/// `"a=1 b=2"` as pairs.
pub(super) fn pairs(text: &str) -> Pairs {
    let pair = |word: &str| {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        (key.to_owned(), value.to_owned())
    };
    text.split_whitespace().map(pair).collect()
}

/// The judge, and what it was shown so far.
pub(super) struct Script {
    pub(super) judge: Judge,
    version: u64,
    node: Option<Sighting>,
    pub(super) record: Option<Record>,
    hands: u32,
}

impl Script {
    pub(super) fn new() -> Self {
        Self::with_policy(Policy::default())
    }

    pub(super) fn with_policy(policy: Policy) -> Self {
        let judge = Judge::new(policy, "perennial");
        Self { judge, version: 10, node: None, record: None, hands: 0 }
    }

    fn fold(&mut self, fact: Fact) -> u64 {
        self.version += 1;
        self.judge.fold(&Entry { version: self.version, fact });
        self.version
    }

    pub(super) fn tell(&mut self, told: Told) -> &mut Self {
        self.fold(Fact::Told(told));
        self
    }

    /// Nobody may have seen what ends from here on.
    pub(super) fn nobody_watches(&mut self) -> &mut Self {
        self.missed(&Versions::all(), &Versions::all())
    }

    /// One of the replicas may have missed this, and all of them that.
    pub(super) fn missed(&mut self, by_one: &Versions, by_all: &Versions) -> &mut Self {
        self.tell(Told::Missed { by_one: by_one.clone(), by_all: by_all.clone() })
    }

    /// A person removes the record.
    pub(super) fn remove_record(&mut self) -> &mut Self {
        self.tell(Told::Removing(NODE.to_owned())).found(None).tell(Told::Removed(NODE.to_owned()))
    }

    /// The version of the last step.
    pub(super) fn now(&self) -> u64 {
        self.version
    }

    fn show(&mut self, seen: Option<Sighting>) -> &mut Self {
        self.node.clone_from(&seen);
        self.fold(Fact::Node { name: NODE.to_owned(), seen });
        self
    }

    fn hand(&mut self) -> String {
        self.hands += 1;
        self.hands.to_string()
    }

    /// A node registers.
    pub(super) fn born(&mut self, uid: u128, labels: &str) -> &mut Self {
        self.born_as(uid, labels, Pairs::new())
    }

    fn born_as(&mut self, uid: u128, labels: &str, annotations: Pairs) -> &mut Self {
        let hand = Some(self.hand());
        let uid = Uuid::from_u128(uid);
        self.show(Some(Sighting {
            uid,
            labels: pairs(labels),
            annotations,
            taints: Vec::new(),
            unschedulable: false,
            hand,
            terminating: false,
            rest: 0,
        }))
    }

    /// Somebody changes the living node.
    pub(super) fn hands(&mut self, change: impl FnOnce(&mut Sighting)) -> &mut Self {
        let hand = Some(self.hand());
        self.keeper(|seen| {
            change(seen);
            seen.hand = hand;
        })
    }

    /// A kubelet says that it is alive.
    pub(super) fn heartbeat(&mut self) -> &mut Self {
        self.hands(|seen| seen.rest += 1)
    }

    /// Somebody labels the living node.
    pub(super) fn label(&mut self, labels: &str) -> &mut Self {
        self.hands(|seen| seen.labels.extend(pairs(labels)))
    }

    /// Somebody removes a label from the living node.
    pub(super) fn unlabel(&mut self, key: &str) -> &mut Self {
        self.hands(|seen| drop(seen.labels.remove(key)))
    }

    /// Somebody annotates the living node.
    pub(super) fn annotate(&mut self, key: &str, value: &str) -> &mut Self {
        self.hands(|seen| drop(seen.annotations.insert(key.to_owned(), value.to_owned())))
    }

    /// Somebody removes an annotation from the living node.
    pub(super) fn unannotate(&mut self, key: &str) -> &mut Self {
        self.hands(|seen| drop(seen.annotations.remove(key)))
    }

    /// A node registers with an annotation.
    pub(super) fn born_with(&mut self, uid: u128, labels: &str, key: &str, value: &str) -> &mut Self {
        let annotations = Pairs::from([(key.to_owned(), value.to_owned())]);
        self.born_as(uid, labels, annotations)
    }

    /// A keeper changes the living node.
    pub(super) fn keeper(&mut self, change: impl FnOnce(&mut Sighting)) -> &mut Self {
        let mut seen = self.node.clone().expect("a living node");
        change(&mut seen);
        self.show(Some(seen))
    }

    /// A keeper gives these labels, and marks the node.
    pub(super) fn given(&mut self, labels: &str) -> &mut Self {
        self.given_with(|seen| seen.labels.extend(pairs(labels)))
    }

    /// A keeper changes the node, and marks it.
    pub(super) fn given_with(&mut self, change: impl FnOnce(&mut Sighting)) -> &mut Self {
        self.keeper(|seen| {
            change(seen);
            seen.annotations.insert(MARK.to_owned(), seen.uid.to_string());
        })
    }

    pub(super) fn gone(&mut self) -> &mut Self {
        self.show(None)
    }

    /// A keeper writes the record.
    pub(super) fn record(&mut self, state: State, uid: u128, version: u64, labels: &str) -> &mut Self {
        self.written(state, uid, version, labels, |_| {})
    }

    pub(super) fn open(&mut self, uid: u128, labels: &str) -> &mut Self {
        self.record(State::Open, uid, self.now(), labels)
    }

    pub(super) fn giving(&mut self, uid: u128, labels: &str) -> &mut Self {
        self.record(State::Giving, uid, self.now(), labels)
    }

    pub(super) fn closed(&mut self, uid: u128, labels: &str) -> &mut Self {
        self.record(State::Closed, uid, self.now(), labels)
    }

    /// A keeper closes the record with what it holds, since history is gone.
    pub(super) fn closed_unproved(&mut self, uid: u128, version: u64, labels: &str) -> &mut Self {
        let doubt = Unproved::new(Uuid::from_u128(uid), State::Open);
        self.written(State::Closed, uid, version, labels, |record| record.unproved = Some(doubt))
    }

    pub(super) fn written(
        &mut self,
        state: State,
        uid: u128,
        version: u64,
        labels: &str,
        change: impl FnOnce(&mut Record),
    ) -> &mut Self {
        let mut record = Record {
            schema: SCHEMA,
            node: NODE.to_owned(),
            state,
            incarnation: Incarnation { uid: Uuid::from_u128(uid), provider_id: None },
            version,
            kept: Kept { labels: pairs(labels), ..Kept::default() },
            waiting: std::collections::BTreeMap::new(),
            previous: Vec::new(),
            captured_at: Timestamp::UNIX_EPOCH,
            kept_since: None,
            deleted_at: None,
            sequence: self.record.as_ref().map_or(1, |before| before.sequence + 1),
            policy: Digest::of(b""),
            unproved: None,
            given: false,
            paused: false,
        };
        change(&mut record);
        self.record = Some(record.clone());
        self.fold(Fact::Record { node: NODE.to_owned(), found: Some(Ok(Box::new(record))) });
        self
    }

    /// A record that is gone, or cannot be read.
    pub(super) fn found(&mut self, found: Option<Result<Box<Record>, String>>) -> &mut Self {
        if found.is_none() {
            self.record = None;
        }
        self.fold(Fact::Record { node: NODE.to_owned(), found });
        self
    }

    /// Nothing is wrong, and all agrees.
    #[track_caller]
    pub(super) fn is_fine(&self) {
        self.is_clean();
        assert_eq!(self.judge.unsettled(), []);
    }

    /// Nothing is wrong.
    #[track_caller]
    pub(super) fn is_clean(&self) {
        let told: Vec<String> = self.judge.violations().iter().map(ToString::to_string).collect();
        assert!(told.is_empty(), "{}", told.join("\n"));
    }

    /// Exactly this is wrong, and told with these words.
    #[track_caller]
    pub(super) fn breaks(&self, breach: Breach, words: &str) {
        let told: Vec<_> =
            self.judge.violations().iter().map(|one| (one.breach, one.what.as_str())).collect();
        let found = told.iter().any(|(found, what)| *found == breach && what.contains(words));
        assert!(found, "{breach:?} {words:?} is not among {told:#?}");
    }

    /// Not at rest, for this reason.
    #[track_caller]
    pub(super) fn waits(&self, words: &str) {
        let unsettled = self.judge.unsettled();
        assert!(unsettled.iter().any(|(_, why)| why.contains(words)), "{words:?} is not among {unsettled:?}");
    }
}
