//! One listing: follows what its page is made from, and sees to it that the page is where it should be.
//!
//! ```text
//!  Listing ─┐
//!  slices ──┼─ fold ─> stale ── paced ─> make ─> core::lister::decide ─> shown ─┬─> places: look, fence, put
//!  template ┘                                                                   └─> status
//! ```
//! Every replica makes the page and shows it; the one whose turn it is publishes it and says so in the status.

mod saying;

use std::sync::Arc;
use std::time::Duration;

use perennial_core::kept::Digest;
use perennial_core::lister::{Lack, Paced, Page, Plan, Sight, Stamp, Versions, decide};
use perennial_core::ranks::Turn;
use perennial_core::record::Version;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::Shared;
use super::order::{Id, Order};
use super::places::{Done, Foreign, News, Places};
use super::render::{Made, Material, make};
use super::seen::Seen;
use super::sources::{Read, Sources, Text};
use super::standings::Stands;
use super::status::Stage;
use crate::cluster::ApiError;
use crate::members::{Role, Roster};
use saying::last_good;

/// How long pages that are on their way may take to arrive.
const DRAIN: Duration = Duration::from_secs(5);

/// One listing at work.
pub(crate) struct Actor {
    id: Id,
    shared: Arc<Shared>,
    seen: watch::Receiver<Arc<Seen>>,
    roster: watch::Receiver<Arc<Roster>>,
    /// The last order that could be carried out.
    order: Option<Arc<Order>>,
    /// The page that a person released.
    release: Option<Digest>,
    sources: Sources,
    /// The clock that pages are paced by begins here.
    start: Instant,
    paced: Paced,
    /// Counts changes, to tell one from the next.
    changes: u64,
    /// Something changed since the page was made.
    stale: bool,
    making: JoinSet<(u64, Made)>,
    stage: Stage,
    /// The last good page that was made here.
    page: Option<Arc<Page>>,
    /// The last good page that was found when this began.
    found: Option<Stamp>,
    /// Since when there is something to publish.
    since: Option<Instant>,
    places: Places,
    reading: JoinSet<Result<Read, ApiError>>,
    /// The page that this replica lags behind, until everything was read from the API server directly.
    behind: Option<Versions>,
    /// A page that was found to be of another history.
    foreign: Option<Foreign>,
    /// The Listing's version when everything was last read, and as of when.
    listing: (Version, Version),
    saying: JoinSet<Result<(), ApiError>>,
    /// Since when the status should say something else.
    unsaid: Option<Instant>,
    /// When to try the status again.
    say_after: Instant,
    unheard: u32,
    /// Since when there is no page to publish.
    troubled: Option<Instant>,
    stands: Stands,
}

impl Actor {
    /// A listing that begins now. `found` is the last good page, where somebody knows of one.
    pub(crate) fn new(
        id: Id,
        shared: Arc<Shared>,
        seen: watch::Receiver<Arc<Seen>>,
        roster: watch::Receiver<Arc<Roster>>,
        found: Option<Stamp>,
    ) -> Self {
        let now = Instant::now();
        let sources = Sources::new(shared.cluster.clone(), &id.namespace);
        shared.pages.expect(&id);
        let stands = shared.metrics.standings.follow();
        Self {
            id,
            shared,
            seen,
            roster,
            order: None,
            release: None,
            sources,
            start: now,
            paced: Paced::default(),
            changes: 0,
            stale: false,
            making: JoinSet::new(),
            stage: Stage::Starting,
            page: None,
            found,
            since: None,
            places: Places::default(),
            reading: JoinSet::new(),
            behind: None,
            foreign: None,
            listing: (0, 0),
            saying: JoinSet::new(),
            unsaid: None,
            say_after: now,
            unheard: 0,
            troubled: None,
            stands,
        }
    }

    /// Works until `stop`, and finishes then what is under way.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut resync = tokio::time::interval_at(self.start + self.shared.resync, self.shared.resync);
        resync.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.reorder();
        loop {
            self.act();
            let wake = self.wake();
            tokio::select! {
                () = stop.cancelled() => break,
                Ok(()) = self.seen.changed() => self.reorder(),
                Ok(()) = self.roster.changed() => {}
                changed = self.sources.next() => if changed { self.changed() },
                Some(Ok((change, made))) = self.making.join_next() => self.made(change, made),
                done = self.places.done() => self.done(done),
                Some(Ok(read)) = self.reading.join_next() => self.read(read),
                Some(Ok(said)) = self.saying.join_next() => self.said(said),
                _ = resync.tick() => self.resync(),
                () = tokio::time::sleep_until(wake) => {}
            }
        }
        self.drain().await;
    }

    /// Lets pages that are on their way arrive.
    async fn drain(&mut self) {
        let deadline = Instant::now() + DRAIN;
        while self.places.is_busy() {
            match tokio::time::timeout_at(deadline, self.places.done()).await {
                Ok(done) => self.done(done),
                Err(_) => return,
            }
        }
        self.say();
        // Whoever comes next says it otherwise.
        tokio::time::timeout_at(deadline, self.saying.join_next()).await.ok();
    }

    /// The listing changed, or what was said of it.
    fn reorder(&mut self) {
        let seen = self.seen.borrow_and_update().clone();
        let Seen { order, release, object } = &*seen;
        match order {
            Ok(order) => {
                let invalid = matches!(self.stage, Stage::Invalid(_));
                if invalid {
                    self.enter(Stage::Starting);
                }
                if self.order.as_ref() != Some(order) || self.release != *release || invalid {
                    if self.order.as_ref().is_some_and(|before| !before.makes_the_same(order)) {
                        // Its page must not get to the places of this one. The guards still know what it was.
                        self.making = JoinSet::new();
                        self.found = self.page.take().map(|page| page.stamp).or(self.found);
                    }
                    self.sources.aim(order);
                    self.places.aim(&order.places);
                    (self.order, self.release) = (Some(order.clone()), *release);
                    self.changed();
                }
            }
            Err(error) => self.enter(Stage::Invalid(error.clone())),
        }
        if let Some(object) = object {
            self.places.hear(&object.status.destinations);
            self.found = self.found.or_else(|| last_good(&object.status));
        }
    }

    /// Something that the page is made from changed.
    fn changed(&mut self) {
        self.changes += 1;
        self.stale = true;
        self.paced.see(token(self.changes), self.now());
    }

    fn resync(&mut self) {
        self.places.doubt();
        if matches!(self.stage, Stage::NoService(_)) {
            self.changed();
        }
    }

    fn act(&mut self) {
        self.make();
        self.publish();
        self.say();
        self.stand();
    }

    /// The time that pages are paced by.
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// When to make the page, where it is to be made and can be.
    fn due(&self) -> Option<(Instant, &Arc<Order>)> {
        let order = self.order.as_ref().filter(|_| self.stale && self.making.is_empty())?;
        self.sources.slices()?;
        let known = self.sources.knows_template(order);
        let at = self.paced.due(order.pace).map_or(self.start, |due| self.start + due);
        (known && !matches!(self.stage, Stage::Invalid(_))).then_some((at, order))
    }

    /// Makes the page, if it is time.
    fn make(&mut self) {
        let Some((at, order)) = self.due() else { return };
        let Some(slices) = self.sources.slices().filter(|_| at <= Instant::now()) else { return };
        let (text, template) = self.sources.template(order);
        let template = match text {
            Text::Unknown => return,
            Text::Known(text) => Ok((text, self.versions(template, slices.version()))),
            Text::Missing(why) => Err(why),
        };
        match template {
            Ok((template, versions)) => {
                let (id, order, slices) = (self.id.clone(), order.clone(), slices.iter().cloned().collect());
                let material = Material { id, order, template, slices, versions };
                let (cluster, change) = (self.shared.cluster.clone(), self.changes);
                self.making.spawn(async move { (change, make(cluster, material).await) });
            }
            Err(message) => {
                self.enter(Stage::NoPage { reason: "TemplateMissing", message });
                self.paced.publish(token(self.changes), self.now());
            }
        }
        self.stale = false;
    }

    /// What a page is made from. Whatever is not followed by itself is as new as what it comes from.
    fn versions(&self, template: Version, endpoints: Version) -> Versions {
        let listing = match &self.seen.borrow().object {
            Some(object) if object.version >= self.listing.0 => object.version.max(self.listing.1),
            Some(object) => object.version,
            None => endpoints,
        };
        Versions { listing, template: template.max(listing), endpoints }
    }

    /// A page was made, or could not be.
    fn made(&mut self, change: u64, made: Made) {
        let Some(order) = self.order.clone() else { return };
        let Made { page, service, took } = made;
        self.shared.metrics.render_seconds.observe(took.as_secs_f64());
        let sight = Sight {
            synced: true,
            page: page.as_deref().ok(),
            service,
            guards: order.guards,
            release: self.release,
            published: self.page.as_ref().map(|page| page.stamp).or(self.found),
            pace: order.pace,
            // It was waited for before the page was made: making it is most of the work.
            paced: Paced::default(),
        };
        let plan = decide(&sight, self.now());
        self.paced.publish(token(change), self.now());
        match (plan, page) {
            (Plan::Publish | Plan::Rest(_) | Plan::Wait { .. }, Ok(page)) => self.show(page),
            (Plan::Keep(Lack::Service), _) => self.enter(Stage::NoService(order.service.clone())),
            (Plan::Hold(held), Ok(page)) => {
                self.shared.metrics.held.inc();
                self.enter(Stage::Held(held, page.stamp));
            }
            (_, Err(error)) => {
                self.enter(Stage::NoPage { reason: "TemplateBroken", message: error.to_string() });
            }
            (Plan::Keep(Lack::Template), Ok(_)) => {}
        }
    }

    /// This is how far it got. What a person should look at is logged when it begins.
    fn enter(&mut self, stage: Stage) {
        let (before, now) = (self.stage.trouble(), stage.trouble());
        if let Some((reason, message)) = now.as_ref().filter(|_| before != now) {
            warn!(listing = %self.id, reason, message, "the last good page stays");
        }
        if before != now {
            self.shared.pages.trouble(&self.id, now);
        }
        self.stage = stage;
        if let (Some(ready), false) = (&self.shared.ready, matches!(self.stage, Stage::Starting)) {
            ready.mark();
        }
    }

    /// This is the page from now on.
    fn show(&mut self, page: Arc<Page>) {
        if self.page.as_ref().is_none_or(|before| before.stamp.digest != page.stamp.digest) {
            self.since = Some(Instant::now());
        }
        self.enter(Stage::Page(page.stamp));
        self.shared.pages.show(&self.id, page.clone());
        self.page = Some(page);
    }

    /// How long this replica leaves it to others.
    fn delay(&self) -> Duration {
        self.roster.borrow().delay(&self.id.to_string(), Role::List, Turn::Anyone)
    }

    /// Whether this replica is the first in line, which also looks whether all is still where it was put.
    fn is_first(&self) -> bool {
        self.roster.borrow().rank(&self.id.to_string(), Role::List) == 0
    }

    /// When to publish, where there is something to publish.
    fn publish_at(&self) -> Option<Instant> {
        let page = self.page.as_ref()?;
        let next = self.places.next(&page.stamp, self.is_first())?;
        let turn = self.since.unwrap_or(self.start) + self.delay();
        Some(next.max(turn))
    }

    fn publish(&mut self) {
        let Some(page) = self.page.clone() else { return };
        if !self.places.lack(&page.stamp) {
            self.since = None;
        } else if self.since.is_none() {
            self.since = Some(Instant::now());
        }
        if self.publish_at().is_some_and(|at| at <= Instant::now()) {
            let verify = self.is_first();
            self.places.put(&self.id, &self.shared.opening, &page, self.foreign, verify);
        }
    }

    /// Something came of one place.
    fn done(&mut self, done: Done) {
        self.shared.metrics.took(&done);
        match self.places.fold(done, self.shared.retry_slowly, self.shared.cluster.now()) {
            News::Failed { place, error } => {
                warn!(listing = %self.id, place, kind = error.kind(), %error, "cannot publish; trying again");
            }
            News::Lags { place: _, stored } if self.reading.is_empty() => {
                self.behind = Some(stored);
                debug!(listing = %self.id, "a newer page is there: looking at the API server itself");
                let listing = self.seen.borrow().object.is_some().then_some(self.id.name.as_str());
                self.reading.spawn(self.sources.read(listing));
            }
            News::Lags { .. } | News::None => {}
        }
    }

    /// Everything was read directly.
    fn read(&mut self, read: Result<Read, ApiError>) {
        match read {
            Ok(read) => {
                let version = read.version();
                let reached = Versions { listing: version, template: version, endpoints: version };
                let beyond = self.behind.take().filter(|stored| !reached.reach(stored));
                self.foreign = beyond.map(|stored| Foreign { stored, reached }).or(self.foreign);
                self.listing = read.listing.unwrap_or_default();
                self.sources.take(read);
                // The page may be the same, and is as new as the API server now.
                self.changed();
            }
            Err(error) => {
                self.shared.cluster.metrics().error(error.kind());
                debug!(listing = %self.id, %error, "cannot look at the API server itself");
            }
        }
    }

    /// When something may have to be done without any news.
    fn wake(&self) -> Instant {
        let far = Instant::now() + Duration::from_hours(1);
        let say =
            self.unsaid.filter(|_| self.saying.is_empty()).map(|at| self.say_after.max(at + self.delay()));
        let at = [self.due().map(|(at, _)| at), self.publish_at(), say];
        at.into_iter().flatten().min().unwrap_or(far)
    }
}

/// Tells one change from the next.
fn token(change: u64) -> Digest {
    Digest::of(&change.to_be_bytes())
}
