//! The Kubernetes client: found where kubectl or a pod would find it, with bounds on how long it waits.
//!
//! Making a client talks to nobody, so an API server that is down is no error here: only what a person
//! has to mend is, and the error says how.

use std::path::PathBuf;
use std::time::Duration;

use http::HeaderValue;
use http::header::USER_AGENT;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{ClientBuilder, ConfigExt as _};
use kube::config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use tower::timeout::TimeoutLayer;
use tower::{BoxError, ServiceBuilder};

use crate::config::Connect;

const CONNECT: Duration = Duration::from_secs(10);
/// How long an answer may take to begin. The API server itself gives up on an ordinary request after 60 s,
/// and a watch begins at once. A connection that a load balancer has silently dropped costs no more.
const ANSWER: Duration = Duration::from_secs(65);

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No kubeconfig, and not in a pod.
    #[error(
        "no cluster to connect to: give --kubeconfig or set KUBECONFIG; in a pod, let the service account's \
         token be mounted (automountServiceAccountToken). {0}"
    )]
    NotFound(#[source] Box<InferConfigError>),
    /// The file cannot be read.
    #[error("cannot read the kubeconfig {path:?}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: Box<KubeconfigError>,
    },
    /// The file has no such context.
    #[error("the kubeconfig has no context {wanted:?}; it has: {known}")]
    NoContext {
        /// The one asked for.
        wanted: String,
        /// Those that are there.
        known: String,
    },
    /// The file names no context, and neither did anybody else.
    #[error("the kubeconfig has no current context; choose one with --context; it has: {known}")]
    NoCurrentContext {
        /// Those that are there.
        known: String,
    },
    /// The cluster's certificate authority cannot be used.
    #[error("the cluster's certificate authority in the kubeconfig cannot be used: {0}")]
    Authority(#[source] Box<KubeconfigError>),
    /// Something else in the file.
    #[error("the kubeconfig cannot be used: {0}")]
    Kubeconfig(#[source] Box<KubeconfigError>),
    /// The parts do not make a client: certificates or keys that cannot be used, a proxy.
    #[error(
        "cannot make a client for {url}: {source}; check certificates, key, token and proxy for this cluster"
    )]
    Build {
        /// The API server.
        url: String,
        /// Why not.
        source: Box<kube::Error>,
    },
}

/// Makes the client. Must be called within a runtime.
pub async fn connect(connect: &Connect) -> Result<kube::Client, Error> {
    connect_to(connect).await.map(|(client, _)| client)
}

/// The same, and where the API server is.
pub(crate) async fn connect_to(connect: &Connect) -> Result<(kube::Client, String), Error> {
    let (client, url) = client(connect, true).await?;
    tracing::info!(server = %url, "the API server");
    Ok((client, url))
}

/// A client that makes a connection for every request: where a balancer leads to several API servers, it does not stay with one
/// that does not answer any more.
pub async fn connect_anew(connect: &Connect) -> Result<kube::Client, Error> {
    client(connect, false).await.map(|(client, _)| client)
}

async fn client(connect: &Connect, pooled: bool) -> Result<(kube::Client, String), Error> {
    let mut config = find(connect).await?;
    config.connect_timeout = Some(CONNECT);
    // Whoever asks says how long it waits (`Cluster::call`, `Stream::listen`, `check::whole`): another clock here would be set
    // anew by every heartbeat of every node.
    config.read_timeout = None;
    // What to try again, and when, is decided by whoever asked: up to 15 tries in here would hold its
    // place in line and hide the 429s it has to slow down for.
    config.default_retry = false;
    config
        .headers
        .push((USER_AGENT, HeaderValue::from_static(concat!("perennial/", env!("CARGO_PKG_VERSION")))));
    let url = config.cluster_url.to_string();
    let client = build(config, pooled)
        .map_err(|source| Error::Build { url: url.clone(), source: Box::new(source) })?;
    Ok((client, url))
}

/// Connections on which what is written is sent at once. Otherwise the kernel keeps the first request back until the server has
/// confirmed the end of the handshake, for which it takes its time: 40 ms at every start, and whenever there are more
/// requests than connections.
pub(crate) fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp
}

/// As [`ClientBuilder`] does it, which makes its connections itself.
fn build(config: kube::Config, pooled: bool) -> Result<kube::Client, kube::Error> {
    let timeout = TimeoutLayer::new(ANSWER);
    if config.proxy_url.is_some() {
        // It refuses what is not built in, and says so: nobody shall be gone past.
        return Ok(ClientBuilder::try_from(config)?.with_layer(&timeout).build());
    }
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(tcp())?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    let mut builder = hyper_util::client::legacy::Client::builder(TokioExecutor::new());
    if !pooled {
        builder.pool_max_idle_per_host(0);
    }
    let client = builder.build(connector);
    let service = ServiceBuilder::new()
        .layer(timeout)
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
    Ok(kube::Client::new(service, config.default_namespace))
}

async fn find(connect: &Connect) -> Result<kube::Config, Error> {
    let Connect { kubeconfig, context } = connect;
    let file = match (kubeconfig, context) {
        (None, None) => return kube::Config::infer().await.map_err(|error| Error::NotFound(Box::new(error))),
        (Some(path), _) => Kubeconfig::read_from(path)
            .map_err(|source| Error::Unreadable { path: path.clone(), source: Box::new(source) })?,
        (None, Some(_)) => Kubeconfig::read().map_err(|error| Error::Kubeconfig(Box::new(error)))?,
    };
    let known = file.contexts.iter().map(|context| context.name.as_str()).collect::<Vec<_>>().join(", ");
    let options = KubeConfigOptions { context: context.clone(), ..KubeConfigOptions::default() };
    kube::Config::from_custom_kubeconfig(file, &options).await.map_err(|error| match error {
        KubeconfigError::LoadContext(wanted) => Error::NoContext { wanted, known },
        KubeconfigError::CurrentContextNotSet => Error::NoCurrentContext { known },
        KubeconfigError::LoadCertificateAuthority(_) | KubeconfigError::ParseCertificates(_) => {
            Error::Authority(Box::new(error))
        }
        error => Error::Kubeconfig(Box::new(error)),
    })
}

#[cfg(test)]
mod tests;
