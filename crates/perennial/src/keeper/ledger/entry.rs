//! One line of the ledger, and what this replica is doing about it.

use perennial_core::keeper::{Body, Context, Erasure, Line, Mark, Plan, Seen, Sight, Why, decide};
use perennial_core::ranks::Turn;
use perennial_core::record::{Record, State, Summary, Version, plain};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use uuid::Uuid;

use super::{View, clock};
use crate::keeper::fleet::{Counted, Recorded, Standing};
use crate::keeper::window::Cell;
use crate::members::Role;

/// How often in a row a restore fails before a person should know.
const FAILING: u32 = 5;

/// How urgent a pending line is. Restores and last states go before ordinary saves.
///
/// Proofs are long. What one has found is written before the next begins, so that no other replica looks for it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Urgency {
    /// A node is back and waits for its own.
    Restore,
    /// A node's last state is in nobody's record yet.
    End,
    /// The same as the first, but for a proof.
    ProveRestore,
    /// The same as the second, but for a proof.
    ProveEnd,
    /// A change on a living node.
    Save,
    /// Whatever can wait: collection, and what a status says.
    Later,
}

/// Work that failed and waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PutOff {
    #[serde(with = "clock")]
    pub(super) until: Instant,
    /// What is more urgent than this does not wait.
    pub(super) at_most: Urgency,
}

/// A line and what this replica is doing about it.
///
/// What is skipped is in its pulse while it sleeps.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) line: Line,
    /// Fingerprint of the node as last folded: an equal one changes nothing. None has 0.
    #[serde(skip)]
    pub(super) fingerprint: u64,
    /// The lists that last had the node, and the record.
    #[serde(skip)]
    pub(super) node_list: u32,
    #[serde(skip)]
    pub(super) record_list: u32,
    /// Work is under way: it does not sleep.
    #[serde(skip)]
    pub(super) busy: bool,
    /// The queue it waits in; what it left behind in a less urgent one is passed over.
    pub(super) queued: Option<Urgency>,
    /// Not before this time, after a failure.
    pub(super) not_before: Option<PutOff>,
    pub(crate) failures: u32,
    /// Nothing more is done about it until it changes.
    pub(super) held: bool,
    /// What it was last counted as.
    pub(super) counted: Counted,
    /// It lives, and something is to be given to it, as far as that was known when it was last looked at.
    pub(super) owed: bool,
    /// It was last held up by the brake.
    pub(super) braked: bool,
    /// How often its record went back to the state that it had just left, since this replica watches.
    pub(super) churn: u16,
    /// Since when there is something to do about this version of the record.
    pub(super) pending: Option<Pending>,
    /// When it is looked at again; any other timer of its is void.
    #[serde(with = "clock::optional")]
    pub(super) timer: Option<Instant>,
    /// The last reason to skip it, so that each is counted once.
    pub(super) skipped: Option<Why>,
    /// Its state in one word.
    #[serde(skip)]
    pub(super) cell: Cell,
    /// The record that this replica last read or wrote, for as long as it is that: it need not be read again.
    #[serde(with = "plain::optional")]
    pub(super) memo: Option<Box<Record>>,
}

/// There is something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pending {
    #[serde(with = "clock")]
    pub(super) since: Instant,
    /// About this version of the record.
    pub(super) over: Option<Version>,
}

impl Entry {
    /// The incarnation that lives, or that the record names.
    pub(crate) fn uid(&self) -> Option<Uuid> {
        self.line.live().map(|live| live.uid).or_else(|| self.line.seen()?.names())
    }

    /// The version at which its node was last known: there, or gone.
    pub(super) fn node_version(&self) -> Version {
        match &self.line.sight {
            Sight::Live(live) => live.version,
            Sight::Absent { at, .. } => *at,
            Sight::Unlisted | Sight::Missing => 0,
        }
    }

    /// The version at which its record was last known: there, or removed.
    pub(super) fn record_version(&self) -> Version {
        self.seen().map_or(0, |seen| seen.version).max(self.line.last_removal())
    }

    /// When it is this replica's turn, counted from when there was first something to do about the record as it
    /// is. A node that changes all the time does not begin the wait anew; whoever writes the record does.
    ///
    /// Others may know of lives that came and went before `unwatched`: whoever saw one acts first.
    pub(super) fn turn(&mut self, name: &str, plan: &Plan, view: &View<'_>, unwatched: Version) -> Instant {
        let missed = matches!(plan, Plan::Give(_) | Plan::Close(_)) && self.line.accounted() < unwatched;
        let turn = plan.turn().max(if missed { Turn::Witness } else { Turn::Anyone });
        let over = self.seen().map(|seen| seen.version);
        let since = match self.pending {
            Some(pending) if pending.over == over => pending.since,
            _ => view.at,
        };
        self.pending = Some(Pending { since, over });
        // In doubt what counts is the time in which others could act: not that in which nobody could.
        let since = match (turn, self.not_before) {
            (Turn::Everyone, Some(off)) => since.max(off.until),
            _ => since,
        };
        since + view.roster.delay(name, self.role(plan, view.cx.restore), turn)
    }

    /// How urgent this is.
    pub(super) fn urgency(&self, plan: &Plan) -> Urgency {
        urgency(plan, &self.line, self.owed)
    }

    /// Whether this is something to give to a living node, or leads to it.
    fn gives(&self, plan: &Plan) -> bool {
        matches!(self.urgency(plan), Urgency::Restore | Urgency::ProveRestore)
    }

    /// Whether a living node waits for something to be given to it.
    pub(super) fn awaits(&self, plan: &Plan) -> bool {
        let lives = self.line.live().is_some();
        lives
            && match plan {
                Plan::Rest(why) => matches!(why, Why::IdentityUnknown | Why::RestoreOff | Why::Unreadable),
                Plan::Wait { .. } => false,
                plan => self.gives(plan),
            }
    }

    /// Among whom ranks are taken: those who may do what is planned, or what it leads to.
    pub(crate) fn role(&self, plan: &Plan, restores: bool) -> Role {
        match plan {
            Plan::Give(_) | Plan::Patch(_) | Plan::Tell { .. } => Role::Restore,
            Plan::Save(_) | Plan::Close(_) | Plan::Erase(_) | Plan::SetAside => Role::Capture,
            Plan::Rest(_)
            | Plan::Wait { .. }
            | Plan::ReadRecord
            | Plan::ReadNode
            | Plan::Prove { .. }
            | Plan::ReadEnd { .. } => {
                if restores && self.gives(plan) {
                    Role::Restore
                } else {
                    Role::Capture
                }
            }
        }
    }

    /// What it counts as, now that this is planned for it.
    pub(super) fn count(&mut self, name: &str, plan: &Plan, standing: Standing, view: &View<'_>) -> Counted {
        let there = self.line.live().is_some();
        let first = if self.counted.there == there {
            self.counted.first
        } else {
            there && view.roster.rank(name, Role::Capture) == 0
        };
        let can_wait = self.can_wait(plan);
        // Collection reads the node again before it asks again.
        self.braked &= can_wait;
        // A dry run owes nothing. What it would do is pending, and does not grow old.
        let (unrestored, works) = (self.owed && !view.dry_run, !view.dry_run);
        // Those that restore tell how long they take; where none does, nobody is late.
        let off = matches!(plan, Plan::Rest(Why::RestoreOff));
        // Not by its summary: that of a whole record is a digest to work out, at every look.
        let recorded = match self.seen().map(|seen| &seen.body) {
            None => Recorded::None,
            Some(Body::Unreadable { .. } | Body::Newer) => Recorded::Broken,
            Some(Body::Summary(Summary { state: State::Closed, .. })) => Recorded::Closed,
            Some(Body::Whole(record)) if record.state == State::Closed => Recorded::Closed,
            Some(Body::Summary(_) | Body::Whole(_) | Body::Unread { .. }) => Recorded::Open,
        };
        Counted {
            standing,
            recorded,
            there,
            first,
            // What the brake holds back is more than the node bears, not less.
            current: there && (standing == Standing::Current || can_wait),
            waits: standing == Standing::Pending && works && !can_wait && !off,
            unrestored,
            failing: unrestored && self.failures >= FAILING,
            braked: self.braked,
            since: self.counted.since,
        }
    }

    /// Whether no record is behind until this is done: collection, a policy that was narrowed, what a status says. Not a
    /// person's word.
    fn can_wait(&self, plan: &Plan) -> bool {
        !matches!(plan, Plan::Rest(_) | Plan::Wait { .. } | Plan::Erase(Erasure::Forgotten))
            && self.urgency(plan) == Urgency::Later
    }

    /// Whether nothing is left to write about it, as of the last look, or nothing that would be lost with its node.
    pub(super) fn is_recorded(&self) -> bool {
        let behind = matches!(self.skipped, Some(Why::Lagging | Why::NotSynced));
        !self.busy && !behind && (self.pending.is_none() || self.counted.current)
    }

    /// What the plan's writes are conditioned on.
    pub(crate) fn seen(&self) -> Option<&Seen> {
        self.line.seen()
    }

    /// Folds a record as it is now. Returns false for one that is not newer than what is known.
    pub(super) fn record_seen(&mut self, seen: Seen) -> bool {
        let summary = |line: &Line| line.seen().and_then(Seen::summary);
        let before = summary(&self.line);
        let news = self.line.record_seen(seen);
        if let Some(before) = before
            && let Some(now) = summary(&self.line)
            && now.went_back
            && now.sequence > before.sequence
        {
            // Every replica sees every write, so each counts all of them, whoever wrote them.
            self.churn = self.churn.saturating_add(1);
        }
        if news {
            self.memo = None;
        }
        news
    }

    /// What to do about it. What it remembers of its record need not be read.
    pub(super) fn decide(&mut self, name: &str, cx: &Context<'_>) -> Plan {
        match decide(name, &self.line, cx) {
            Plan::ReadRecord if self.recall() => decide(name, &self.line, cx),
            plan => plan,
        }
    }

    /// Node and record agree.
    pub(super) fn settle(&mut self) {
        if let Some(record) = self.line.settle() {
            self.memo = Some(record);
        }
    }

    /// Takes what it remembers of its record for what it knows of it.
    pub(super) fn recall(&mut self) -> bool {
        self.memo.take().is_some_and(|record| self.line.recall(record))
    }

    /// Whoever breaks a record may take its annotations along: what this replica knew of it still counts.
    pub(super) fn remember_name(&self, seen: &mut Seen) {
        if let Body::Unread { hint } | Body::Unreadable { hint, .. } = &mut seen.body {
            *hint = hint.or_else(|| self.line.seen()?.names());
        }
    }
}

/// `owed`: something was to be given to it when its record was last known.
fn urgency(plan: &Plan, line: &Line, owed: bool) -> Urgency {
    let named = line.seen().and_then(Seen::summary).map(|record| (record.uid, record.state));
    match (plan, line.live()) {
        (Plan::Give(_) | Plan::Patch(_), _) => Urgency::Restore,
        // It may be refused, and keeps nothing else waiting then.
        (Plan::Erase(_) | Plan::Tell { .. }, _) => Urgency::Later,
        (Plan::Save(write), _) if write.braked => Urgency::Later,
        (Plan::Save(_), _) => Urgency::Save,
        (Plan::Prove { .. }, Some(_)) => Urgency::ProveRestore,
        (Plan::Prove { .. }, None) => Urgency::ProveEnd,
        (_, Some(live)) => match named {
            Some((uid, State::Open)) if uid == live.uid => Urgency::Save,
            Some(_) => Urgency::Restore,
            None => match line.seen().map(|seen| &seen.body) {
                // A restore that failed at its record may have happened: until that is read, the node goes on waiting.
                Some(Body::Unread { .. }) if owed => Urgency::Restore,
                Some(Body::Unread { hint: Some(uid) }) if *uid != live.uid && live.mark == Mark::None => {
                    Urgency::Restore
                }
                _ => Urgency::Save,
            },
        },
        (Plan::ReadNode, None) if matches!(named, Some((_, State::Closed))) => Urgency::Later,
        (_, None) => Urgency::End,
    }
}
