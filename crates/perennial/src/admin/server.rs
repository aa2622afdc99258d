//! A small HTTP/1 server that nobody can hold up: bounded connections, headers and time.
//!
//! `axum::serve` sets none of these bounds.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::debug;

use crate::listener::{Error, Listener, Purpose};

/// A kubelet and a few Prometheus servers need a handful of connections.
const PURPOSE: Purpose = Purpose { serves: "probes and metrics", flag: "--admin-address", connections: 64 };
/// The most a request's head may take, in bytes and in lines.
const HEAD: usize = 16 * 1024;
const HEADERS: usize = 64;
/// How long a client may take to send its request's head.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// How long a connection may last, slow readers included. Each serves one request. A stream has a [`Leash`] instead.
const CONNECTION_TIME: Duration = Duration::from_secs(30);

/// A server that has its port and waits to serve.
#[derive(Debug)]
pub struct Server(Listener);

impl Server {
    /// Takes the port.
    pub async fn bind(address: SocketAddr) -> Result<Self, Error> {
        Listener::bind(address, PURPOSE).await.map(Self)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// Serves until it is stopped; requests under way are dropped then.
    pub async fn serve(self, routes: Router, stop: CancellationToken) {
        self.0.serve(|stream| serve_one(stream, routes.clone()), stop).await;
    }
}

/// What a connection that lasts hangs on, in the extensions of its request: whoever takes it off the clock holds the
/// end, and the connection ends when they let go. A client that does not read cannot prevent that.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leash {
    taken: Arc<AtomicBool>,
    cut: CancellationToken,
}

impl Leash {
    /// Takes the connection off the clock.
    pub(crate) fn take(&self) -> DropGuard {
        self.taken.store(true, Ordering::Relaxed);
        self.cut.clone().drop_guard()
    }

    /// Whoever held it let go.
    #[cfg(test)]
    pub(crate) async fn cut(&self) {
        self.cut.cancelled().await;
    }

    /// The connection's time is over.
    async fn over(&self) {
        tokio::select! {
            () = self.cut.cancelled() => return,
            () = tokio::time::sleep(CONNECTION_TIME) => {}
        }
        if self.taken.load(Ordering::Relaxed) {
            self.cut.cancelled().await;
        }
    }
}

async fn serve_one(stream: TcpStream, routes: Router) {
    let leash = Leash::default();
    let service = {
        let (leash, routes) = (leash.clone(), TowerToHyperService::new(routes));
        service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(leash.clone());
            routes.call(request)
        })
    };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD)
        .max_headers(HEADERS)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        ended = connection => match ended {
            Ok(()) => {}
            Err(error) => debug!(%error, "a client of probes and metrics went away"),
        },
        () = leash.over() => debug!("a client of probes and metrics was too slow"),
    }
}
