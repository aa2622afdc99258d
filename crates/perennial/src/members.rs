//! Who else is at work: one Lease a replica, and the ranks that follow from them.
//!
//! ```text
//! Lease watch ──> Others (who changed when, by our own clock) ──> Roster ──> keeper: whose turn is it?
//!      ^                                                                        │ in step: announce
//!      └────────────── our own Lease: created, renewed, removed on drain <──────┘
//! ```
//! A roster says who waits for whom, and whether replicas run under two policies; every write is fenced without it.
//! Where it cannot tell, it errs towards waiting and towards keeping. A replica that cannot renew its Lease goes on.

mod lease;
mod metrics;
mod others;
mod roster;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use perennial_core::kept::Digest;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, info, warn};

use crate::cluster::{ApiError, Chosen, Cluster, Event, Target, follow};
use crate::config::MembersConfig;
use lease::Leases;
use others::Others;

pub(crate) use lease::LeaseObject;
pub use metrics::Metrics;
#[cfg(test)]
pub(crate) use others::Live;
pub(crate) use roster::Member;
pub use roster::{Role, Roster};

/// How many events may wait to be folded.
const WAITING: usize = 256;
/// Longer than anybody takes to be in step.
const NOT_YET: Duration = Duration::from_hours(1);
/// How long a replica that leaves tries to remove its Lease.
const RELEASE: Duration = Duration::from_secs(3);

/// What a part of this replica knows of the others, and how it says that it is at work. Each part has its own.
#[derive(Debug)]
pub struct Membership {
    pub(crate) roster: watch::Receiver<Arc<Roster>>,
    pub(crate) metrics: Arc<Metrics>,
    /// How many parts are not in step yet.
    behind: watch::Sender<usize>,
    announced: AtomicBool,
}

impl Membership {
    /// Membership of nobody else, whoever else there is: everything is this replica's turn, at once.
    #[must_use]
    pub fn alone(metrics: Arc<Metrics>) -> Self {
        Self {
            roster: watch::channel(Arc::new(Roster::alone(Duration::ZERO))).1,
            metrics,
            behind: watch::channel(1).0,
            announced: AtomicBool::new(false),
        }
    }

    /// The same for another part. The replica does its share once both have announced themselves.
    #[must_use]
    pub fn another(&self) -> Self {
        self.behind.send_modify(|behind| *behind += 1);
        let Self { roster, metrics, behind, announced: _ } = self;
        let (roster, metrics, behind) = (roster.clone(), metrics.clone(), behind.clone());
        Self { roster, metrics, behind, announced: AtomicBool::new(false) }
    }

    /// This part is in step, and does its share once all parts are.
    pub(crate) fn announce(&self) {
        if !self.announced.swap(true, Ordering::Relaxed) {
            self.behind.send_modify(|behind| *behind -= 1);
        }
    }
}

/// Begins to follow the members. The future does it until `stop`, and removes this replica's Lease then.
pub fn join(
    cluster: Cluster,
    config: MembersConfig,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
) -> (Membership, impl Future<Output = ()>) {
    let (to, roster) = watch::channel(Arc::new(Roster::unknown(config.takeover)));
    let (behind, followed) = watch::channel(1);
    let leases = Leases::new(cluster.clone(), &config);
    let members = Members {
        others: Others::new(leases.name()),
        stream: Stream::start(&cluster, &leases),
        cluster,
        leases,
        config,
        metrics: metrics.clone(),
        to,
        announced: false,
        renewing: JoinSet::new(),
        cleaning: JoinSet::new(),
        renewed: Instant::now(),
        told: false,
        told_policy: None,
        listed: false,
        settled: false,
        patience: Instant::now() + NOT_YET,
        known: false,
    };
    let membership = Membership { roster, metrics, behind, announced: AtomicBool::new(false) };
    (membership, members.follow(followed, stop))
}

/// The watch of Leases.
struct Stream {
    events: Receiver<Event<LeaseObject>>,
    _following: AbortOnDropHandle<()>,
}

impl Stream {
    fn start(cluster: &Cluster, leases: &Leases) -> Self {
        let (to, events) = channel(WAITING);
        let target =
            Target { what: "leases", resource: leases.resource().clone(), chosen: Chosen::All, whole: true };
        let following = AbortOnDropHandle::new(tokio::spawn(follow(cluster.clone(), target, to)));
        Self { events, _following: following }
    }
}

struct Members {
    cluster: Cluster,
    config: MembersConfig,
    leases: Leases,
    metrics: Arc<Metrics>,
    others: Others,
    stream: Stream,
    to: watch::Sender<Arc<Roster>>,
    /// This replica does its share.
    announced: bool,
    renewing: JoinSet<Result<LeaseObject, ApiError>>,
    cleaning: JoinSet<()>,
    /// When its Lease was last renewed.
    renewed: Instant,
    /// Others take this replica for dead, and a person was told.
    told: bool,
    /// The policy that the others were last told of.
    told_policy: Option<Digest>,
    /// Leases were listed.
    listed: bool,
    /// Our own was written, so that whoever announces itself now sees it, or could not be.
    settled: bool,
    /// When both are not waited for any longer.
    patience: Instant,
    /// The members are known, as well as they can be.
    known: bool,
}

impl Members {
    async fn follow(mut self, mut behind: watch::Receiver<usize>, stop: CancellationToken) {
        let mut renew = tokio::time::interval(self.config.lease / 3);
        renew.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut policies = self.config.policy.clone();
        while !stop.is_cancelled() {
            let wake = if self.known { self.others.next_death(self.config.lease) } else { self.patience };
            tokio::select! {
                () = stop.cancelled() => break,
                Some(event) = self.stream.events.recv() => self.event(event),
                Ok(_) = behind.wait_for(|behind| *behind == 0), if !self.announced => {
                    self.announced = true;
                    self.renewed = Instant::now();
                    self.patience = Instant::now() + self.config.takeover;
                    renew.reset_immediately();
                }
                // Others have to know before what only this policy keeps is on a node.
                Ok(()) = policies.changed() => renew.reset_immediately(),
                _ = renew.tick(), if self.announced => self.renew(),
                Some(done) = self.renewing.join_next() => self.renewed(done.unwrap_or(Err(ApiError::Timeout))),
                Some(_) = self.cleaning.join_next() => {}
                () = tokio::time::sleep_until(wake) => {}
            }
            self.publish();
        }
        self.release().await;
    }

    fn event(&mut self, event: Event<LeaseObject>) {
        let now = Instant::now();
        match event {
            Event::Listing => self.others.listing(),
            Event::Applied(lease) => self.others.seen(&lease, now),
            Event::Deleted(lease) => self.others.removed(&lease),
            Event::Unchanged(_) | Event::Unobserved(_) | Event::Reached(_) => {}
            Event::Listed(_) => {
                self.others.listed();
                self.listed = true;
            }
            Event::OtherHistory => {
                self.others.forget();
                self.stream = Stream::start(&self.cluster, &self.leases);
            }
        }
    }

    /// Tells whoever asks for a turn, if anything changed.
    fn publish(&mut self) {
        // Two that start together must not each do everything because neither has seen the other yet.
        self.known |= self.listed && self.settled || Instant::now() >= self.patience;
        if !self.known {
            return;
        }
        let live = self.others.live(Instant::now(), self.config.lease);
        let policies = self.listed.then(|| self.others.policies(Instant::now(), self.config.lease));
        let roster = Roster::new(&self.config, self.announced, &live, policies);
        self.metrics.live.set(i64::try_from(roster.live()).unwrap_or(i64::MAX));
        self.to.send_if_modified(|before| {
            let changed = **before != roster;
            if changed {
                info!(members = roster.live(), "the members changed");
                *before = Arc::new(roster);
            }
            changed
        });
    }

    fn renew(&mut self) {
        if !self.renewing.is_empty() {
            return;
        }
        let (leases, over) = (self.leases.clone(), self.others.own());
        let policy = self.config.policy.borrow().digest();
        self.told_policy = Some(policy);
        let patience = self.config.lease / 2;
        self.renewing.spawn(async move {
            tokio::time::timeout(patience, leases.renew(over, policy)).await.unwrap_or(Err(ApiError::Timeout))
        });
        self.clean();
    }

    fn renewed(&mut self, done: Result<LeaseObject, ApiError>) {
        self.settled = true;
        match done {
            Ok(lease) => {
                if self.told {
                    info!("this replica's Lease is renewed again");
                }
                self.told = false;
                self.renewed = Instant::now();
                self.others.wrote(&lease);
                // It changed while the old one was being told.
                if self.told_policy != Some(self.config.policy.borrow().digest()) {
                    self.renew();
                }
            }
            Err(error) => {
                self.metrics.renewals_failed.inc();
                self.cluster.metrics().error(error.kind());
                match &error {
                    ApiError::NotFound => self.others.lost(),
                    ApiError::Forbidden(_) => self.cluster.metrics().forbidden.tell(&error),
                    // What is known of it is wrong, and the watch does not put it right.
                    ApiError::Conflict(_) if self.renewed.elapsed() > self.config.lease => {
                        self.others.lost();
                        self.stream = Stream::start(&self.cluster, &self.leases);
                    }
                    _ => {}
                }
                if !self.told && self.renewed.elapsed() > self.config.lease {
                    self.told = true;
                    warn!(%error, "cannot renew this replica's Lease: others do its work too; it goes on");
                }
            }
        }
        if self.others.contested(self.leases.holder()) {
            warn!(
                member = self.config.name,
                "another process goes by the same name: both do the same share; give each its own --member"
            );
        }
    }

    /// Removes the Leases of members that are long dead, where it is this replica's turn.
    fn clean(&mut self) {
        let now = Instant::now();
        let roster = self.to.borrow().clone();
        for dead in self.others.long_dead(now, self.config.lease) {
            if roster.rank(&dead.name, Role::Capture) == 0 && self.cleaning.len() < WAITING {
                let (leases, cluster) = (self.leases.clone(), self.cluster.clone());
                self.cleaning.spawn(async move {
                    let name = dead.name.clone();
                    match leases.remove(dead).await {
                        Ok(()) => info!(lease = name, "removed the Lease of a replica that is gone"),
                        Err(error @ ApiError::Forbidden(_)) => cluster.metrics().forbidden.tell(&error),
                        Err(error) => {
                            debug!(lease = name, %error, "cannot remove the Lease of a replica that is gone");
                        }
                    }
                });
            }
        }
    }

    /// Removes this replica's own Lease, so that others need not wait for it to run out.
    async fn release(&mut self) {
        let deadline = Instant::now() + RELEASE;
        while let Ok(Some(done)) = tokio::time::timeout_at(deadline, self.renewing.join_next()).await {
            if let Ok(Ok(lease)) = done {
                self.others.wrote(&lease);
            }
        }
        let Some(own) = self.others.own().filter(|_| self.announced) else { return };
        if !matches!(tokio::time::timeout(RELEASE, self.leases.remove(own)).await, Ok(Ok(()))) {
            info!("this replica's Lease could not be removed: others wait until it runs out");
        }
    }
}
