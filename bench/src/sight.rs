//! What an observer sees: every line of a watch, and when it came.

use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use http::Request;
use http::header::ACCEPT;
use kube::Client;
use perennial_testkit::ControlPlane;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::raw::METADATA;

/// As of when a list is.
#[derive(serde::Deserialize)]
struct List {
    metadata: Metadata,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: String,
}

/// A line of a watch, as it came.
pub(crate) struct Seen {
    pub(crate) at: Instant,
    pub(crate) line: String,
}

/// A watch that goes on until it is dropped.
pub(crate) struct Sight {
    lines: mpsc::UnboundedReceiver<anyhow::Result<Seen>>,
    _reads: AbortOnDropHandle<()>,
}

impl Sight {
    /// Sees ConfigMaps of this namespace change from now on, with what is in them.
    pub(crate) async fn of_records(plane: &ControlPlane, namespace: &str) -> anyhow::Result<Self> {
        Self::begin(plane, &format!("/api/v1/namespaces/{namespace}/configmaps"), "application/json").await
    }

    /// Sees the metadata of Nodes change from now on.
    pub(crate) async fn of_nodes(plane: &ControlPlane) -> anyhow::Result<Self> {
        Self::begin(plane, "/api/v1/nodes", METADATA).await
    }

    async fn begin(plane: &ControlPlane, path: &str, accept: &str) -> anyhow::Result<Self> {
        let client = plane.admin();
        let now = Request::get(format!("{path}?limit=1")).body(Vec::new())?;
        let now: List = client.request(now).await.with_context(|| format!("listing {path}"))?;
        let version = now.metadata.resource_version;
        let (path, accept) = (path.to_owned(), accept.to_owned());
        let (sender, lines) = mpsc::unbounded_channel();
        let reads = async move {
            let mut version = version;
            // The API server ends a watch that cannot keep pace for a moment; it goes on where that one was.
            let broken = loop {
                if let Err(error) = read(&client, &path, &accept, &mut version, &sender).await {
                    break error.context(format!("the watch of {path} broke"));
                }
            };
            // Nobody may be left who wants to know.
            sender.send(Err(broken)).ok();
        };
        Ok(Self { lines, _reads: AbortOnDropHandle::new(tokio::spawn(reads)) })
    }

    /// The next line.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Seen> {
        let seen = self.lines.recv().await.ok_or_else(|| anyhow!("the watch is over"))??;
        ensure!(!seen.line.starts_with(r#"{"type":"ERROR""#), "the watch failed: {}", seen.line);
        Ok(seen)
    }

    /// When the first line came that is so.
    pub(crate) async fn until(&mut self, mut so: impl FnMut(&str) -> bool) -> anyhow::Result<Instant> {
        loop {
            let Seen { at, line } = self.next().await?;
            if so(&line) {
                return Ok(at);
            }
        }
    }

    /// Waits until nothing has come for so long.
    pub(crate) async fn quiet(&mut self, lasting: Duration) -> anyhow::Result<()> {
        while let Ok(seen) = timeout(lasting, self.next()).await {
            seen?;
        }
        Ok(())
    }
}

/// Passes on what a watch says from this version on until it ends, and how far it got.
async fn read(
    client: &Client,
    path: &str,
    accept: &str,
    version: &mut String,
    to: &mpsc::UnboundedSender<anyhow::Result<Seen>>,
) -> anyhow::Result<()> {
    let path = format!("{path}?watch=1&resourceVersion={version}&timeoutSeconds=14400");
    let request = Request::get(path).header(ACCEPT, accept).body(Vec::new())?;
    let mut lines = std::pin::pin!(client.request_stream(request).await?.lines());
    while let Some(line) = lines.try_next().await? {
        if let Some(reached) = version_of(&line) {
            reached.clone_into(version);
        }
        to.send(Ok(Seen { at: Instant::now(), line })).context("nobody looks any more")?;
    }
    Ok(())
}

/// The version of the object in a line, which stands before whatever is in it.
fn version_of(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(r#""resourceVersion":""#)?;
    rest.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lines_version_is_its_objects() {
        let line = r#"{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"12"},"data":{"x":"{\"resourceVersion\":\"7\"}"}}}"#;
        assert_eq!(version_of(line), Some("12"));
        assert_eq!(version_of("{}"), None);
    }
}
