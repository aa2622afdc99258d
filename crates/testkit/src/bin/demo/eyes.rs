//! The demo's own watch: the only witness that counts.

use std::{collections::HashSet, convert::Infallible, time::Instant};

use anyhow::{Context, bail};
use futures::{StreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, ResourceExt as _,
    api::{ListParams, PartialObjectMeta, WatchEvent, WatchParams},
};

use crate::board::Shared;

type Meta = PartialObjectMeta<Node>;

/// Follows all nodes, for ever.
pub(crate) async fn watch(nodes: Api<Node>, board: Shared) -> anyhow::Result<Infallible> {
    loop {
        let mut version = list(&nodes, &board).await.context("listing nodes")?;
        while let Some(next) = follow(&nodes, &board, version).await.context("watching nodes")? {
            version = next;
        }
    }
}

async fn list(nodes: &Api<Node>, board: &Shared) -> anyhow::Result<String> {
    let list = nodes.list_metadata(&ListParams::default()).await?;
    let at = Instant::now();
    let there: HashSet<String> = list.items.iter().filter_map(kube::ResourceExt::uid).collect();
    let mut board = board.lock();
    board.saw_only(&there);
    for node in &list.items {
        board.saw(&node.name_any(), &node.uid().unwrap_or_default(), node.labels(), at);
    }
    list.metadata.resource_version.context("a list without a version")
}

/// One watch until the server ends it: the version to go on from, or nothing if that is too old.
async fn follow(nodes: &Api<Node>, board: &Shared, mut version: String) -> anyhow::Result<Option<String>> {
    let events = nodes.watch_metadata(&WatchParams::default(), &version).await?;
    pin_mut!(events);
    while let Some(event) = events.next().await {
        match event? {
            WatchEvent::Added(node) | WatchEvent::Modified(node) => {
                let (name, uid) = identity(&node);
                board.lock().saw(&name, &uid, node.labels(), Instant::now());
                version = node.resource_version().unwrap_or(version);
            }
            WatchEvent::Deleted(node) => {
                let (name, uid) = identity(&node);
                board.lock().saw_gone(&name, &uid);
                version = node.resource_version().unwrap_or(version);
            }
            WatchEvent::Bookmark(bookmark) => version = bookmark.metadata.resource_version,
            WatchEvent::Error(status) if status.code == 410 => return Ok(None),
            WatchEvent::Error(status) => bail!("{status}"),
        }
    }
    Ok(Some(version))
}

fn identity(node: &Meta) -> (String, String) {
    (node.name_any(), node.uid().unwrap_or_default())
}
