//! What an observer sees: every event of a watch, and when it came.
//!
//! In protobuf: to be observed costs the API server and this machine as little as it can.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use bytes::Bytes;
use futures::AsyncReadExt as _;
use http::Request;
use http::header::ACCEPT;
use kube::Client;
use memchr::memmem;
use perennial_testkit::ControlPlane;
use prost::Message;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

/// Whole objects.
const WHOLE: &str = "application/vnd.kubernetes.protobuf;stream=watch";
/// Their metadata alone.
pub(crate) const METADATA: &str =
    "application/vnd.kubernetes.protobuf;stream=watch;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/// What every object in protobuf begins with.
const MAGIC: &[u8] = b"k8s\0";

/// As of when a list is.
#[derive(serde::Deserialize)]
struct List {
    metadata: ListMetadata,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    resource_version: String,
}

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(string, tag = "1")]
    kind: String,
    #[prost(message, optional, tag = "2")]
    object: Option<Extension>,
}

#[derive(Clone, PartialEq, Message)]
struct Extension {
    #[prost(bytes = "bytes", tag = "1")]
    raw: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct Unknown {
    #[prost(bytes = "bytes", tag = "2")]
    raw: Bytes,
}

/// Any object: all of them have their metadata first.
#[derive(Clone, PartialEq, Message)]
struct Object {
    #[prost(message, optional, tag = "1")]
    metadata: Option<Metadata>,
}

#[derive(Clone, PartialEq, Message)]
struct Metadata {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "6")]
    resource_version: String,
    #[prost(btree_map = "string, string", tag = "11")]
    labels: BTreeMap<String, String>,
}

/// An event of a watch, as it came.
pub(crate) struct Seen {
    at: Instant,
    kind: String,
    metadata: Metadata,
    raw: Bytes,
}

impl Seen {
    fn read(message: Bytes) -> anyhow::Result<Self> {
        let at = Instant::now();
        let Event { kind, object } = Event::decode(message)?;
        let raw = object.context("an event of nothing")?.raw;
        ensure!(kind != "ERROR", "the watch failed: {}", String::from_utf8_lossy(&raw));
        ensure!(raw.starts_with(MAGIC), "this is not an object: {raw:?}");
        let raw = Unknown::decode(raw.slice(MAGIC.len()..))?.raw;
        let metadata = Object::decode(raw.clone())?.metadata.context("an object without metadata")?;
        Ok(Self { at, kind, metadata, raw })
    }

    /// It was made.
    pub(crate) fn is_new(&self) -> bool {
        self.kind == "ADDED"
    }

    /// It is there.
    pub(crate) fn is_there(&self) -> bool {
        self.is_new() || self.kind == "MODIFIED"
    }

    pub(crate) fn name(&self) -> &str {
        &self.metadata.name
    }

    pub(crate) fn labels(&self) -> &BTreeMap<String, String> {
        &self.metadata.labels
    }

    /// This text is somewhere in the object.
    pub(crate) fn says(&self, text: &str) -> bool {
        memmem::find(&self.raw, text.as_bytes()).is_some()
    }
}

/// A watch that goes on until it is dropped.
pub(crate) struct Sight {
    events: mpsc::UnboundedReceiver<anyhow::Result<Seen>>,
    _reads: AbortOnDropHandle<()>,
}

impl Sight {
    /// Sees ConfigMaps of this namespace change from now on, with what is in them.
    pub(crate) async fn of_records(plane: &ControlPlane, namespace: &str) -> anyhow::Result<Self> {
        Self::begin(plane, &format!("/api/v1/namespaces/{namespace}/configmaps"), WHOLE).await
    }

    /// Sees the metadata of Nodes change from now on.
    pub(crate) async fn of_nodes(plane: &ControlPlane) -> anyhow::Result<Self> {
        Self::begin(plane, "/api/v1/nodes", METADATA).await
    }

    async fn begin(plane: &ControlPlane, path: &str, accept: &'static str) -> anyhow::Result<Self> {
        let client = plane.admin();
        let version = now(&client, path).await?;
        let path = path.to_owned();
        let (sender, events) = mpsc::unbounded_channel();
        let reads = async move {
            let mut version = version;
            // The API server ends a watch that cannot keep pace for a moment; it goes on where that one was.
            let broken = loop {
                if let Err(error) = read(&client, &path, accept, &mut version, &sender).await {
                    break error.context(format!("the watch of {path} broke"));
                }
            };
            // Nobody may be left who wants to know.
            sender.send(Err(broken)).ok();
        };
        Ok(Self { events, _reads: AbortOnDropHandle::new(tokio::spawn(reads)) })
    }

    /// The next event.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Seen> {
        self.events.recv().await.ok_or_else(|| anyhow!("the watch is over"))?
    }

    /// When the first event came that is so.
    pub(crate) async fn until(&mut self, mut so: impl FnMut(&Seen) -> bool) -> anyhow::Result<Instant> {
        loop {
            let seen = self.next().await?;
            if so(&seen) {
                return Ok(seen.at);
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

/// The version of what there is now.
pub(crate) async fn now(client: &Client, path: &str) -> anyhow::Result<String> {
    let request = Request::get(format!("{path}?limit=1")).body(Vec::new())?;
    let list: List = client.request(request).await.with_context(|| format!("listing {path}"))?;
    Ok(list.metadata.resource_version)
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
    let mut stream = std::pin::pin!(client.request_stream(request).await?);
    // Each message has its length before it.
    let mut length = [0; 4];
    while stream.read(&mut length[..1]).await? == 1 {
        stream.read_exact(&mut length[1..]).await?;
        let mut message = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut message).await?;
        let seen = Seen::read(message.into())?;
        seen.metadata.resource_version.clone_into(version);
        to.send(Ok(seen)).context("nobody looks any more")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, raw: Bytes) -> Bytes {
        let object = Some(Extension { raw });
        Event { kind: kind.to_owned(), object }.encode_to_vec().into()
    }

    fn object(metadata: Metadata) -> Bytes {
        let raw = Object { metadata: Some(metadata) }.encode_to_vec().into();
        [MAGIC, &Unknown { raw }.encode_to_vec()].concat().into()
    }

    #[test]
    fn an_event_is_its_objects() {
        let labels = BTreeMap::from([("pool".to_owned(), "gpu".to_owned())]);
        let metadata = Metadata { name: "a".to_owned(), resource_version: "12".to_owned(), labels };
        let seen = Seen::read(event("ADDED", object(metadata.clone()))).unwrap();
        assert!(seen.is_new() && seen.is_there() && seen.says("gpu") && !seen.says("cpu"));
        assert_eq!((seen.name(), seen.labels()), ("a", &metadata.labels));
        let gone = Seen::read(event("DELETED", object(metadata))).unwrap();
        assert!(!gone.is_new() && !gone.is_there());
    }

    #[test]
    fn what_is_none_is_an_error() {
        for (broken, why) in [
            (event("ADDED", Bytes::from_static(b"{}")), "not an object"),
            (event("ADDED", [MAGIC, &[0xff]].concat().into()), "failed to decode"),
            (event("ERROR", Bytes::from_static(b"k8s\0too old")), "too old"),
            (Bytes::new(), "an event of nothing"),
        ] {
            let error = Seen::read(broken).err().unwrap();
            assert!(error.to_string().contains(why), "{error:#}");
        }
    }
}
