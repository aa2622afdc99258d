//! The limit: bare requests to the API server, as many and as fast as it takes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::client::ConfigExt as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use perennial_testkit::ControlPlane;
use prost::Message;
use serde_json::Value;

use crate::shapes::ConfigMap;

/// Only the metadata come back: nobody reads the rest.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/// A line of a table, as kubectl shows it, and the metadata.
pub(crate) const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
/// What goes out; and as an answer, all of it comes back.
pub(crate) const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// How requests are carried, and how many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Manner {
    /// So many connections of HTTP/2; none: HTTP/1.1, a connection for each request under way.
    pub(crate) connections: usize,
    pub(crate) at_once: usize,
}

/// Those that are tried to find the best.
pub(crate) const MANNERS: [Manner; 5] = [
    Manner { connections: 0, at_once: 32 },
    Manner { connections: 0, at_once: 64 },
    Manner { connections: 4, at_once: 32 },
    Manner { connections: 4, at_once: 64 },
    Manner { connections: 4, at_once: 128 },
];

impl std::fmt::Display for Manner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.connections {
            0 => write!(f, "HTTP/1.1, {} at once", self.at_once),
            many => write!(f, "HTTP/2 over {many} connections, {} at once", self.at_once),
        }
    }
}

/// One request.
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) content: &'static str,
    pub(crate) body: Vec<u8>,
    /// What is to come back.
    pub(crate) answer: &'static str,
}

/// An object in protobuf, behind `k8s\0`.
#[derive(Clone, PartialEq, Message)]
struct Unknown {
    #[prost(message, required, tag = "1")]
    kind: TypeMeta,
    #[prost(bytes = "vec", tag = "2")]
    raw: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct TypeMeta {
    #[prost(string, tag = "1")]
    api_version: String,
    #[prost(string, tag = "2")]
    kind: String,
}

impl Call {
    pub(crate) fn create(path: impl Into<String>, body: &impl serde::Serialize) -> anyhow::Result<Self> {
        let body = serde_json::to_vec(body)?;
        Ok(Self { method: Method::POST, path: path.into(), content: JSON, body, answer: METADATA })
    }

    pub(crate) fn merge(path: impl Into<String>, body: &Value) -> Self {
        let content = "application/merge-patch+json";
        let body = body.to_string().into_bytes();
        Self { method: Method::PATCH, path: path.into(), content, body, answer: METADATA }
    }

    pub(crate) fn strategic(path: impl Into<String>, body: &Value) -> Self {
        Self { content: "application/strategic-merge-patch+json", ..Self::merge(path, body) }
    }

    pub(crate) fn replace(path: impl Into<String>, body: &Value) -> Self {
        Self { method: Method::PUT, content: JSON, ..Self::merge(path, body) }
    }

    pub(crate) fn delete(path: impl Into<String>) -> Self {
        let (content, body, answer) = (JSON, Vec::new(), METADATA);
        Self { method: Method::DELETE, path: path.into(), content, body, answer }
    }

    pub(crate) fn create_in_protobuf(path: impl Into<String>, map: &ConfigMap) -> Self {
        let kind = TypeMeta { api_version: "v1".to_owned(), kind: "ConfigMap".to_owned() };
        let object = Unknown { kind, raw: map.encode_to_vec() }.encode_to_vec();
        let (content, body) = (PROTOBUF, [b"k8s\0", &*object].concat());
        Self { method: Method::POST, path: path.into(), content, body, answer: METADATA }
    }

    pub(crate) fn replace_in_protobuf(path: impl Into<String>, map: &ConfigMap) -> Self {
        Self { method: Method::PUT, ..Self::create_in_protobuf(path, map) }
    }
}

/// An administrator who asks for nothing but speed.
#[derive(Clone)]
pub(crate) struct Raw {
    clients: Vec<Client<HttpsConnector<HttpConnector>, Full<Bytes>>>,
    next: Arc<AtomicUsize>,
    url: String,
    at_once: usize,
}

impl Raw {
    pub(crate) async fn new(plane: &ControlPlane, manner: Manner) -> anyhow::Result<Self> {
        let file = Kubeconfig::read_from(plane.kubeconfig_for_admin()?)?;
        let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        let tls = config.rustls_client_config()?;
        let clients = (0..manner.connections.max(1)).map(|_| {
            let mut tcp = HttpConnector::new();
            tcp.enforce_http(false);
            // A request goes out in two pieces, and the second shall not wait until the first one is confirmed.
            tcp.set_nodelay(true);
            let connector = HttpsConnectorBuilder::new().with_tls_config(tls.clone()).https_only();
            let connector = match manner.connections {
                0 => connector.enable_http1().wrap_connector(tcp),
                _ => connector.enable_http2().wrap_connector(tcp),
            };
            Client::builder(TokioExecutor::new()).http2_only(manner.connections > 0).build(connector)
        });
        let (clients, url) = (clients.collect(), plane.url().to_owned());
        Ok(Self { clients, next: Arc::default(), url, at_once: manner.at_once })
    }

    /// Sends one, and returns when the whole answer is there. Any but a good one is an error.
    pub(crate) async fn send(&self, call: Call) -> anyhow::Result<()> {
        let Call { method, path, content, body, answer } = call;
        let what = format!("{method} {path}");
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header(CONTENT_TYPE, content)
            .header(ACCEPT, answer)
            .body(Full::from(body))?;
        let client = &self.clients[self.next.fetch_add(1, Ordering::Relaxed) % self.clients.len()];
        let answer = client.request(request).await.with_context(|| what.clone())?;
        let status = answer.status();
        let text = answer.into_body().collect().await?.to_bytes();
        ensure!(status.is_success(), "{what}: {status}: {}", String::from_utf8_lossy(&text));
        Ok(())
    }

    /// Does something for each of many, so many at once as is best, and says how long it took.
    pub(crate) async fn each<T, F>(
        &self,
        many: impl IntoIterator<Item = T>,
        act: impl Fn(T) -> F,
    ) -> anyhow::Result<Duration>
    where
        F: Future<Output = anyhow::Result<()>>,
    {
        let began = Instant::now();
        stream::iter(many).map(act).buffer_unordered(self.at_once).try_collect::<()>().await?;
        Ok(began.elapsed())
    }
}
