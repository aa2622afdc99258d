//! Writes a Listing's status, and tells of what a person should know by an Event.

use std::sync::Arc;

use kube::api::{Patch, PatchParams};
use kube::core::request::Request as Resource;
use serde_json::{Value, json};

use super::Shared;
use super::listing::{Condition, ListingStatus};
use super::order::Id;
use super::seen::Object;
use crate::cluster::{About, ApiError, Told};

/// Writes the status over the one that was seen.
pub(crate) async fn say(
    shared: Arc<Shared>,
    id: Id,
    over: Object,
    status: ListingStatus,
) -> Result<(), ApiError> {
    let path = format!("/apis/perennial.dev/v1alpha1/namespaces/{}/listings", id.namespace);
    let body = json!({
        "metadata": { "uid": over.uid, "resourceVersion": over.version.to_string() },
        "status": merged(&status),
    });
    let params = PatchParams { field_manager: Some("perennial".to_owned()), ..PatchParams::default() };
    let request = Resource::new(path).patch_subresource("status", &id.name, &params, &Patch::Merge(body));
    let _: serde::de::IgnoredAny = shared.cluster.call(request).await?;
    if let Some(told) = tell(&id, &over, &status) {
        shared.teller.tell(told);
    }
    Ok(())
}

/// The status as a merge patch: what it lacks is removed.
fn merged(status: &ListingStatus) -> Value {
    let ListingStatus { observed_generation, endpoints, digest, last_published, conditions, destinations } =
        status;
    json!({
        "observedGeneration": observed_generation,
        "endpoints": endpoints,
        "digest": digest,
        "lastPublished": last_published,
        "conditions": conditions,
        "destinations": destinations,
    })
}

/// What a person should know: that it became ready, or why it is not.
fn tell(id: &Id, over: &Object, status: &ListingStatus) -> Option<Told> {
    let ready = |status: &ListingStatus| -> Option<Condition> {
        status.conditions.iter().find(|condition| condition.kind == "Ready").cloned()
    };
    let now = ready(status).filter(|now| now.status != "Unknown")?;
    let before = ready(&over.status);
    if before.is_some_and(|before| {
        before.reason == now.reason && before.observed_generation == now.observed_generation
    }) {
        return None;
    }
    let about = About {
        api_version: "perennial.dev/v1alpha1",
        kind: "Listing",
        namespace: Some(id.namespace.clone()),
        name: id.name.clone(),
        uid: Some(over.uid),
    };
    Some(Told { about, reason: now.reason.into(), warning: now.status == "False", message: now.message })
}
