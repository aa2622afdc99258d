//! A small HTTP/1 server that nobody can hold up: bounded connections, headers and time.
//!
//! `axum::serve` sets none of these bounds, so the accept loop is here.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
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
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{debug, warn};

/// Connections at once: a kubelet and a few Prometheus servers need a handful.
const CONNECTIONS: usize = 64;
/// The most a request's head may take, in bytes and in lines.
const HEAD: usize = 16 * 1024;
const HEADERS: usize = 64;
/// How long a client may take to send its request's head.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// How long a connection may last, slow readers included. Each serves one request. A stream has a [`Leash`] instead.
const CONNECTION_TIME: Duration = Duration::from_secs(30);
/// How long to wait when the kernel gives no connection (no file descriptors left, for one).
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Why the admin server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process listens there.
    #[error("cannot serve probes and metrics: {0} is in use; choose another with --admin-address, or `off`")]
    InUse(SocketAddr),
    /// The kernel refuses the address.
    #[error(
        "cannot serve probes and metrics on {address}: {source}; choose another with --admin-address, or `off`"
    )]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
}

/// A listener that has its port and waits to serve.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    /// Takes the port. Every IPv6 address includes every IPv4 one; on a host without IPv6 it is the
    /// IPv4 ones alone.
    pub async fn bind(address: SocketAddr) -> Result<Self, Error> {
        let mut bound = TcpListener::bind(address).await;
        if address.is_ipv6() && address.ip().is_unspecified() && bound.as_ref().is_err_and(lacks_ipv6) {
            bound = TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await;
        }
        let listener = bound.map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => Error::InUse(address),
            _ => Error::Bind { address, source },
        })?;
        let address = listener.local_addr().map_err(|source| Error::Bind { address, source })?;
        Ok(Self { listener, address })
    }

    /// Where it listens: the port that was given for port 0.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until it is stopped; requests under way are dropped then.
    pub async fn serve(self, routes: Router, stop: CancellationToken) {
        let permits = Arc::new(Semaphore::new(CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            // The permit comes before the connection: what is too much waits in the kernel's queue.
            let accepted = async {
                let permit = permits.clone().acquire_owned().await;
                (permit, self.listener.accept().await)
            };
            let (permit, accepted) = tokio::select! {
                () = stop.cancelled() => return,
                Some(_) = connections.join_next() => continue,
                accepted = accepted => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let routes = routes.clone();
                    connections.spawn(async move {
                        serve_one(stream, routes).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    warn!(%error, "no connection for probes and metrics; trying again");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

fn lacks_ipv6(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::AddrNotAvailable)
        || error.raw_os_error() == Some(ADDRESS_FAMILY_NOT_SUPPORTED)
}

/// Linux's `EAFNOSUPPORT`, which the standard library has no name for.
const ADDRESS_FAMILY_NOT_SUPPORTED: i32 = 97;

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
