//! The lister: publishes what the cluster knows of a Service's endpoints.
//!
//! ```text
//!                   observe (reads)              decide (pure)               apply (writes)
//! Listing watch ──> one actor a listing
//! slices, template ─> Sources ── paced ──> render, core::lister::decide ──> Plan ──> places, status
//! ```
//! Every replica follows every listing and serves its page; ranks decide which of them publishes it.

mod actor;
pub mod destination;
mod list;
pub mod listing;
mod metrics;
mod opening;
pub mod order;
pub(crate) mod pages;
mod places;
mod render;
mod say;
mod seen;
mod slices;
mod sources;
mod standings;
mod status;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::core::request::Request as Resource;
use serde::de::IgnoredAny;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, info};

use crate::admin::ReadyHandle;
use crate::cluster::{Chosen, Cluster, Event, Following, Target, Teller, teller};
use crate::config::ListerConfig;
use crate::members::Membership;
use actor::Actor;
use opening::Opening;
use order::Id;
use seen::{ListingObject, Seen};

pub use list::{Error as ListError, Single};
pub use metrics::Metrics;
pub use pages::{Pages, routes};

/// The annotation by which a person releases a page that a guard holds: its value is the page's digest.
const RELEASE: &str = "perennial.dev/release";

/// What all listings share.
pub(crate) struct Shared {
    pub(crate) cluster: Cluster,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) pages: Pages,
    pub(crate) teller: Teller,
    pub(crate) opening: Opening,
    /// Where one listing is all there is: marked once it is known what its page should be, held back or not.
    pub(crate) ready: Option<ReadyHandle>,
    /// How often everything is looked at again.
    pub(crate) resync: Duration,
    /// How long what a person has to change is left alone.
    pub(crate) retry_slowly: Duration,
}

/// Publishes all listings until `stop`.
pub async fn run(
    cluster: Cluster,
    config: ListerConfig,
    metrics: Arc<Metrics>,
    pages: Pages,
    membership: Membership,
    ready: ReadyHandle,
    stop: CancellationToken,
) {
    let (teller, post) = teller(cluster.clone(), false);
    let _post = AbortOnDropHandle::new(tokio::spawn(post));
    let ListerConfig { namespace, resync, retry_slowly } = config;
    let of = namespace.map(|namespace| format!("namespaces/{namespace}/")).unwrap_or_default();
    let target = Target {
        what: "listings",
        resource: Resource::new(format!("/apis/perennial.dev/v1alpha1/{of}listings")),
        chosen: Chosen::All,
        whole: true,
    };
    let opening = Opening::new(cluster.clone());
    let mut lister = Lister {
        listings: BTreeMap::new(),
        following: Following::start(&cluster, target.clone()),
        target,
        shared: Arc::new(Shared {
            cluster,
            metrics,
            pages,
            teller,
            opening,
            ready: None,
            resync,
            retry_slowly,
        }),
        membership,
        ready,
        tasks: JoinSet::new(),
        looks: JoinSet::new(),
        list: 0,
    };
    lister.follow(&stop).await;
    lister.drain().await;
}

/// A listing that is followed.
struct Followed {
    seen: watch::Sender<Arc<Seen>>,
    stop: CancellationToken,
    /// The list that it was last in.
    list: u64,
}

struct Lister {
    shared: Arc<Shared>,
    membership: Membership,
    ready: ReadyHandle,
    target: Target,
    following: Following<ListingObject>,
    listings: BTreeMap<Id, Followed>,
    /// The actors. They end with this.
    tasks: JoinSet<()>,
    /// Which of those that a list lacked are gone.
    looks: JoinSet<(Id, bool)>,
    list: u64,
}

impl Lister {
    async fn follow(&mut self, stop: &CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                event = self.following.next() => self.event(event),
                Some(_) = self.tasks.join_next() => {}
                Some(Ok((id, gone))) = self.looks.join_next() => {
                    // One that was seen since is another by the same name.
                    if gone && self.listings.get(&id).is_some_and(|listing| listing.list != self.list) {
                        self.remove(&id);
                    }
                }
            }
        }
    }

    fn event(&mut self, event: Event<ListingObject>) {
        match event {
            Event::Listing => self.list += 1,
            Event::Applied(listing) => self.applied(&listing),
            Event::Deleted(listing) => self.remove(&listing.id()),
            Event::Unchanged(_) | Event::Unobserved(_) | Event::Reached(_) => {}
            Event::Listed(version) => {
                debug!(version, "listings are listed");
                self.miss();
                self.ready.mark();
                self.membership.announce();
            }
            Event::OtherHistory => {
                self.following = Following::start(&self.shared.cluster, self.target.clone());
            }
        }
    }

    fn applied(&mut self, listing: &ListingObject) {
        let (id, seen) = (listing.id(), Arc::new(Seen::from(listing)));
        if let Some(known) = self.listings.get_mut(&id) {
            known.list = self.list;
            known.seen.send_replace(seen);
            return;
        }
        info!(listing = %id, "following");
        let (to, seen) = watch::channel(seen);
        let stop = CancellationToken::new();
        let roster = self.membership.roster.clone();
        let actor = Actor::new(id.clone(), self.shared.clone(), seen, roster, None);
        self.tasks.spawn(actor.run(stop.clone()));
        self.listings.insert(id, Followed { seen: to, stop, list: self.list });
    }

    /// Looks for what the list lacked: one list may be wrong.
    fn miss(&mut self) {
        let missed = self.listings.iter().filter(|(_, listing)| listing.list != self.list);
        for id in missed.map(|(id, _)| id.clone()) {
            let (cluster, target) = (self.shared.cluster.clone(), named(&id));
            self.looks.spawn(async move {
                let found = cluster.list::<IgnoredAny>(&target).await;
                (id, found.is_ok_and(|(found, _)| found.is_empty()))
            });
        }
    }

    /// Nothing is published any more. What was published stays: nobody asked to take it away.
    fn remove(&mut self, id: &Id) {
        if let Some(listing) = self.listings.remove(id) {
            info!(listing = %id, "not followed any more");
            listing.stop.cancel();
            self.shared.pages.remove(id);
        }
    }

    async fn drain(&mut self) {
        for listing in self.listings.values() {
            listing.stop.cancel();
        }
        while self.tasks.join_next().await.is_some() {}
    }
}

/// The Listing of this name.
fn named(id: &Id) -> Target {
    let resource =
        Resource::new(format!("/apis/perennial.dev/v1alpha1/namespaces/{}/listings", id.namespace));
    Target { what: "listings", resource, chosen: Chosen::Named(id.name.clone()), whole: true }
}
