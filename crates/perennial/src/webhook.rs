//! What the API server asks before a Node is created or deleted, over TLS on a port of its own.
//!
//! ```text
//!              AdmissionReview
//! API server ────────────────> server ──> core::admission ──> keeper::Door
//!                                ^ serves with
//!                               tls
//! ```
//! | path | asked before | answers |
//! | --- | --- | --- |
//! | `/born` | a Node is created | the labels it is born with |
//! | `/gone` | a Node is deleted | yes, once what is kept of it is recorded |
//!
//! Anybody who reaches the port can ask, so nothing that is said in a question is believed: it is answered, and no more.
//!
//! Nothing here may keep a node from registering: whoever cannot tell says yes and adds nothing, and the keeper gives the
//! node its own once it is there.

mod metrics;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use http::{StatusCode, header};
use perennial_core::admission::{Answer, Asked, Broken, Comer};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::cluster::Cluster;
use crate::config::TlsConfig;
use crate::keeper::{Api, Door};
use crate::listener::{self, Purpose};
use crate::tls::{TlsListener, Trust};

pub use metrics::Metrics;

/// An API server asks by HTTP/1.1, and keeps some 25 connections.
const PURPOSE: Purpose = Purpose { serves: "the webhook", flag: "--webhook-address", connections: 128 };
/// The most that a review may take: more than the API server would store of a Node, twice.
const MOST: usize = 4 * 1024 * 1024;
/// What all questions under way may take together, in KiB: a storm of them, and no more, whoever sends them.
const BUDGET: usize = 16 * 1024;
/// How many nodes are read from the API server at once.
const READS: usize = 32;
/// How long a request's body may take, and its turn.
const BODY_TIME: Duration = Duration::from_secs(5);
/// How long a newborn waits for the end of the one before it. Every kubelet that starts asks for a Node of its own, and most
/// have one: they wait for nothing, and not for long.
const COMES: Duration = Duration::from_millis(100);
/// How long one that goes waits for its record. The API server waits for 10 s.
const GOES: Duration = Duration::from_secs(8);

/// A webhook that has its port and waits to serve.
#[derive(Debug)]
pub struct Webhook {
    listener: TlsListener,
    namespace: String,
}

impl Webhook {
    /// Takes the port.
    pub async fn bind(config: TlsConfig) -> Result<Self, listener::Error> {
        let namespace = config.namespace.clone();
        Ok(Self { listener: TlsListener::bind(config, PURPOSE).await?, namespace })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Answers for this keeper until the future is dropped. Once it is `closing`, connections end with what is asked on them,
    /// and the API server goes to another replica.
    pub async fn serve(
        self,
        cluster: Cluster,
        installation: String,
        door: Door,
        metrics: Arc<Metrics>,
        closing: CancellationToken,
    ) {
        let Self { listener, namespace } = self;
        let certificate = metrics.certificate.clone();
        let api = Api::new(cluster.clone(), &namespace, &installation, None);
        let (budget, reads) = (Arc::new(Semaphore::new(BUDGET)), Semaphore::new(READS));
        let desk = Arc::new(Desk { api, door, metrics, budget, reads });
        let routes = Router::new().route("/born", post(born)).route("/gone", post(gone)).with_state(desk);
        listener.serve(cluster, routes, Trust::Webhooks, certificate, closing).await;
    }
}

struct Desk {
    api: Api,
    door: Door,
    metrics: Arc<Metrics>,
    budget: Arc<Semaphore>,
    reads: Semaphore,
}

/// A Node is about to be created.
async fn born(State(desk): State<Arc<Desk>>, request: Request) -> Response {
    let since = Instant::now();
    let (asked, _room) = match desk.read(request, Asked::<Comer>::to_create).await {
        Ok(read) => read,
        Err(broken) => return desk.refuse(&broken),
    };
    let Some(comer) = asked.node else { return json(&Answer::Yes.to(&asked.uid)) };
    // In a dry run too: nothing comes of an answer but the answer.
    let birth = timeout(COMES, desk.door.comes(comer.clone())).await.ok().flatten();
    desk.metrics.born(birth.as_ref(), since.elapsed());
    let answer = birth.map_or(Answer::Yes, |birth| Answer::born(&comer, &birth, desk.api.installation()));
    json(&answer.to(&asked.uid))
}

/// A Node is about to be deleted.
async fn gone(State(desk): State<Arc<Desk>>, request: Request) -> Response {
    let since = Instant::now();
    let (asked, _room) = match desk.read(request, Asked::to_delete).await {
        Ok(read) => read,
        Err(broken) => return desk.refuse(&broken),
    };
    let Some(name) = asked.node.filter(|_| !asked.dry_run) else { return json(&Answer::Yes.to(&asked.uid)) };
    let recorded = timeout(GOES, desk.is_recorded(&name)).await.unwrap_or_default();
    desk.metrics.gone(recorded, since.elapsed());
    let answer = if recorded { Answer::Yes } else { Answer::not_recorded(&name) };
    json(&answer.to(&asked.uid))
}

impl Desk {
    /// Waits until what is kept of a node is recorded as the API server says that it is now: whoever asks could say anything.
    async fn is_recorded(&self, name: &str) -> bool {
        let read = async {
            // It is never closed.
            let _permit = self.reads.acquire().await;
            self.api.read_node(name).await
        };
        match read.await {
            Ok(Ok(node)) => self.door.goes(node).await.is_some(),
            // It is gone already.
            Ok(Err(_)) => true,
            Err(error) => {
                debug!(node = name, %error, "a node that is to be deleted cannot be read");
                false
            }
        }
    }

    /// Reads a question once there is room for it, which it takes until it is answered.
    async fn read<T>(
        &self,
        request: Request,
        parse: impl FnOnce(&[u8]) -> Result<T, Broken>,
    ) -> Result<(T, OwnedSemaphorePermit), Broken> {
        let said =
            request.headers().get(header::CONTENT_LENGTH).and_then(|said| said.to_str().ok()?.parse().ok());
        // Whoever does not say how long it is may send the most.
        let most = said.unwrap_or(MOST).min(MOST);
        let room = u32::try_from(most.div_ceil(1024).max(1)).unwrap_or(u32::MAX);
        let whole = async {
            let room = self.budget.clone().acquire_many_owned(room).await;
            let room = room.map_err(|closed| Broken::Unread(closed.to_string()))?;
            let body = to_bytes(request.into_body(), most).await;
            Ok((body.map_err(|error| Broken::Unread(error.to_string()))?, room))
        };
        let (body, room) = timeout(BODY_TIME, whole).await.map_err(|_| Broken::Slow)??;
        Ok((parse(&body)?, room))
    }

    fn refuse(&self, broken: &Broken) -> Response {
        debug!(%broken, "a question that is none");
        self.metrics.broken();
        (StatusCode::BAD_REQUEST, format!("{broken}\n")).into_response()
    }
}

fn json(answer: &serde_json::Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
}
