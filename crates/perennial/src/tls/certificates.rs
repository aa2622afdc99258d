//! What is served with, and whom those who ask can trust.
//!
//! ```text
//!            Secret                                        configurations
//! made ──> tls.crt, tls.key: served now                    caBundle = ca.crt
//!          next.crt, next.key: served next, once their
//!                              authority is long known
//!          ca.crt: the authorities of both
//! ```
//! Every certificate has an authority of its own, whose key is thrown away once it has signed: nobody can steal it. Replicas
//! share the Secret, and each does the same with it: whoever is first writes, by its version, and the others read that. A
//! certificate is served only after its authority was made known for a while, so that none is served that is not trusted.

mod made;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube::api::{GetParams, Patch, PatchParams};
use kube::core::request::Request as Resource;
use prometheus_client::metrics::gauge::Gauge;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tracing::{info, warn};

use super::server::Serving;
use crate::cluster::{ApiError, Cluster, backoff};
use crate::config::TlsConfig;

use made::Held;

/// Where it is said whom to trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// In the Secret alone.
    Secret,
    /// And in the configurations of webhooks of our name.
    Webhooks,
}

/// The kinds of configurations that may ask a webhook.
const CONFIGURATIONS: [&str; 2] = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];

/// How long certificates last, and when they are renewed.
#[derive(Clone, Copy, Debug)]
pub struct Lives {
    /// How long one is good.
    pub whole: Duration,
    /// How long before its end the next one is made.
    pub renew: Duration,
    /// For how long the next one's authority is known before it is served.
    pub known: Duration,
    /// How often Secret and configurations are looked at.
    pub look: Duration,
}

impl Default for Lives {
    fn default() -> Self {
        Self {
            whole: Duration::from_hours(90 * 24),
            renew: Duration::from_hours(30 * 24),
            known: Duration::from_hours(1),
            look: Duration::from_secs(30),
        }
    }
}

/// Why there is nothing to serve with, or nobody trusts it.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(
        "the Secret {0} is not there: the chart makes it, or deploy/webhook.yaml and deploy/metrics.yaml"
    )]
    NoSecret(String),
    #[error("the Secret {0} cannot be used: {1}")]
    Unusable(String, String),
    #[error("the Secret {0} cannot be read or written: {1}")]
    Secret(String, #[source] ApiError),
    #[error("{0} cannot be read or written: {1}")]
    Configuration(String, #[source] ApiError),
    #[error("no certificate can be made: {0}")]
    Made(#[from] rcgen::Error),
}

/// The Secret, as far as it matters.
#[derive(Deserialize)]
struct Secret {
    metadata: Meta,
    #[serde(default)]
    data: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    uid: String,
    resource_version: String,
}

#[derive(Deserialize)]
struct Configuration {
    metadata: Meta,
    #[serde(default)]
    webhooks: Vec<Hook>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Hook {
    name: String,
    client_config: ClientConfig,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClientConfig {
    #[serde(default)]
    ca_bundle: Option<String>,
}

/// Keeps certificates current.
pub(super) struct Certificates {
    cluster: Cluster,
    config: TlsConfig,
    serves: &'static str,
    trust: Trust,
    serving: Arc<Serving>,
    certificate: Gauge,
    /// What is served now.
    served: Option<String>,
}

impl Certificates {
    pub(super) fn new(
        cluster: Cluster,
        config: TlsConfig,
        serves: &'static str,
        trust: Trust,
        serving: Arc<Serving>,
        certificate: Gauge,
    ) -> Self {
        Self { cluster, config, serves, trust, serving, certificate, served: None }
    }

    /// Keeps them current until the future is dropped.
    pub(super) async fn keep(mut self) {
        let mut failures = 0;
        loop {
            let wait = match self.look().await {
                Ok(()) => {
                    failures = 0;
                    self.config.lives.look
                }
                Err(error) => {
                    failures += 1;
                    warn!(
                        error = crate::log::chain(&error),
                        serves = self.serves,
                        "certificates are not in order; trying again"
                    );
                    backoff(failures)
                }
            };
            tokio::time::sleep(wait).await;
        }
    }

    /// Looks once whether all is in order, and puts in order what is not.
    async fn look(&mut self) -> Result<(), Error> {
        let mut secret = self.read().await?;
        let mut held = Held::read(secret.data.as_ref());
        let (hosts, now) = (&self.config.hosts, SystemTime::now());
        let better = if self.config.own { held.better(hosts, now, &self.config.lives)? } else { None };
        if self.served.is_none() && held.is_good(hosts, now) {
            // What another replica serves already is good enough, whatever can be written now.
            self.serve(&held)?;
        }
        if let Some(better) = better {
            secret = match self.write(&secret, &better).await {
                // Another replica was faster: what it wrote is as good.
                Err(Error::Secret(_, ApiError::Conflict(_))) => self.read().await?,
                written => written?,
            };
            held = Held::read(secret.data.as_ref());
        }
        if self.config.own && self.trust == Trust::Webhooks {
            for kind in CONFIGURATIONS {
                self.tell(kind, held.authorities()).await?;
            }
        }
        self.serve(&held)
    }

    async fn read(&self) -> Result<Secret, Error> {
        let TlsConfig { name, .. } = &self.config;
        match self.cluster.call(self.secrets().get(name, &GetParams::default())).await {
            Ok(secret) => Ok(secret),
            Err(ApiError::NotFound) => Err(Error::NoSecret(name.clone())),
            Err(error) => Err(Error::Secret(name.clone(), error)),
        }
    }

    async fn write(&self, over: &Secret, held: &Held) -> Result<Secret, Error> {
        let Meta { uid, resource_version } = &over.metadata;
        let body = json!({
            "metadata": { "uid": uid, "resourceVersion": resource_version },
            "data": held.data(),
        });
        let TlsConfig { name, .. } = &self.config;
        let request = self.secrets().patch(name, &by_us(), &Patch::Merge(body));
        let written = self.cluster.call(request).await;
        let written = written.map_err(|error| Error::Secret(name.clone(), error))?;
        info!(secret = name, serves = self.serves, "certificates are renewed");
        Ok(written)
    }

    /// Tells the API server whom to trust, in every configuration of our name.
    async fn tell(&self, kind: &str, authorities: &str) -> Result<(), Error> {
        let TlsConfig { name, .. } = &self.config;
        let resource = Resource::new(format!("/apis/admissionregistration.k8s.io/v1/{kind}"));
        let failed = |error| Error::Configuration(format!("{kind} {name}"), error);
        let there: Configuration = match self.cluster.call(resource.get(name, &GetParams::default())).await {
            Ok(there) => there,
            // Each is there only where it is wanted.
            Err(ApiError::NotFound) => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        let bundle = BASE64_STANDARD.encode(authorities);
        let other = |hook: &&Hook| hook.client_config.ca_bundle.as_ref() != Some(&bundle);
        let hooks = there.webhooks.iter().filter(other);
        let hooks: Vec<Value> =
            hooks.map(|hook| json!({ "name": hook.name, "clientConfig": { "caBundle": bundle } })).collect();
        if hooks.is_empty() {
            return Ok(());
        }
        let Meta { uid, resource_version } = &there.metadata;
        let body = json!({
            "metadata": { "uid": uid, "resourceVersion": resource_version },
            "webhooks": hooks,
        });
        match self.cluster.call::<IgnoredAny>(resource.patch(name, &by_us(), &Patch::Strategic(body))).await {
            Ok(_) => {
                info!(configuration = name, kind, "the API server is told whom to trust");
                Ok(())
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn serve(&mut self, held: &Held) -> Result<(), Error> {
        let TlsConfig { name, .. } = &self.config;
        let Some(current) = held.current() else {
            return Err(Error::Unusable(name.clone(), "it has no tls.crt and tls.key yet".to_owned()));
        };
        if self.served.as_ref() != Some(&current.certificate) {
            let key = current.certified().map_err(|error| Error::Unusable(name.clone(), error))?;
            self.serving.with(Arc::new(key));
            self.served = Some(current.certificate.clone());
            self.certificate.set(1);
        }
        Ok(())
    }

    fn secrets(&self) -> Resource {
        Resource::new(format!("/api/v1/namespaces/{}/secrets", self.config.namespace))
    }
}

fn by_us() -> PatchParams {
    PatchParams { field_manager: Some("perennial".to_owned()), ..PatchParams::default() }
}
