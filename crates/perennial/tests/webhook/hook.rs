//! A webhook beside a keeper, and kubelets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Secret};
use kube::api::PostParams;
use kube::{Api, Client};
use perennial::cluster::{self, Cluster};
use perennial::config::TlsConfig;
use perennial::keeper::Door;
use perennial::metrics;
use perennial::tls::Lives;
use perennial::webhook::{Metrics, Webhook};
use perennial_testkit::eventually;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::world::{Labels, SOON, World, pairs};

/// The name of everything that belongs to it.
pub(crate) const NAME: &str = "perennial-webhook";
/// Whose return shows whether the webhook is asked.
pub(crate) const PROBE: &str = "probe-of-the-webhook";

/// A webhook that serves.
pub(crate) struct Hook {
    pub(crate) address: SocketAddr,
    registry: prometheus_client::registry::Registry,
    _serving: AbortOnDropHandle<()>,
}

impl Hook {
    /// Starts one that asks at this door, by this way to the API server.
    pub(crate) async fn serve(world: &World, account: Client, door: Door, lives: Lives) -> Self {
        Self::serve_with(account, door, TlsConfig { lives, ..config(world) }).await
    }

    /// The same, configured like this.
    pub(crate) async fn serve_with(account: Client, door: Door, config: TlsConfig) -> Self {
        let mut registry = metrics::registry();
        let section = metrics::section(&mut registry);
        let calls = Arc::new(cluster::Metrics::register(section));
        let measured = Arc::new(Metrics::register(section));
        let webhook = Webhook::bind(config).await.unwrap();
        let address = webhook.address();
        let cluster = Cluster::new(account, calls);
        let closing = CancellationToken::new();
        let serving = webhook.serve(cluster, "perennial".to_owned(), door, measured, closing);
        Self { address, registry, _serving: AbortOnDropHandle::new(tokio::spawn(serving)) }
    }

    /// Somebody who is not the API server, and trusts it.
    pub(crate) async fn call(&self, world: &World) -> Caller {
        Caller::connect(authorities(world, NAME).await, "127.0.0.1", &self.address.to_string()).await.unwrap()
    }

    /// One of its metrics, without the prefix.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        let wanted = format!("perennial_{name} ");
        text.lines().find_map(|line| line.strip_prefix(&wanted)).map_or(0.0, |value| value.parse().unwrap())
    }
}

/// A webhook of this world.
pub(crate) fn config(world: &World) -> TlsConfig {
    TlsConfig {
        hosts: vec!["127.0.0.1".to_owned()],
        lives: lives(),
        ..TlsConfig::new("127.0.0.1:0".parse().unwrap(), world.namespace(), NAME)
    }
}

/// Somebody who says by TLS whatever they like.
pub(crate) struct Caller(TlsStream<TcpStream>);

impl Caller {
    /// Reaches whoever is trusted by these to be this host.
    pub(crate) async fn connect(roots: RootCertStore, host: &str, address: &str) -> std::io::Result<Self> {
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(host.to_owned()).unwrap();
        let stream = TcpStream::connect(address).await?;
        TlsConnector::from(Arc::new(tls)).connect(name, stream).await.map(Self)
    }

    /// Says this. Whoever is refused early may not be listened to until the end.
    pub(crate) async fn say(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap_or_default();
        self.0.flush().await.unwrap_or_default();
    }

    /// Asks, and hears the answer.
    pub(crate) async fn post(mut self, path: &str, body: &str) -> (u16, String) {
        let length = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n");
        self.say(&format!("{head}content-length: {length}\r\n\r\n{body}")).await;
        self.hear().await
    }

    /// What is answered until the connection ends: its status, and its body.
    pub(crate) async fn hear(mut self) -> (u16, String) {
        let mut answer = Vec::new();
        // A reset after the answer was read is how TCP says that the rest of the request was not.
        self.0.read_to_end(&mut answer).await.unwrap_or_default();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }
}

/// Whom a Secret says to trust.
pub(crate) async fn authorities(world: &World, secret: &str) -> RootCertStore {
    let secrets: Api<Secret> = Api::namespaced(world.plane.admin(), world.namespace());
    let authorities = secrets.get(secret).await.unwrap().data.unwrap().remove("ca.crt").unwrap().0;
    trusting(&authorities)
}

/// Whom these say to trust.
pub(crate) fn trusting(authorities: &[u8]) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(authorities).map(Result::unwrap));
    roots
}

/// As they are, but looked at more often.
pub(crate) fn lives() -> Lives {
    Lives { look: Duration::from_millis(200), ..Lives::default() }
}

/// Whoever knows what a node is called can be its kubelet.
pub(crate) fn kubelet(world: &World, name: &str) -> Api<Node> {
    Api::all(world.plane.kubelet(name).unwrap())
}

/// What a kubelet registers by itself.
pub(crate) fn own(name: &str) -> Labels {
    pairs([("kubernetes.io/hostname", name), ("kubernetes.io/os", "linux"), ("kubernetes.io/arch", "amd64")])
}

impl World {
    /// Registers a node as its kubelet does, with its identity: as the API server answers.
    pub(crate) async fn join(&self, name: &str) -> Node {
        let node = json!({ "metadata": { "name": name, "labels": own(name) } });
        let node = serde_json::from_value(node).unwrap();
        kubelet(self, name).create(&PostParams::default(), &node).await.unwrap()
    }

    /// Starts the keeper with a webhook beside it, and has the API server ask it.
    pub(crate) async fn start_with_hook(&mut self) -> Hook {
        self.start_hook(false).await
    }

    /// The same, and it is asked about deletions too.
    pub(crate) async fn start_with_strict_hook(&mut self) -> Hook {
        self.start_hook(true).await
    }

    async fn start_hook(&mut self, strict: bool) -> Hook {
        let door = Door::default();
        self.configure(|config| config.door = Some(door.clone()));
        self.start_keeper().await;
        let hook = Hook::serve(self, self.account.clone(), door, lives()).await;
        self.ask(&hook, strict).await;
        hook
    }

    /// Has the API server ask this webhook. Returns once it does.
    pub(crate) async fn ask(&self, hook: &Hook, strict: bool) {
        let url = format!("https://{}", hook.address);
        self.plane.install_webhook(self.namespace(), &url, strict).await.unwrap();
        self.register(PROBE, &pairs([("probe", "1")])).await;
        self.is_asked().await;
    }

    /// Waits until the API server asks the webhook.
    pub(crate) async fn is_asked(&self) {
        let labels = pairs([("probe", "1")]);
        eventually(SOON, "the API server asks the webhook", || async {
            self.recorded(PROBE, &labels).await;
            // In strict mode this may be refused until the API server trusts the webhook.
            self.nodes().delete(PROBE, &kube::api::DeleteParams::default()).await?;
            let node = self.register(PROBE, &Labels::new()).await;
            Ok(node.metadata.labels.filter(|born| *born == labels).map(drop))
        })
        .await
        .unwrap();
    }
}
