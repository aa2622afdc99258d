//! The fold: history goes in, violations come out.

mod nodes;
mod records;

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use perennial_core::{
    kept::{Content, Kept, Pairs},
    policy::Policy,
};

use super::{
    history::{Entry, Fact, Sighting, Told, flat},
    life::{Leniency, Name},
    timeline::Timeline,
    violation::{Breach, Violation},
};

/// More violations than these tell nothing new.
const MOST: usize = 20;

/// What was counted on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Lives of nodes that began.
    pub lives: usize,
    /// Nodes that keepers wrote: one for each life that got its own back.
    pub patches: usize,
    /// Records that keepers wrote.
    pub records: usize,
    /// Contents that are right only because a life may have been missed, or history is gone.
    pub excused: usize,
    /// Contents that could be told in too many ways to be judged.
    pub unjudged: usize,
}

/// Judges a history, entry by entry.
#[derive(Clone, Debug)]
pub struct Judge {
    policy: Arc<Policy>,
    /// The annotation that says: this incarnation got its own back.
    mark: String,
    names: BTreeMap<String, Name>,
    hands: HashSet<String>,
    /// Nodes that were forgotten, and whose records are there.
    left: HashSet<String>,
    leniency: Leniency,
    /// Late writes may come from a history that was abandoned.
    confused: bool,
    quiet: bool,
    version: u64,
    /// The version of the last write of a keeper.
    written: u64,
    everybody: Timeline,
    violations: Vec<Violation>,
    tally: Tally,
}

impl Judge {
    /// Judges keepers that have this policy and this name of their installation.
    ///
    /// The policy must not hold another `merge` than `missing`, nor another `identity` than `name`: these are not judged.
    #[must_use]
    pub fn new(policy: Policy, installation: &str) -> Self {
        Self {
            policy: Arc::new(policy),
            mark: format!("restored.perennial.dev/{installation}"),
            names: BTreeMap::new(),
            hands: HashSet::new(),
            left: HashSet::new(),
            leniency: Leniency::default(),
            confused: false,
            quiet: false,
            version: 0,
            written: 0,
            everybody: Timeline::default(),
            violations: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// Folds what happened next.
    pub fn fold(&mut self, entry: &Entry) {
        self.version = self.version.max(entry.version);
        match &entry.fact {
            Fact::Node { name, seen: Some(seen) } => self.node_seen(entry.version, name, seen),
            Fact::Node { name, seen: None } => self.node_gone(entry.version, name),
            Fact::Record { node, found } => self.record(entry.version, node, found.as_ref()),
            Fact::Told(told) => self.told(entry.version, told),
        }
    }

    fn told(&mut self, version: u64, told: &Told) {
        match told {
            Told::Missed { by_one, by_all } => {
                self.leniency.missed_by_one = by_one.clone();
                self.leniency.missed_by_all = by_all.clone();
            }
            Told::Removing(node) => {
                self.names.entry(node.clone()).or_default().removing = true;
            }
            Told::Removed(node) => {
                if let Some(name) = self.names.get_mut(node) {
                    name.removing = false;
                }
            }
            Told::Calm => self.calm(),
            Told::Compacted(at) => {
                self.everybody.add(version, format!("driver: history before {at} is gone"));
                self.leniency.compacted = self.leniency.compacted.max(*at);
            }
            Told::Restored(to) => {
                self.everybody.add(version, format!("driver: etcd is what it was at {to}"));
                self.confused = true;
            }
            Told::Noticed => self.noticed(version),
            Told::Quiet => {
                self.everybody.add(version, "driver: nothing changes from here on".to_owned());
                self.quiet = true;
            }
            Told::Asked { replica, what } => {
                if self.quiet {
                    let what = format!("it asked for a write though nothing changed: {what}");
                    self.breach(Breach::Noise, replica, version, what);
                }
            }
            Told::Loud => self.quiet = false,
            Told::Refused { node, why } => {
                self.breach(Breach::Refused, node, version, format!("the API server refused it: {why}"));
            }
            Told::Note(note) => self.everybody.add(version, format!("driver: {note}")),
        }
    }

    /// Everything agrees and everybody is in step: what came before does not matter any more.
    fn calm(&mut self) {
        let leniency = std::mem::take(&mut self.leniency);
        self.confused = false;
        for name in self.names.values_mut() {
            name.calm(&leniency);
        }
    }

    /// The other history is over. The version of a record that was written there says nothing.
    fn noticed(&mut self, version: u64) {
        self.everybody.add(version, "driver: everybody has noticed".to_owned());
        self.confused = false;
        let records = self.names.values_mut().filter_map(|name| name.record.as_mut());
        for record in records.filter(|record| record.version > version) {
            record.version = 0;
        }
    }

    /// Judges keepers that have this policy from now on. All nodes must have been forgotten before.
    pub(super) fn change_policy(&mut self, policy: Policy) {
        self.policy = Arc::new(policy);
    }

    /// Forgets all nodes: they are away, their records are closed, and they will not come back. The records stay.
    pub fn forget(&mut self) {
        let full = |name: &Name| name.record.as_ref().is_some_and(|record| !record.is_empty());
        let names = std::mem::take(&mut self.names).into_iter();
        self.left.extend(names.filter(|(_, name)| full(name)).map(|(node, _)| node));
        self.hands.clear();
        self.everybody.clear();
    }

    /// Nodes that do not agree with their records yet, and why.
    #[must_use]
    pub fn unsettled(&self) -> Vec<(String, String)> {
        let why = |(name, lives): (&String, &Name)| Some((name.clone(), lives.unsettled(&self.leniency)?));
        self.names.iter().filter_map(why).collect()
    }

    /// Time is over: whatever has not come to rest is a violation.
    pub fn out_of_time(&mut self) {
        for (name, why) in self.unsettled() {
            self.breach(Breach::Unsettled, &name, self.version, why);
        }
    }

    /// The violations so far.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Takes over violations that were found before.
    pub(super) fn adopt(&mut self, known: Vec<Violation>) {
        for violation in known {
            let told = |one: &Violation| one.node == violation.node && one.breach == violation.breach;
            if !self.violations.iter().any(told) {
                self.violations.push(violation);
            }
        }
    }

    /// What was counted so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// How far it has got.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The version of the last write of a keeper.
    #[must_use]
    pub fn last_written(&self) -> u64 {
        self.written
    }

    /// Whether it judges what becomes of all of this.
    #[must_use]
    pub fn keeps(&self, all: &Kept) -> bool {
        let Kept { labels, annotations, taints, unschedulable } = all.clone();
        let content = Content { labels, annotations, taints, unschedulable, ..Content::default() };
        self.keep(&content) == flat(all)
    }

    /// What is kept of a Node, as one set of pairs.
    fn kept(&self, seen: &Sighting) -> Pairs {
        self.keep(&seen.content())
    }

    fn keep(&self, content: &Content) -> Pairs {
        let rule = self.policy.rule_for(&content.labels, None);
        flat(&rule.map(|rule| rule.keep(content)).unwrap_or_default())
    }

    /// A keeper wrote.
    fn wrote(&mut self, version: u64, node: &str, what: &str) {
        self.written = version;
        if self.quiet {
            self.breach(Breach::Noise, node, version, format!("{what} was written though nothing changed"));
        }
    }

    fn breach(&mut self, breach: Breach, node: &str, version: u64, what: String) {
        let told = |known: &&Violation| known.node == node && known.breach == breach;
        if self.violations.len() >= MOST || self.violations.iter().any(|known| told(&known)) {
            return;
        }
        let timeline =
            self.names.get(node).map(|name| name.timeline.with(&self.everybody)).unwrap_or_default();
        self.violations.push(Violation { breach, node: node.to_owned(), version, what, timeline });
    }
}
