//! Where a page is to be, and what is known of each place.
//!
//! One place that fails stops no other: each is tried on its own, with a pause that grows.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use perennial_core::lister::{self, Page, Stamp, Versions, Write, fence};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{info, warn};

use super::destination::{Destination, Found, Put};
use super::listing::DestinationStatus;
use super::opening::{Opening, PlaceError};
use super::order::{Id, Place};
use super::status::time;
use crate::cluster::backoff;

/// How often a page is put anew where another one was faster.
const TRIES: usize = 4;

/// All places of one listing.
#[derive(Default)]
pub(crate) struct Places {
    places: Vec<Spot>,
    work: JoinSet<Done>,
}

/// One place, and what is known of it.
struct Spot {
    place: Place,
    destination: Option<Arc<Destination>>,
    holds: Holds,
    status: DestinationStatus,
    /// This replica knows something that the status does not say yet.
    news: bool,
    busy: bool,
    failures: u32,
    not_before: Instant,
    /// Since when it lacks the page, or since the last one that it got though another is wanted already.
    stale: Option<Instant>,
}

/// A page of another history: it was made from what the API server, asked after it was found, has not reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Foreign {
    pub(crate) stored: Versions,
    pub(crate) reached: Versions,
}

impl Foreign {
    fn is(&self, found: &lister::Found) -> bool {
        versions(found) == self.stored
    }
}

/// What a place holds.
#[derive(Clone)]
enum Holds {
    /// Nobody has looked, or it may have changed since.
    Unknown,
    /// This, or nothing.
    Known(Option<Found>),
}

/// What came of one place.
pub(crate) struct Done {
    place: Place,
    destination: Option<Arc<Destination>>,
    holds: Holds,
    page: Stamp,
    pub(crate) result: Result<Outcome, PlaceError>,
    pub(crate) took: Duration,
}

/// What came of a page at one place.
pub(crate) enum Outcome {
    /// It was there.
    There,
    /// It is there now.
    Written,
    /// Something newer is there, made from this: this replica lags.
    Lags(Versions),
}

/// What somebody has to know of it.
pub(crate) enum News {
    /// It failed; the first time, or in another way than before.
    Failed {
        /// Where.
        place: String,
        /// How.
        error: PlaceError,
    },
    /// This replica lags behind what was found: it has to look at the API server itself.
    Lags {
        /// Where.
        place: String,
        /// What it was made from.
        stored: Versions,
    },
    /// Nothing.
    None,
}

impl Places {
    /// These are the places from now on. What is known of those that stay as they are is kept.
    pub(crate) fn aim(&mut self, places: &[Place]) {
        let mut before = std::mem::take(&mut self.places);
        let names: Vec<String> = before.iter().map(|spot| spot.place.name.clone()).collect();
        for place in places {
            let known = before.iter().position(|spot| spot.place == *place).map(|at| before.swap_remove(at));
            self.places.push(known.unwrap_or_else(|| {
                // What the status says of another place by the same name says nothing of this one.
                Spot { news: names.contains(&place.name), ..Spot::new(place.clone()) }
            }));
        }
    }

    /// This place is left as it is.
    pub(crate) fn leave(&mut self, name: &str) {
        self.places.retain(|spot| spot.place.name != name);
    }

    /// Whether any place lacks this page, as far as is known.
    pub(crate) fn lack(&mut self, page: &Stamp) -> bool {
        for spot in &mut self.places {
            let lacks = spot.lacks(page);
            spot.stale = lacks.then(|| spot.stale.unwrap_or_else(Instant::now));
        }
        self.stale().is_some()
    }

    /// Since when the first of them lacks the page.
    pub(crate) fn stale(&self) -> Option<Instant> {
        self.places.iter().filter_map(|spot| spot.stale).min()
    }

    /// Whether any of them cannot be written.
    pub(crate) fn fail(&self) -> bool {
        self.places.iter().any(|spot| spot.status.reason.is_some())
    }

    /// Takes in what the status says, where this replica knows nothing newer.
    pub(crate) fn hear(&mut self, said: &[DestinationStatus]) {
        for spot in self.places.iter_mut().filter(|spot| !spot.news && !spot.busy) {
            match said.iter().find(|one| one.name == spot.place.name) {
                Some(one) if *one != spot.status => {
                    spot.status = one.clone();
                    // Somebody else wrote there.
                    spot.holds = Holds::Unknown;
                }
                _ => {}
            }
        }
    }

    /// What the status should say of them.
    pub(crate) fn statuses(&self) -> Vec<DestinationStatus> {
        self.places.iter().map(|spot| spot.status.clone()).collect()
    }

    /// The status says it all.
    pub(crate) fn told(&mut self) {
        for spot in &mut self.places {
            spot.news = false;
        }
    }

    /// What is there is not known any more: somebody may have changed it by hand.
    pub(crate) fn doubt(&mut self) {
        for spot in self.places.iter_mut().filter(|spot| !spot.busy) {
            spot.holds = Holds::Unknown;
        }
    }

    /// When the next of them is to be tried for this page. To `verify` is to look also where it should be already.
    pub(crate) fn next(&self, page: &Stamp, verify: bool) -> Option<Instant> {
        let waiting = self.places.iter().filter(|spot| !spot.busy && spot.waits_for(page, verify));
        waiting.map(|spot| spot.not_before).min()
    }

    /// Puts the page wherever it is not known to be, and it is time to try.
    pub(crate) fn put(
        &mut self,
        id: &Id,
        opening: &Opening,
        page: &Arc<Page>,
        foreign: Option<Foreign>,
        verify: bool,
    ) {
        let now = Instant::now();
        for spot in &mut self.places {
            if spot.busy || !spot.waits_for(&page.stamp, verify) || spot.not_before > now {
                continue;
            }
            spot.busy = true;
            let job = Job {
                id: id.clone(),
                place: spot.place.clone(),
                destination: spot.destination.clone(),
                opening: opening.clone(),
                holds: spot.holds.clone(),
                page: page.clone(),
                foreign,
            };
            self.work.spawn(job.run());
        }
    }

    /// Waits for one of them to be done, for ever where nothing is under way. May be dropped at any time.
    pub(crate) async fn done(&mut self) -> Done {
        loop {
            match self.work.join_next().await {
                Some(Ok(done)) => return done,
                // It panicked, and said so.
                Some(Err(_)) => self.places.iter_mut().for_each(|spot| spot.busy = false),
                None => std::future::pending().await,
            }
        }
    }

    /// Whether anything is under way.
    pub(crate) fn is_busy(&self) -> bool {
        !self.work.is_empty()
    }

    /// Folds in what came of one of them.
    pub(crate) fn fold(&mut self, done: Done, slowly: Duration, now: Timestamp) -> News {
        let Done { place, destination, holds, page, result, took: _ } = done;
        // A place that is another by now must not take over what came of the one before it.
        let Some(spot) = self.places.iter_mut().find(|spot| spot.place == place) else {
            return News::None;
        };
        (spot.busy, spot.destination, spot.holds) = (false, destination, holds);
        match result {
            Ok(Outcome::Lags(stored)) => {
                spot.wait(spot.failures + 1);
                News::Lags { place: place.name, stored }
            }
            Ok(outcome) => {
                (spot.failures, spot.not_before, spot.stale) = (0, Instant::now(), None);
                let written = matches!(outcome, Outcome::Written);
                let before = spot.status.clone();
                spot.status.digest = Some(page.digest.to_string());
                (spot.status.reason, spot.status.message) = (None, None);
                if written || spot.status.last_published.is_none() {
                    spot.status.last_published = Some(time(now));
                }
                spot.news |= spot.status != before;
                News::None
            }
            Err(error) => {
                // What it holds, and even how to reach it, may have changed.
                (spot.holds, spot.destination) = (Holds::Unknown, None);
                spot.wait(spot.failures + 1);
                if error.needs_a_person() {
                    spot.not_before = Instant::now() + slowly;
                }
                let before = spot.status.clone();
                spot.status.reason = Some(error.reason());
                spot.status.message = Some(error.to_string());
                spot.news |= spot.status != before;
                if spot.status == before { News::None } else { News::Failed { place: place.name, error } }
            }
        }
    }
}

impl Spot {
    fn new(place: Place) -> Self {
        let status = DestinationStatus {
            name: place.name.clone(),
            digest: None,
            last_published: None,
            reason: None,
            message: None,
        };
        let not_before = Instant::now();
        Self {
            place,
            destination: None,
            holds: Holds::Unknown,
            status,
            news: false,
            busy: false,
            failures: 0,
            not_before,
            stale: None,
        }
    }

    fn lacks(&self, page: &Stamp) -> bool {
        self.status.reason.is_some()
            || self.status.digest.as_deref() != Some(page.digest.to_string().as_str())
    }

    fn waits_for(&self, page: &Stamp, verify: bool) -> bool {
        self.lacks(page) || verify && matches!(self.holds, Holds::Unknown)
    }

    fn wait(&mut self, failures: u32) {
        self.failures = failures;
        self.not_before = Instant::now() + backoff(failures);
    }
}

/// One page for one place.
struct Job {
    id: Id,
    place: Place,
    destination: Option<Arc<Destination>>,
    opening: Opening,
    holds: Holds,
    page: Arc<Page>,
    foreign: Option<Foreign>,
}

impl Job {
    async fn run(mut self) -> Done {
        let started = Instant::now();
        let result = self.carry_out().await;
        let Self { place, destination, holds, page, .. } = self;
        Done { place, destination, holds, page: page.stamp, result, took: started.elapsed() }
    }

    async fn carry_out(&mut self) -> Result<Outcome, PlaceError> {
        let destination = match &self.destination {
            Some(open) => open.clone(),
            None => {
                self.destination.insert(Arc::new(self.opening.open(&self.id, &self.place).await?)).clone()
            }
        };
        for _ in 0..TRIES {
            let holds = match std::mem::replace(&mut self.holds, Holds::Unknown) {
                Holds::Known(holds) => holds,
                Holds::Unknown => destination.look().await?,
            };
            let stamp = &self.page.stamp;
            let found = found(holds.as_ref());
            // Only what was found before the API server was asked can be beyond it.
            let foreign = self.foreign.filter(|foreign| foreign.is(&found));
            match fence(&found, stamp, foreign.map(|foreign| foreign.reached).as_ref()) {
                Write::Rest => {
                    self.holds = Holds::Known(holds);
                    return Ok(Outcome::There);
                }
                Write::Lag => return Ok(Outcome::Lags(versions(&found))),
                Write::Overrule => warn!(
                    listing = %self.id,
                    place = self.place.name,
                    "the page that is there comes from another history: replaced"
                ),
                Write::Create | Write::Replace => {}
            }
            match destination.put(&self.page, holds.as_ref().map(|found| &found.tag)).await? {
                Put::Written(tag) => {
                    let digest = Some(stamp.digest);
                    self.holds = Holds::Known(Some(Found { tag, stamp: Some(*stamp), digest }));
                    self.remember(&destination).await;
                    return Ok(Outcome::Written);
                }
                // Somebody was faster: what is there now has the next say.
                Put::Conflict => {}
            }
        }
        Err(PlaceError::Contested)
    }

    /// Keeps the page among the former ones. It is published already, whatever becomes of this.
    async fn remember(&self, destination: &Destination) {
        let Stamp { endpoints, digest, .. } = self.page.stamp;
        info!(listing = %self.id, place = self.place.name, endpoints, %digest, "published");
        if let Err(error) = destination.keep(&self.page, self.opening.now()).await {
            warn!(listing = %self.id, place = self.place.name, %error, "the history lacks a page; tried again with the next");
        }
    }
}

/// What such a page was made from.
fn versions(found: &lister::Found) -> Versions {
    match found {
        lister::Found::Page(stamp) => stamp.versions,
        lister::Found::Nothing | lister::Found::Unstamped => Versions::default(),
    }
}

/// What a destination holds, as the fence judges it.
fn found(holds: Option<&Found>) -> lister::Found {
    match holds {
        None => lister::Found::Nothing,
        Some(Found { stamp: Some(stamp), .. }) => lister::Found::Page(*stamp),
        // What bears no stamp may be the same page all the same.
        Some(Found { digest: Some(digest), .. }) => {
            lister::Found::Page(Stamp { digest: *digest, endpoints: 0, versions: Versions::default() })
        }
        Some(_) => lister::Found::Unstamped,
    }
}
