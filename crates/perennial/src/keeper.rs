//! The keeper: remembers what nodes bear, and gives it back.
//!
//! ```text
//!              observe (reads)            decide (pure)              apply (writes)
//! Node watch ─┐
//!             ├─> Ledger ── pending ──> core::keeper::decide ──> Plan ──> record write / Node patch / proof ─┐
//! Record watch┘      ^────────────────────────── what was written or found ──────────────────────────────┘
//! ```
//! One task owns the ledger and folds events and outcomes into it, one after the other; plans are carried out
//! beside it, a bounded number at once and one a node. Nothing here has to be remembered over a restart.

pub(crate) mod api;
mod apply;
mod brake;
mod check;
pub(crate) mod door;
mod fleet;
mod hatch;
pub(crate) mod ledger;
mod metrics;
pub(crate) mod object;
mod outcomes;
mod prove;
mod report;
mod seen;
mod spans;
mod sync;
pub(crate) mod window;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use perennial_core::keeper::Context;
use perennial_core::policy::Policy;
use perennial_core::record::Version;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::{self, JoinSet};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, info, warn};
use uuid::Uuid;

use crate::admin::ReadyHandle;
use crate::cluster::{Chosen, Cluster, Event, Target, follow, teller};
use crate::config::KeeperConfig;
use crate::members::{Membership, Roster};
use check::Checked;
use door::AtTheDoor;
use fleet::count;
use ledger::{Ledger, Looked, Name, Next, View};
use report::Report;
use seen::Before;
use spans::{Applying, Spans};
use window::Kind;

pub use door::Door;
pub use metrics::Metrics;
pub use window::Window;

pub(crate) use api::Api;
pub(crate) use apply::{Apply, Outcome};
pub(crate) use brake::{Brake, NAME as BRAKE};
pub(crate) use fleet::ratio;
pub(crate) use object::{NodeObject, RecordObject};

/// How many events may wait to be folded.
const WAITING: usize = 1024;
/// How often a backlog is told of.
const PROGRESS: Duration = Duration::from_secs(10);
/// How long a gate may stay closed where none is put up any more.
const GATE: Duration = Duration::from_mins(2);
/// How long a drain may take.
const DRAIN: Duration = Duration::from_secs(10);

/// Why the keeper ended, though nobody asked it to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A part of it ended; that is a bug.
    #[error("a watch ended without a word")]
    WatchEnded,
}

/// Keeps until `stop`: then it finishes what is under way, records the ends it holds, and returns.
pub async fn run(
    cluster: Cluster,
    config: KeeperConfig,
    metrics: Arc<Metrics>,
    membership: Membership,
    ready: ReadyHandle,
    stop: CancellationToken,
) -> Result<(), Error> {
    let api = Api::new(cluster, &config.namespace, &config.installation, config.seals.clone());
    let (teller, post) = teller(api.cluster().clone(), config.dry_run);
    let _post = AbortOnDropHandle::new(tokio::spawn(post));
    let story = config.window.as_ref().map(Window::story).cloned();
    let report = Report { metrics: metrics.clone(), teller, story, clock: api.cluster().clock().clone() };
    let policy = config.policy.borrow().clone();
    let streams = Streams::start(&api, &policy);
    let roster = membership.roster.borrow().clone();
    metrics.dry_run.set(i64::from(config.dry_run));
    let spans = Spans::new(config.tracer.clone());
    let ledger = Ledger::counted_in(metrics.fleet.clone(), config.seals.clone());
    let mut keeper = Keeper {
        config,
        policy,
        api,
        ledger,
        metrics,
        report,
        roster,
        membership,
        ready,
        streams,
        work: JoinSet::new(),
        workers: HashMap::new(),
        checks: JoinSet::new(),
        brake: Arc::default(),
        door: AtTheDoor::default(),
        spans,
        unreadable_pasts: HashMap::new(),
        records: 0,
        head: 0,
        listed: 0,
        synced: false,
        backlog: 0,
    };
    let kept = keeper.keep(&stop).await;
    keeper.drain().await;
    kept
}

/// The watches, and what they say.
struct Streams {
    nodes: Receiver<Event<NodeObject>>,
    records: Receiver<Event<RecordObject>>,
    _following: [AbortOnDropHandle<()>; 2],
}

impl Streams {
    fn start(api: &Api, policy: &Policy) -> Self {
        let (to_nodes, nodes) = channel(WAITING);
        let (to_records, records) = channel(WAITING);
        let target = Target {
            what: "nodes",
            resource: api.nodes().clone(),
            chosen: Chosen::All,
            whole: policy.needs_spec(),
        };
        let following_nodes = tokio::spawn(follow(api.cluster().clone(), target, to_nodes));
        let target =
            Target { what: "records", resource: api.records().clone(), chosen: Chosen::All, whole: false };
        let following_records = tokio::spawn(follow(api.cluster().clone(), target, to_records));
        let following = [following_nodes, following_records].map(AbortOnDropHandle::new);
        Self { nodes, records, _following: following }
    }
}

/// Work under way.
struct Worker {
    name: Name,
    /// This replica's place in line when it began.
    rank: usize,
    /// The last removal of the record that was known when it began.
    removal: Version,
    span: Option<Applying>,
}

struct Keeper {
    config: KeeperConfig,
    policy: Arc<Policy>,
    api: Api,
    metrics: Arc<Metrics>,
    report: Report,
    membership: Membership,
    /// Whose turn it is.
    roster: Arc<Roster>,
    ready: ReadyHandle,
    ledger: Ledger,
    streams: Streams,
    work: JoinSet<Outcome>,
    /// What the work under way is.
    workers: HashMap<task::Id, Worker>,
    /// What is being read of the cluster as a whole: one thing at a time.
    checks: JoinSet<Checked>,
    brake: Arc<Brake>,
    door: AtTheDoor,
    spans: Spans,
    /// The incarnations whose end the API server could not tell though it was asked, since when, and how often.
    unreadable_pasts: HashMap<Uuid, (Instant, u32)>,
    /// How many records there are, as of the last count.
    records: usize,
    /// Where history stands at least.
    head: Version,
    /// As of when nodes were last listed.
    listed: Version,
    /// Both lists are complete, and what follows from that was done.
    synced: bool,
    /// How many lines were pending when that was last told.
    backlog: usize,
}

impl Keeper {
    async fn keep(&mut self, stop: &CancellationToken) -> Result<(), Error> {
        let mut resync = every(self.config.resync);
        let mut collect = every(self.config.collect_every);
        let mut progress = every(PROGRESS);
        let mut policies = self.config.policy.clone();
        let mut policy_followed = true;
        let mut rosters = self.membership.roster.clone();
        let mut roster_followed = true;
        let mut questions = self.config.window.as_ref().and_then(Window::questions);
        let mut door = self.config.door.as_ref().and_then(Door::questions);
        loop {
            let timer = self.until_timer();
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                event = self.streams.nodes.recv() => self.node_event(event.ok_or(Error::WatchEnded)?),
                event = self.streams.records.recv() => self.record_event(event.ok_or(Error::WatchEnded)?),
                Some(done) = self.work.join_next_with_id() => self.folded(done),
                () = tokio::time::sleep_until(timer) => self.timers(),
                Some(checked) = self.checks.join_next() => self.checked(checked),
                _ = resync.tick() => self.resync(),
                _ = collect.tick() => self.collect(),
                _ = progress.tick() => self.tell_progress(),
                Some(ask) = hatch::next(&mut questions) => self.answer(ask),
                Some(question) = hatch::next(&mut door) => self.at_the_door(question),
                changed = policies.changed(), if policy_followed => match changed {
                    Ok(()) => self.change_policy(policies.borrow_and_update().clone()),
                    Err(_) => policy_followed = false,
                },
                changed = rosters.changed(), if roster_followed => match changed {
                    Ok(()) => self.change_roster(rosters.borrow_and_update().clone()),
                    Err(_) => roster_followed = false,
                },
            }
            self.sync();
            self.dispatch();
            self.ledger.rest();
        }
    }

    /// Finishes what is under way and records the ends held here, so that nobody has to prove them.
    async fn drain(&mut self) {
        // Whoever leaves waits for nobody.
        self.roster = Arc::new(self.roster.leaving());
        for name in self.ledger.hurry() {
            self.look(&name);
        }
        self.dispatch();
        let deadline = Instant::now() + DRAIN;
        while !(self.work.is_empty() && self.ledger.is_idle() && self.ledger.unrecorded_ends() == 0) {
            let timer = self.until_timer();
            tokio::select! {
                Some(done) = self.work.join_next_with_id() => self.folded(done),
                () = tokio::time::sleep_until(timer) => self.timers(),
                () = tokio::time::sleep_until(deadline) => {
                    let (unfinished, ends) = (self.work.len(), self.ledger.unrecorded_ends());
                    warn!(unfinished, ends, "the drain took too long");
                    return;
                }
            }
            self.dispatch();
            self.ledger.rest();
        }
    }

    fn view<'a>(config: &KeeperConfig, policy: &'a Policy, roster: &'a Roster, now: Timestamp) -> View<'a> {
        let cx = Context {
            policy,
            now,
            capture: config.capture,
            restore: config.restore,
            close_after: SignedDuration::try_from(config.close_after).unwrap_or(SignedDuration::MAX),
            open_after: SignedDuration::try_from(config.open_after).unwrap_or(SignedDuration::MAX),
            gate: SignedDuration::try_from(config.gate.unwrap_or(GATE)).unwrap_or(SignedDuration::MAX),
            condition: config.condition,
            seals: config.seals.is_some(),
            rollout: roster.is_rollout(policy.digest()),
        };
        View { cx, roster, at: Instant::now(), dry_run: config.dry_run }
    }

    /// The time, by the API server's clock.
    fn now(&self) -> Timestamp {
        self.api.cluster().now()
    }

    /// How long to leave alone what only a person can change.
    fn slowly(&self) -> SignedDuration {
        SignedDuration::try_from(self.config.retry_slowly).unwrap_or(SignedDuration::from_mins(1))
    }

    fn look(&mut self, name: &Name) {
        let view = Self::view(&self.config, &self.policy, &self.roster, self.now());
        if let Looked::Skipped(why) = self.ledger.look(name, &view) {
            self.report.skipped(name, self.ledger.entry(name).as_deref(), why);
        }
        self.looked(name);
        if self.spans.are_wanted() {
            if self.ledger.is_pending(name) {
                self.spans.observe(name, "look");
            } else {
                self.spans.settle(name);
            }
        }
    }

    /// Looks at a line about which something was heard.
    fn heard(&mut self, name: &Name, what: &'static str) {
        self.spans.observe(name, what);
        self.look(name);
    }

    fn look_at_all(&mut self) {
        self.ledger.index_machines(self.policy.finds_by_machine());
        for name in self.ledger.names() {
            self.look(&name);
        }
    }

    fn node_event(&mut self, event: Event<NodeObject>) {
        let now = self.now();
        let installation = self.config.installation.as_str();
        match event {
            Event::Listing => self.ledger.nodes_listing(),
            Event::Applied(node) if self.ledger.node_beats(&node, &self.policy) => {}
            Event::Applied(node) => {
                let before = self.story().and_then(|_| self.ledger.entry(&node.metadata.name));
                let before = before.as_deref().map(Before::of);
                if let Some(name) = self.ledger.node_applied(node, installation, &self.policy, now) {
                    self.observed(&name, before, now);
                    self.heard(&name, "node_applied");
                }
            }
            Event::Deleted(node) => {
                let uid = node.metadata.uid;
                let name = self.ledger.node_deleted(node, installation, &self.policy, now);
                if let Some(story) = self.story() {
                    story.tell(Kind::Left, &name, Some(uid), "left the cluster", now);
                }
                self.left(&name);
                self.heard(&name, "node_deleted");
            }
            Event::Unchanged(nodes) => {
                for name in self.ledger.nodes_unchanged(&nodes, &self.policy, now) {
                    self.heard(&name, "node_applied");
                }
            }
            Event::Unobserved(window) => self.unobserved(window),
            Event::Reached(version) => {
                for name in self.ledger.nodes_reached(version) {
                    self.look(&name);
                }
            }
            Event::Listed(version) => {
                debug!(version, "nodes are listed");
                self.listed = version;
                self.head = self.head.max(version);
                self.ledger.nodes_listed(version);
                self.relisted();
            }
            Event::OtherHistory => self.begin_anew(),
        }
    }

    fn record_event(&mut self, event: Event<RecordObject>) {
        match event {
            Event::Listing => self.ledger.records_listing(),
            Event::Applied(object) => {
                if let Some(name) = self.ledger.record_applied(&object) {
                    self.heard(&name, "record_applied");
                }
            }
            Event::Deleted(object) => {
                let now = self.now();
                if let Some(name) = self.ledger.record_deleted(&object, &self.policy, now) {
                    self.heard(&name, "record_deleted");
                }
            }
            Event::Reached(version) => self.ledger.records_reached(version),
            Event::Unchanged(_) | Event::Unobserved(_) => {}
            Event::Listed(version) => {
                debug!(version, "records are listed");
                self.ledger.records_listed(version);
                self.relisted();
            }
            Event::OtherHistory => self.begin_anew(),
        }
    }

    /// Nodes were listed anew because the API server could not tell what happened since they were last watched.
    fn unobserved(&mut self, window: Duration) {
        self.metrics.unobserved.inc();
        self.metrics.unobserved_seconds.inc_by(window.as_secs_f64());
        let seconds = window.as_secs();
        warn!(seconds, "nodes were not watched for a while: what ended meanwhile is proved from history");
    }

    /// Other members: what waited for somebody may be our turn now.
    fn change_roster(&mut self, roster: Arc<Roster>) {
        self.tell_members(&roster);
        self.roster = roster;
        for name in self.ledger.pending() {
            self.look(&name);
        }
        self.ledger.rank_anew(&self.roster);
    }

    /// Says how far it got with a backlog that takes a while.
    fn tell_progress(&mut self) {
        let counts = self.ledger.counts();
        if let Some(story) = self.story() {
            story.share(ratio(counts.current, counts.nodes), self.now());
        }
        let pending = counts.pending;
        if pending > 0 && self.backlog > 0 && pending != self.backlog {
            info!(pending, before = self.backlog, under_way = self.work.len(), "catching up");
        }
        self.backlog = pending;
    }

    fn until_timer(&self) -> Instant {
        let far = Duration::from_hours(1);
        self.ledger.next_timer().unwrap_or_else(|| Instant::now() + far)
    }

    fn timers(&mut self) {
        for name in self.ledger.due(Instant::now()) {
            self.look(&name);
        }
    }

    /// Starts work while there is any and room for it.
    fn dispatch(&mut self) {
        while self.work.len() < self.config.concurrency {
            let view = Self::view(&self.config, &self.policy, &self.roster, self.now());
            let (name, plan, due) = match self.ledger.next(&view) {
                None => break,
                Some(Next::Act(name, plan, due)) => (name, plan, due),
                Some(Next::Look(name)) => {
                    self.look(&name);
                    continue;
                }
            };
            let Some(entry) = self.ledger.entry(&name) else { continue };
            let rank = self.roster.rank(&name, entry.role(&plan, self.config.restore));
            let seen = entry.seen().cloned();
            let removal = entry.line.last_removal();
            let apply = Apply {
                api: self.api.clone(),
                brake: self.brake.clone(),
                policy: self.policy.clone(),
                dry_run: self.config.dry_run,
                condition: self.config.condition,
                records: self.records,
                ask_again: self.slowly(),
            };
            let waited = view.at.saturating_duration_since(due);
            self.metrics.queue_seconds.observe(waited.as_secs_f64());
            let uid = || entry.uid().map(|uid| uid.to_string());
            let uid = self.spans.are_wanted().then(uid).flatten();
            let span = self.spans.apply(&name, uid, plan.as_str(), rank, waited);
            let whom = name.clone();
            let work = self.work.spawn(async move { apply.carry_out(&whom, plan, seen).await });
            self.workers.insert(work.id(), Worker { name, rank, removal, span });
        }
        self.gauges();
    }

    fn gauges(&self) {
        let counts = self.ledger.counts();
        self.metrics.inflight.set(count(self.work.len()));
        self.metrics.brake.set(i64::from(self.brake.is_engaged()));
        self.membership.metrics.share.set(ratio(counts.first, counts.nodes));
    }
}

/// A tick that does not come at once, and is not made up for when it was missed.
fn every(period: Duration) -> tokio::time::Interval {
    let mut interval = tokio::time::interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}
