//! Nodes: what hands do is the truth, and what keepers do must be what a record says is being given.

use perennial_core::kept::Pairs;

use super::Judge;
use crate::oracle::{
    history::Sighting,
    life::Life,
    timeline::{self, changes, pairs, short},
    violation::Breach,
};

impl Judge {
    pub(super) fn node_seen(&mut self, version: u64, name: &str, seen: &Sighting) {
        let kept = self.kept(seen);
        let fresh = seen.hand.clone().is_some_and(|hand| self.hands.insert(hand));
        let lives = self.names.entry(name.to_owned()).or_default();
        let known = lives.live == Some(seen.uid);
        let before = lives.living().filter(|_| known).map(|life| life.now.clone());
        // Only people delete nodes: keepers have no right to.
        let dying = before.as_ref().is_some_and(|before| seen.terminating && !before.terminating);
        let who = if fresh || dying || before.is_none() { "hand" } else { "keeper" };
        if let Some(line) = timeline::node(who, before.as_ref(), seen, &kept) {
            lives.timeline.add(version, line);
        }
        let Some(before) = before else {
            lives.died(version);
            lives.born(version, seen.clone(), kept);
            self.tally.lives += 1;
            return;
        };
        if who == "hand" {
            lives.edited(version, &before.pairs(), &seen.pairs());
        } else {
            self.patched(version, name, &before, seen);
        }
        self.names.entry(name.to_owned()).or_default().changed(version, seen.clone(), kept);
    }

    pub(super) fn node_gone(&mut self, version: u64, name: &str) {
        let Some(lives) = self.names.get_mut(name) else { return };
        if let Some(uid) = lives.live {
            lives.timeline.add(version, format!("hand: node {} is gone", short(uid)));
        }
        lives.died(version);
    }

    /// A keeper wrote a Node.
    fn patched(&mut self, version: u64, name: &str, before: &Sighting, seen: &Sighting) {
        self.tally.patches += 1;
        self.wrote(version, name, "the Node");
        let (had, has) = (before.annotations.get(&self.mark), seen.annotations.get(&self.mark));
        let own = seen.uid.to_string();
        let marks = has.is_some_and(|mark| *mark == own || mark.strip_suffix(",privileged") == Some(&own));
        let (bore, bears) = (self.unmarked(before), self.unmarked(seen));
        let added = lacking(&bears, &bore);
        let kept_all = bore.iter().all(|(key, value)| bears.get(key) == Some(value));
        let kept = self.kept(seen);
        let foreign = added.keys().any(|key| !kept.contains_key(key)) || before.hand != seen.hand;
        let marked = self.names.get(name).and_then(|lives| lives.lives.get(&seen.uid)?.marked);
        if !kept_all {
            let what = format!("a keeper changed what the Node bore: {}", changes(&bore, &bears));
            self.breach(Breach::Taken, name, version, what);
        }
        if foreign || before.rest != seen.rest {
            let what = "a keeper changed more of the Node than what is kept of it and its mark".to_owned();
            self.breach(Breach::Taken, name, version, what);
        }
        if marked.is_some() || had == Some(&own) {
            let what = format!("it had got its own back, and was given {} again", pairs(&added));
            self.breach(Breach::GivenTwice, name, version, what);
        }
        if !marks {
            let what = format!("a keeper wrote the Node, and its mark is {has:?} instead of its uid");
            self.breach(Breach::GivenTwice, name, version, what);
        }
        if before.asked().forget {
            self.breach(
                Breach::OlderWon,
                name,
                version,
                "a node that is to be forgotten was written".to_owned(),
            );
        }
        if !self.confused && self.is_on_hold(name, before) {
            self.breach(Breach::OlderWon, name, version, "a paused node was written".to_owned());
        }
        self.gave(version, name, before, &bore, &added);
    }

    /// Everything that a Node bears but for its mark.
    fn unmarked(&self, seen: &Sighting) -> Pairs {
        let mut all = seen.pairs();
        all.remove(&format!("annotation {}", self.mark));
        all
    }

    /// Whether a person paused the node, for all to see: on the node itself, or on the life before it, where nobody may
    /// have missed that.
    fn is_on_hold(&self, name: &str, seen: &Sighting) -> bool {
        let Some(lives) = self.names.get(name) else { return false };
        let Some(life) = lives.lives.get(&seen.uid).filter(|life| life.paused) else { return false };
        let before = life.previous.and_then(|uid| lives.lives.get(&uid));
        let sure = |life: &Life| !life.doubted && life.excuse(&self.leniency).is_none();
        seen.asked().pause == Some(true) || before.is_some_and(sure)
    }

    /// What was given must be what the record said, and all of it.
    fn gave(&mut self, version: u64, name: &str, before: &Sighting, bore: &Pairs, added: &Pairs) {
        let Some(lives) = self.names.get_mut(name) else { return };
        let Some(born) = lives.lives.get(&before.uid).map(|life| life.born) else { return };
        // A confused one may give what the other history owed, but not nothing.
        let owed = lives.owed(born, &self.leniency).filter(|_| self.confused);
        let all_of = |owed: &Pairs| lacking(&lacking(owed, bore), added).is_empty();
        let confused = self.confused && owed.is_none_or(|owed| owed.accounts.iter().any(all_of));
        let Some(life) = lives.lives.get_mut(&before.uid) else { return };
        let exact = life.may_be_given().any(|giving| lacking(giving, bore) == *added);
        let last = life.givings.last().map(|giving| giving.kept.clone());
        let first = life.marked.is_none();
        life.marked = life.marked.or(Some(version));
        if first {
            lives.settle();
        }
        if before.terminating {
            self.breach(Breach::OlderWon, name, version, "a dying node was written".to_owned());
        }
        if exact || confused {
            return;
        }
        let Some(giving) = last else {
            let what = "a keeper wrote the Node before any record said that it is given to".to_owned();
            return self.breach(Breach::OlderWon, name, version, what);
        };
        let missing = lacking(&lacking(&giving, bore), added);
        if missing.is_empty() {
            let what = format!("it was given {}, but the record said {}", pairs(added), pairs(&giving));
            self.breach(Breach::OlderWon, name, version, what);
        } else {
            self.breach(
                Breach::Lost,
                name,
                version,
                format!("it was marked, and not given {}", pairs(&missing)),
            );
        }
    }
}

/// The pairs of `from` whose keys `of` does not have.
fn lacking(from: &Pairs, of: &Pairs) -> Pairs {
    let missing = from.iter().filter(|(key, _)| !of.contains_key(*key));
    missing.map(|(key, value)| (key.clone(), value.clone())).collect()
}
