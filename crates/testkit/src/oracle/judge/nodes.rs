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
        let kept = self.kept(&seen.labels);
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
            lives.live = Some(seen.uid);
            lives.edited(version, &Pairs::new(), &kept);
            lives.lives.insert(seen.uid, Life::new(version, seen.clone(), kept));
            self.tally.lives += 1;
            return;
        };
        if who == "hand" {
            lives.edited(version, &before.labels, &seen.labels);
        } else {
            self.patched(version, name, &before, seen);
        }
        let lives = self.names.entry(name.to_owned()).or_default();
        if let Some(life) = lives.lives.get_mut(&seen.uid) {
            life.change(version, seen.clone(), kept);
        }
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
        let mine = |key: &String| *key == self.mark;
        let (had, has) = (before.annotations.get(&self.mark), seen.annotations.get(&self.mark));
        let own = seen.uid.to_string();
        let marks = has.is_some_and(|mark| *mark == own || mark.strip_suffix(",privileged") == Some(&own));
        let without = |pairs: &Pairs| -> Pairs {
            pairs
                .iter()
                .filter(|(key, _)| !mine(key))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect()
        };
        let added = lacking(&seen.labels, &before.labels);
        let kept_all = before.labels.iter().all(|(key, value)| seen.labels.get(key) == Some(value));
        let foreign = without(&before.annotations) != without(&seen.annotations) || before.hand != seen.hand;
        let marked = self.names.get(name).and_then(|lives| lives.lives.get(&seen.uid)?.marked);
        if !kept_all {
            let changes = changes(&before.labels, &seen.labels);
            self.breach(
                Breach::Taken,
                name,
                version,
                format!("a keeper changed labels of the Node: {changes}"),
            );
        }
        if foreign || before.rest != seen.rest {
            let what = "a keeper changed more of the Node than labels and its mark".to_owned();
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
        self.gave(version, name, before, &added);
    }

    /// What was given must be what the record said, and all of it.
    fn gave(&mut self, version: u64, name: &str, before: &Sighting, added: &Pairs) {
        let Some(lives) = self.names.get_mut(name) else { return };
        let Some(born) = lives.lives.get(&before.uid).map(|life| life.born) else { return };
        // A confused one may give what the other history owed, but not nothing.
        let owed = lives.owed(born, self.leniency).filter(|_| self.confused);
        let all_of = |owed: &Pairs| lacking(&lacking(owed, &before.labels), added).is_empty();
        let confused = self.confused && owed.is_none_or(|owed| owed.iter().any(all_of));
        let Some(life) = lives.lives.get_mut(&before.uid) else { return };
        let exact = life.may_be_given().any(|giving| lacking(giving, &before.labels) == *added);
        let last = life.givings.last().map(|giving| giving.labels.clone());
        let first = life.marked.is_none();
        life.marked = life.marked.or(Some(version));
        if first {
            lives.square();
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
        let missing = lacking(&lacking(&giving, &before.labels), added);
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
