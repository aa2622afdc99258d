//! A page in a ConfigMap.
//!
//! Its stamp is in the annotations. A ConfigMap without one is somebody else's and is never touched; in one of ours only
//! the page's own key is, and others may have theirs beside it.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{GetParams, PatchParams, PostParams};
use kube::core::request::Request as Resource;
use perennial_core::kept::{Digest, Pairs};
use perennial_core::lister::Page;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::error::Said;
use super::{Error, Found, Put, Tag, stamp};
use crate::cluster::{ApiError, Cluster, Meta};

/// Names of annotations: `page.perennial.dev/digest`, …
const PREFIX: &str = "page.perennial.dev/";
/// What the API server takes as data of one ConfigMap, all keys together.
const MOST: usize = 1 << 20;

/// Which ConfigMap.
#[derive(Clone, Debug)]
pub struct ConfigMapSettings {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The page's key in it.
    pub key: String,
    /// Whom it goes away with: the Listing.
    pub owner: Option<OwnerReference>,
}

impl ConfigMapSettings {
    /// The key unless told otherwise.
    pub const KEY: &str = "index.html";
}

/// A ConfigMap with a page in it.
pub(super) struct ConfigMap {
    cluster: Cluster,
    resource: Resource,
    settings: ConfigMapSettings,
}

/// A ConfigMap as far as it matters here.
#[derive(Deserialize)]
struct Object {
    metadata: Meta,
    #[serde(default)]
    data: Option<Pairs>,
}

impl ConfigMap {
    pub(super) fn new(cluster: Cluster, settings: ConfigMapSettings) -> Self {
        let resource = Resource::new(format!("/api/v1/namespaces/{}/configmaps", settings.namespace));
        Self { cluster, resource, settings }
    }

    pub(super) async fn look(&self) -> Result<Option<Found>, Error> {
        let request = self.resource.get(&self.settings.name, &GetParams::default());
        let Object { metadata, data } = match self.cluster.call(request).await {
            Ok(object) => object,
            Err(ApiError::NotFound) => return Ok(None),
            Err(error) => return Err(sort(error)),
        };
        let annotations = metadata.annotations.unwrap_or_default();
        if !annotations.keys().any(|name| name.starts_with(PREFIX)) {
            return Err(self.foreign());
        }
        let page = data.as_ref().and_then(|data| data.get(&self.settings.key));
        let digest = page.map(|page| Digest::of(page.as_bytes()));
        let stamp = stamp::read(|name| annotations.get(&format!("{PREFIX}{name}")).map(String::as_str));
        // A stamp speaks for the page that it was written with, not for one that somebody edited.
        let stamp = stamp.filter(|stamp| Some(stamp.digest) == digest);
        let tag = Tag::new(format!("{}/{}", metadata.uid, metadata.resource_version));
        Ok(Some(Found { tag, stamp, digest }))
    }

    pub(super) async fn put(&self, page: &Page, over: Option<&Tag>) -> Result<Put, Error> {
        if page.body.len() > MOST {
            return Err(too_large(&format!("{} bytes; a ConfigMap takes {MOST}", page.body.len())));
        }
        let written: Result<Object, ApiError> = match over {
            None => self.create(page).await,
            Some(tag) => self.replace(page, tag).await,
        };
        match written {
            Ok(Object { metadata, .. }) => {
                Ok(Put::Written(Tag::new(format!("{}/{}", metadata.uid, metadata.resource_version))))
            }
            Err(ApiError::Conflict(_)) => Ok(Put::Conflict),
            Err(ApiError::NotFound) if over.is_some() => Ok(Put::Conflict),
            Err(ApiError::NotFound) => {
                let missing = format!("there is no namespace {}: create it", self.settings.namespace);
                Err(Error::Refused(404, Some(Said::text(&missing))))
            }
            Err(error) => Err(sort(error)),
        }
    }

    async fn create(&self, page: &Page) -> Result<Object, ApiError> {
        let ConfigMapSettings { namespace, name, key, owner } = &self.settings;
        let body = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": { "app.kubernetes.io/managed-by": "perennial" },
                "annotations": annotations(page),
                "ownerReferences": owner.iter().collect::<Vec<_>>(),
            },
            "data": { key: page.body },
        });
        self.cluster.call(self.resource.create(&post(), body.to_string().into_bytes())).await
    }

    /// Replaces the page alone: what others have in there stays.
    async fn replace(&self, page: &Page, over: &Tag) -> Result<Object, ApiError> {
        let ConfigMapSettings { name, key, .. } = &self.settings;
        let (uid, version) = over.as_str().split_once('/').unwrap_or_default();
        let body = json!({
            "metadata": {
                "uid": uid,
                "resourceVersion": version,
                "annotations": annotations(page),
            },
            "data": { key: page.body },
        });
        let params = PatchParams { field_manager: post().field_manager, ..PatchParams::default() };
        self.cluster.call(self.resource.patch(name, &params, &kube::api::Patch::Merge(body))).await
    }

    fn foreign(&self) -> Error {
        let ConfigMapSettings { namespace, name, .. } = &self.settings;
        Error::Foreign(Said::text(&format!(
            "the ConfigMap {namespace}/{name} is there already and holds no page of ours: choose another name, remove it, \
             or give it to us by the annotation {PREFIX}digest with any value"
        )))
    }
}

impl fmt::Display for ConfigMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConfigMapSettings { namespace, name, key, owner: _ } = &self.settings;
        write!(f, "{key} in ConfigMap {namespace}/{name}")
    }
}

impl fmt::Debug for ConfigMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigMap").field("settings", &self.settings).finish_non_exhaustive()
    }
}

fn post() -> PostParams {
    PostParams { field_manager: Some("perennial".to_owned()), ..PostParams::default() }
}

fn annotations(page: &Page) -> Map<String, Value> {
    let pairs = stamp::pairs(&page.stamp).into_iter();
    pairs.map(|(name, value)| (format!("{PREFIX}{name}"), Value::String(value))).collect()
}

fn too_large(why: &str) -> Error {
    Error::TooLarge(Said::text(why))
}

/// What the API server's no means. Its words are those of the cluster that we belong to, so they may be shown.
fn sort(error: ApiError) -> Error {
    match error {
        ApiError::Unauthorized(said) => Error::Auth(Said::text(&said)),
        ApiError::Forbidden(said) if said.contains("exceeded quota") => Error::Full(Said::text(&said)),
        ApiError::Forbidden(said) => Error::Forbidden(Said::text(&said)),
        ApiError::Throttled(wait) => Error::Throttled(wait),
        ApiError::Invalid(said) if said.contains("Too long") || said.contains("too large") => {
            too_large(&said)
        }
        ApiError::Invalid(said) => Error::Refused(422, Some(Said::text(&said))),
        ApiError::Timeout => Error::Timeout,
        error => Error::Cluster(Said::text(&error.to_string())),
    }
}
