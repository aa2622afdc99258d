//! A page in a ConfigMap of a real API server.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use perennial::cluster::{Cluster, Metrics};
use perennial::lister::destination::{ConfigMapSettings, Destination, Put};
use serde_json::{Value, json};

use crate::world::{controlplane, found, page, publish};

/// A namespace of its own.
struct World {
    client: Client,
    namespace: String,
}

impl World {
    async fn new() -> Self {
        let client = controlplane().await.admin();
        let namespace = format!("pages-{:08x}", rand::random::<u32>());
        let object = serde_json::from_value(json!({ "metadata": { "name": namespace } })).unwrap();
        Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &object).await.unwrap();
        Self { client, namespace }
    }

    fn settings(&self) -> ConfigMapSettings {
        ConfigMapSettings {
            namespace: self.namespace.clone(),
            name: "page".to_owned(),
            key: ConfigMapSettings::KEY.to_owned(),
            owner: None,
        }
    }

    fn destination(&self) -> Destination {
        destination(self.client.clone(), self.settings())
    }

    fn api(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn create(&self, body: Value) {
        let object = serde_json::from_value(body).unwrap();
        self.api().create(&PostParams::default(), &object).await.unwrap();
    }

    async fn patch(&self, body: Value) {
        self.api().patch("page", &PatchParams::default(), &Patch::Merge(body)).await.unwrap();
    }

    async fn get(&self) -> ConfigMap {
        self.api().get("page").await.unwrap()
    }
}

fn destination(client: Client, settings: ConfigMapSettings) -> Destination {
    let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default());
    Destination::config_map(Cluster::new(client, Arc::new(metrics)), settings)
}

#[tokio::test]
async fn a_page_comes_back_with_its_stamp() {
    let world = World::new().await;
    let destination = world.destination();
    assert_eq!(destination.look().await, Ok(None));
    for (text, version) in [("one", 1), ("two", 2)] {
        let page = page(text, version);
        let Put::Written(tag) = publish(&destination, &page).await.unwrap() else { panic!("a conflict") };
        let found = found(&destination).await;
        assert_eq!((found.tag, found.stamp, found.digest), (tag, Some(page.stamp), Some(page.stamp.digest)));
        assert_eq!(world.get().await.data.unwrap()["index.html"], text);
    }
    assert_eq!(world.get().await.metadata.labels.unwrap()["app.kubernetes.io/managed-by"], "perennial");
    assert_eq!(destination.to_string(), format!("index.html in ConfigMap {}/page", world.namespace));
}

#[tokio::test]
async fn of_two_writers_one_finds_a_conflict() {
    let world = World::new().await;
    let (one, two) = (world.destination(), world.destination());
    assert!(matches!(one.put(&page("one", 1), None).await, Ok(Put::Written(_))));
    assert_eq!(two.put(&page("two", 2), None).await, Ok(Put::Conflict));
    let seen = found(&two).await;
    assert!(matches!(one.put(&page("three", 3), Some(&seen.tag)).await, Ok(Put::Written(_))));
    assert_eq!(two.put(&page("two", 2), Some(&seen.tag)).await, Ok(Put::Conflict));
    // Gone, and gone and back under the same name.
    let seen = found(&two).await;
    world.api().delete("page", &DeleteParams::default()).await.unwrap();
    assert_eq!(two.put(&page("four", 4), Some(&seen.tag)).await, Ok(Put::Conflict));
    assert!(matches!(one.put(&page("five", 5), None).await, Ok(Put::Written(_))));
    assert_eq!(two.put(&page("four", 4), Some(&seen.tag)).await, Ok(Put::Conflict));
    assert_eq!(found(&two).await.stamp, Some(page("five", 5).stamp));
}

#[tokio::test]
async fn what_is_not_ours_is_never_touched() {
    let world = World::new().await;
    world.create(json!({ "metadata": { "name": "page" }, "data": { "index.html": "theirs" } })).await;
    let destination = world.destination();
    let error = destination.look().await.unwrap_err();
    assert_eq!((error.kind(), error.retryable()), ("foreign", false));
    assert!(error.to_string().contains(&format!("{}/page is there already", world.namespace)), "{error}");
    assert_eq!(destination.put(&page("ours", 1), None).await, Ok(Put::Conflict));
    assert_eq!(world.get().await.data.unwrap()["index.html"], "theirs");
    // Until its owner gives it to us.
    world.patch(json!({ "metadata": { "annotations": { "page.perennial.dev/digest": "yours" } } })).await;
    assert_eq!(found(&destination).await.stamp, None);
    assert!(matches!(publish(&destination, &page("ours", 1)).await, Ok(Put::Written(_))));
}

#[tokio::test]
async fn what_others_have_in_it_stays() {
    let world = World::new().await;
    let destination = world.destination();
    publish(&destination, &page("one", 1)).await.unwrap();
    let theirs = json!({
        "metadata": { "labels": { "theirs": "yes" }, "annotations": { "theirs": "yes" } },
        "data": { "robots.txt": "theirs" },
    });
    world.patch(theirs).await;
    publish(&destination, &page("two", 2)).await.unwrap();
    let object = world.get().await;
    let data = object.data.unwrap();
    assert_eq!((data["index.html"].as_str(), data["robots.txt"].as_str()), ("two", "theirs"));
    assert_eq!(object.metadata.labels.unwrap()["theirs"], "yes");
    assert_eq!(object.metadata.annotations.unwrap()["theirs"], "yes");
}

#[tokio::test]
async fn a_stamp_does_not_speak_for_a_page_that_somebody_edited() {
    let world = World::new().await;
    let destination = world.destination();
    publish(&destination, &page("one", 1)).await.unwrap();
    world.patch(json!({ "data": { "index.html": "edited" } })).await;
    let edited = found(&destination).await;
    assert_eq!(edited.stamp, None);
    assert_ne!(edited.digest, Some(page("one", 1).stamp.digest));
    for broken in
        [json!({ "page.perennial.dev/versions": "1-2" }), json!({ "page.perennial.dev/endpoints": null })]
    {
        publish(&destination, &page("one", 1)).await.unwrap();
        world.patch(json!({ "metadata": { "annotations": broken } })).await;
        assert_eq!(found(&destination).await.stamp, None, "{broken}");
    }
}

#[tokio::test]
async fn it_goes_away_with_its_owner() {
    let world = World::new().await;
    let owner = OwnerReference {
        api_version: "perennial.dev/v1alpha1".to_owned(),
        kind: "Listing".to_owned(),
        name: "web".to_owned(),
        uid: "0a1b2c3d-0000-4000-8000-000000000001".to_owned(),
        controller: Some(true),
        block_owner_deletion: None,
    };
    let settings = ConfigMapSettings { owner: Some(owner.clone()), ..world.settings() };
    publish(&destination(world.client.clone(), settings), &page("one", 1)).await.unwrap();
    assert_eq!(world.get().await.metadata.owner_references, Some(vec![owner]));
}

#[tokio::test]
async fn a_page_that_does_not_fit_is_told() {
    let world = World::new().await;
    let destination = world.destination();
    let error = publish(&destination, &page(&"x".repeat((1 << 20) + 1), 1)).await.unwrap_err();
    assert_eq!((error.kind(), error.retryable()), ("too_large", false));
    // It fits by itself, and not with what others have there.
    publish(&destination, &page("one", 1)).await.unwrap();
    world.patch(json!({ "data": { "theirs": "y".repeat(600_000) } })).await;
    let error = publish(&destination, &page(&"x".repeat(600_000), 2)).await.unwrap_err();
    assert_eq!(error.kind(), "too_large", "{error}");
    assert_eq!(found(&destination).await.stamp, Some(page("one", 1).stamp));
}

#[tokio::test]
async fn a_namespace_that_is_not_there_is_told() {
    let world = World::new().await;
    let settings = ConfigMapSettings { namespace: "nowhere".to_owned(), ..world.settings() };
    let error = publish(&destination(world.client.clone(), settings), &page("one", 1)).await.unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
    assert!(!error.retryable(), "{error}");
}

#[tokio::test]
async fn a_right_that_is_missing_is_told() {
    let world = World::new().await;
    let nobody = controlplane().await.service_account(&world.namespace, "nobody").await.unwrap();
    let error = publish(&destination(nobody, world.settings()), &page("one", 1)).await.unwrap_err();
    assert_eq!((error.kind(), error.retryable()), ("forbidden", false));
    assert!(error.to_string().contains("cannot get resource \"configmaps\""), "{error}");
    assert!(error.to_string().contains("let a Role give us that right"), "{error}");
}

#[tokio::test]
async fn one_that_may_not_be_changed_is_told() {
    let world = World::new().await;
    let destination = world.destination();
    publish(&destination, &page("one", 1)).await.unwrap();
    world.patch(json!({ "immutable": true })).await;
    let error = publish(&destination, &page("two", 2)).await.unwrap_err();
    assert_eq!((error.kind(), error.retryable()), ("refused", false));
    assert!(error.to_string().contains("immutable"), "{error}");
}
