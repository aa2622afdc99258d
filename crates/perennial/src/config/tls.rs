//! The settings of what is served by HTTPS: the webhook, and metrics that are guarded.

use std::net::{IpAddr, SocketAddr};

use perennial_core::policy::syntax::is_subdomain;

use super::source::Sources;
use super::{Error, RunArgs, check, names};
use crate::tls::Lives;

/// The names of everything that belongs to them when nobody says so.
const WEBHOOK: &str = "perennial-webhook";
const METRICS: &str = "perennial-metrics";

/// What such a server needs to know.
#[derive(Clone, Debug)]
pub struct TlsConfig {
    /// Where it listens.
    pub address: SocketAddr,
    /// The namespace of its Service and its Secret.
    pub namespace: String,
    /// The name of its Service and its Secret, and of a webhook's configurations.
    pub name: String,
    /// By which names and addresses it is asked.
    pub hosts: Vec<String>,
    /// The certificates are made here, and not by somebody else.
    pub own: bool,
    /// How long the certificates made here last.
    pub lives: Lives,
}

impl TlsConfig {
    /// The defaults, for a Service of this name.
    #[must_use]
    pub fn new(address: SocketAddr, namespace: &str, name: &str) -> Self {
        Self {
            address,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            hosts: vec![format!("{name}.{namespace}.svc")],
            own: true,
            lives: Lives::default(),
        }
    }
}

/// What the webhook needs to know, where there is one.
pub(super) fn webhook(
    sources: &mut Sources<'_>,
    args: &RunArgs,
    namespace: &str,
) -> Result<Option<TlsConfig>, Error> {
    let RunArgs { webhook_address, webhook_name, webhook_hosts, webhook_certificates, .. } = args;
    let address = sources.checked(&names::WEBHOOK_ADDRESS, webhook_address.as_deref(), check::listen)?;
    let name = sources.checked(&names::WEBHOOK_NAME, webhook_name.as_deref(), check::namespace)?;
    let hosts = sources.checked(&names::WEBHOOK_HOSTS, webhook_hosts.as_deref(), hosts)?;
    let own = sources.checked(&names::WEBHOOK_CERTIFICATES, webhook_certificates.as_deref(), own)?;
    let Some(address) = address.flatten() else { return Ok(None) };
    let mut config = TlsConfig::new(address, namespace, name.as_deref().unwrap_or(WEBHOOK));
    config.hosts = hosts.unwrap_or(config.hosts);
    config.own = own.unwrap_or(config.own);
    Ok(Some(config))
}

/// What the server of guarded metrics needs to know, where they are.
pub(super) fn metrics(
    sources: &mut Sources<'_>,
    args: &RunArgs,
    namespace: &str,
) -> Result<Option<TlsConfig>, Error> {
    let RunArgs { metrics_address, metrics_name, metrics_certificates, .. } = args;
    let address = sources.checked(&names::METRICS_ADDRESS, metrics_address.as_deref(), check::listen)?;
    let name = sources.checked(&names::METRICS_NAME, metrics_name.as_deref(), check::namespace)?;
    let own = sources.checked(&names::METRICS_CERTIFICATES, metrics_certificates.as_deref(), own)?;
    let Some(address) = address.flatten() else { return Ok(None) };
    let mut config = TlsConfig::new(address, namespace, name.as_deref().unwrap_or(METRICS));
    config.own = own.unwrap_or(config.own);
    Ok(Some(config))
}

/// Names and addresses, with commas between.
fn hosts(text: &str) -> Result<Vec<String>, String> {
    let one = |host: &str| {
        let host = host.trim();
        (is_subdomain(host) || host.parse::<IpAddr>().is_ok()).then(|| host.to_owned())
    };
    let allowed = "names and addresses such as perennial-webhook.perennial.svc,10.0.0.7";
    text.split(',').map(one).collect::<Option<_>>().ok_or_else(|| allowed.to_owned())
}

/// Whether the certificates are made here.
fn own(text: &str) -> Result<bool, String> {
    match text {
        "own" => Ok(true),
        "given" => Ok(false),
        _ => Err("own or given".to_owned()),
    }
}
