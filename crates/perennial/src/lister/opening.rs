//! Opens a place: reads the credentials and certificates that it names, where they lie beside the listing.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kube::api::GetParams;
use kube::core::request::Request as Resource;
use perennial_core::kept::Pairs;
use serde::Deserialize;

use super::destination::{
    ConfigMapSettings, Credentials, Destination, Error as DestinationError, S3Settings, Secret,
};
use super::listing::{CredentialsSpec, KeyRef};
use super::order::{Bucket, CaFrom, CredentialsFrom, Id, Place, PlaceKind};
use crate::cluster::{ApiError, Cluster};

/// Why a page is not where it should be.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum PlaceError {
    /// Something that the listing names is not there.
    #[error("there is no {kind} {name:?} in this namespace")]
    Missing {
        /// `Secret` or `ConfigMap`.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// It is there, and lacks what should be in it.
    #[error("the {kind} {name:?} has no key {key:?}, or nothing in it that can be read")]
    MissingKey {
        /// `Secret` or `ConfigMap`.
        kind: &'static str,
        /// Its name.
        name: String,
        /// The key.
        key: String,
    },
    /// The settings cannot be right, whatever the server says.
    #[error("{0}")]
    Settings(String),
    /// Something cannot be read.
    #[error("{0}")]
    Api(#[from] ApiError),
    /// The place itself failed.
    #[error(transparent)]
    Destination(#[from] DestinationError),
    /// Others kept writing there.
    #[error("others keep writing there")]
    Contested,
}

impl PlaceError {
    /// All kinds, each once.
    pub(crate) fn kinds() -> BTreeSet<&'static str> {
        let own = ["missing", "missing_key", "settings", "contested"];
        own.into_iter().chain(ApiError::KINDS).chain(DestinationError::KINDS).collect()
    }

    /// The kind, as metrics and logs spell it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "missing",
            Self::MissingKey { .. } => "missing_key",
            Self::Settings(_) => "settings",
            Self::Api(error) => error.kind(),
            Self::Destination(error) => error.kind(),
            Self::Contested => "contested",
        }
    }

    /// The kind, as conditions spell it.
    pub(crate) fn reason(&self) -> String {
        let words = self.kind().split('_').map(|word| {
            let (first, rest) = word.split_at(word.len().min(1));
            first.to_ascii_uppercase() + rest
        });
        words.collect()
    }

    /// Whether only a person can put it right.
    pub(crate) fn needs_a_person(&self) -> bool {
        match self {
            Self::Missing { .. } | Self::MissingKey { .. } | Self::Settings(_) => true,
            Self::Api(error) => matches!(error, ApiError::Forbidden(_) | ApiError::Invalid(_)),
            Self::Destination(error) => !error.retryable(),
            Self::Contested => false,
        }
    }
}

/// Opens places.
#[derive(Clone)]
pub(crate) struct Opening {
    cluster: Cluster,
}

/// A ConfigMap or a Secret, whose values the API server sends in Base64.
#[derive(Deserialize)]
struct Holder {
    #[serde(default)]
    data: Option<Pairs>,
}

impl Opening {
    pub(crate) fn new(cluster: Cluster) -> Self {
        Self { cluster }
    }

    /// The time, by the API server's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.cluster.now()
    }

    /// Opens a place of this listing. Talks to the API server alone, and only about the listing's own namespace.
    pub(crate) async fn open(&self, id: &Id, place: &Place) -> Result<Destination, PlaceError> {
        match &place.kind {
            PlaceKind::S3(bucket) => self.open_bucket(&id.namespace, bucket).await,
            PlaceKind::ConfigMap { name, key } => {
                let settings = ConfigMapSettings {
                    namespace: id.namespace.clone(),
                    name: name.clone(),
                    key: key.clone(),
                    // It stays when the listing goes: others may have it mounted.
                    owner: None,
                };
                Ok(Destination::config_map(self.cluster.clone(), settings))
            }
            PlaceKind::File { path, history } => Ok(Destination::file(path, history.clone())?),
        }
    }

    async fn open_bucket(&self, namespace: &str, bucket: &Bucket) -> Result<Destination, PlaceError> {
        let Bucket {
            endpoint,
            bucket,
            key,
            region,
            path_style,
            acl,
            cache_control,
            conditional,
            credentials,
            ca,
            history,
        } = bucket;
        let credentials = match credentials {
            CredentialsFrom::Secret(from) => self.credentials(namespace, from).await?,
            CredentialsFrom::Given(given) => given.clone(),
        };
        let authorities = match ca {
            Some(CaFrom::ConfigMap(from)) => Some(self.config_map_key(namespace, from).await?),
            Some(CaFrom::Given(pem)) => Some(pem.clone()),
            None => None,
        };
        let settings = S3Settings {
            endpoint: endpoint.clone(),
            region: region.clone(),
            path_style: *path_style,
            acl: *acl,
            cache_control: Some(cache_control.clone()),
            authorities,
            conditions: *conditional,
            ..S3Settings::new(bucket, key, credentials)
        };
        Destination::s3(settings, history.clone()).map_err(|error| PlaceError::Settings(error.to_string()))
    }

    async fn credentials(&self, namespace: &str, from: &CredentialsSpec) -> Result<Credentials, PlaceError> {
        let CredentialsSpec { secret, access_key, secret_key, session_token } = from;
        let data = self.read(namespace, "Secret", secret).await?;
        let value = |key: &str| -> Result<Secret, PlaceError> {
            let missing =
                || PlaceError::MissingKey { kind: "Secret", name: secret.clone(), key: key.to_owned() };
            let bytes = data.get(key).and_then(|text| decode(text)).ok_or_else(missing)?;
            let text = String::from_utf8(bytes).map_err(|_| missing())?;
            // A line's end that a file brought along is no part of it.
            Ok(Secret::new(text.trim_end_matches(['\n', '\r'])))
        };
        Ok(Credentials {
            access_key: value(access_key)?,
            secret_key: value(secret_key)?,
            session_token: session_token.as_deref().map(value).transpose()?,
        })
    }

    async fn config_map_key(&self, namespace: &str, from: &KeyRef) -> Result<String, PlaceError> {
        let KeyRef { name, key } = from;
        let mut data = self.read(namespace, "ConfigMap", name).await?;
        data.remove(key).ok_or_else(|| PlaceError::MissingKey {
            kind: "ConfigMap",
            name: name.clone(),
            key: key.clone(),
        })
    }

    async fn read(&self, namespace: &str, kind: &'static str, name: &str) -> Result<Pairs, PlaceError> {
        let plural = if kind == "Secret" { "secrets" } else { "configmaps" };
        let resource = Resource::new(format!("/api/v1/namespaces/{namespace}/{plural}"));
        match self.cluster.call::<Holder>(resource.get(name, &GetParams::default())).await {
            Ok(holder) => Ok(holder.data.unwrap_or_default()),
            Err(ApiError::NotFound) => Err(PlaceError::Missing { kind, name: name.to_owned() }),
            Err(error) => Err(error.into()),
        }
    }
}

fn decode(text: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}
