//! Probes and metrics over HTTP, for kubelets and Prometheus: read-only, and nothing secret.
//!
//! ```text
//! parts ─mark─> Readiness ─┐
//!                          ├─> routes ─> Server (bounded connections, headers and time)
//! parts ─count─> Registry ─┘
//! ```
//!
//! | path | answers |
//! | --- | --- |
//! | `/livez`, `/healthz` | 200 while the process can still make progress |
//! | `/readyz` | 200 once every part is ready, otherwise 503 and the parts that are missing |
//! | `/metrics` | OpenMetrics text; where it is [`Guarded`], who serves it |
//! | `/` | this list; to a browser the status page, see [`page`] |
//! | `/page/…` | what the page is made from |

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderMap, StatusCode, header};
use prometheus_client::registry::Registry;
use tokio_util::task::AbortOnDropHandle;

use crate::cluster::Cluster;

mod guarded;
pub mod page;
mod readiness;
mod server;

pub use guarded::Guarded;
pub use readiness::{Readiness, ReadyHandle};
pub use server::Server;

/// What Prometheus negotiates for the format that `prometheus-client` writes.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const ELSEWHERE: &str = "metrics are served by HTTPS, at --metrics-address, to those who may read them\n";

/// Who may read metrics.
#[derive(Clone, Debug)]
pub enum Metrics {
    /// Whoever reaches this server.
    Open(Arc<Registry>),
    /// Those who may, elsewhere: see [`Guarded`].
    Guarded,
}

impl Metrics {
    /// What is served where probes are.
    #[must_use]
    pub fn with_probes(&self) -> &'static str {
        match self {
            Self::Open(_) => "probes and metrics",
            Self::Guarded => "probes",
        }
    }
}

/// What the admin server serves: at `/` a list of it.
pub fn routes(readiness: Readiness, metrics: Metrics) -> Router {
    let index = index(&metrics);
    machines(readiness, metrics).route("/", get(index))
}

/// The same with the status page, which needs its handle for as long as it is served.
pub fn routes_with_page(
    readiness: Readiness,
    metrics: Metrics,
    sources: page::Sources,
    cluster: Cluster,
) -> (Router, AbortOnDropHandle<()>) {
    let (hosts, index) = (sources.hosts(), index(&metrics));
    let front = async move |headers: HeaderMap| {
        page::front(&headers, &hosts).unwrap_or_else(|| ([(header::VARY, "accept")], index).into_response())
    };
    page::add(machines(readiness, metrics).route("/", get(front)), sources, cluster)
}

/// What is here, and what is not.
fn index(metrics: &Metrics) -> String {
    let metrics = match metrics {
        Metrics::Open(_) => "OpenMetrics text",
        Metrics::Guarded => ELSEWHERE.trim_end(),
    };
    format!(
        "\
perennial
  /livez    the process can still make progress (/healthz is the same)
  /readyz   every part is ready
  /metrics  {metrics}
  /         this list; in a browser the status page, where it is not off
"
    )
}

/// What machines ask for.
fn machines(readiness: Readiness, metrics: Metrics) -> Router {
    let metrics = match metrics {
        Metrics::Open(registry) => get(scrape).with_state(registry),
        Metrics::Guarded => get((StatusCode::FORBIDDEN, ELSEWHERE)),
    };
    Router::new()
        .route("/livez", get(live))
        .route("/healthz", get(live))
        .route("/readyz", get(ready).with_state(readiness))
        .route("/metrics", metrics)
}

/// That this runs is the answer: the runtime still gives tasks their turn. An API server that is down or
/// a keeper that waits is no reason to be restarted, since a restart would only lose what was seen.
async fn live() -> &'static str {
    "ok\n"
}

async fn ready(State(readiness): State<Readiness>) -> (StatusCode, String) {
    let missing = readiness.missing();
    if missing.is_empty() {
        return (StatusCode::OK, "ok\n".to_owned());
    }
    (StatusCode::SERVICE_UNAVAILABLE, format!("waiting for: {}\n", missing.join(", ")))
}

async fn scrape(State(registry): State<Arc<Registry>>) -> Response {
    let mut text = String::new();
    match prometheus_client::encoding::text::encode(&mut text, &registry) {
        Ok(()) => ([(header::CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "cannot write the metrics");
            (StatusCode::INTERNAL_SERVER_ERROR, "cannot write the metrics\n").into_response()
        }
    }
}

#[cfg(test)]
mod tests;
