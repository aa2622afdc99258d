//! One listing from the command line: the same actor, without a custom resource and without others.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use perennial_core::lister::{Lack, Paced, Page, Plan, Sight, Stamp, Versions, decide};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use super::actor::Actor;
use super::metrics::Metrics;
use super::opening::Opening;
use super::order::{Id, Order, Place, Source};
use super::pages::Pages;
use super::places::{Foreign, News, Places};
use super::render::{Made, Material, make};
use super::seen::{ListingObject, Seen};
use super::sources::{Sources, Text};
use super::{Shared, named};
use crate::admin::ReadyHandle;
use crate::ask;
use crate::cluster::{Cluster, Event, Following, teller};
use crate::config::What;
use crate::members::Roster;

/// How often the template's file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long `--once` tries to publish.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often `--once` looks again where it found a newer page.
const LOOKS: usize = 3;
/// How often everything is looked at again.
const RESYNC: Duration = Duration::from_mins(5);
/// How long what a person has to change is left alone.
const RETRY_SLOWLY: Duration = Duration::from_mins(1);

/// Why a page could not be shown or published.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server did not tell what is needed.
    #[error("cannot read {what}: {why}")]
    Unread {
        /// What was to be read.
        what: String,
        /// Why it was not.
        why: String,
    },
    /// The Listing cannot be carried out.
    #[error("the Listing {0}: {1}")]
    Listing(Id, String),
    /// There is no page.
    #[error("{0}")]
    NoPage(String),
    /// A guard holds the page.
    #[error("not published: {0}")]
    Held(String),
    /// Somewhere another page is served.
    #[error("{0}: {1}")]
    Unlike(http::Uri, String),
    /// Some destinations do not have the page.
    #[error("not published everywhere: {0}")]
    Failed(String),
}

/// One listing, and all that it takes to publish it.
pub struct Single {
    cluster: Cluster,
    id: Id,
    what: What,
    places: Vec<Place>,
    template: Option<PathBuf>,
}

impl Single {
    /// What was asked for; the Service is in this namespace.
    #[must_use]
    pub fn new(
        cluster: Cluster,
        namespace: &str,
        what: What,
        places: Vec<Place>,
        template: Option<PathBuf>,
    ) -> Self {
        let id = match &what {
            What::Order(order) => Id { namespace: namespace.to_owned(), name: order.service.clone() },
            What::Listing(id) => id.clone(),
        };
        Self { cluster, id, what, places, template }
    }

    /// What to do now.
    async fn order(&self) -> Result<Arc<Order>, Error> {
        let order = match &self.what {
            What::Order(order) => Order::clone(order),
            What::Listing(id) => {
                let read = self.cluster.list::<ListingObject>(&named(id)).await;
                let (objects, _) = read.map_err(|why| unread(format!("the Listing {id}"), why))?;
                let object =
                    objects.first().ok_or_else(|| unread(format!("the Listing {id}"), "not found"))?;
                let order = Seen::from(object).order;
                Order::clone(&*order.map_err(|error| Error::Listing(id.clone(), error.to_string()))?)
            }
        };
        Ok(Arc::new(Order { places: self.places.clone(), ..order }))
    }

    /// The page as it is now, whatever guards say.
    pub async fn show(&self) -> Result<String, Error> {
        let (_, made) = self.make().await?;
        let page = made.page.map_err(|error| Error::NoPage(error.to_string()))?;
        Ok(page.body.clone())
    }

    /// Whether the page that is served there is the one that should be, or becomes it in a moment.
    pub async fn verify(&self, at: &http::Uri) -> Result<(), Error> {
        let judged = ask::until(at, async |answer| {
            let served = answer?;
            let page = self.show().await.map_err(|error| error.to_string())?;
            if served == page.as_bytes() { Ok(()) } else { Err("the page there is another one".to_owned()) }
        });
        judged.await.map_err(|why| Error::Unlike(at.clone(), why))?;
        info!(address = %at, "the page there is the current one");
        Ok(())
    }

    async fn make(&self) -> Result<(Arc<Order>, Made), Error> {
        let order = self.order().await?;
        let mut sources = Sources::new(self.cluster.clone(), &self.id.namespace);
        sources.aim(&order);
        let read = sources.read(None).await;
        let read = read.map_err(|why| unread(format!("the endpoints of {}", order.service), why))?;
        let version = read.version();
        sources.take(read);
        let (template, slices) = match (sources.template(&order).0, sources.slices()) {
            (Text::Known(text), Some(slices)) => (text, slices.iter().cloned().collect()),
            (Text::Missing(why), _) => return Err(Error::NoPage(why)),
            (Text::Unknown, _) | (_, None) => return Err(Error::NoPage("nothing was read".to_owned())),
        };
        let versions = Versions { listing: version, template: version, endpoints: version };
        let material = Material { id: self.id.clone(), order: order.clone(), template, slices, versions };
        Ok((order, make(self.cluster.clone(), material).await))
    }

    /// The last good page, wherever it is. A place that cannot be looked at is told of when it is written to.
    async fn found(&self, order: &Order) -> Option<Stamp> {
        let (opening, mut found) = (Opening::new(self.cluster.clone()), None::<Stamp>);
        for place in &order.places {
            let Ok(destination) = opening.open(&self.id, place).await else { continue };
            let stamp = destination.look().await.ok().flatten().and_then(|there| there.stamp);
            found = found.into_iter().chain(stamp).max_by_key(|stamp| stamp.endpoints);
        }
        found
    }

    /// Publishes the page as it is now.
    pub async fn once(&self) -> Result<(), Error> {
        let mut foreign = None;
        for _ in 0..LOOKS {
            let (order, page) = self.decided().await?;
            let Some(stored) = self.deliver(&order, &page, foreign).await? else { return Ok(()) };
            // What was found before everything is read again, and is beyond that, comes from another history.
            let reached = self.make().await?.1.page.map_err(|error| Error::NoPage(error.to_string()))?;
            let reached = reached.stamp.versions;
            foreign = (!reached.reach(&stored)).then_some(Foreign { stored, reached });
        }
        info!("others publish newer pages");
        Ok(())
    }

    /// The page as it is now, if it may be published.
    async fn decided(&self) -> Result<(Arc<Order>, Arc<Page>), Error> {
        let (order, Made { page, service, took: _ }) = self.make().await?;
        let sight = Sight {
            synced: true,
            page: page.as_deref().ok(),
            service,
            guards: order.guards,
            release: None,
            published: self.found(&order).await,
            pace: order.pace,
            paced: Paced::default(),
        };
        let plan = decide(&sight, Duration::ZERO);
        let page = page.map_err(|error| Error::NoPage(error.to_string()))?;
        match plan {
            Plan::Publish | Plan::Rest(_) | Plan::Wait { .. } => Ok((order, page)),
            Plan::Hold(held) => Err(Error::Held(held.to_string())),
            Plan::Keep(Lack::Service | Lack::Template) => Err(Error::NoPage(format!(
                "there is no Service {:?} in {}",
                order.service, self.id.namespace
            ))),
        }
    }

    /// Puts the page everywhere. Where a newer one was found it is left, and what that was made from is returned.
    async fn deliver(
        &self,
        order: &Order,
        page: &Arc<Page>,
        foreign: Option<Foreign>,
    ) -> Result<Option<Versions>, Error> {
        let (opening, deadline) = (Opening::new(self.cluster.clone()), Instant::now() + PATIENCE);
        let (mut places, mut newer) = (Places::default(), None);
        places.aim(&order.places);
        loop {
            places.put(&self.id, &opening, page, foreign, true);
            if places.is_busy() {
                let done = places.done().await;
                match places.fold(done, RETRY_SLOWLY, self.cluster.now()) {
                    News::Failed { place, error } => {
                        warn!(place, kind = error.kind(), %error, "cannot publish");
                    }
                    News::Lags { place, stored } => {
                        places.leave(&place);
                        newer = Some(stored);
                    }
                    News::None => {}
                }
                continue;
            }
            match places.next(&page.stamp, true) {
                None => return Ok(newer),
                Some(at) if at <= deadline => tokio::time::sleep_until(at).await,
                Some(_) => {
                    let failing = places.statuses().into_iter();
                    let failing = failing.filter_map(|one| Some(format!("{}: {}", one.name, one.message?)));
                    return Err(Error::Failed(failing.collect::<Vec<_>>().join("; ")));
                }
            }
        }
    }

    /// Follows the endpoints until `stop`, and publishes the page whenever it changes.
    pub async fn follow(
        self,
        metrics: Arc<Metrics>,
        pages: Pages,
        ready: ReadyHandle,
        stop: CancellationToken,
    ) -> Result<(), Error> {
        let order = self.order().await?;
        let found = self.found(&order).await;
        let (to, seen) = watch::channel(Arc::new(Seen { order: Ok(order), release: None, object: None }));
        let (_, roster) = watch::channel(Arc::new(Roster::alone(Duration::ZERO)));
        let (teller, _nobody) = teller(self.cluster.clone(), true);
        let opening = Opening::new(self.cluster.clone());
        let shared = Shared {
            cluster: self.cluster.clone(),
            metrics,
            pages,
            teller,
            opening,
            ready: Some(ready),
            resync: RESYNC,
            retry_slowly: RETRY_SLOWLY,
        };
        let actor = Actor::new(self.id.clone(), Arc::new(shared), seen, roster, found);
        let _changes = AbortOnDropHandle::new(tokio::spawn(self.changes(to)));
        actor.run(stop).await;
        Ok(())
    }

    /// Follows what the listing itself is made from: a Listing, or the file of a template.
    async fn changes(self, to: watch::Sender<Arc<Seen>>) {
        match (&self.what, &self.template) {
            (What::Listing(id), _) => self.follow_listing(id, &to).await,
            (What::Order(order), Some(path)) => self.follow_template(order, path, &to).await,
            (What::Order(_), None) => to.closed().await,
        }
    }

    async fn follow_listing(&self, id: &Id, to: &watch::Sender<Arc<Seen>>) {
        let mut following = Following::start(&self.cluster, named(id));
        loop {
            match following.next().await {
                Event::Applied(listing) => {
                    let seen = Seen::from(&listing);
                    let order = seen
                        .order
                        .map(|order| Arc::new(Order { places: self.places.clone(), ..Order::clone(&order) }));
                    to.send_replace(Arc::new(Seen { order, release: seen.release, object: None }));
                }
                Event::Deleted(_) => warn!(listing = %id, "the Listing is gone: its last order stays"),
                Event::OtherHistory => following = Following::start(&self.cluster, named(id)),
                Event::Listing
                | Event::Unchanged(_)
                | Event::Unobserved(_)
                | Event::Listed(_)
                | Event::Reached(_) => {}
            }
        }
    }

    async fn follow_template(&self, order: &Order, path: &Path, to: &watch::Sender<Arc<Seen>>) {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut known = order.template.clone();
        loop {
            ticks.tick().await;
            // A file that is not there for a moment, or half written, is read at the next look.
            let path = path.to_owned();
            let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await;
            let Ok(Ok(text)) = read else { continue };
            let template = Source::Text(text);
            if template != known {
                info!("the template changed");
                known = template.clone();
                let order = Order { places: self.places.clone(), template, ..order.clone() };
                to.send_replace(Arc::new(Seen { order: Ok(Arc::new(order)), release: None, object: None }));
            }
        }
    }
}

fn unread(what: String, why: impl std::fmt::Display) -> Error {
    Error::Unread { what, why: why.to_string() }
}
