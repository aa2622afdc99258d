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
    history::{Sighting, flat},
    owed::{Ended, Excuse, Owed, accounts},
    timeline::Timeline,
    versions::Versions,
};

/// Why nothing is said about a node.
const UNJUDGED: &str = "what it left can be told in too many ways";

/// What may be missed without anybody being at fault.
#[derive(Clone, Debug, Default)]
pub(super) struct Leniency {
    /// One of those who may write may have missed what ended at these versions.
    pub(super) missed_by_one: Versions,
    /// Nobody who is able to act saw what ended at these versions.
    pub(super) missed_by_all: Versions,
    /// Ends at this version or before cannot be proved any more.
    pub(super) compacted: u64,
}

impl Leniency {
    /// Whether a life that no record names, and that ended at this version, may be missed: a replica that may write missed
    /// it, and no replica that is able to act saw it.
    pub(super) fn may_miss(&self, died: u64) -> bool {
        self.missed_by_one.contains(died) && self.missed_by_all.contains(died)
    }

    /// Whether nobody can tell any more what ended at this version.
    pub(super) fn has_lost(&self, died: u64) -> bool {
        died <= self.compacted && self.missed_by_all.contains(died)
    }
}

/// One life.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) born: u64,
    pub(super) died: Option<u64>,
    /// The life before it.
    pub(super) previous: Option<Uuid>,
    /// What was kept of it at each of its versions.
    pub(super) states: BTreeMap<u64, Arc<Pairs>>,
    pub(super) now: Sighting,
    /// A person paused it, or it inherited the pause of the life before it.
    pub(super) paused: bool,
    /// The version at which a keeper gave it its own back.
    pub(super) marked: Option<u64>,
    /// What a record last said of it while it was open or being given to.
    pub(super) recorded: Option<Pairs>,
    /// Everything that records said is being given to it.
    pub(super) givings: Vec<Giving>,
    /// A record said that its end is in doubt.
    pub(super) doubted: bool,
    /// It might be missed when all was calm, and nothing has been recorded of it since: a pause was in the way.
    missed: bool,
    /// The same for an end that cannot be proved any more.
    lost: bool,
}

/// What a record said is being given.
#[derive(Clone, Debug)]
pub(super) struct Giving {
    pub(super) kept: Pairs,
    /// It said too that an end in it is in doubt.
    pub(super) doubted: bool,
}

impl Life {
    /// What it may be given: what was said last, and what was said in doubt before. Who patches a node in doubt may not
    /// have heard yet that the real end turned up.
    pub(super) fn may_be_given(&self) -> impl Iterator<Item = &Pairs> {
        let last = self.givings.len().saturating_sub(1);
        let may = move |(place, giving): &(usize, &Giving)| *place == last || giving.doubted;
        self.givings.iter().enumerate().filter(may).map(|(_, giving)| &giving.kept)
    }

    /// A life that begins. It inherits the pause of the life before it, unless it says something else itself.
    fn new(born: u64, previous: Option<(Uuid, bool)>, now: Sighting, kept: Pairs) -> Self {
        let inherited = previous.is_some_and(|(_, paused)| paused);
        let paused = now.asked().pause.unwrap_or(inherited);
        Self {
            born,
            died: None,
            previous: previous.map(|(uid, _)| uid),
            states: BTreeMap::from([(born, Arc::new(kept))]),
            now,
            paused,
            marked: None,
            recorded: None,
            givings: Vec::new(),
            doubted: false,
            missed: false,
            lost: false,
        }
    }

    /// What is kept of it now, or was at the last.
    pub(super) fn kept(&self) -> &Pairs {
        static NOTHING: Pairs = Pairs::new();
        self.states.last_key_value().map_or(&NOTHING, |(_, kept)| kept)
    }

    /// A person asks for it to be forgotten, or did so when it ended.
    pub(super) fn is_to_be_forgotten(&self) -> bool {
        self.now.asked().forget
    }

    pub(super) fn change(&mut self, version: u64, now: Sighting, kept: Pairs) {
        let kept = match self.states.last_key_value() {
            Some((_, last)) if **last == kept => last.clone(),
            _ => Arc::new(kept),
        };
        self.states.insert(version, kept);
        // An annotation that goes ends the pause that it was; what was inherited goes on until somebody says no.
        let said = self.now.asked().pause.is_some();
        self.paused = now.asked().pause.unwrap_or(self.paused && !said);
        self.now = now;
    }

    /// Whether its end may fail to count, and what counts instead.
    pub(super) fn excuse(&self, leniency: &Leniency) -> Option<Excuse<'_>> {
        let died = self.died.unwrap_or(u64::MAX);
        match &self.recorded {
            None => (self.missed || leniency.may_miss(died)).then_some(Excuse::Unnamed),
            // A doubt has to be told: an old word that passes for the last one is a wrong one.
            Some(recorded) => (self.doubted && self.has_lost(leniency)).then_some(Excuse::Unproved(recorded)),
        }
    }

    /// Whether nobody can tell any more how it ended.
    pub(super) fn has_lost(&self, leniency: &Leniency) -> bool {
        self.lost || self.died.is_some_and(|died| leniency.has_lost(died))
    }

    fn ended(&self, leniency: &Leniency) -> Ended<'_> {
        static NOTHING: Pairs = Pairs::new();
        let excused = self.excuse(leniency);
        if self.is_to_be_forgotten() {
            // With it everything goes that was before it.
            return Ended { kept: &NOTHING, marked: true, excused };
        }
        Ended { kept: self.kept(), marked: self.marked.is_some(), excused }
    }
}

/// What somebody set or removed on a living node.
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
    /// The version of the node at which the record's content was true. A record that was paused since names a later one.
    pub(super) true_at: u64,
    /// A person is about to remove the record.
    pub(super) removing: bool,
    /// A record was removed while the node was away: of the lives that had ended by this version nothing may come back.
    removed_at: u64,
    /// The last version at which a node of this name was to be forgotten.
    forget_until: u64,
    /// The last life that ended.
    last: Option<Uuid>,
    /// What is owed for sure, before the lives in `pending`.
    base: Pairs,
    /// The record was removed while a node lived to which this, or some of it, was owed: any part of it may still be.
    loose: Option<Pool>,
    /// Lives whose ends no record holds yet, in order.
    pending: Vec<Uuid>,
    edits: Vec<Edit>,
    pub(super) timeline: Timeline,
}

/// Pairs of which any may be owed.
pub(super) type Pool = BTreeSet<(String, String)>;

impl Name {
    pub(super) fn living(&self) -> Option<&Life> {
        self.live.and_then(|uid| self.lives.get(&uid))
    }

    /// A life begins.
    pub(super) fn born(&mut self, version: u64, seen: Sighting, kept: Pairs) {
        let last = self.last.and_then(|uid| Some((uid, self.lives.get(&uid)?)));
        // What is forgotten takes its pause along.
        let forgotten =
            |life: &Life| life.is_to_be_forgotten() || life.died.is_some_and(|died| died <= self.removed_at);
        let previous = last.map(|(uid, life)| (uid, life.paused && !forgotten(life)));
        self.live = Some(seen.uid);
        if seen.asked().forget {
            self.forget_until = version;
        }
        self.edited(version, &Pairs::new(), &kept);
        self.lives.insert(seen.uid, Life::new(version, previous, seen, kept));
    }

    /// The living node is written.
    pub(super) fn changed(&mut self, version: u64, seen: Sighting, kept: Pairs) {
        if seen.asked().forget {
            self.forget_until = version;
        }
        if let Some(life) = self.lives.get_mut(&seen.uid) {
            life.change(version, seen, kept);
        }
    }

    /// What the living node bears changed, by a hand or by its birth.
    pub(super) fn edited(&mut self, version: u64, before: &Pairs, after: &Pairs) {
        let life = self.live;
        let set =
            after.iter().filter(|(key, value)| before.get(*key) != Some(*value)).map(|(key, _)| (key, false));
        let removed = before.keys().filter(|key| !after.contains_key(*key)).map(|key| (key, true));
        let edits =
            set.chain(removed).map(|(key, removed)| Edit { version, life, key: key.clone(), removed });
        self.edits.extend(edits.collect::<Vec<_>>());
    }

    /// Whether somebody removed this from a life, after one version and up to another, for good. A later life may bear it
    /// again: it is judged by itself, and may have been missed.
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
            self.last = Some(uid);
        }
    }

    /// The record is removed, as somebody asked for. Of a node that is away nothing may come back. A node that lives is
    /// recorded again; of what it was still owed any part may be remembered by some replica, and by others not.
    pub(super) fn removed(&mut self, version: u64) {
        let owed = self.living().filter(|life| life.marked.is_none()).map(|_| self.pool());
        self.loose = owed.filter(|pool| !pool.is_empty());
        if self.live.is_none() {
            self.removed_at = version;
        }
        self.square();
        for life in self.lives.values_mut() {
            life.recorded = None;
            life.doubted = false;
        }
        if let Some(life) = self.live.and_then(|uid| self.lives.get_mut(&uid)) {
            life.paused = life.now.asked().pause == Some(true);
        }
    }

    /// Everything of which something may be owed.
    fn pool(&self) -> Pool {
        let ended: Vec<&Life> = self.pending.iter().filter_map(|uid| self.lives.get(uid)).collect();
        if let Some(last) = ended.iter().rposition(|life| life.is_to_be_forgotten()) {
            return ended[last + 1..].iter().flat_map(|life| life.kept().clone()).collect();
        }
        let owed = ended.into_iter().map(Life::kept).cloned();
        let recorded = self.record.iter().map(|record| flat(&record.kept));
        let pairs = owed.chain(recorded).chain([self.base.clone()]).flatten();
        pairs.chain(self.loose.clone().into_iter().flatten()).collect()
    }

    /// Whether the record speaks of a life that was forgotten with an earlier record.
    pub(super) fn is_stray(&self, record: &Record) -> bool {
        let died = self.lives.get(&record.incarnation.uid).and_then(|life| life.died);
        died.is_some_and(|died| died <= self.removed_at)
    }

    /// Whether a person asked for the record to go: with the node, or with a life that it does not know of yet.
    pub(super) fn is_forgotten(&self, record: &Record) -> bool {
        self.is_stray(record) || record.version <= self.forget_until
    }

    /// Every account of what the lives that were over at `until` left. `None` if there are too many to tell.
    pub(super) fn owed(&self, until: u64, leniency: &Leniency) -> Option<Owed> {
        let over = |life: &&Life| life.died.is_some_and(|died| died <= until);
        let lives: Vec<Ended<'_>> = self
            .pending
            .iter()
            .filter_map(|uid| self.lives.get(uid))
            .filter(over)
            .map(|life| life.ended(leniency))
            .collect();
        let pool = self.loose.clone().filter(|_| lives.iter().all(|life| !life.marked));
        Some(Owed { accounts: accounts(&self.base, lives)?, pool: pool.unwrap_or_default() })
    }

    /// Whether nothing may be owed to the life that was born at `born`. `None` if there is too much to tell.
    pub(super) fn may_owe_nothing(&self, born: u64, leniency: &Leniency) -> Option<bool> {
        self.owed(born, leniency).map(|owed| owed.contains(&Pairs::new()))
    }

    /// A record holds what was owed at `until`.
    pub(super) fn resolved(&mut self, until: u64, content: &Pairs) {
        self.base = content.clone();
        self.loose = None;
        let lives = &self.lives;
        let later = |uid: &Uuid| lives.get(uid).and_then(|life| life.died).is_some_and(|died| died > until);
        self.pending.retain(later);
    }

    /// The living got its own back, or nothing is owed to it: what was before it does not matter any more.
    pub(super) fn square(&mut self) {
        self.base.clear();
        self.pending.clear();
    }

    /// It got its own back: nothing is owed to it any more.
    pub(super) fn settle(&mut self) {
        self.square();
        self.loose = None;
    }

    /// All agrees, and what was excused until now is no longer, but for what a pause keeps from being recorded.
    pub(super) fn calm(&mut self, leniency: &Leniency) {
        let paused = self.living().map(|life| life.paused);
        let closed = self.record.as_ref().filter(|record| record.state == State::Closed);
        match (paused, closed.map(|record| flat(&record.kept))) {
            (Some(false), _) => self.settle(),
            (_, Some(content)) => self.resolved(u64::MAX, &content),
            (Some(true) | None, None) => {}
        }
        for uid in &self.pending {
            let Some(life) = self.lives.get_mut(uid) else { continue };
            life.missed |= life.died.is_some_and(|died| leniency.may_miss(died));
            life.lost |= life.died.is_some_and(|died| leniency.has_lost(died));
        }
    }

    /// What keeps node and record from agreeing.
    pub(super) fn unsettled(&self, leniency: &Leniency) -> Option<String> {
        let said = |what: &str| Some(what.to_owned());
        if self.record.as_ref().is_some_and(|record| self.is_stray(record)) {
            return said("it was forgotten, and has a record again");
        }
        let Some(life) = self.living() else { return self.unsettled_absent(leniency) };
        if life.is_to_be_forgotten() {
            return self.record.as_ref().and_then(|_| said("it is to be forgotten, and has a record"));
        }
        if life.paused {
            return self.unsettled_paused(life, leniency);
        }
        if life.now.terminating {
            return said("it is being deleted");
        }
        match self.may_owe_nothing(life.born, leniency) {
            _ if life.marked.is_some() => {}
            Some(true) => {}
            Some(false) => return said("it did not get its own back"),
            None => return said(UNJUDGED),
        }
        let kept = life.kept();
        match &self.record {
            None => (!kept.is_empty()).then(|| "it has no record".to_owned()),
            Some(record) if kept.is_empty() && record.kept.is_empty() => None,
            Some(record) if record.state != State::Open || Some(record.incarnation.uid) != self.live => {
                Some(format!("its record is not open for it but {}", record.state.as_str()))
            }
            Some(record) if record.paused => said("its record is paused, and it is not"),
            Some(record) => {
                (flat(&record.kept) != *kept).then(|| "its record says something else".to_owned())
            }
        }
    }

    /// A paused node is left alone, but the end of the life before it is recorded. Where that one was paused too, it may
    /// wait until the pause ends.
    fn unsettled_paused(&self, life: &Life, leniency: &Leniency) -> Option<String> {
        let ended: Vec<&Life> = self.pending.iter().filter_map(|uid| self.lives.get(uid)).collect();
        if ended.is_empty() || ended.iter().any(|life| life.paused) {
            return None;
        }
        let Some(owed) = self.owed(life.born, leniency) else { return Some(UNJUDGED.to_owned()) };
        let recorded = match &self.record {
            None => Pairs::new(),
            Some(record) if record.state == State::Open => {
                return Some("it is paused, and the end of the life before it is not recorded".to_owned());
            }
            Some(record) => flat(&record.kept),
        };
        let what = "it is paused, and its record is not the end of the life before it";
        (!owed.contains(&recorded)).then(|| what.to_owned())
    }

    fn unsettled_absent(&self, leniency: &Leniency) -> Option<String> {
        let last = self.pending.last().and_then(|uid| self.lives.get(uid));
        if last.is_some_and(|life| life.paused && !life.is_to_be_forgotten()) {
            return None;
        }
        let Some(owed) = self.owed(u64::MAX, leniency) else { return Some(UNJUDGED.to_owned()) };
        match &self.record {
            None => (!owed.contains(&Pairs::new())).then(|| "it is away and has no record".to_owned()),
            Some(record) if record.kept.is_empty() && owed.contains(&Pairs::new()) => None,
            Some(record) if record.state != State::Closed => {
                Some(format!("it is away and its record is {}", record.state.as_str()))
            }
            Some(record) => (!owed.contains(&flat(&record.kept)))
                .then(|| "it is away and its record is not its end".to_owned()),
        }
    }
}
