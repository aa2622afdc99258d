//! What a replica hears, folded as `perennial::keeper::{ledger, outcomes}` fold it.

use perennial_core::keeper::{Body, Line, Plan, Provider, RecordSight, Seen, Sight, Why, decide};
use perennial_core::record::Version;
use uuid::Uuid;

use super::guards::Guard;
use super::state::{BARE, NODE, Node, Removed, Replica, State, Stored, policy};

pub(crate) fn seen(version: Version, stored: &Stored, body: Body) -> Seen {
    Seen { uid: Uuid::from_u128(u128::from(stored.uid)), version, foreign: false, sealed: true, body }
}

/// The node as one sees it who does not read stamps.
fn unstamped(node: Node, without: Option<Guard>) -> Node {
    if without == Some(Guard::Stamp) { Node { born: BARE, ..node } } else { node }
}

fn whole(version: Version, stored: &Stored) -> Seen {
    seen(version, stored, Body::Whole(Box::new((*stored.record).clone())))
}

impl State {
    /// The next event of a replica's node stream.
    pub(crate) fn hear_node(&mut self, at: usize, without: Option<Guard>) {
        let version = self.replicas[at].nodes + 1;
        let before = self.server.node_at(version - 1);
        self.replicas[at].nodes = version;
        if let Some(node) = self.server.node_at(version) {
            self.node_applied(at, version, node, without);
        } else {
            let node = before.expect("it was there, for it was deleted");
            self.node_ended(at, node, version, &Provider::Unread, without);
        }
        self.look(at);
    }

    fn node_applied(&mut self, at: usize, version: Version, node: Node, without: Option<Guard>) {
        let now = self.now();
        let replica = &mut self.replicas[at];
        if replica.print == Some(node.print())
            && let Sight::Live(live) = &mut replica.line.sight
            && live.uid == super::state::uid(node.life)
            && !(live.provider == Provider::Read(None)
                && live.is_young(now)
                && without != Some(Guard::AskAgain))
        {
            live.version = live.version.max(version);
            return;
        }
        let mut live = unstamped(node, without).live(version, Provider::Unread);
        if without == Some(Guard::Mark) {
            live.mark = perennial_core::keeper::Mark::None;
        }
        if replica.line.node_seen(live, policy(replica.policy), now) {
            replica.print = Some(node.print());
            replica.held = false;
        }
    }

    /// An end that was seen, or proved: then its machine is read with it.
    pub(crate) fn node_ended(
        &mut self,
        at: usize,
        node: Node,
        deleted: Version,
        provider: &Provider,
        without: Option<Guard>,
    ) {
        let now = self.now();
        let replica = &mut self.replicas[at];
        let mut end = unstamped(node, without).end(deleted, provider, now);
        match without {
            Some(Guard::Merge) => end.mark = perennial_core::keeper::Mark::Given,
            Some(Guard::Mark) => end.mark = perennial_core::keeper::Mark::None,
            _ => {}
        }
        replica.line.node_ended(end);
        replica.saw |= 1 << node.life;
        replica.held = false;
    }

    /// The next event of a replica's record stream, by metadata alone.
    pub(crate) fn hear_record(&mut self, at: usize, without: Option<Guard>) {
        let due = self.collecting;
        let next = self.server.records.iter().find(|(version, _)| *version > self.replicas[at].records);
        let Some((version, stored)) = next.cloned() else { return };
        let replica = &mut self.replicas[at];
        replica.records = version;
        match stored {
            Ok(stored) => replica.record_applied(version, &stored),
            Err(removed) => {
                let late = Removed { node: Version::MAX, ..removed };
                let removed = if without == Some(Guard::Removal) { late } else { removed };
                replica.line.record_removed(Uuid::from_u128(removed.uid.into()), version, removed.node, due);
                if without == Some(Guard::Collected) && replica.line.live().is_none() {
                    replica.line.ends.clear();
                }
            }
        }
        replica.held = false;
        self.look(at);
    }

    /// The watch of nodes broke for too long: a list takes its place. A `blank` one lacks what is there.
    pub(crate) fn list_nodes(&mut self, at: usize, blank: bool, without: Option<Guard>) {
        let head = self.server.node_head();
        let node = self.server.node().filter(|_| !blank);
        let now = self.now();
        self.miss_ends(at);
        (self.replicas[at].nodes, self.replicas[at].since) = (head, head);
        self.replicas[at].held &= without == Some(Guard::Held);
        match node {
            Some(node) => self.node_applied(at, head, node, without),
            None if without == Some(Guard::NodeAbsence) => self.replicas[at].line.node_absent(head, now),
            None => {
                let line = &mut self.replicas[at].line;
                line.node_missing(head);
                if line.sight == Sight::Unlisted {
                    line.sight = Sight::Missing;
                }
            }
        }
        self.look(at);
    }

    /// The same for records.
    pub(crate) fn list_records(&mut self, at: usize, blank: bool, without: Option<Guard>) {
        let head = self.server.record_head();
        let record =
            self.server.record().filter(|_| !blank).map(|(version, stored)| (version, stored.clone()));
        let (node, due) = (self.server.node_head(), self.collecting);
        let replica = &mut self.replicas[at];
        replica.records = head;
        replica.held = false;
        replica.line.records_listed();
        match (record, &mut replica.line.record) {
            (Some((version, stored)), _) => replica.record_applied(version, &stored),
            (None, RecordSight::Seen(_)) if without == Some(Guard::RecordAbsence) => {
                replica.line.record_absent(head, node, due);
            }
            (None, RecordSight::Seen(seen)) => seen.body = Body::Unread { hint: seen.names() },
            (None, sight) => *sight = RecordSight::None,
        }
        self.look(at);
    }

    /// Starts with nothing, or begins anew in another history: lists everything.
    pub(crate) fn start(&mut self, at: usize, without: Option<Guard>) {
        let replica = &mut self.replicas[at];
        *replica = Replica { up: true, epoch: self.epoch, ..Replica::down(replica.policy) };
        self.list_nodes(at, false, without);
        self.list_records(at, false, without);
        if without != Some(Guard::Histories) {
            self.judge_history(at);
        }
    }

    /// Whether the record a replica knows was written in another history, and it has yet to find out.
    pub(crate) fn is_elsewhere(&self, at: usize) -> bool {
        let replica = &self.replicas[at];
        let version = replica.line.seen().filter(|seen| !seen.foreign).and_then(Seen::summary);
        replica.epoch == self.epoch && version.is_some_and(|record| record.version > self.server.node_head())
            // It may as well be that the node stream lags, and not the record that is ahead.
            && self.server.record().is_some_and(|(_, stored)| stored.record.version > self.server.node_head())
    }

    /// Records whose Node version lies beyond the present were written in another history.
    pub(crate) fn judge_history(&mut self, at: usize) {
        if self.is_elsewhere(at)
            && let RecordSight::Seen(seen) = &mut self.replicas[at].line.record
        {
            seen.foreign = true;
            self.look(at);
        }
    }

    /// Whether the record is of a life that the watch has not told of, and will: it tells in order, and the ends of
    /// the lives before come first.
    pub(crate) fn is_ahead(&self, at: usize) -> bool {
        let replica = &self.replicas[at];
        let record = replica.line.seen().and_then(Seen::summary);
        replica.line.sight == Sight::Missing && record.is_some_and(|record| record.version > replica.nodes)
    }

    /// A direct read of the node.
    pub(crate) fn read_node(&mut self, at: usize, without: Option<Guard>) {
        let ahead = self.is_ahead(at);
        let (head, now) = (self.server.node_head(), self.now());
        let replica = &mut self.replicas[at];
        let Some(node) = self.server.node() else {
            if ahead && without != Some(Guard::ReadUnknown) {
                replica.held = true;
            } else {
                replica.line.node_absent(head, now);
            }
            return;
        };
        // What the watch is still going to tell, it tells in order: the ends of the lives before come first.
        let coming = head > replica.nodes && without != Some(Guard::ReadUnknown);
        let untold = match &replica.line.sight {
            Sight::Live(live) => live.uid != super::state::uid(node.life),
            Sight::Absent { missing: false, .. } => true,
            Sight::Absent { missing: true, .. } | Sight::Unlisted | Sight::Missing => coming,
        };
        if untold && without != Some(Guard::ReadAhead) {
            replica.held = true;
            return;
        }
        let mut live = unstamped(node, without).live(head, node.machine.provider());
        if without == Some(Guard::Mark) {
            live.mark = perennial_core::keeper::Mark::None;
        }
        let found = live.uid;
        if replica.line.node_seen(live, policy(replica.policy), now) {
            replica.print = Some(node.print());
        }
        replica.line.node_found(found, replica.line.last_removal());
    }

    /// A direct read of the record.
    pub(crate) fn read_record(&mut self, at: usize, without: Option<Guard>) {
        let head = self.server.record_head();
        let (node, due) = (self.server.node_head(), self.collecting);
        let replica = &mut self.replicas[at];
        let coming = replica.records < head && without != Some(Guard::RemovalRead);
        let line = &mut replica.line;
        match self.server.record() {
            // When it was removed, the watch is going to tell.
            None if coming && line.needs_removal(None) => replica.held = true,
            None => line.record_absent(head, node, due),
            Some((version, stored))
                if coming && line.needs_removal(Some(Uuid::from_u128(stored.uid.into()))) =>
            {
                replica.held |= line.seen().is_none_or(|seen| seen.version < version);
            }
            Some(_) => {
                let seen = self.record_whole(at).expect("it is there");
                self.replicas[at].line.record_seen(seen);
            }
        }
    }

    /// The record as it is, whole, as a replica judges it.
    pub(crate) fn record_whole(&self, at: usize) -> Option<Seen> {
        let (version, stored) = self.server.record()?;
        let known = self.replicas[at].line.seen();
        let foreign = known.is_some_and(|known| known.version == version && known.foreign);
        Some(Seen { foreign, ..whole(version, stored) })
    }

    /// Looks at a line: what is at rest is let go of.
    pub(crate) fn look(&mut self, at: usize) {
        let cx = self.context(at);
        let replica = &mut self.replicas[at];
        if replica.plan.is_some() {
            return;
        }
        let Plan::Rest(why) = decide(NODE, &replica.line, &cx) else { return };
        if why.is_settled() {
            replica.line.settle();
        }
        let unknown = matches!(why, Why::NothingKept | Why::Forgotten)
            && replica.line.seen().is_none()
            // What was forgotten may still be reported as an end.
            && (replica.line.removal.is_none() || replica.nodes == self.server.node_head())
            && replica.line.erased.is_none();
        if unknown && !matches!(replica.line.sight, Sight::Live(_)) {
            replica.line = Line { sight: Sight::Missing, record: RecordSight::None, ..Line::default() };
            replica.print = None;
            // Whatever it saw end left nothing, and it knows of no record that says otherwise.
            replica.saw = 0;
        }
    }
}

impl Replica {
    fn record_applied(&mut self, version: Version, stored: &Stored) {
        // A version that does not raise the sequence is a foreign edit.
        let known = self
            .line
            .seen()
            .map(|known| (known.version, known.summary().map_or(u64::MAX, |summary| summary.sequence)));
        let summary = stored.record.summary();
        let edited = known.is_some_and(|(at, sequence)| at != version && summary.sequence <= sequence);
        let body = if edited { Body::Unread { hint: Some(summary.uid) } } else { Body::Summary(summary) };
        self.line.record_reported(version);
        self.line.record_seen(seen(version, stored, body));
    }
}
