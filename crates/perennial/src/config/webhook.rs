//! The settings of the webhook.

use std::net::{IpAddr, SocketAddr};

use perennial_core::policy::syntax::is_subdomain;

use super::source::Sources;
use super::{Error, RunArgs, check, names};
use crate::webhook::Lives;

/// The name of everything that belongs to the webhook when nobody says so.
const NAME: &str = "perennial-webhook";

/// What the webhook needs to know.
#[derive(Clone, Debug)]
pub struct WebhookConfig {
    /// Where it listens.
    pub address: SocketAddr,
    /// The namespace of its Service and its Secret.
    pub namespace: String,
    /// The name of its Service, its Secret and its configurations.
    pub name: String,
    /// By which names and addresses it is asked.
    pub hosts: Vec<String>,
    /// The certificates are made here, and not by somebody else.
    pub own: bool,
    /// How long the certificates made here last.
    pub lives: Lives,
}

impl WebhookConfig {
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
pub(super) fn find(
    sources: &mut Sources<'_>,
    args: &RunArgs,
    namespace: &str,
) -> Result<Option<WebhookConfig>, Error> {
    let RunArgs { webhook_address, webhook_name, webhook_hosts, webhook_certificates, .. } = args;
    let address = sources.checked(&names::WEBHOOK_ADDRESS, webhook_address.as_deref(), check::listen)?;
    let name = sources.checked(&names::WEBHOOK_NAME, webhook_name.as_deref(), check::namespace)?;
    let hosts = sources.checked(&names::WEBHOOK_HOSTS, webhook_hosts.as_deref(), hosts)?;
    let own = sources.checked(&names::WEBHOOK_CERTIFICATES, webhook_certificates.as_deref(), own)?;
    let Some(address) = address.flatten() else { return Ok(None) };
    let mut config = WebhookConfig::new(address, namespace, name.as_deref().unwrap_or(NAME));
    config.hosts = hosts.unwrap_or(config.hosts);
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
