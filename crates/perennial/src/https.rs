//! HTTP and HTTPS to whoever is not the API server: buckets, collectors of traces.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

use crate::client::tcp;

const CONNECT: Duration = Duration::from_secs(10);
/// Servers and balancers drop idle connections after a minute or so; what is sent comes seldom.
const IDLE: Duration = Duration::from_secs(20);

/// A client of such a server.
pub(crate) type HttpsClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// One that trusts these authorities. It follows no redirects and asks no environment for a proxy.
pub(crate) fn client(roots: RootCertStore) -> Result<HttpsClient, rustls::Error> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut connector = tcp();
    connector.set_connect_timeout(Some(CONNECT));
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .wrap_connector(connector);
    Ok(Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(2)
        .build(connector))
}

/// The authorities that the machine trusts.
pub(crate) fn authorities_of_the_system() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    // A machine without any is told of by the first handshake: the issuer is unknown.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}
