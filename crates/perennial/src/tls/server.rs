//! HTTP/2 and HTTP/1.1 over TLS 1.3, with bounds on everything.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error};

use crate::listener::Listener;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// The most that a request's head may take.
const HEAD: usize = 16 * 1024;
/// How long a client of HTTP/1.1 may be silent between requests: longer than the API server, which ends what it does not use
/// after 90 s. Whoever ends first decides whether a request is lost on the way.
const SILENT: Duration = Duration::from_mins(2);
/// How often a client of HTTP/2 is asked whether it is still there, and how long it may take to answer.
const ALIVE_EVERY: Duration = Duration::from_secs(30);
const ALIVE_WITHIN: Duration = Duration::from_secs(10);
/// Questions at once on one connection of HTTP/2, and what may be on its way there before somebody reads it.
const STREAMS: u32 = 32;
const STREAM_WINDOW: u32 = 64 * 1024;
const WINDOW: u32 = 256 * 1024;
/// How long such a connection may last, and then what is asked on it: those who never ask anything end, too.
const LASTS: Duration = Duration::from_mins(10);
const ENDS: Duration = Duration::from_secs(30);

/// What is served with: whoever is served with the certificate that was there when the connection began.
#[derive(Debug, Default)]
pub(super) struct Serving(RwLock<Option<Arc<CertifiedKey>>>);

impl Serving {
    pub(super) fn with(&self, key: Arc<CertifiedKey>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(key);
    }
}

impl ResolvesServerCert for Serving {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Serves until the future is dropped. Once it is `closing`, connections end with what is asked on them.
pub(super) async fn serve(
    listener: Listener,
    serving: Arc<Serving>,
    routes: Router,
    serves: &'static str,
    closing: CancellationToken,
) {
    let acceptor = match acceptor(serving) {
        Ok(acceptor) => acceptor,
        Err(error) => return error!(%error, serves, "no TLS can be spoken"),
    };
    let one = |stream| serve_one(stream, acceptor.clone(), routes.clone(), serves, closing.clone());
    listener.serve(one, CancellationToken::new()).await;
}

fn acceptor(serving: Arc<Serving>) -> Result<TlsAcceptor, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_cert_resolver(serving);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn serve_one(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    routes: Router,
    serves: &'static str,
    closing: CancellationToken,
) {
    let stream = match timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return debug!(%error, serves, "no handshake with a client"),
        Err(_) => return debug!(serves, "a client took too long for its handshake"),
    };
    // By what was agreed on, not by what comes: whoever sends nothing would be waited for without end.
    let speaks_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let (stream, service) = (TokioIo::new(stream), TowerToHyperService::new(routes));
    let ended = if speaks_http2 {
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(ALIVE_EVERY)
            .keep_alive_timeout(ALIVE_WITHIN)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_concurrent_streams(STREAMS)
            .max_header_list_size(u32::try_from(HEAD).unwrap_or(u32::MAX))
            .serve_connection(stream, service);
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => Some(ended),
            () = closing.cancelled() => None,
            () = tokio::time::sleep(LASTS) => None,
        };
        if let Some(ended) = ended {
            ended
        } else {
            connection.as_mut().graceful_shutdown();
            timeout(ENDS, connection).await.unwrap_or(Ok(()))
        }
    } else {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(SILENT)
            .max_buf_size(HEAD)
            .serve_connection(stream, service);
        tokio::pin!(connection);
        tokio::select! {
            ended = connection.as_mut() => ended,
            () = closing.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        }
    };
    if let Err(error) = ended {
        debug!(%error, serves, "a client went away");
    }
}
