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
mod reader;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use http::header;
use perennial_core::admission::{Answer, Asked, Comer};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::cluster::Cluster;
use crate::config::TlsConfig;
use crate::keeper::{Api, Door};
use crate::listener::{self, Purpose};
use crate::tls::{TlsListener, Trust};
use reader::{Reader, Unread};

pub use metrics::Metrics;

/// An API server keeps some 25 connections.
const PURPOSE: Purpose = Purpose { serves: "the webhook", flag: "--webhook-address", connections: 128 };
/// How many nodes are read from the API server at once.
const READS: usize = 32;
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
        let desk =
            Arc::new(Desk { api, door, metrics, reader: Reader::default(), reads: Semaphore::new(READS) });
        let routes = Router::new().route("/born", post(born)).route("/gone", post(gone)).with_state(desk);
        listener.serve(cluster, routes, Trust::Webhooks, certificate, closing).await;
    }
}

struct Desk {
    api: Api,
    door: Door,
    metrics: Arc<Metrics>,
    reader: Reader,
    reads: Semaphore,
}

/// A Node is about to be created.
async fn born(State(desk): State<Arc<Desk>>, request: Request) -> Response {
    let since = Instant::now();
    let asked = match desk.reader.read(request.into_body(), Asked::<Comer>::to_create).await {
        Ok(asked) => asked,
        Err(unread) => return desk.refuse(&unread),
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
    let asked = match desk.reader.read(request.into_body(), Asked::to_delete).await {
        Ok(asked) => asked,
        Err(unread) => return desk.refuse(&unread),
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

    fn refuse(&self, unread: &Unread) -> Response {
        debug!(%unread, "a question that is none");
        self.metrics.broken();
        (unread.status(), format!("{unread}\n")).into_response()
    }
}

fn json(answer: &serde_json::Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
}
