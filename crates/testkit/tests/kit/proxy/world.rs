//! A control plane that all tests share, and for each a namespace and a proxy of its own.

use std::{path::PathBuf, pin::Pin, time::Duration};

use futures::{FutureExt, Stream, StreamExt, future};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client,
    api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
};
use perennial_testkit::{ControlPlane, eventually, proxy::Proxy};
use serde_json::json;
use tokio::{sync::OnceCell, time::timeout};

pub(crate) const SOON: Duration = Duration::from_secs(20);
/// Longer than any test: whatever takes so long does not come by itself.
pub(crate) const HOUR: Duration = Duration::from_hours(1);

/// It ends with this process.
static PLANE: OnceCell<(ControlPlane, PathBuf)> = OnceCell::const_new();

pub(crate) struct World {
    pub(crate) proxy: Proxy,
    pub(crate) namespace: String,
    /// Past the proxy.
    pub(crate) direct: Api<ConfigMap>,
    /// Through it.
    pub(crate) through: Api<ConfigMap>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::seeded(0).await
    }

    pub(crate) async fn seeded(seed: u64) -> Self {
        let (plane, kubeconfig) = plane().await;
        let namespace = format!("proxy-{:08x}", rand::random::<u32>());
        let space = Namespace { metadata: named(&namespace), ..Namespace::default() };
        Api::all(plane.admin()).create(&PostParams::default(), &space).await.unwrap();
        let proxy = Proxy::seeded(kubeconfig, seed).await.unwrap();
        let direct = Api::namespaced(plane.admin(), &namespace);
        let through = Api::namespaced(proxy.client().unwrap(), &namespace);
        Self { proxy, namespace, direct, through }
    }

    pub(crate) fn client(&self) -> Client {
        self.proxy.client().unwrap()
    }

    /// Past the proxy.
    pub(crate) async fn create(&self, name: &str) {
        self.direct.create(&PostParams::default(), &config_map(name)).await.unwrap();
    }

    /// Past the proxy.
    pub(crate) async fn set(&self, name: &str, value: &str) {
        let patch = Patch::Merge(json!({ "data": { "is": value } }));
        self.direct.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// The version of everything now.
    pub(crate) async fn version(&self) -> u64 {
        let list = self.direct.list(&ListParams::default()).await.unwrap();
        list.metadata.resource_version.unwrap().parse().unwrap()
    }

    /// The names that a list through the proxy has.
    pub(crate) async fn names(&self) -> kube::Result<Vec<String>> {
        let list = self.through.list(&ListParams::default()).await?;
        Ok(list.items.into_iter().filter_map(|item| item.metadata.name).collect())
    }

    /// A list as a stream through the proxy.
    pub(crate) async fn watch(&self) -> Watch {
        Watch::start(&self.through, &WatchParams::default().initial_events(), "0").await
    }

    /// One that has brought its list, of nothing, and watches.
    pub(crate) async fn watching(&self) -> Watch {
        let mut watch = self.watch().await;
        assert_eq!(watch.next().await, "END OF LIST");
        watch
    }
}

/// The control plane, and a kubeconfig of its administrator.
pub(crate) async fn plane() -> &'static (ControlPlane, PathBuf) {
    let start = || async {
        let plane = ControlPlane::start().await.unwrap();
        let kubeconfig = plane.kubeconfig_for_admin().unwrap();
        (plane, kubeconfig)
    };
    PLANE.get_or_init(start).await
}

pub(crate) fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

pub(crate) fn config_map(name: &str) -> ConfigMap {
    ConfigMap { metadata: named(name), ..ConfigMap::default() }
}

/// What a stream sends, and whether it ends as it should: kube takes a broken stream for one that has ended.
pub(crate) async fn raw(world: &World, query: &str) -> Option<String> {
    let path = format!("/api/v1/namespaces/{}/configmaps?watch=true&{query}", world.namespace);
    let request = http::Request::get(path).body(Vec::new().into()).unwrap();
    let body = world.client().send(request).await.unwrap().into_body();
    let bytes = timeout(SOON, body.collect_bytes()).await.expect("an end").ok()?;
    Some(String::from_utf8(bytes.to_vec()).unwrap())
}

/// Waits until this is true.
pub(crate) async fn until(what: &str, is: impl Fn() -> bool) {
    eventually(SOON, what, || async { Ok(is().then_some(())) }).await.unwrap();
}

/// A stream of events, in words.
pub(crate) struct Watch {
    events: Pin<Box<dyn Stream<Item = String> + Send>>,
}

impl Watch {
    pub(crate) async fn start(api: &Api<ConfigMap>, parameters: &WatchParams, version: &str) -> Self {
        let events = timeout(SOON, api.watch(parameters, version)).await.unwrap().unwrap();
        // Bookmarks come when the API server feels like it.
        let events = events.map(words).filter(|event| future::ready(event != "BOOKMARK"));
        Self { events: events.boxed() }
    }

    /// The next event; the end of the stream is one too.
    pub(crate) async fn next(&mut self) -> String {
        timeout(SOON, self.events.next()).await.expect("an event").unwrap_or_else(|| "END".to_owned())
    }

    pub(crate) async fn take(&mut self, number: usize) -> Vec<String> {
        let mut events = Vec::new();
        for _ in 0..number {
            events.push(self.next().await);
        }
        events
    }

    /// Up to the end of the list.
    pub(crate) async fn list(&mut self) -> Vec<String> {
        let mut events = Vec::new();
        loop {
            match self.next().await.as_str() {
                "END OF LIST" => return events,
                end if end.starts_with("END") || end.starts_with("BROKEN") => {
                    panic!("{end} after {events:?}")
                }
                event => events.push(event.to_owned()),
            }
        }
    }

    /// Whether nothing has come so far.
    pub(crate) fn is_silent(&mut self) -> bool {
        self.events.next().now_or_never().is_none()
    }
}

fn words(event: kube::Result<WatchEvent<ConfigMap>>) -> String {
    let tell = |kind: &str, it: ConfigMap| {
        let is = it.data.and_then(|mut data| data.remove("is")).map(|is| format!("={is}"));
        format!("{kind} {}{}", it.metadata.name.unwrap_or_default(), is.unwrap_or_default())
    };
    match event {
        Ok(WatchEvent::Added(it)) => tell("ADDED", it),
        Ok(WatchEvent::Modified(it)) => tell("MODIFIED", it),
        Ok(WatchEvent::Deleted(it)) => tell("DELETED", it),
        Ok(WatchEvent::Bookmark(it)) if it.metadata.annotations.contains_key("k8s.io/initial-events-end") => {
            "END OF LIST".to_owned()
        }
        Ok(WatchEvent::Bookmark(_)) => "BOOKMARK".to_owned(),
        Ok(WatchEvent::Error(status)) => format!("ERROR {}", status.code),
        Err(_) => "BROKEN".to_owned(),
    }
}
