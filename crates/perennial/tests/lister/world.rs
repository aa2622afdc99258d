//! A cluster with Services, Listings and listers: what every test of the lister stands on.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use futures::TryStreamExt as _;
use http::{Request, StatusCode};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use perennial::admin::Readiness;
use perennial::cluster::{self, Cluster};
use perennial::config::Connect;
use perennial::lister::listing::{Listing, ListingStatus};
use perennial::lister::{self, Pages};
use perennial::members::{self, Role};
use perennial::{KeeperConfig, ListerConfig, MembersConfig, client, metrics};
use perennial_core::lister::Versions;
use perennial_core::policy::Policy;
use perennial_testkit::{ControlPlane, eventually};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::plane::Plane;

/// How long anything may take on a loaded machine. Nothing waits this long unless it fails.
pub(crate) const SOON: Duration = Duration::from_mins(1);

/// The annotation that says what a page was made from.
const VERSIONS: &str = "page.perennial.dev/versions";

/// A cluster with a namespace of its own, and the listers that look after it.
pub(crate) struct World {
    pub(crate) plane: Plane,
    pub(crate) namespace: String,
    kubeconfig: PathBuf,
    pub(crate) listers: BTreeMap<String, Lister>,
}

/// A lister that runs in this process.
pub(crate) struct Lister {
    work: JoinHandle<()>,
    following: JoinHandle<()>,
    stop: CancellationToken,
    readiness: Readiness,
    pages: Pages,
    registry: Registry,
}

impl Lister {
    /// Ends it as a rollout does.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.work.await.unwrap();
        self.following.await.unwrap();
    }

    /// Ends it as a power cut does.
    pub(crate) fn crash(self) {
        self.work.abort();
        self.following.abort();
    }

    pub(crate) fn metric(&self, name: &str) -> f64 {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        let wanted = format!("perennial_{name} ");
        text.lines().find_map(|line| line.strip_prefix(&wanted)).map_or(0.0, |value| value.parse().unwrap())
    }

    /// What it answers to a browser.
    pub(crate) async fn get(&self, path: &str) -> (StatusCode, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let (parts, body) = lister::routes(self.pages.clone()).oneshot(request).await.unwrap().into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        (parts.status, String::from_utf8(bytes.to_vec()).unwrap())
    }
}

impl World {
    /// A cluster with a lister, in step with it.
    pub(crate) async fn start() -> Self {
        let mut world = Self::without_lister().await;
        world.start_lister("a").await;
        world
    }

    /// A cluster of one's own that knows what Listings are.
    pub(crate) async fn alone() -> Self {
        let plane = ControlPlane::start().await.unwrap();
        Self::on(Plane::own(plane), "perennial".to_owned()).await
    }

    /// A cluster that knows what Listings are.
    pub(crate) async fn without_lister() -> Self {
        let (plane, namespace) = Plane::shared().await;
        Self::on(plane, namespace).await
    }

    async fn on(plane: Plane, namespace: String) -> Self {
        let namespaces: Api<Namespace> = Api::all(plane.admin());
        let own = serde_json::from_value(json!({ "metadata": { "name": namespace } })).unwrap();
        namespaces.create(&PostParams::default(), &own).await.unwrap();
        plane.install_listings().await.unwrap();
        let kubeconfig = plane.kubeconfig_for_lister(&namespace).await.unwrap();
        Self { plane, namespace, kubeconfig, listers: BTreeMap::new() }
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Starts a lister of this name, and waits until it is in step.
    pub(crate) async fn start_lister(&mut self, name: &str) {
        let kubeconfig = self.kubeconfig.clone();
        self.start_lister_through(name, &kubeconfig).await;
    }

    /// The same, by another way to the API server.
    pub(crate) async fn start_lister_through(&mut self, name: &str, kubeconfig: &Path) {
        self.spawn_lister(name, kubeconfig).await;
        let readiness = self.listers[name].readiness.clone();
        eventually(SOON, "the lister is in step", || async {
            Ok(readiness.missing().is_empty().then_some(()))
        })
        .await
        .unwrap();
    }

    /// The same, without waiting for it.
    pub(crate) async fn spawn_lister(&mut self, name: &str, kubeconfig: &Path) {
        let connect = Connect { kubeconfig: Some(kubeconfig.to_owned()), context: None };
        let account = client::connect(&connect).await.unwrap();
        let mut registry = metrics::registry();
        let section = metrics::section(&mut registry);
        let cluster = Cluster::new(account, Arc::new(cluster::Metrics::register(section)));
        let measured = Arc::new(lister::Metrics::register(section));
        let of_members = Arc::new(members::Metrics::register(section));
        let (readiness, stop, pages) = (Readiness::default(), CancellationToken::new(), Pages::default());
        let (_, policy) = watch::channel(Arc::new(Policy::default()));
        let keeper = KeeperConfig::new(&self.namespace, policy);
        let members = MembersConfig {
            roles: vec![Role::List],
            takeover: Duration::from_millis(500),
            lease: Duration::from_secs(2),
            ..MembersConfig::new(name, &keeper)
        };
        let config = ListerConfig {
            namespace: Some(self.namespace.clone()),
            resync: Duration::from_secs(2),
            retry_slowly: Duration::from_millis(500),
        };
        let (membership, follow) = members::join(cluster.clone(), members, of_members, stop.clone());
        let ready = readiness.handle("lister");
        let work = tokio::spawn(lister::run(
            cluster,
            config,
            measured,
            pages.clone(),
            membership,
            ready,
            stop.clone(),
        ));
        let lister = Lister { work, following: tokio::spawn(follow), stop, readiness, pages, registry };
        self.listers.insert(name.to_owned(), lister);
    }

    pub(crate) fn client(&self) -> Client {
        self.plane.admin()
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// A Service, as people write it.
    pub(crate) async fn service(&self, name: &str) {
        let service = json!({ "metadata": { "name": name }, "spec": { "ports": [{ "port": 80 }] } });
        let service = serde_json::from_value(service).unwrap();
        self.api::<Service>().create(&PostParams::default(), &service).await.unwrap();
    }

    /// One slice of a Service's endpoints, as a controller writes it: those given, all ready.
    pub(crate) async fn slice(&self, service: &str, number: usize, addresses: &[String]) {
        let endpoints: Vec<Value> = addresses
            .iter()
            .map(|address| json!({ "addresses": [address], "conditions": { "ready": true } }))
            .collect();
        let name = format!("{service}-{number}");
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": { "name": name, "labels": { "kubernetes.io/service-name": service } },
            "addressType": "IPv4",
            "endpoints": endpoints,
            "ports": [{ "port": 80, "protocol": "TCP" }],
        });
        let apply = PatchParams::apply("test").force();
        self.api::<EndpointSlice>().patch(&name, &apply, &Patch::Apply(slice)).await.unwrap();
    }

    /// The one slice of a small Service.
    pub(crate) async fn endpoints(&self, service: &str, addresses: &[&str]) {
        let addresses: Vec<String> = addresses.iter().map(|&address| address.to_owned()).collect();
        self.slice(service, 0, &addresses).await;
    }

    /// A Listing, as people write it.
    pub(crate) async fn listing(&self, name: &str, spec: Value) {
        let listing = serde_json::from_value(json!({
            "apiVersion": "perennial.dev/v1alpha1",
            "kind": "Listing",
            "metadata": { "name": name },
            "spec": spec,
        }));
        self.api::<Listing>().create(&PostParams::default(), &listing.unwrap()).await.unwrap();
    }

    /// Changes a Listing as `kubectl patch` does.
    pub(crate) async fn patch_listing(&self, name: &str, patch: Value) {
        self.api::<Listing>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn delete_listing(&self, name: &str) {
        self.api::<Listing>().delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn status(&self, name: &str) -> ListingStatus {
        self.api::<Listing>().get(name).await.unwrap().status.unwrap_or_default()
    }

    /// Waits until `Ready` has this status and this reason, and gives its message.
    pub(crate) async fn is(&self, name: &str, status: &str, reason: &str) -> String {
        eventually(SOON, &format!("{name} is {status} for {reason}"), || async {
            let now = self.status(name).await;
            let ready = now.conditions.iter().find(|one| one.kind == "Ready").cloned();
            match ready {
                Some(ready) if ready.status == status && ready.reason == reason => Ok(Some(ready.message)),
                other => Err(anyhow::anyhow!("{other:?}")),
            }
        })
        .await
        .unwrap()
    }

    /// A ConfigMap with one key.
    pub(crate) async fn config_map(&self, name: &str, key: &str, value: &str) {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { key: value },
        });
        let apply = PatchParams::apply("test").force();
        self.api::<ConfigMap>().patch(name, &apply, &Patch::Apply(object)).await.unwrap();
    }

    pub(crate) async fn secret(&self, name: &str, pairs: &[(&str, &str)]) {
        let data: BTreeMap<&str, &str> = pairs.iter().copied().collect();
        let object = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": data,
        });
        let apply = PatchParams::apply("test").force();
        self.api::<Secret>().patch(name, &apply, &Patch::Apply(object)).await.unwrap();
    }

    /// What a key of a ConfigMap says, where it is there.
    pub(crate) async fn published(&self, config_map: &str, key: &str) -> Option<String> {
        let found = self.api::<ConfigMap>().get_opt(config_map).await.unwrap()?;
        found.data?.get(key).cloned()
    }

    /// Waits until a ConfigMap says this.
    pub(crate) async fn says(&self, config_map: &str, text: &str) {
        eventually(SOON, &format!("{config_map} says {text:?}"), || async {
            let now = self.published(config_map, "index.html").await;
            if now.as_deref() == Some(text) { Ok(Some(())) } else { Err(anyhow::anyhow!("{now:?}")) }
        })
        .await
        .unwrap();
    }

    /// Has a page claim to be made from what the API server has not reached, as after an etcd was restored.
    pub(crate) async fn comes_from_the_future(&self, config_map: &str) {
        let future = json!({ "metadata": { "annotations": { VERSIONS: "99999999-99999999-99999999" } } });
        let maps = self.api::<ConfigMap>();
        maps.patch(config_map, &PatchParams::default(), &Patch::Merge(future)).await.unwrap();
    }

    /// Waits until a lister serves this.
    pub(crate) async fn serves(&self, lister: &str, listing: &str, text: &str) {
        let path = format!("/listings/{}/{listing}", self.namespace);
        eventually(SOON, &format!("{lister} serves {text:?}"), || async {
            let (status, body) = self.listers[lister].get(&path).await;
            let right = status == StatusCode::OK && body == text;
            if right { Ok(Some(())) } else { Err(anyhow::anyhow!("{status} {body:?}")) }
        })
        .await
        .unwrap();
    }

    /// The Events about Listings, as `reason: message`.
    pub(crate) async fn events(&self) -> Vec<String> {
        let events = self.api::<Event>().list(&ListParams::default()).await.unwrap();
        let told =
            events.into_iter().filter(|event| event.involved_object.kind.as_deref() == Some("Listing"));
        told.map(|event| {
            format!("{}: {}", event.reason.unwrap_or_default(), event.message.unwrap_or_default())
        })
        .collect()
    }

    /// Waits until an Event has this reason.
    pub(crate) async fn told(&self, reason: &str) {
        eventually(SOON, &format!("an Event says {reason}"), || async {
            let events = self.events().await;
            let there = events.iter().any(|event| event.starts_with(&format!("{reason}: ")));
            if there { Ok(Some(())) } else { Err(anyhow::anyhow!("{events:?}")) }
        })
        .await
        .unwrap();
    }
}

/// A template of which pages are easy to compare: one address a line.
pub(crate) const LINES: &str = "{% for one in endpoints %}{{ one.address }}\n{% endfor %}";

/// What [`LINES`] makes of these.
pub(crate) fn lines(addresses: &[&str]) -> String {
    addresses.iter().fold(String::new(), |mut text, address| {
        writeln!(text, "{address}").unwrap();
        text
    })
}

/// A spec that publishes [`LINES`] into a ConfigMap `out`.
pub(crate) fn into_config_map(service: &str) -> Value {
    json!({
        "service": service,
        "template": { "format": "text", "inline": LINES },
        "destinations": [{ "name": "out", "configMap": { "name": "out" } }],
    })
}

/// Every version of a ConfigMap from now on, as `read` has it.
fn follow<T: Send + 'static>(
    world: &World,
    name: &str,
    read: impl Fn(ConfigMap) -> T + Send + 'static,
) -> Arc<Mutex<Vec<T>>> {
    let (seen, maps) = (Arc::default(), Api::<ConfigMap>::namespaced(world.client(), &world.namespace));
    let (to, params): (Arc<Mutex<Vec<T>>>, _) =
        (Arc::clone(&seen), WatchParams::default().fields(&format!("metadata.name={name}")));
    tokio::spawn(async move {
        let mut events = Box::pin(maps.watch(&params, "0").await.unwrap());
        while let Ok(Some(event)) = events.try_next().await {
            if let WatchEvent::Added(map) | WatchEvent::Modified(map) = event {
                to.lock().unwrap().push(read(map));
            }
        }
    });
    seen
}

/// Every page that a ConfigMap holds from now on.
pub(crate) fn journal(world: &World, name: &str) -> Arc<Mutex<Vec<String>>> {
    follow(world, name, |map| map.data.unwrap().remove("index.html").unwrap())
}

/// What each of them was made from.
pub(crate) fn stamps(world: &World, name: &str) -> Arc<Mutex<Vec<Versions>>> {
    let read = |map: ConfigMap| map.metadata.annotations.unwrap()[VERSIONS].parse().unwrap();
    follow(world, name, read)
}
