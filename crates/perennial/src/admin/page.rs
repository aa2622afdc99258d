//! The status page: what this replica knows of the fleet, for a browser.
//!
//! ```text
//! keeper ── Window ──┐
//! members ── Roster ─┼─> Hub (one task) ── stream of changes ──> browsers (a bounded number)
//! lister ── Pages ───┘   asks once a second, while somebody looks
//! API server <── reads of one node and its record, when a person opens it
//! ```
//! Read-only by construction: every route is a GET, and what stands behind it has no way to write. Values of labels
//! leave the process only where that was asked for. It answers only to names of our own: see `hosts`.
//!
//! | path | answers |
//! | --- | --- |
//! | `/`, to a browser | the page |
//! | `/page/…` | its script and style |
//! | `/page/stream` | the fleet, and then what changes (server-sent events) |
//! | `/page/node/NAME` | one node: live against its record, as JSON |

mod fold;
mod hosts;
mod hub;
mod node;
mod wire;

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, Path, State};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use perennial_core::policy::Policy;
use perennial_core::record::Seals;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::server::Leash;
use crate::cluster::Cluster;
use crate::config::{KeeperConfig, MembersConfig, PageConfig};
use crate::keeper::Window;
use crate::keeper::api::Api;
use crate::lister::Pages;
use crate::members::Roster;
use hosts::Hosts;
use hub::{Door, Hub};
use node::Desk;

/// Nothing from elsewhere, nothing inline, nobody's frame. A listing's preview is a frame of our own, and sandboxed.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What every answer of the page bears.
const COMMON: [(HeaderName, HeaderValue); 4] = [
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
];

const HTML: &str = include_str!("page/assets/index.html");

/// The files that the page is made of, besides itself: name, type, content.
const FILES: [(&str, &str, &str); 9] = [
    ("style.css", "text/css", include_str!("page/assets/style.css")),
    ("app.js", "text/javascript", include_str!("page/assets/app.js")),
    ("charts.js", "text/javascript", include_str!("page/assets/charts.js")),
    ("dom.js", "text/javascript", include_str!("page/assets/dom.js")),
    ("fleet.js", "text/javascript", include_str!("page/assets/fleet.js")),
    ("map.js", "text/javascript", include_str!("page/assets/map.js")),
    ("node.js", "text/javascript", include_str!("page/assets/node.js")),
    ("panels.js", "text/javascript", include_str!("page/assets/panels.js")),
    ("icon.svg", "image/svg+xml", include_str!("page/assets/icon.svg")),
];

/// Where the members will be known, once somebody follows them.
pub type RosterSlot = Arc<OnceLock<watch::Receiver<Arc<Roster>>>>;

/// What the page is made from.
#[derive(Debug)]
pub struct Sources {
    /// What it may show.
    pub config: PageConfig,
    /// The keeper, where there is one.
    pub window: Option<Window>,
    /// The pages of the lister, where there is one.
    pub pages: Option<Pages>,
    /// The members, once they are followed.
    pub roster: RosterSlot,
    /// The name of this replica among them.
    pub member: String,
    /// The namespace that the records live in.
    pub namespace: String,
    /// The name part of the mark.
    pub installation: String,
    /// What records are sealed with, where they are.
    pub seals: Option<Arc<Seals>>,
    /// Nothing is written.
    pub dry_run: bool,
    /// What is kept.
    pub policy: watch::Receiver<Arc<Policy>>,
}

impl Sources {
    /// What the page of such a replica is made from.
    #[must_use]
    pub fn new(
        config: PageConfig,
        keeper: Option<&KeeperConfig>,
        members: &MembersConfig,
        pages: Option<Pages>,
    ) -> Self {
        Self {
            config,
            window: keeper.and_then(|keeper| keeper.window.clone()),
            pages,
            roster: RosterSlot::default(),
            member: members.name.clone(),
            namespace: members.namespace.clone(),
            installation: keeper.map_or_else(String::new, |keeper| keeper.installation.clone()),
            seals: keeper.and_then(|keeper| keeper.seals.clone()),
            dry_run: keeper.is_some_and(|keeper| keeper.dry_run),
            policy: members.policy.clone(),
        }
    }

    /// By which names the page may be asked for.
    pub(super) fn hosts(&self) -> Hosts {
        Hosts::new(&self.config.hosts)
    }
}

/// Serves the page beside the other routes. What it needs ends with the handle.
pub fn add(routes: Router, sources: Sources, cluster: Cluster) -> (Router, AbortOnDropHandle<()>) {
    let clock = cluster.clock().clone();
    let api = Api::new(cluster, &sources.namespace, &sources.installation, sources.seals.clone());
    let desk = sources.window.clone().map(|window| Desk::new(window, api, &sources));
    let guard = middleware::from_fn_with_state(sources.hosts(), hosts::guard);
    let (door, hub) = Hub::new(sources, clock);
    let hub = AbortOnDropHandle::new(tokio::spawn(hub.run()));
    let page = FILES.into_iter().fold(Router::new(), |router, (name, kind, text)| {
        router.route(
            &format!("/page/{name}"),
            get(move |headers: HeaderMap| async move { file(kind, text, &headers) }),
        )
    });
    let page = page
        .route("/page/stream", get(stream).with_state(door))
        .route("/page/node/{name}", get(look).with_state(desk.map(Arc::new)))
        .route_layer(guard);
    (routes.merge(page), hub)
}

/// The page itself, to whoever asks for HTML.
pub(super) fn front(headers: &HeaderMap, hosts: &Hosts) -> Option<Response> {
    let accept = headers.get(header::ACCEPT)?.to_str().ok()?;
    let page = || hosts.refuse(headers).unwrap_or_else(|| file("text/html", HTML, headers));
    accept.contains("text/html").then(page)
}

fn file(kind: &'static str, text: &'static str, headers: &HeaderMap) -> Response {
    // The binary is what changes: its version would do for releases, and not for whoever builds it every hour.
    let tag =
        format!("\"{:x}\"", text.bytes().fold(5381_u64, |sum, byte| sum.wrapping_mul(33) ^ u64::from(byte)));
    let tagged = [
        (header::ETAG, HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\""))),
        (header::VARY, HeaderValue::from_static("accept")),
    ];
    if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return (StatusCode::NOT_MODIFIED, COMMON, tagged).into_response();
    }
    let kind = HeaderValue::from_str(&format!("{kind}; charset=utf-8"));
    let kind = [(header::CONTENT_TYPE, kind.unwrap_or(HeaderValue::from_static("text/plain")))];
    (COMMON, tagged, kind, text).into_response()
}

async fn stream(State(door): State<Door>, Extension(leash): Extension<Leash>) -> Response {
    match door.enter(&leash) {
        Some(chunks) => {
            let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"))];
            (COMMON, kind, Body::from_stream(chunks)).into_response()
        }
        None => refuse(StatusCode::SERVICE_UNAVAILABLE, "too many people look at this page: try again later"),
    }
}

async fn look(State(desk): State<Option<Arc<Desk>>>, Path(name): Path<String>) -> Response {
    let Some(desk) = desk else { return refuse(StatusCode::NOT_FOUND, "no nodes are kept here") };
    match desk.look(&name).await {
        Ok(json) => {
            let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
            (COMMON, kind, Bytes::from(json)).into_response()
        }
        Err(refused) => refuse(refused.status(), refused.words()),
    }
}

fn refuse(status: StatusCode, words: &'static str) -> Response {
    (status, COMMON, [(header::RETRY_AFTER, HeaderValue::from_static("3"))], words).into_response()
}

#[cfg(test)]
mod tests;
