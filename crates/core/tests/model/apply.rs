//! What a replica does, as `perennial::keeper::{apply, outcomes}` do it, and what the API server makes of it.

use std::sync::Arc;

use perennial_core::keeper::{
    Answer, Body, Erasure, Line, Mark, Patch, Plan, Proof, Provider, RecordSight, Seen, Sight, Verdict,
    Write, decide,
};
use perennial_core::kept::Pairs;
use perennial_core::ranks::Turn;
use perennial_core::record::{Record, State as Phase, Version};
use uuid::Uuid;

use super::guards::Guard;
use super::machines::{Machine, role};
use super::state::{BARE, Basis, KEYS, Labels, NODE, Node, Replica, State, Stored, life, uid};

/// Whether the replica hears what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reply {
    Heard,
    Lost,
}

impl State {
    /// What a replica would do now, and what its write would be conditioned on.
    pub(crate) fn plan(&self, at: usize, without: Option<Guard>) -> (Plan, Basis) {
        let replica = &self.replicas[at];
        let over = replica.line.seen().map(|seen| (seen.uid, seen.version));
        let basis = Basis { over, removal: replica.line.last_removal() };
        let cx = self.context(at);
        let plan = match without {
            Some(Guard::Lagging) => decide(NODE, &not_lagging(&replica.line), &cx),
            Some(Guard::Repair) => decide(NODE, &without_doubt(&replica.line), &cx),
            Some(Guard::Machine) => decide(NODE, &as_remembered(&replica.line), &cx),
            _ => decide(NODE, &replica.line, &cx),
        };
        (plan, basis)
    }

    /// Whether it is this plan's turn. In doubt everyone who saw the end goes first; and so does whoever holds an end that
    /// a replica may have missed which has listed since.
    pub(crate) fn is_turn(&self, at: usize, plan: &Plan, basis: Basis, without: Option<Guard>) -> bool {
        if matches!(plan, Plan::Give(_) | Plan::Close(_))
            && without != Some(Guard::Witness)
            && self.witnessed(at) != 0
        {
            return false;
        }
        if plan.turn() != Turn::Everyone || without == Some(Guard::Everyone) {
            return true;
        }
        // The end in doubt is that of the life which the record it was decided on names.
        let Some((_, stored)) =
            self.server.record().filter(|(version, _)| Some(*version) == basis.over.map(|over| over.1))
        else {
            return true;
        };
        let doubted = stored.record.incarnation.uid;
        let holds = |line: &Line| line.ends.iter().any(|end| end.uid == doubted);
        !self.replicas.iter().any(|replica| replica.up && replica.plan.is_none() && holds(&replica.line))
    }

    /// The lives whose ends a replica may have missed, for it has listed since the record was true, and that others hold
    /// who have not, and are about to act on them.
    pub(crate) fn witnessed(&self, at: usize) -> u8 {
        let replica = &self.replicas[at];
        let missed = |other: &Replica| replica.line.accounted() < other.since;
        if !missed(replica) {
            return 0;
        }
        let lives =
            |replica: &Replica| replica.line.ends.iter().fold(0, |held, end| held | 1 << life(end.uid));
        let able = |other: &&Replica| other.up && other.plan.is_none() && !missed(other);
        self.replicas.iter().filter(able).fold(0, |held, other| held | lives(other)) & !lives(replica)
    }

    /// Carries out a plan, however late it is.
    pub(crate) fn carry_out(
        &mut self,
        at: usize,
        plan: Plan,
        basis: Basis,
        reply: Reply,
        without: Option<Guard>,
    ) {
        match plan {
            Plan::Rest(_) | Plan::Wait { .. } | Plan::Tell { .. } => {}
            Plan::ReadRecord | Plan::SetAside => self.read_record(at, without),
            Plan::ReadNode => self.read_node(at, without),
            Plan::Prove { uid, from, .. } if without == Some(Guard::Proof) => self.pretend(at, uid, from),
            Plan::Prove { uid, from, to } => self.prove(at, uid, from, to, without),
            Plan::ReadEnd { uid, deleted } => self.read_end(at, uid, deleted, without),
            Plan::Give(write) if without == Some(Guard::GivingFirst) => {
                let patch =
                    patch_of(&write, self.replicas[at].line.live().and_then(|live| live.content.as_ref()));
                self.patch(at, &patch, reply, without);
            }
            Plan::Save(write) | Plan::Close(write) | Plan::Give(write) => {
                if without == Some(Guard::Ends) {
                    self.replicas[at].line.ends.clear();
                }
                self.write(at, write, basis, reply, without);
            }
            Plan::Patch(patch) => self.patch(at, &patch, reply, without),
            Plan::Erase(why) => self.erase(at, why, basis, reply, without),
        }
        self.look(at);
    }

    fn prove(&mut self, at: usize, whose: Uuid, from: Version, to: Version, without: Option<Guard>) {
        let mut proof = Proof::new(from, to);
        while let Some(version) = proof.next() {
            let answer = match self.server.node_at(version) {
                _ if version < self.server.begin => Answer::Expired,
                Some(node) if uid(node.life) == whose => Answer::Alive(node),
                _ => Answer::Gone,
            };
            proof.answer(version, answer);
        }
        match proof.verdict() {
            Verdict::Proved { last, deleted } => {
                self.node_ended(at, last, deleted, &last.machine.provider(), without);
            }
            Verdict::Lost => self.replicas[at].line.lost = Some(whose),
        }
    }

    /// Reads which machine it was that died.
    fn read_end(&mut self, at: usize, whose: Uuid, deleted: Version, without: Option<Guard>) {
        let then = deleted - 1;
        let told = then >= self.server.begin && without != Some(Guard::ReadEnd);
        let node = self.server.node_at(then).filter(|node| uid(node.life) == whose && told);
        let id = node.and_then(|node| node.machine.provider().id().map(str::to_owned));
        self.replicas[at].line.end_read(whose, id);
    }

    /// Takes what is recorded for the end.
    fn pretend(&mut self, at: usize, whose: Uuid, from: Version) {
        let Some((_, stored)) = self.server.record() else { return };
        let labels = super::state::kept(&stored.record.kept);
        let node = Node { life: life(whose), labels, born: BARE, mark: Mark::None, machine: Machine::ANY };
        self.node_ended(at, node, from + 1, &Provider::Unread, None);
    }

    fn write(&mut self, at: usize, mut write: Write, basis: Basis, reply: Reply, without: Option<Guard>) {
        let now = self.server.record().map(|(version, stored)| (Uuid::from_u128(stored.uid.into()), version));
        if now != basis.over && without != Some(Guard::Swap) {
            self.read_record(at, without);
            return;
        }
        if without == Some(Guard::Waiting) {
            write.record.waiting.clear();
        }
        if without == Some(Guard::Previous) {
            write.record.previous.clear();
        }
        let before = self.server.record().map(|(_, stored)| stored.record.clone());
        self.judge_write(at, before.as_deref(), &write, basis.removal);
        // Undo has no say in any decision.
        write.record.previous.clear();
        write.record.kept_since = None;
        let version = self.server.record_head() + 1;
        self.server.made += u8::from(self.server.record().is_none());
        let uid = self.server.record().map_or(self.server.made, |(_, stored)| stored.uid);
        self.server.records.push((version, Ok(Stored { uid, record: Arc::new(*write.record) })));
        match reply {
            Reply::Heard => {
                let Some(seen) = self.record_whole(at) else { return };
                let line = &mut self.replicas[at].line;
                if before.is_none() {
                    line.record_created(seen.uid, seen.version, basis.removal);
                }
                line.record_seen(seen);
            }
            Reply::Lost => self.doubt_record(at),
        }
    }

    fn doubt_record(&mut self, at: usize) {
        if let RecordSight::Seen(seen) = &mut self.replicas[at].line.record {
            seen.body = Body::Unread { hint: seen.names() };
        }
    }

    fn patch(&mut self, at: usize, patch: &Patch, reply: Reply, without: Option<Guard>) {
        let head = self.server.node_head();
        let knows = self.replicas[at].epoch == self.epoch || patch.version <= self.fork;
        let fits = |node: &Node| uid(node.life) == patch.uid && head == patch.version && knows;
        let found = self.server.node().filter(|node| fits(node) || without == Some(Guard::PatchVersion));
        let Some(mut node) = found else {
            self.read_node(at, without);
            return;
        };
        self.judge_patch(at, node, patch);
        node.labels = patched(node.labels, patch);
        node.born = BARE;
        node.machine.role = role(&patch.labels).max(node.machine.role);
        if uid(node.life) == patch.uid {
            node.mark = patch.mark;
        }
        self.server.nodes.push(Some(node));
        match (reply, &mut self.replicas[at].line.sight) {
            (Reply::Heard, _) => self.read_node(at, without),
            (Reply::Lost, Sight::Live(live)) => live.content = None,
            (Reply::Lost, _) => {}
        }
    }

    fn erase(&mut self, at: usize, why: Erasure, basis: Basis, reply: Reply, without: Option<Guard>) {
        let Some((uid, version)) = basis.over else { return };
        let found = self.server.record().map(|(version, stored)| (version, stored.clone()));
        let Some((_, stored)) = found.filter(|(now, stored)| {
            *now == version && Uuid::from_u128(stored.uid.into()) == uid || without == Some(Guard::Swap)
        }) else {
            self.read_record(at, without);
            return;
        };
        self.judge_collection(&stored.record);
        self.server.remove_record();
        let replica = &mut self.replicas[at];
        match reply {
            Reply::Lost => self.doubt_record(at),
            Reply::Heard if replica.line.seen().is_some_and(|seen| seen.version > version) => {}
            Reply::Heard => replica.line.record_erased(why == Erasure::Forgotten),
        }
    }
}

/// What a node bears after a patch.
pub(crate) fn patched(labels: Labels, patch: &Patch) -> Labels {
    let set = Labels::of(&patch.labels).over(labels);
    Labels(std::array::from_fn(|at| {
        let unset = patch.unset.iter().any(|key| key == KEYS[at]);
        if unset { 0 } else { set.0[at] }
    }))
}

/// The line of one who takes what it sees for the present.
fn not_lagging(line: &Line) -> Line {
    let mut line = line.clone();
    let record = line.seen().and_then(Seen::summary);
    if let (Sight::Live(live), Some(record)) = (&mut line.sight, record) {
        live.version = live.version.max(record.version + u64::from(live.uid != record.uid));
    }
    line
}

/// The line of one who takes what was closed in doubt for the end.
fn without_doubt(line: &Line) -> Line {
    let mut line = line.clone();
    if let RecordSight::Seen(seen) = &mut line.record {
        match &mut seen.body {
            Body::Whole(record) => record.unproved = None,
            Body::Summary(summary) => summary.unproved = false,
            _ => {}
        }
    }
    line
}

/// The line of one who takes the machine that bears the name for the one that is remembered.
fn as_remembered(line: &Line) -> Line {
    let mut line = line.clone();
    let remembered = line.seen().and_then(|seen| match &seen.body {
        Body::Whole(record) => {
            let waits = record.waiting.values().find_map(|waiting| waiting.provider_id.clone());
            waits.or_else(|| record.incarnation.provider_id.clone())
        }
        _ => None,
    });
    if let (Sight::Live(live), Some(remembered)) = (&mut line.sight, remembered) {
        live.provider = Provider::Read(Some(remembered));
    }
    line
}

/// The patch of one who gives before the record says so.
fn patch_of(write: &Write, content: Option<&perennial_core::kept::Content>) -> Patch {
    let Record { incarnation, version, kept, .. } = &*write.record;
    debug_assert_eq!(write.record.state, Phase::Giving);
    let has = content.map(|content| content.labels.clone()).unwrap_or_default();
    let labels = kept.labels.iter().filter(|(key, _)| !has.contains_key(*key));
    Patch {
        uid: incarnation.uid,
        version: *version,
        labels: labels.map(|(key, value)| (key.clone(), value.clone())).collect(),
        annotations: Pairs::new(),
        taints: Vec::new(),
        cordon: false,
        unset: Vec::new(),
        mark: Mark::Given,
        stamp: None,
        opens: false,
        withheld: 0,
    }
}
