//! Spans of what the keeper does, sent to a collector by OTLP (HTTP, protobuf) where somebody asked for it.
//!
//! Nothing waits for them: they are sent in batches from a thread of their own, what does not fit into its queue is
//! dropped, and a collector that is away is told of once a minute. Where nobody asked there is nothing of this at all.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter as Otlp, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, SpanData, SpanExporter};
use tokio::runtime::Handle;
use tracing::{info, warn};

use crate::config::TraceConfig;
use crate::https::{self, HttpsClient};

/// Makes spans.
pub type Tracer = opentelemetry_sdk::trace::SdkTracer;

/// How long a collector may take to answer.
const DEADLINE: Duration = Duration::from_secs(10);
/// How often a collector that cannot be reached is told of.
const TELL_EVERY: Duration = Duration::from_mins(1);
/// How long the last spans may take to be sent.
const LAST: Duration = Duration::from_secs(3);
/// A collector's answer is a few bytes.
const ANSWER: usize = 64 * 1024;

/// Why nothing can be sent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// TLS cannot be set up.
    #[error("cannot send traces: {0}")]
    Tls(#[from] rustls::Error),
    /// The exporter cannot be made.
    #[error("cannot send traces: {0}")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
}

/// What sends spans.
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// Begins to send, as this replica. Must be called within a runtime.
    pub fn start(config: &TraceConfig, member: &str, namespace: &str) -> Result<Self, Error> {
        let client = https::client(https::authorities_of_the_system())?;
        let exporter = Otlp::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(config.endpoint.to_string())
            .with_timeout(DEADLINE)
            .with_http_client(Sending { client, runtime: Handle::current() })
            .build()?;
        let resource = Resource::builder()
            .with_service_name("perennial")
            .with_attributes([
                KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
                KeyValue::new("service.instance.id", member.to_owned()),
                KeyValue::new("service.namespace", namespace.to_owned()),
            ])
            .build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(Telling { exporter, told: Mutex::default() })
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(config.share))))
            .with_resource(resource)
            .build();
        info!(endpoint = %config.endpoint, share = config.share, "traces are sent");
        Ok(Self { provider })
    }

    /// What makes spans.
    #[must_use]
    pub fn tracer(&self) -> Tracer {
        self.provider.tracer("perennial")
    }

    /// Sends what is left, for a moment.
    pub async fn stop(self) {
        let stopped = tokio::task::spawn_blocking(move || self.provider.shutdown_with_timeout(LAST));
        // Whatever came of it was told, and nothing depends on it.
        tokio::time::timeout(LAST, stopped).await.ok();
    }
}

/// Sends from the runtime, whoever asks: the thread that makes batches has none.
#[derive(Debug)]
struct Sending {
    client: HttpsClient,
    runtime: Handle,
}

impl HttpClient for Sending {
    fn send_bytes<'s, 'a>(
        &'s self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>
    where
        's: 'a,
        Self: 'a,
    {
        let client = self.client.clone();
        let exchange = self.runtime.spawn(async move {
            let exchange = async {
                let (parts, body) = client.request(request.map(Full::new)).await?.into_parts();
                let body = Limited::new(body, ANSWER).collect().await?.to_bytes();
                Ok::<_, HttpError>(Response::from_parts(parts, body))
            };
            tokio::time::timeout(DEADLINE, exchange).await?
        });
        Box::pin(async { exchange.await? })
    }
}

/// Tells when spans cannot be sent, once in a while.
#[derive(Debug)]
struct Telling<E> {
    exporter: E,
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    lost: usize,
    at: Option<Instant>,
}

impl Told {
    /// So many spans were lost. Returns how many since it was last told, if it is time to tell again.
    fn lose(&mut self, spans: usize, now: Instant) -> Option<usize> {
        self.lost += spans;
        let due = self.at.is_none_or(|at| now.saturating_duration_since(at) >= TELL_EVERY);
        due.then(|| {
            self.at = Some(now);
            std::mem::take(&mut self.lost)
        })
    }
}

impl<E: SpanExporter> SpanExporter for Telling<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let result = self.exporter.export(batch).await;
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        match &result {
            Ok(()) if told.at.take().is_some() => info!(lost = told.lost, "traces are sent again"),
            Ok(()) => {}
            Err(error) => {
                if let Some(lost) = told.lose(spans, Instant::now()) {
                    warn!(lost, %error, "traces cannot be sent; nothing else is affected");
                }
            }
        }
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_that_is_away_is_told_of_once_a_minute_with_all_that_was_lost() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut told = Told::default();
        let losses: Vec<_> = [0, 5, 59, 60, 61].map(|seconds| told.lose(10, after(seconds))).into();
        assert_eq!(losses, [Some(10), None, None, Some(30), None]);
    }
}
