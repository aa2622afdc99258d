//! HTTP/1.1 over TLS 1.3, with bounds on everything. A connection has one question at a time: whoever wants to ask more at once
//! needs more of them, and they are counted.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::Router;
use http::{HeaderValue, Request, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error};

use crate::listener::Listener;

#[cfg(test)]
mod tests;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// The most that a request's head may take.
const HEAD: usize = 16 * 1024;
/// How long a client may be silent between requests: longer than the API server, which ends what it does not use after 90 s.
/// Whoever ends first decides whether a request is lost on the way. A head that comes slowly takes no more than silence does.
const SILENT: Duration = Duration::from_mins(2);
/// How long a connection may last. The first answer after that is its last: whoever asks knows then that it ends.
const LASTS: Duration = Duration::from_mins(10);
/// How long its last answer may take.
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
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn serve_one(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
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
    let (since, routes) = (Instant::now(), TowerToHyperService::new(routes));
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = routes.call(request);
        async move {
            let mut answer = answer.await;
            if let Ok(answer) = &mut answer
                && since.elapsed() >= LASTS
            {
                answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            answer
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(SILENT)
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = closing.cancelled() => {
            connection.as_mut().graceful_shutdown();
            timeout(ENDS, connection).await.unwrap_or(Ok(()))
        }
        // Whoever was neither silent nor told that it ends does not read what is answered.
        () = tokio::time::sleep(LASTS + SILENT + ENDS) => Ok(()),
    };
    if let Err(error) = ended {
        debug!(%error, serves, "a client went away");
    }
}
