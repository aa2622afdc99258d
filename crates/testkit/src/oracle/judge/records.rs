//! Records: each says something about a life, and history tells whether that is so.

use perennial_core::{
    kept::{Content, Kept, Pairs},
    record::{Record, State},
};

use super::Judge;
use crate::oracle::{
    history::flat,
    life::{Giving, Leniency},
    owed::Owed,
    timeline::{self, pairs, short},
    violation::Breach,
};

impl Judge {
    pub(super) fn record(&mut self, version: u64, node: &str, found: Option<&Result<Box<Record>, String>>) {
        let Some(found) = found else { return self.erased(version, node) };
        self.tally.records += 1;
        self.names.entry(node.to_owned()).or_default();
        match found {
            Ok(record) => {
                if let Some(name) = self.names.get_mut(node) {
                    name.timeline.add(version, timeline::record(record));
                }
                self.wrote(version, node, "the record");
                self.written(version, node, record);
            }
            Err(why) => {
                self.wrote(version, node, "the record");
                self.breach(Breach::OlderWon, node, version, format!("its record cannot be read: {why}"));
            }
        }
    }

    fn erased(&mut self, version: u64, node: &str) {
        let Some(name) = self.names.get_mut(node) else {
            self.wrote(version, node, "the record's end");
            if self.left.remove(node) {
                let what = "the record of a node that is away was removed".to_owned();
                self.breach(Breach::Lost, node, version, what);
            }
            return;
        };
        if std::mem::take(&mut name.removing) {
            name.timeline.add(version, "hand: the record is removed".to_owned());
            name.removed(version);
            name.record = None;
            return;
        }
        name.timeline.add(version, "keeper: the record is gone".to_owned());
        let forgotten = name.record.as_ref().is_some_and(|record| name.is_forgotten(record));
        if forgotten {
            name.removed(version);
        }
        let record = name.record.take().filter(|_| !forgotten);
        if let Some(record) = record.filter(|record| !record.is_empty()) {
            let what = format!("its record with {} was removed", pairs(&flat(&record.kept)));
            self.breach(Breach::Lost, node, version, what);
        }
        self.wrote(version, node, "the record's end");
    }

    fn written(&mut self, version: u64, node: &str, record: &Record) {
        let uid = record.incarnation.uid;
        if let Some(doubt) = &record.unproved
            && let Some(life) = self.names.get_mut(node).and_then(|name| name.lives.get_mut(&doubt.uid))
        {
            life.doubted = true;
        }
        if !self.confused {
            self.follows(version, node, record);
            self.shrinks(version, node, record);
        }
        self.beyond(version, node, record);
        let lived = self.names.get(node).is_some_and(|name| name.lives.contains_key(&uid));
        let before = self.names.get(node).and_then(|name| name.record.as_deref());
        let before = before.is_some_and(|record| record.incarnation.uid == uid);
        // A late write may bring back a record that somebody removed. It must go again, and nothing of it may be given.
        let stray = self.names.get(node).is_some_and(|name| name.is_stray(record));
        match record.state {
            // Late writes may come from the other history: only what comes of it counts.
            _ if self.confused => {}
            _ if stray => {}
            // Nor is it for whoever comes after that to say whether the life it names was.
            _ if !lived && before => {}
            _ if !lived => {
                let what = format!("its record names {}, which never lived", short(uid));
                self.breach(Breach::OlderWon, node, version, what);
            }
            State::Open => self.opened(version, node, record),
            State::Giving => self.giving(version, node, record),
            State::Closed => self.closed(version, node, record),
        }
        let Some(name) = self.names.get_mut(node) else { return };
        if let Some(life) = name.lives.get_mut(&uid).filter(|_| record.state != State::Closed && !stray) {
            let kept = flat(&record.kept);
            life.recorded = Some(kept.clone());
            if record.state == State::Giving {
                life.givings.push(Giving { kept, doubted: record.unproved.is_some() });
            }
        }
        // A pause carries over what the record said: it was true at an earlier version than the record names.
        let carried = name.record.as_ref().is_some_and(|before| is_carried(before, record));
        if !carried {
            name.true_at = record.version;
        }
        name.record = Some(Box::new(record.clone()));
    }

    /// A record holds what the policy keeps, and nothing else.
    fn beyond(&mut self, version: u64, node: &str, record: &Record) {
        let Kept { labels, annotations, taints, unschedulable } = record.kept.clone();
        let content = Content { labels, annotations, taints, unschedulable, ..Content::default() };
        if self.keep(&content) != flat(&record.kept) || !record.waiting.is_empty() {
            let what = "its record holds more than the policy keeps".to_owned();
            self.breach(Breach::OlderWon, node, version, what);
        }
    }

    /// The version never goes down, and the sequence grows by one.
    fn follows(&mut self, version: u64, node: &str, record: &Record) {
        let before = self.names.get(node).and_then(|name| name.record.as_deref());
        let (was, sequence) = before.map_or((0, 0), |before| (before.version, before.sequence));
        if record.version < was {
            let what = format!("its record went back from version {was} to {}", record.version);
            self.breach(Breach::OlderWon, node, version, what);
        }
        if record.sequence != sequence + 1 {
            let what = format!("its record's sequence went from {sequence} to {}", record.sequence);
            self.breach(Breach::OlderWon, node, version, what);
        }
    }

    /// A key leaves a record only if somebody removed it from the living node, or the node bears it itself.
    fn shrinks(&mut self, version: u64, node: &str, record: &Record) {
        let Some(name) = self.names.get(node) else { return };
        let Some(before) = name.record.as_ref().filter(|before| !name.is_stray(before)) else { return };
        let bears = |key: &String| {
            let life = name.lives.get(&record.incarnation.uid).filter(|_| record.state == State::Giving);
            life.is_some_and(|life| life.kept().contains_key(key))
        };
        let removed = |key: &String| name.was_removed(key, name.true_at, record.version);
        let (had, has) = (flat(&before.kept), flat(&record.kept));
        let mut gone = had.keys().filter(|key| !has.contains_key(*key));
        let taken = gone.find(|key| !removed(key) && !bears(key)).cloned();
        if let Some(key) = taken {
            let what = format!("{key} left its record, and nobody had removed it from the node");
            self.breach(Breach::Taken, node, version, what);
        }
    }

    /// open(U)@v: exactly what U bore at v, and nothing was owed to U.
    fn opened(&mut self, version: u64, node: &str, record: &Record) {
        let Some(name) = self.names.get(node) else { return };
        let Some(life) = name.lives.get(&record.incarnation.uid) else { return };
        let then = life.states.get(&record.version).map(|kept| (**kept).clone());
        let owes_nothing = name.may_owe_nothing(life.born, &self.leniency);
        let marked = life.marked.is_some();
        self.tally.unjudged += usize::from(owes_nothing.is_none() && !marked);
        let carried = name.record.as_ref().is_some_and(|before| is_carried(before, record));
        match then {
            Some(then) if then == flat(&record.kept) || carried => {}
            Some(then) => {
                let what =
                    format!("its record says other than it bore at {}: {}", record.version, pairs(&then));
                self.breach(Breach::OlderWon, node, version, what);
            }
            None => {
                let what =
                    format!("{} was never at version {}", short(record.incarnation.uid), record.version);
                self.breach(Breach::OlderWon, node, version, what);
            }
        }
        if owes_nothing == Some(false) && !marked {
            let what = "its record was opened though it had not got its own back".to_owned();
            self.breach(Breach::Lost, node, version, what);
        }
    }

    /// giving(U)@v: U was there at v, and what is given is what is owed.
    fn giving(&mut self, version: u64, node: &str, record: &Record) {
        let Some(life) = self.names.get(node).and_then(|name| name.lives.get(&record.incarnation.uid)) else {
            return;
        };
        let (there, born) = (life.states.contains_key(&record.version), life.born);
        let marked = life.marked.is_some_and(|marked| marked <= record.version);
        if !there {
            let what = format!("{} was never at version {}", short(record.incarnation.uid), record.version);
            self.breach(Breach::OlderWon, node, version, what);
        }
        if marked {
            let what = "its record says that it is given to, but it had got its own back".to_owned();
            self.breach(Breach::GivenTwice, node, version, what);
            return;
        }
        self.account(version, node, record, born);
    }

    /// closed(U)@d: U died at d, and the content is what is owed after it. Others may have died since: their ends come
    /// later.
    fn closed(&mut self, version: u64, node: &str, record: &Record) {
        let uid = record.incarnation.uid;
        let Some(name) = self.names.get(node) else { return };
        let Some(died) = name.lives.get(&uid).and_then(|life| life.died) else {
            let what = format!("its record was closed for {}, which lives", short(uid));
            return self.breach(Breach::OlderWon, node, version, what);
        };
        if record.unproved.is_none() && record.version != died {
            let what =
                format!("its record was closed at {}, but {} died at {died}", record.version, short(uid));
            self.breach(Breach::OlderWon, node, version, what);
        }
        self.account(version, node, record, died);
    }

    /// What a record closes with or gives is one of the accounts of what the lives until then left.
    fn account(&mut self, version: u64, node: &str, record: &Record, until: u64) {
        let Some(name) = self.names.get(node) else { return };
        let owed = name.owed(until, &self.leniency);
        let strict = name.owed(until, &Leniency::default());
        let content = flat(&record.kept);
        let strictly = strict.is_none_or(|owed| owed.contains(&content));
        let doubted = record.unproved.as_ref().and_then(|doubt| name.lives.get(&doubt.uid));
        let excused = record.unproved.is_none() || doubted.is_some_and(|life| life.has_lost(&self.leniency));
        if !excused {
            let what = "its end is called unproved, but history has it, or somebody saw it".to_owned();
            self.breach(Breach::Lost, node, version, what);
        }
        match owed {
            None => self.tally.unjudged += 1,
            Some(owed) if owed.contains(&content) => self.tally.excused += usize::from(!strictly),
            Some(owed) => {
                let what = format!("its record holds {} instead of {}", pairs(&content), owed.text());
                self.breach(breach(&content, &owed), node, version, what);
            }
        }
        // The real end may still turn up where it is in doubt.
        if record.unproved.is_none()
            && let Some(name) = self.names.get_mut(node)
        {
            name.resolved(until, &content);
        }
    }
}

/// Whether a record of a paused node says what the one before it said: it remembers the pause, and nothing else.
fn is_carried(before: &Record, record: &Record) -> bool {
    let same = before.incarnation.uid == record.incarnation.uid && before.kept == record.kept;
    same && record.paused && record.state == State::Open
}

/// Something is missing, or something is there that should not be.
fn breach(content: &Pairs, owed: &Owed) -> Breach {
    let lacks = |owed: &Pairs| owed.iter().any(|(key, value)| content.get(key) != Some(value));
    if owed.accounts.iter().all(lacks) { Breach::Lost } else { Breach::OlderWon }
}
