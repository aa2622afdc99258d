//! One life of a node, and one name with all its lives.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use perennial_core::{
    kept::Pairs,
    record::{Record, State},
};
use uuid::Uuid;

use super::{
    history::Sighting,
    owed::{Ended, Excuse, accounts},
    timeline::Timeline,
};

/// Why nothing is said about a node.
const UNJUDGED: &str = "what it left can be told in too many ways";

/// What may be missed without anybody being at fault.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Leniency {
    /// One of those who may write may have missed what ended up to this version.
    pub(super) missed_by_one: u64,
    /// Nobody who is able to act saw what ended up to this version.
    pub(super) missed_by_all: u64,
    /// Ends at this version or before cannot be proved any more.
    pub(super) compacted: u64,
}

impl Leniency {
    /// Whether nobody can tell any more what ended at this version.
    pub(super) fn has_lost(self, died: u64) -> bool {
        died <= self.compacted && died <= self.missed_by_all
    }
}

/// One life.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) born: u64,
    pub(super) died: Option<u64>,
    /// What was kept of it at each of its versions.
    pub(super) states: BTreeMap<u64, Arc<Pairs>>,
    pub(super) now: Sighting,
    /// The version at which a keeper gave it its own back.
    pub(super) marked: Option<u64>,
    /// What a record last said of it while it was open or being given to.
    pub(super) recorded: Option<Pairs>,
    /// Everything that records said is being given to it.
    pub(super) givings: Vec<Giving>,
    /// A record said that its end is in doubt.
    pub(super) doubted: bool,
}

/// What a record said is being given.
#[derive(Clone, Debug)]
pub(super) struct Giving {
    pub(super) labels: Pairs,
    /// It said too that an end in it is in doubt.
    pub(super) doubted: bool,
}

impl Life {
    /// What it may be given: what was said last, and what was said in doubt before. Who patches a node in doubt may not
    /// have heard yet that the real end turned up.
    pub(super) fn may_be_given(&self) -> impl Iterator<Item = &Pairs> {
        let last = self.givings.len().saturating_sub(1);
        let may = move |(place, giving): &(usize, &Giving)| *place == last || giving.doubted;
        self.givings.iter().enumerate().filter(may).map(|(_, giving)| &giving.labels)
    }

    pub(super) fn new(born: u64, now: Sighting, kept: Pairs) -> Self {
        let states = BTreeMap::from([(born, Arc::new(kept))]);
        let givings = Vec::new();
        Self { born, died: None, states, now, marked: None, recorded: None, givings, doubted: false }
    }

    /// What is kept of it now, or was at the last.
    pub(super) fn kept(&self) -> &Pairs {
        static NOTHING: Pairs = Pairs::new();
        self.states.last_key_value().map_or(&NOTHING, |(_, kept)| kept)
    }

    pub(super) fn change(&mut self, version: u64, now: Sighting, kept: Pairs) {
        let kept = match self.states.last_key_value() {
            Some((_, last)) if **last == kept => last.clone(),
            _ => Arc::new(kept),
        };
        self.states.insert(version, kept);
        self.now = now;
    }

    fn ended(&self, leniency: Leniency) -> Ended<'_> {
        let died = self.died.unwrap_or(u64::MAX);
        let excused = match &self.recorded {
            None => (died <= leniency.missed_by_one).then_some(Excuse::Unnamed),
            // A doubt has to be told: an old word that passes for the last one is a wrong one.
            Some(recorded) => (self.doubted && leniency.has_lost(died)).then_some(Excuse::Unproved(recorded)),
        };
        Ended { kept: self.kept(), marked: self.marked.is_some(), excused }
    }
}

/// A label that somebody set or removed on a living node.
#[derive(Clone, Debug)]
struct Edit {
    version: u64,
    life: Option<Uuid>,
    key: String,
    removed: bool,
}

/// One node name.
#[derive(Clone, Debug, Default)]
pub(super) struct Name {
    pub(super) lives: BTreeMap<Uuid, Life>,
    pub(super) live: Option<Uuid>,
    pub(super) record: Option<Box<Record>>,
    /// What is owed for sure, before the lives in `pending`.
    base: Pairs,
    /// Lives whose ends no record holds yet, in order.
    pending: Vec<Uuid>,
    edits: Vec<Edit>,
    pub(super) timeline: Timeline,
}

impl Name {
    pub(super) fn living(&self) -> Option<&Life> {
        self.live.and_then(|uid| self.lives.get(&uid))
    }

    /// The living node's labels changed, by a hand or by its birth.
    pub(super) fn edited(&mut self, version: u64, before: &Pairs, after: &Pairs) {
        let life = self.live;
        let set =
            after.iter().filter(|(key, value)| before.get(*key) != Some(*value)).map(|(key, _)| (key, false));
        let removed = before.keys().filter(|key| !after.contains_key(*key)).map(|key| (key, true));
        let edits =
            set.chain(removed).map(|(key, removed)| Edit { version, life, key: key.clone(), removed });
        self.edits.extend(edits.collect::<Vec<_>>());
    }

    /// Whether somebody removed this label from a life, after one version and up to another, for good. A later life
    /// may bear it again: it is judged by itself, and may have been missed.
    pub(super) fn was_removed(&self, key: &str, after: u64, until: u64) -> bool {
        let of_key = |edit: &&Edit| edit.key == key && edit.version <= until;
        let last: BTreeMap<Option<Uuid>, &Edit> =
            self.edits.iter().filter(of_key).map(|edit| (edit.life, edit)).collect();
        last.values().any(|edit| edit.removed && edit.version > after)
    }

    pub(super) fn died(&mut self, version: u64) {
        let Some(uid) = self.live.take() else { return };
        if let Some(life) = self.lives.get_mut(&uid) {
            life.died = Some(version);
            self.pending.push(uid);
        }
    }

    /// Every account of what the lives that were over at `until` left. `None` if there are too many to tell.
    pub(super) fn owed(&self, until: u64, leniency: Leniency) -> Option<BTreeSet<Pairs>> {
        let over = |life: &&Life| life.died.is_some_and(|died| died <= until);
        let lives = self.pending.iter().filter_map(|uid| self.lives.get(uid)).filter(over);
        accounts(&self.base, lives.map(|life| life.ended(leniency)))
    }

    /// Whether nothing may be owed to the life that was born at `born`. `None` if there is too much to tell.
    pub(super) fn may_owe_nothing(&self, born: u64, leniency: Leniency) -> Option<bool> {
        self.owed(born, leniency).map(|owed| owed.contains(&Pairs::new()))
    }

    /// A record holds what was owed at `until`.
    pub(super) fn resolved(&mut self, until: u64, content: &Pairs) {
        self.base = content.clone();
        let lives = &self.lives;
        let later = |uid: &Uuid| lives.get(uid).and_then(|life| life.died).is_some_and(|died| died > until);
        self.pending.retain(later);
    }

    /// The living got its own back, or nothing is owed to it: what was before it does not matter any more.
    pub(super) fn square(&mut self) {
        self.base.clear();
        self.pending.clear();
    }

    /// What keeps node and record from agreeing.
    pub(super) fn unsettled(&self, leniency: Leniency) -> Option<String> {
        let Some(life) = self.living() else { return self.unsettled_absent(leniency) };
        if life.now.terminating {
            return Some("it is being deleted".to_owned());
        }
        match self.may_owe_nothing(life.born, leniency) {
            _ if life.marked.is_some() => {}
            Some(true) => {}
            Some(false) => return Some("it did not get its own back".to_owned()),
            None => return Some(UNJUDGED.to_owned()),
        }
        let kept = life.kept();
        match &self.record {
            None => (!kept.is_empty()).then(|| "it has no record".to_owned()),
            Some(record) if kept.is_empty() && record.kept.labels.is_empty() => None,
            Some(record) if record.state != State::Open || Some(record.incarnation.uid) != self.live => {
                Some(format!("its record is not open for it but {}", record.state.as_str()))
            }
            Some(record) => {
                (record.kept.labels != *kept).then(|| "its record says something else".to_owned())
            }
        }
    }

    fn unsettled_absent(&self, leniency: Leniency) -> Option<String> {
        let Some(owed) = self.owed(u64::MAX, leniency) else { return Some(UNJUDGED.to_owned()) };
        match &self.record {
            None => (!owed.contains(&Pairs::new())).then(|| "it is away and has no record".to_owned()),
            Some(record) if record.kept.labels.is_empty() && owed.contains(&Pairs::new()) => None,
            Some(record) if record.state != State::Closed => {
                Some(format!("it is away and its record is {}", record.state.as_str()))
            }
            Some(record) => (!owed.contains(&record.kept.labels))
                .then(|| "it is away and its record is not its end".to_owned()),
        }
    }
}
