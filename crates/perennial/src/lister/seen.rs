//! A listing as it was last seen: what to do, and what was said of it.

use std::sync::Arc;

use perennial_core::kept::Digest;
use perennial_core::record::Version;
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::RELEASE;
use super::listing::ListingStatus;
use super::order::{Id, Order, OrderError};
use crate::cluster::{Followed, Meta};

/// A Listing, as the API server sends it. The spec is read later, so that its own status can tell what is wrong
/// with it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ListingObject {
    metadata: Meta,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    status: Value,
}

impl Followed for ListingObject {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl ListingObject {
    pub(crate) fn id(&self) -> Id {
        let namespace = self.metadata.namespace.clone().unwrap_or_default();
        Id { namespace, name: self.metadata.name.clone() }
    }
}

/// A listing as it was last seen.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// What to do, or why it cannot be done.
    pub(crate) order: Result<Arc<Order>, OrderError>,
    /// A person released the page of this digest.
    pub(crate) release: Option<Digest>,
    /// The custom resource behind it, where there is one.
    pub(crate) object: Option<Object>,
}

/// The custom resource behind a listing.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) uid: Uuid,
    pub(crate) version: Version,
    pub(crate) generation: Option<i64>,
    pub(crate) status: ListingStatus,
}

impl From<&ListingObject> for Seen {
    fn from(object: &ListingObject) -> Self {
        let ListingObject { metadata, spec, status } = object;
        let release = metadata.annotations.as_ref().and_then(|pairs| pairs.get(RELEASE));
        Self {
            order: Order::from_value(spec).map(Arc::new),
            release: release.and_then(|text| Digest::parse(text)),
            object: Some(Object {
                uid: metadata.uid,
                version: metadata.resource_version,
                generation: metadata.generation,
                // Whatever else stands there is written anew.
                status: ListingStatus::deserialize(status).unwrap_or_default(),
            }),
        }
    }
}
