//! What replicas told about nodes: Events, which the API server keeps for an hour.

use std::collections::HashMap;

use jiff::Timestamp;
use kube::api::ListParams;
use kube::core::request::Request as Resource;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::desk::Desk;
use super::error::Error;
use super::fleet::Entry;
use super::times::age;
use crate::cluster::List;

/// The reason of the Event that tells of a restore.
const RESTORED: &str = "MetadataRestored";
/// Who tells.
const TELLER: &str = "perennial";

/// An Event of ours.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Told {
    pub(crate) at: Option<Timestamp>,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    /// Of which life.
    #[serde(skip)]
    uid: Option<Uuid>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventObject {
    involved_object: Involved,
    #[serde(default)]
    last_timestamp: Option<Timestamp>,
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    source: Source,
}

#[derive(Debug, Default, Deserialize)]
struct Source {
    #[serde(default)]
    component: String,
}

#[derive(Debug, Default, Deserialize)]
struct Involved {
    /// The name stands for it where nobody knew it.
    #[serde(default)]
    uid: String,
}

/// When each life got its own back, as far as that is still told.
#[derive(Debug, Default)]
pub(crate) struct Restores(HashMap<Uuid, Timestamp>);

impl Restores {
    pub(crate) fn of(events: &[Told]) -> Self {
        let restores = events.iter().filter(|told| told.reason == RESTORED);
        let mut last = HashMap::new();
        for (uid, at) in restores.filter_map(|told| Some((told.uid?, told.at?))) {
            let known = last.entry(uid).or_insert(at);
            *known = at.max(*known);
        }
        Self(last)
    }

    /// When the life of this name got its own back, where that is still told.
    pub(crate) fn at(&self, entry: &Entry) -> Option<Timestamp> {
        let live = entry.live().filter(|_| entry.is_restored())?;
        self.0.get(&live.uid).copied()
    }

    /// How long ago that was; after an hour only that it was, at some time after the node was made.
    pub(crate) fn age(&self, entry: &Entry, now: Timestamp) -> String {
        match (self.at(entry), entry.live()) {
            (Some(at), _) => age(at, now),
            (None, Some(live)) if entry.is_restored() => format!("<{}", age(live.created, now)),
            _ => "-".to_owned(),
        }
    }
}

impl Desk {
    /// What is told about one node, the latest first.
    pub(crate) async fn events(&self, node: &str) -> Result<Vec<Told>, Error> {
        self.read_events(&format!("involvedObject.kind=Node,involvedObject.name={node}")).await
    }

    /// The restores of all nodes. Whoever may not see Events sees none.
    pub(crate) async fn restores(&self) -> Result<Restores, Error> {
        match self.read_events(&format!("involvedObject.kind=Node,reason={RESTORED}")).await {
            Ok(events) => Ok(Restores::of(&events)),
            Err(error) if error.is_forbidden() => Ok(Restores::default()),
            Err(error) => Err(error),
        }
    }

    async fn read_events(&self, chosen: &str) -> Result<Vec<Told>, Error> {
        let events = Resource::new("/api/v1/namespaces/default/events");
        let params = ListParams { field_selector: Some(chosen.to_owned()), ..ListParams::default() };
        let list: List<EventObject> = self.call(events.list(&params)).await?;
        let ours = list.items.into_iter().filter(|event| event.source.component == TELLER);
        let mut told: Vec<Told> = ours
            .map(|event| {
                let EventObject { involved_object, last_timestamp: at, kind, reason, message, source: _ } =
                    event;
                Told { at, kind, reason, message, uid: involved_object.uid.parse().ok() }
            })
            .collect();
        told.sort_by_key(|told| std::cmp::Reverse(told.at));
        Ok(told)
    }
}
