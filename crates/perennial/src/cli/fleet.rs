//! Nodes against their records, as a keeper would see them that looked just now.
//!
//! Records are listed before nodes, so that no record is newer than its node. Then the keeper's own rules say what they
//! would do, and nothing of it is done.

use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use kube::api::ListParams;
use perennial_core::keeper::{Body, Line, Live, Mark, Plan, RecordSight, Seen, decide};
use perennial_core::kept::Pairs;
use perennial_core::record::{Record, Version, record_name};

use super::desk::Desk;
use super::error::Error;
use super::standing::Standing;
use crate::cluster::List;
use crate::keeper::{NodeObject, RecordObject};

/// How many nodes are read at once.
const AT_ONCE: usize = 16;

/// One name.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) node: Option<NodeObject>,
    pub(crate) line: Line,
    pub(crate) plan: Plan,
    pub(crate) standing: Standing,
}

impl Entry {
    pub(crate) fn live(&self) -> Option<&Live> {
        self.line.live()
    }

    pub(crate) fn seen(&self) -> Option<&Seen> {
        self.line.seen()
    }

    /// The record, where there is one that can be read.
    pub(crate) fn record(&self) -> Option<&Record> {
        match &self.seen()?.body {
            Body::Whole(record) => Some(record),
            _ => None,
        }
    }

    /// Why the record cannot be read, where that is so.
    pub(crate) fn unreadable(&self) -> Option<&str> {
        match &self.seen()?.body {
            Body::Unreadable { why, .. } => Some(why),
            Body::Newer => Some("it was written by a newer perennial"),
            _ => None,
        }
    }

    /// The labels that the node bears.
    pub(crate) fn labels(&self) -> Option<&Pairs> {
        self.node.as_ref()?.metadata.labels.as_ref()
    }

    /// Whether this life got its own back.
    pub(crate) fn is_restored(&self) -> bool {
        self.live().is_some_and(|live| live.mark != Mark::None)
    }

    /// When what is recorded was recorded.
    pub(crate) fn recorded(&self) -> Option<Timestamp> {
        self.record().map(|record| record.captured_at)
    }
}

impl Desk {
    /// Every name that lives or has a record, by name.
    pub(crate) async fn fleet(&self) -> Result<Vec<Entry>, Error> {
        self.fleet_with(self.policy.needs_spec()).await
    }

    /// The same, with whole nodes: also their machines.
    pub(crate) async fn whole_fleet(&self) -> Result<Vec<Entry>, Error> {
        self.fleet_with(true).await
    }

    async fn fleet_with(&self, whole: bool) -> Result<Vec<Entry>, Error> {
        let (records, _) = self.list::<RecordObject>("configmaps", self.api.records(), true).await?;
        let (nodes, at) = self.list::<NodeObject>("nodes", self.api.nodes(), whole).await?;
        let mut records: std::collections::BTreeMap<String, RecordObject> =
            records.into_iter().filter_map(|object| Some((object.node()?.to_owned(), object))).collect();
        let mut entries: Vec<Entry> = nodes
            .into_iter()
            .map(|node| {
                let name = node.metadata.name.clone();
                let record = records.remove(&name);
                self.entry(name, Some(node), record.as_ref(), at)
            })
            .collect();
        entries.extend(records.into_iter().map(|(name, record)| self.entry(name, None, Some(&record), at)));
        // The list tells metadata alone: where a decision needs more, the node is read.
        let read = entries.into_iter().map(|entry| async {
            if matches!(entry.plan, Plan::ReadNode) { self.one(&entry.name).await } else { Ok(entry) }
        });
        let mut entries: Vec<Entry> =
            futures::stream::iter(read).buffer_unordered(AT_ONCE).try_collect().await?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// One name, read directly.
    pub(crate) async fn one(&self, name: &str) -> Result<Entry, Error> {
        let record = self.told(self.api.read_config_map::<RecordObject>(&record_name(name)).await)?;
        let params =
            ListParams { field_selector: Some(format!("metadata.name={name}")), ..ListParams::default() };
        let list: List<NodeObject> = self.call(self.api.nodes().list(&params)).await?;
        let node = list.items.into_iter().find(|node| node.metadata.name == name);
        Ok(self.entry(name.to_owned(), node, record.as_ref(), list.metadata.resource_version))
    }

    /// One name that has to be there: a node that lives, or a record.
    pub(crate) async fn known(&self, name: &str) -> Result<Entry, Error> {
        let entry = self.one(name).await?;
        if entry.node.is_none() && entry.seen().is_none() {
            return Err(Error::NotFound(format!("nodes {name:?}")));
        }
        Ok(entry)
    }

    fn entry(
        &self,
        name: String,
        node: Option<NodeObject>,
        record: Option<&RecordObject>,
        at: Version,
    ) -> Entry {
        let now = self.now();
        let mut line = Line { record: RecordSight::None, ..Line::default() };
        if let Some(record) = record {
            let mut seen = record.whole(&name, self.api.seals());
            seen.foreign = seen.version <= at && seen.summary().is_some_and(|summary| summary.version > at);
            line.record_seen(seen);
        }
        match &node {
            Some(node) => {
                let live = node.clone().into_live(self.api.installation(), &self.policy, now);
                line.node_seen(live, &self.policy, now);
            }
            None => line.node_absent(at, now),
        }
        let plan = decide(&name, &line, &self.context(true));
        let standing = Standing::of(&plan, &line);
        Entry { name, node, line, plan, standing }
    }
}
