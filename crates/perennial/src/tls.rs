//! HTTPS on ports of their own: for the API server that asks the webhook, and for those who read guarded metrics.
//!
//! ```text
//! Secret <──> certificates ──serves with──> server <── clients
//!                   └──> caBundle of a webhook's configurations
//! ```

mod certificates;
mod server;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use prometheus_client::metrics::gauge::Gauge;
use tokio_util::sync::CancellationToken;

use crate::cluster::Cluster;
use crate::config::TlsConfig;
use crate::listener::{Error, Listener, Purpose};
use certificates::Certificates;
use server::Serving;

pub use certificates::Lives;
pub(crate) use certificates::Trust;

/// A port that waits to be served.
#[derive(Debug)]
pub(crate) struct TlsListener {
    listener: Listener,
    config: TlsConfig,
    purpose: Purpose,
}

impl TlsListener {
    /// Takes the port.
    pub(crate) async fn bind(config: TlsConfig, purpose: Purpose) -> Result<Self, Error> {
        Ok(Self { listener: Listener::bind(config.address, purpose).await?, config, purpose })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Serves until the future is dropped. Once it is `closing`, connections end with what is asked on them. The gauge says
    /// whether there is a certificate to serve with.
    pub(crate) async fn serve(
        self,
        cluster: Cluster,
        routes: Router,
        trust: Trust,
        certificate: Gauge,
        closing: CancellationToken,
    ) {
        let Self { listener, config, purpose } = self;
        let serving = Arc::<Serving>::default();
        let certificates =
            Certificates::new(cluster, config, purpose.serves, trust, serving.clone(), certificate);
        let listen = server::serve(listener, serving, routes, purpose.serves, closing);
        tokio::join!(certificates.keep(), listen);
    }
}
