//! What must be true, by somebody who sees everything: the oracle.
//!
//! "Whose word counts at an end" gives what is owed to the next life: a life that bore its mark says it all; one
//! that did not is laid over what was owed to it. Since the last record that was closed or giving, the lives that
//! ended make a set of answers that are right: more than one only where the design's one exception applies, a
//! life that no record ever named and whose end the one who acts did not see. The exception is taken narrowly:
//! it does not cover an end that the watch of the one who acts is still going to tell.

use perennial_core::keeper::{Mark, Notice, Patch, Write};
use perennial_core::record::{Record, State as Phase, Version};

use super::apply::patched;
use super::machines::Lives;
use super::state::{BARE, KEYS, Labels, NARROW, Node, Replica, Server, State, kept, life};

/// What must never break, and did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Broken {
    /// A life got its own back twice.
    GivenTwice,
    /// A patch set what was there.
    Overwritten,
    /// A machine got what is another's, or may be.
    Misgiven,
    /// Another machine took the place of what can not be found any more.
    Effaced,
    /// The record's version went down.
    Older,
    /// An open record says what the node did not bear at that version.
    Untrue,
    /// A living node's record was closed.
    ClosedAlive,
    /// What was owed is in neither the record nor the node.
    Lost,
    /// An end was doubted though history tells it.
    Doubted,
    /// It does not come to rest, or somebody waits for ever.
    Restless,
    /// It rests in the wrong place.
    Unsettled,
}

/// What the oracle remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Truth {
    /// Lives that a record named.
    named: u8,
    /// Lives that got their own back.
    given: u8,
    /// What may be owed, before the lives that ended after `folded`.
    bases: Vec<Labels>,
    folded: Version,
    /// The life whose end is in doubt, and what would be right if it was known.
    doubt: Option<(u8, Vec<Labels>)>,
    /// The record is one of another history, and none was written since: who takes it for one of this may forget
    /// the lives that ended since.
    adrift: bool,
    /// One who did not know that history had changed wrote a record.
    confused: bool,
    /// The record is one of another history, and this is its version there.
    moved: Option<Version>,
    /// What ended up to here was forgotten by a person while the node lived: whoever records it anew need not record
    /// all of it.
    removed: Version,
    /// A person removed the record while the node was away: the versions of the record and of the node.
    forgotten: Option<(Version, Version)>,
    /// The record was created by a replica that did not know of that: its uid. It is to be emptied again.
    late: Option<u8>,
    pub(crate) lives: Lives,
}

pub(crate) fn bit(life: u8) -> u8 {
    1 << life
}

/// The lives whose ends somebody saw, and those whose ends nobody can tell him any more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Eyes {
    saw: u8,
    pub(crate) missed: u8,
    /// Others hold these, and are about to act on them.
    held: u8,
}

impl Eyes {
    /// What two know together.
    fn and(self, other: Self) -> Self {
        Self { saw: self.saw | other.saw, missed: self.missed & other.missed, held: 0 }
    }
}

impl Replica {
    fn eyes(&self) -> Eyes {
        Eyes { saw: self.saw, missed: self.missed & !self.saw, held: 0 }
    }
}

/// An end, as it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) node: Node,
    pub(crate) deleted: Version,
}

impl Server {
    pub(crate) fn ends(&self) -> Vec<Ended> {
        let pairs = self.nodes.windows(2).zip(2..);
        pairs
            .filter_map(|(pair, deleted)| match (pair[0], pair[1]) {
                (Some(node), next) if next.is_none_or(|next| next.life != node.life) => {
                    Some(Ended { node, deleted })
                }
                _ => None,
            })
            .collect()
    }

    /// The version at which a life began.
    pub(crate) fn born(&self, life: u8) -> Option<Version> {
        let at = self.nodes.iter().position(|node| node.is_some_and(|node| node.life == life))?;
        Some(at as Version + 1)
    }
}

impl Truth {
    pub(crate) fn new() -> Self {
        Self { bases: vec![BARE], ..Self::default() }
    }

    /// What may be owed after the ends up to a version, as one knows who saw what these eyes saw.
    fn owed(&self, server: &Server, upto: Version, eyes: Eyes) -> Vec<Labels> {
        let unfolded =
            server.ends().into_iter().filter(|end| end.deleted > self.folded && end.deleted <= upto);
        // Who saw the end in doubt knows better.
        let known = self.doubt.as_ref().filter(|(life, _)| eyes.saw & bit(*life) != 0);
        let bases = known.map_or(&self.bases, |(_, real)| real).clone();
        unfolded.fold(bases, |owed, Ended { node, deleted }| {
            let own = node.mark != Mark::None && !self.adrift;
            let mut all: Vec<Labels> = if own {
                vec![node.labels]
            } else {
                owed.iter().map(|owed| node.own().over(*owed)).collect()
            };
            // Whoever has let go of a name knows of no removal: what a replica gave at birth that had yet to hear of it may
            // have become its own.
            let born = !own && self.forgotten.is_some() && owed.contains(&BARE);
            all.extend(born.then_some(node.labels));
            let missed = eyes.missed & !eyes.held;
            let unknown = self.named & bit(node.life) == 0 && missed & bit(node.life) != 0;
            if !own && (unknown || self.adrift) || deleted <= self.removed {
                all.extend(owed);
            }
            all.sort_unstable();
            all.dedup();
            all
        })
    }

    /// A replica crashed: nobody may know any more that it created the record late.
    pub(crate) fn forget_late(&mut self) {
        self.late = None;
    }

    pub(crate) fn each_version(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        self.forgotten.iter_mut().for_each(|(record, _)| visit(record));
    }

    /// The record says this from now on.
    fn settle_on(&mut self, owed: Labels, folded: Version) {
        self.bases = vec![owed];
        self.folded = folded.max(self.forgotten.map_or(0, |(_, node)| node));
        self.doubt = None;
        self.adrift = false;
    }
}

/// Who writes a record: what he saw, and what he has a say in.
#[derive(Clone, Copy, Debug)]
struct Writer {
    eyes: Eyes,
    /// He writes over a record of another history.
    elsewhere: bool,
    /// His policy keeps the first key alone, and the record he writes over did not hold the other.
    ignorant: bool,
}

impl Writer {
    fn agrees(self, says: Labels, right: Labels) -> bool {
        says == right || self.ignorant && says == right.kept_by(NARROW)
    }
}

impl State {
    fn writer(&self, at: usize, before: Option<&Record>) -> Writer {
        let held = before.is_some_and(|before| kept(&before.kept).0[1] != 0);
        Writer {
            eyes: self.replicas[at].eyes(),
            elsewhere: before.is_some_and(|before| before.version > self.server.node_head()),
            ignorant: self.replicas[at].policy == NARROW && !held,
        }
    }

    /// The same, of one who leaves the turn to those who hold an end that he missed.
    fn witnessed_writer(&self, at: usize, before: Option<&Record>) -> Writer {
        let writer = self.writer(at, before);
        Writer { eyes: Eyes { held: self.witnessed(at), ..writer.eyes }, ..writer }
    }

    pub(crate) fn breaks(&mut self, how: Broken) {
        self.broken = self.broken.or(Some(how));
    }

    /// A list took the place of what the watch would have told: the ends in between are missed.
    pub(crate) fn miss_ends(&mut self, at: usize) {
        let ends = self.server.ends();
        let replica = &mut self.replicas[at];
        let missed = ends.iter().filter(|end| end.deleted > replica.nodes);
        replica.missed |= missed.fold(0, |missed, end| missed | bit(end.node.life));
    }

    /// Lives that are in the record for good have nothing to tell any more.
    pub(crate) fn forget_the_past(&mut self) {
        let doubted = self.truth.doubt.as_ref().map_or(0, |(life, _)| bit(*life));
        let ends = self.server.ends();
        let folded = ends.iter().filter(|end| end.deleted <= self.truth.folded);
        let past = folded.fold(0, |past, end| past | bit(end.node.life)) & !doubted;
        self.truth.named &= !past;
        for replica in &mut self.replicas {
            replica.saw &= !past;
            replica.missed &= !past;
        }
        let ended = ends.iter().fold(0, |ended, end| ended | bit(end.node.life));
        self.truth.given &= !ended;
        self.truth.bases.sort_unstable();
        self.truth.bases.dedup();
    }

    /// Judges a record that was just written over `before`, by the replica at `at`.
    ///
    /// `knew` is the last removal that was known when the write was decided on.
    pub(crate) fn judge_write(&mut self, at: usize, before: Option<&Record>, write: &Write, knew: Version) {
        let record = &*write.record;
        let named = life(record.incarnation.uid);
        let moved = self.truth.moved.take();
        self.truth.confused |= moved.is_some_and(|version| version <= self.server.node_head());
        let eyes = self.replicas[at].eyes();
        let says = kept(&record.kept);
        self.truth.named |= bit(named);
        self.truth.confused |= self.replicas[at].epoch != self.epoch;
        if self.truth.confused {
            self.truth.bases.push(says);
            return;
        }
        if self.judge_late(before.is_none(), record, knew) {
            // Until it is emptied, others may take it for what is owed.
            self.truth.bases = self.remembered_by_some(vec![BARE, says]);
            self.truth.folded = self.server.node_head();
            return;
        }
        if before.is_some_and(|before| record.version < before.version) && moved.is_none() {
            self.breaks(Broken::Older);
        }
        let judged = self.judge_machines(before, write, eyes);
        if record.state == Phase::Closed {
            match self.server.ends().iter().find(|end| end.node.life == named) {
                Some(_) if judged => {}
                Some(end) => {
                    self.judge_memory(self.witnessed_writer(at, before), before, write, end.deleted);
                }
                // A life of another history. The record says up to where it speaks of this one.
                None if self.server.born(named).is_none() => {
                    let upto = record.version.min(self.server.node_head());
                    self.judge_memory(self.writer(at, before), before, write, upto);
                }
                None => self.breaks(Broken::ClosedAlive),
            }
            return;
        }
        let then = self.server.node_at(record.version).filter(|node| node.life == named);
        let (Some(then), Some(born)) = (then, self.server.born(named)) else {
            return self.breaks(Broken::Untrue);
        };
        if judged && record.state == Phase::Giving {
            return;
        }
        if record.state == Phase::Giving {
            return self.judge_memory(self.witnessed_writer(at, before), before, write, born);
        }
        let writer = self.writer(at, before);
        if !writer.agrees(says, then.labels) {
            self.breaks(Broken::Untrue);
        }
        if judged {
            return;
        }
        let follows = before.is_some_and(|before| life(before.incarnation.uid) == named);
        let owed = self.truth.owed(&self.server, born, eyes);
        let nothing = owed.iter().any(|owed| writer.agrees(BARE, *owed));
        if !follows && then.mark == Mark::None && !nothing {
            self.breaks(Broken::Lost);
        }
        // He accounts for the lives before as far as he has a say; what no record ever held of them another may add.
        if !follows && before.is_some() && writer.ignorant {
            self.truth.settle_on(BARE, born);
            self.truth.bases.extend(owed.iter().filter(|owed| writer.agrees(BARE, **owed)));
        }
        if self.truth.adrift {
            self.truth.bases = self.truth.owed(&self.server, born, eyes);
            self.truth.folded = born;
            self.truth.adrift = false;
        }
    }

    /// Whether a record may say what a person had forgotten, because the replica that created it did not know of that.
    /// Unless it goes on to a later life, it is to be emptied again.
    fn judge_late(&mut self, created: bool, record: &Record, knew: Version) -> bool {
        let Some((removal, forgotten)) = self.truth.forgotten else { return false };
        let late = created && knew < removal;
        let of_the_past = record.version <= forgotten;
        self.truth.late = self.truth.late.filter(|_| of_the_past);
        if self.truth.late.is_some() && record.state == Phase::Closed && record.is_empty() {
            self.truth.late = None;
            self.truth.settle_on(BARE, forgotten);
        }
        if late && of_the_past {
            self.truth.late = Some(self.server.made + 1);
        }
        late || self.truth.late.is_some()
    }

    /// Judges what a record remembers of the ends up to a version.
    fn judge_memory(&mut self, writer: Writer, before: Option<&Record>, write: &Write, upto: Version) {
        let (eyes, says) = (writer.eyes, kept(&write.record.kept));
        let right = self.truth.owed(&self.server, upto, eyes);
        if write.notice != Some(Notice::Unproved) {
            if !right.iter().any(|right| writer.agrees(says, *right)) {
                self.breaks(Broken::Lost);
            }
            let doubt = self.doubt_after(eyes, write, upto);
            // Somebody may be about to give what was given in doubt: the patch does not know of the repair.
            let repairs = |before: &Record| before.state == Phase::Giving && before.unproved.is_some();
            let given = before.filter(|before| repairs(before)).map(|before| kept(&before.kept));
            let given = given.filter(|given| self.truth.bases.contains(given));
            // Others may still be about to give the whole of what was forgotten.
            let forgotten = if upto <= self.truth.removed { self.truth.bases.clone() } else { Vec::new() };
            self.truth.settle_on(says, upto);
            self.truth.bases.extend(given);
            self.truth.bases.extend(forgotten);
            // What one had no say in, another may still add.
            self.truth
                .bases
                .extend(right.iter().filter(|right| writer.ignorant && writer.agrees(says, **right)));
            if let Some((_, real)) = &doubt {
                self.truth.bases.extend(real.iter().filter(|real| **real != says));
            }
            self.truth.doubt = doubt;
            return;
        }
        let Some(before) = before else { return self.breaks(Broken::Doubted) };
        // Whoever acts on a doubt says so in the record.
        if write.record.unproved.is_none() {
            self.breaks(Broken::Doubted);
        }
        let doubted = life(before.incarnation.uid);
        let end = self.server.ends().into_iter().find(|end| end.node.life == doubted);
        // A life that is searched for from the beginning of another history is not found in this one.
        if !writer.elsewhere && end.is_some_and(|end| end.deleted > self.server.begin) {
            self.breaks(Broken::Doubted);
        }
        // The recorded state stands in for the end, and what came after it is laid over it.
        let mut instead = self.truth.clone();
        let known = self.truth.doubt.as_ref().filter(|(life, _)| eyes.saw & bit(*life) != 0);
        instead.settle_on(kept(&before.kept), end.map_or(0, |end| end.deleted));
        instead.bases.extend(known.iter().flat_map(|(_, real)| real));
        if !instead.owed(&self.server, upto, eyes).iter().any(|right| writer.agrees(says, *right)) {
            self.breaks(Broken::Lost);
        }
        self.truth.settle_on(says, upto);
        if write.record.unproved.is_some() {
            // Where somebody who is there saw the end, it is not for this one to doubt it.
            let able = |replica: &Replica| replica.up && replica.plan.is_none();
            if self.replicas.iter().any(|replica| able(replica) && replica.saw & bit(doubted) != 0) {
                self.truth.bases.clear();
            }
            self.truth.bases.extend(&right);
            self.truth.doubt = Some((doubted, right));
        }
    }

    /// The doubt that a record goes on with, and what would be right by then. It ends with the end that was in doubt, or
    /// with a life that got its own back.
    fn doubt_after(&mut self, eyes: Eyes, write: &Write, upto: Version) -> Option<(u8, Vec<Labels>)> {
        let (doubted, _) = self.truth.doubt.clone()?;
        let witness = Eyes { saw: bit(doubted), missed: 0, held: 0 };
        let right = self.truth.owed(&self.server, upto, witness);
        if write.record.unproved.is_some() {
            return Some((doubted, right));
        }
        let since = |end: &Ended| end.deleted > self.truth.folded && end.deleted <= upto;
        let given = self.server.ends().iter().any(|end| since(end) && end.node.mark != Mark::None);
        if eyes.saw & bit(doubted) == 0 && !given {
            self.breaks(Broken::Doubted);
        }
        None
    }

    /// Judges a patch that the API server is about to accept.
    pub(crate) fn judge_patch(&mut self, at: usize, node: Node, patch: &Patch) {
        let eyes = self.replicas[at].eyes();
        let labels = Labels::of(&patch.labels);
        let again = self.truth.given & bit(node.life) != 0;
        // What waited for the machine is given by a patch of its own, and no more than that.
        if again && (patch.mark != Mark::Full || labels != BARE) {
            self.breaks(Broken::GivenTwice);
        }
        self.judge_gift(node, patch, eyes);
        if again {
            return;
        }
        let taken = patch
            .unset
            .iter()
            .any(|key| !KEYS.iter().zip(node.born.0).any(|(own, born)| key == own && born != 0));
        if node.own().lacks(labels) != labels || taken {
            self.breaks(Broken::Overwritten);
        }
        self.truth.confused |= self.replicas[at].epoch != self.epoch;
        let born = self.server.born(node.life).expect("it lives");
        let right = self.truth.owed(&self.server, born, eyes);
        if !self.by_machine()
            && !self.truth.confused
            && !right.iter().any(|right| patched(node.labels, patch) == node.own().over(*right))
        {
            self.breaks(Broken::Lost);
        }
        self.truth.given |= bit(node.life);
    }

    /// A person removed the record. While the node is away, that forgets it: nothing that ended before is owed.
    ///
    /// While a node lives, the record is written again from the node; what was owed to it before may or may not be
    /// forgotten, depending on how much of it others hold.
    pub(crate) fn judge_removal(&mut self) {
        let head = self.server.node_head();
        let mut owed = vec![BARE];
        self.truth.removed = 0;
        self.truth.forgotten = Some((self.server.record_head() + 1, head));
        self.truth.late = None;
        if self.server.node().is_some() {
            self.truth.forgotten = None;
            owed.extend(self.truth.owed(&self.server, head, Eyes { saw: 0, missed: u8::MAX, held: 0 }));
            // A replica that learns of an end only now may record it anew, without those that others forgot.
            owed = self.remembered_by_some(owed);
            self.truth.removed = head;
        }
        self.truth.bases = owed;
        self.truth.folded = head;
        self.truth.doubt = None;
        // It does not protect them any more.
        self.truth.named = 0;
    }

    /// What may be recorded by a replica that remembers some of the ends and not others.
    fn remembered_by_some(&self, mut owed: Vec<Labels>) -> Vec<Labels> {
        for end in self.server.ends() {
            let after: Vec<Labels> = owed.iter().map(|owed| end.node.labels.over(*owed)).collect();
            owed.extend(after);
            owed.sort_unstable();
            owed.dedup();
        }
        owed
    }

    /// The record's time was over: what happened after it is not forgotten.
    pub(crate) fn judge_collection(&mut self, record: &Record) {
        let named = life(record.incarnation.uid);
        let closed = record.state == Phase::Closed;
        let end = self.server.ends().into_iter().find(|end| end.node.life == named && closed);
        self.truth.settle_on(BARE, end.map_or(record.version, |end| end.deleted));
        // One who hears of that end only now may record it anew.
        self.truth.bases.push(kept(&record.kept));
        self.truth.named &= !bit(named);
    }

    /// Nodes go back to what they were, the record stays: what it says may be owed, and so may what is not in
    /// it yet.
    pub(crate) fn move_nodes(&mut self, server: Server) {
        let record = self.server.record().map(|(_, stored)| stored.record.clone());
        let says = record.as_ref().map_or(BARE, |record| kept(&record.kept));
        self.truth.moved = record.map(|record| record.version);
        self.server.nodes = server.nodes;
        self.server.begin = self.server.begin.min(server.begin);
        self.truth.bases.push(says);
        self.truth.bases.push(BARE);
        let marked = self.server.nodes.iter().flatten().filter(|node| node.mark != Mark::None);
        self.truth.given = marked.fold(0, |given, node| given | bit(node.life));
        self.truth.folded = 0;
        self.truth.named = 0;
        self.truth.doubt = None;
        self.truth.adrift = true;
    }

    /// Whether the record rests where a record rests.
    fn judge_form(&self, record: Option<&Record>) -> Option<Broken> {
        let right = match (self.server.node(), record) {
            (None, record) => record.is_none_or(|record| record.state == Phase::Closed),
            (Some(node), None) => node.labels == BARE,
            (Some(node), Some(record)) if life(record.incarnation.uid) == node.life => {
                record.state == Phase::Open && kept(&record.kept) == node.labels
            }
            (Some(node), Some(record)) => {
                record.state == Phase::Closed && kept(&record.kept) == BARE && node.labels == BARE
            }
        };
        (!right).then_some(Broken::Unsettled)
    }

    /// Nobody has anything to do or to hear any more: is everything where it belongs?
    pub(crate) fn judge_rest(&self) -> Option<Broken> {
        // One that could as well be of this history is not known to be of another.
        let mistaken = self.truth.moved.is_some_and(|version| version <= self.server.node_head());
        let record = self.server.record().map(|(_, stored)| &*stored.record);
        let head = self.server.node_head();
        if mistaken {
            return None;
        }
        if self.truth.confused {
            // What was owed is anybody's guess; and so is who lags, where two histories meet in one version.
            let apart = record.is_none_or(|record| record.version < head);
            return apart.then(|| self.judge_form(record)).flatten();
        }
        if self.server.record().is_some_and(|(_, stored)| Some(stored.uid) == self.truth.late) {
            return Some(Broken::Unsettled);
        }
        let up = self.replicas.iter().filter(|replica| replica.up).map(Replica::eyes);
        let eyes = up.reduce(Eyes::and).unwrap_or(Eyes { saw: 0, missed: u8::MAX, held: 0 });
        if let Some(broken) = self.judge_rest_of_machines(eyes) {
            return Some(broken);
        }
        if self.by_machine() {
            return None;
        }
        let lost = if let Some(node) = self.server.node() {
            let born = self.server.born(node.life).expect("it lives");
            node.mark == Mark::None && !self.truth.owed(&self.server, born, eyes).contains(&BARE)
        } else {
            let says = record.map_or(BARE, |record| kept(&record.kept));
            !self.truth.owed(&self.server, head, eyes).contains(&says)
        };
        if lost { Some(Broken::Lost) } else { self.judge_form(record) }
    }
}
