//! Accepts connections, a bounded number at once: nobody can hold up a listener by keeping many of them.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// How long to wait when the kernel gives no connection (no file descriptors left, for one).
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// What a listener is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Purpose {
    /// What is served there.
    pub(crate) serves: &'static str,
    /// The flag that says where.
    pub(crate) flag: &'static str,
    /// Connections at once.
    pub(crate) connections: usize,
}

/// Why nobody can be listened to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process listens there.
    #[error("cannot serve {serves}: {address} is in use; choose another with {flag}, or `off`")]
    InUse {
        /// What was to be served.
        serves: &'static str,
        /// The flag that says where.
        flag: &'static str,
        /// The address asked for.
        address: SocketAddr,
    },
    /// The kernel refuses the address.
    #[error("cannot serve {serves} on {address}: {source}; choose another with {flag}, or `off`")]
    Bind {
        /// What was to be served.
        serves: &'static str,
        /// The flag that says where.
        flag: &'static str,
        /// The address asked for.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
}

/// A listener that has its port and waits to serve.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    purpose: Purpose,
}

impl Listener {
    /// Takes the port. Every IPv6 address includes every IPv4 one; on a host without IPv6 it is the
    /// IPv4 ones alone.
    pub(crate) async fn bind(address: SocketAddr, purpose: Purpose) -> Result<Self, Error> {
        let Purpose { serves, flag, .. } = purpose;
        let refused = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => Error::InUse { serves, flag, address },
            _ => Error::Bind { serves, flag, address, source },
        };
        let mut bound = TcpListener::bind(address).await;
        if address.is_ipv6() && address.ip().is_unspecified() && bound.as_ref().is_err_and(lacks_ipv6) {
            bound = TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await;
        }
        let socket = bound.map_err(refused)?;
        let address = socket.local_addr().map_err(refused)?;
        Ok(Self { socket, address, purpose })
    }

    /// Where it listens: the port that was given for port 0.
    #[must_use]
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Has every connection served until it is stopped; those under way are dropped then.
    pub(crate) async fn serve<F>(self, one: impl Fn(TcpStream) -> F, stop: CancellationToken)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let permits = Arc::new(Semaphore::new(self.purpose.connections));
        let mut connections = JoinSet::new();
        loop {
            // The permit comes before the connection: what is too much waits in the kernel's queue.
            let accepted = async {
                let permit = permits.clone().acquire_owned().await;
                (permit, self.socket.accept().await)
            };
            let (permit, accepted) = tokio::select! {
                () = stop.cancelled() => return,
                Some(_) = connections.join_next() => continue,
                accepted = accepted => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let served = one(stream);
                    connections.spawn(async move {
                        served.await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    warn!(%error, serves = self.purpose.serves, "no connection; trying again");
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
