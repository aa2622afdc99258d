//! A webhook beside a keeper, and kubelets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::api::PostParams;
use kube::{Api, Client};
use perennial::cluster::{self, Cluster};
use perennial::config::TlsConfig;
use perennial::keeper::Door;
use perennial::metrics;
use perennial::tls::Lives;
use perennial::webhook::{Metrics, Webhook};
use perennial_testkit::eventually;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::world::{Labels, SOON, World, pairs};

/// The name of everything that belongs to it.
pub(crate) const NAME: &str = "perennial-webhook";
/// Whose return shows whether the webhook is asked.
const PROBE: &str = "probe-of-the-webhook";

/// A webhook that serves.
pub(crate) struct Hook {
    pub(crate) address: SocketAddr,
    registry: prometheus_client::registry::Registry,
    _serving: AbortOnDropHandle<()>,
}

impl Hook {
    /// Starts one that asks at this door, by this way to the API server.
    pub(crate) async fn serve(world: &World, account: Client, door: Door, lives: Lives) -> Self {
        let config = TlsConfig {
            hosts: vec!["127.0.0.1".to_owned()],
            lives,
            ..TlsConfig::new("127.0.0.1:0".parse().unwrap(), world.namespace(), NAME)
        };
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

    /// One of its metrics, without the prefix.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        let wanted = format!("perennial_{name} ");
        text.lines().find_map(|line| line.strip_prefix(&wanted)).map_or(0.0, |value| value.parse().unwrap())
    }
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
