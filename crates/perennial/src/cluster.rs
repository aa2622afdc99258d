//! The API server, as every part uses it: calls with a deadline, errors sorted by what to do about them, and
//! streams that pick up the thread whatever breaks.

mod backoff;
mod clock;
mod config_map;
mod error;
mod events;
mod messages;
mod metrics;
mod object;
mod proto;
mod quiet;
mod stream;
mod views;

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Request, Response};
use jiff::Timestamp;
use kube::api::{ListParams, VersionMatch};
use kube::client::Body;
use kube::core::request::Request as Resource;
use perennial_core::record::Version;
use serde::de::DeserializeOwned;

pub use metrics::Metrics;

pub(crate) use backoff::backoff;
pub(crate) use clock::Clock;
pub(crate) use config_map::ConfigMap;
pub(crate) use error::ApiError;
pub(crate) use events::{About, Teller, Told, teller};
pub(crate) use messages::Message;
pub(crate) use object::{List, Meta, version};
pub(crate) use proto::{Outline, PROTOBUF, outline};
pub(crate) use quiet::{Glance, Unchanged};
pub(crate) use stream::{Chosen, Event, Followed, Following, Identity, Target, follow};

/// How long one ordinary call may take.
const DEADLINE: Duration = Duration::from_secs(30);
/// How long one may take about a single object that is needed before anything else goes on.
const SOON: Duration = Duration::from_secs(10);
/// Page size of lists that are read in pages.
pub(crate) const PAGE: u32 = 500;

/// A way to the API server, and what is measured on it.
#[derive(Clone)]
pub struct Cluster {
    client: kube::Client,
    streams: kube::Client,
    metrics: Arc<Metrics>,
    clock: Clock,
}

impl Cluster {
    /// Goes by this client.
    #[must_use]
    pub fn new(client: kube::Client, metrics: Arc<Metrics>) -> Self {
        Self { streams: client.clone(), client, metrics, clock: Clock::default() }
    }

    /// Watches by this client: one that makes a connection for each (see [`crate::client::connect_anew`]).
    #[must_use]
    pub fn watching_by(self, streams: kube::Client) -> Self {
        Self { streams, ..self }
    }

    /// Whether every stream told of late how far it got.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.metrics.views.are_fresh()
    }

    /// The time, by the API server's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    fn streams(&self) -> &kube::Client {
        &self.streams
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Asks, and waits for the answer until the deadline.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        request: Result<Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<T, ApiError> {
        self.call_by(&self.client, request, DEADLINE).await
    }

    /// The same on a connection of its own: what was open before may lead to a server that does not answer.
    async fn call_anew<T: DeserializeOwned>(
        &self,
        request: Result<Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<T, ApiError> {
        self.call_by(&self.streams, request, SOON).await
    }

    async fn call_by<T: DeserializeOwned>(
        &self,
        client: &kube::Client,
        request: Result<Request<Vec<u8>>, kube::core::request::Error>,
        deadline: Duration,
    ) -> Result<T, ApiError> {
        let request = request.map_err(|error| ApiError::Invalid(error.to_string()))?;
        let _call = self.metrics.call();
        tokio::time::timeout(deadline, self.ask(client, request)).await.unwrap_or(Err(ApiError::Timeout))
    }

    /// The version that a consistent list of one object bears: where history stands now.
    pub(crate) async fn head(&self, resource: &Resource, chosen: &Chosen) -> Result<Version, ApiError> {
        let (label_selector, field_selector) = chosen.selectors();
        let params = ListParams { label_selector, field_selector, ..ListParams::default().limit(1) };
        let list: List<serde::de::IgnoredAny> = self.call_anew(resource.list_metadata(&params)).await?;
        Ok(list.metadata.resource_version)
    }

    /// One page of a consistent list.
    async fn page<T: DeserializeOwned>(
        &self,
        target: &Target,
        next: Option<String>,
    ) -> Result<List<T>, ApiError> {
        let Target { what: _, resource, chosen, whole } = target;
        let (label_selector, field_selector) = chosen.selectors();
        let params = ListParams {
            limit: Some(PAGE),
            continue_token: next,
            label_selector,
            field_selector,
            ..ListParams::default()
        };
        self.call(if *whole { resource.list(&params) } else { resource.list_metadata(&params) }).await
    }

    /// One object of those that are followed, read consistently; `None` if there is none.
    pub(crate) async fn find<T: Followed>(
        &self,
        target: &Target,
        identity: &Identity,
    ) -> Result<Option<T>, ApiError> {
        let (resource, params) = (&target.resource, by_name(target, identity));
        let request = if target.whole { resource.list(&params) } else { resource.list_metadata(&params) };
        let list: List<T> = self.call_anew(request).await?;
        Ok(list.items.into_iter().find(|object| identity.is(object.meta())))
    }

    /// The version that one of those objects had as of a version of the past; `None` if there was none.
    pub(crate) async fn version_at(
        &self,
        target: &Target,
        identity: &Identity,
        at: Version,
    ) -> Result<Option<Version>, ApiError> {
        #[derive(serde::Deserialize)]
        struct Bare {
            metadata: Meta,
        }
        let params = ListParams {
            resource_version: Some(at.to_string()),
            version_match: Some(VersionMatch::Exact),
            ..by_name(target, identity)
        };
        let list: List<Bare> = self.call_anew(target.resource.list_metadata(&params)).await?;
        let found = list.items.into_iter().find(|object| identity.is(&object.metadata));
        Ok(found.map(|object| object.metadata.resource_version))
    }

    /// A whole consistent list, page by page: what there is, as of which version.
    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        target: &Target,
    ) -> Result<(Vec<T>, Version), ApiError> {
        let (mut items, mut next) = (Vec::new(), None);
        loop {
            let page = self.page::<T>(target, next).await?;
            items.extend(page.items);
            next = page.metadata.next.filter(|next| !next.is_empty());
            if next.is_none() {
                return Ok((items, page.metadata.resource_version));
            }
        }
    }

    /// [`kube::Client::request`], which keeps a Retry-After to itself: the API server's own throttling says it in the header
    /// alone.
    async fn ask<T: DeserializeOwned>(
        &self,
        client: &kube::Client,
        request: Request<Vec<u8>>,
    ) -> Result<T, ApiError> {
        let body = self.send(client, request).await?.into_body();
        let bytes = body.collect_bytes().await?;
        serde_json::from_slice(&bytes).map_err(|error| ApiError::Malformed(error.to_string()))
    }

    /// Sends a request, and returns when an answer begins that is no error.
    async fn send(
        &self,
        client: &kube::Client,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Body>, ApiError> {
        let sent = Instant::now();
        let response = client.send(request.map(Body::from)).await?;
        if response.status().is_success() {
            self.clock.answered(response.headers(), sent);
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        Err(ApiError::of_answer(&parts, &body.collect_bytes().await?))
    }
}

/// Lists one of the objects that are followed.
fn by_name(target: &Target, identity: &Identity) -> ListParams {
    let (label_selector, _) = target.chosen.selectors();
    let field_selector = Some(format!("metadata.name={}", identity.name));
    ListParams { label_selector, field_selector, ..ListParams::default() }
}
