//! Pages that follow a Service's endpoints.

use http::StatusCode;
use serde_json::json;

use crate::world::{World, into_config_map, lines};

#[tokio::test]
async fn a_page_follows_the_endpoints_wherever_it_is_published() {
    let world = World::start().await;
    world.endpoints("web", &["10.0.0.2", "10.0.0.1"]).await;
    world.listing("web", into_config_map("web")).await;
    world.says("out", &lines(&["10.0.0.1", "10.0.0.2"])).await;
    world.serves("a", "web", &lines(&["10.0.0.1", "10.0.0.2"])).await;
    world.is("web", "True", "Published").await;
    world.endpoints("web", &["10.0.0.1", "10.0.0.2", "10.0.0.3"]).await;
    world.says("out", &lines(&["10.0.0.1", "10.0.0.2", "10.0.0.3"])).await;
    world.endpoints("web", &["10.0.0.3"]).await;
    world.says("out", &lines(&["10.0.0.3"])).await;
    world.serves("a", "web", &lines(&["10.0.0.3"])).await;
}

#[tokio::test]
async fn the_status_tells_what_came_of_it() {
    let world = World::start().await;
    world.endpoints("web", &["10.0.0.1", "10.0.0.2"]).await;
    world.listing("web", into_config_map("web")).await;
    world.is("web", "True", "Published").await;
    let status = world.status("web").await;
    assert_eq!((status.endpoints, status.observed_generation), (Some(2), Some(1)), "{status:?}");
    assert_eq!(status.destinations.len(), 1, "{status:?}");
    assert_eq!(status.destinations[0].digest, status.digest);
    assert!(status.last_published.is_some(), "{status:?}");
    let held = status.conditions.iter().find(|condition| condition.kind == "Held").unwrap();
    assert_eq!(held.status, "False", "{held:?}");
    world.told("Published").await;
}

#[tokio::test]
async fn a_listing_without_destinations_is_served_alone() {
    let world = World::start().await;
    world.endpoints("web", &["10.0.0.1"]).await;
    world.listing("web", json!({ "service": "web", "template": { "format": "text" } })).await;
    world.serves("a", "web", &lines(&["10.0.0.1"])).await;
    world.is("web", "True", "Served").await;
    world.delete_listing("web").await;
    let path = format!("/listings/{}/web", world.namespace);
    perennial_testkit::eventually(crate::world::SOON, "it is served no more", || async {
        Ok((world.listers["a"].get(&path).await.0 == StatusCode::NOT_FOUND).then_some(()))
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn endpoints_of_several_slices_are_one_list_without_doubles() {
    let world = World::start().await;
    world.slice("web", 0, &["10.0.0.1".to_owned(), "10.0.0.3".to_owned()]).await;
    world.slice("web", 1, &["10.0.0.3".to_owned(), "10.0.0.2".to_owned()]).await;
    world.listing("web", into_config_map("web")).await;
    world.says("out", &lines(&["10.0.0.1", "10.0.0.2", "10.0.0.3"])).await;
}

#[tokio::test]
async fn a_template_from_a_config_map_is_followed() {
    let world = World::start().await;
    world.endpoints("web", &["10.0.0.1"]).await;
    world
        .listing(
            "web",
            json!({
                "service": "web",
                "template": { "format": "text", "configMap": { "name": "template", "key": "page" } },
                "destinations": [{ "name": "out", "configMap": { "name": "out" } }],
            }),
        )
        .await;
    let message = world.is("web", "False", "TemplateMissing").await;
    assert!(message.contains("\"template\""), "{message}");
    world.config_map("template", "page", "{{ count }} of {{ service }}").await;
    world.says("out", "1 of web").await;
    world.config_map("template", "page", "{{ service }}: {{ count }}").await;
    world.says("out", "web: 1").await;
    world.is("web", "True", "Published").await;
}

#[tokio::test]
async fn a_changed_listing_is_carried_out() {
    let world = World::start().await;
    world.endpoints("web", &["10.0.0.1"]).await;
    world.endpoints("api", &["10.0.0.9"]).await;
    world.listing("web", into_config_map("web")).await;
    world.says("out", &lines(&["10.0.0.1"])).await;
    world.patch_listing("web", json!({ "spec": { "service": "api" } })).await;
    world.says("out", &lines(&["10.0.0.9"])).await;
    let elsewhere = json!([{ "name": "other", "configMap": { "name": "other" } }]);
    world.patch_listing("web", json!({ "spec": { "destinations": elsewhere } })).await;
    world.says("other", &lines(&["10.0.0.9"])).await;
    // What was published stays.
    world.says("out", &lines(&["10.0.0.9"])).await;
}

#[tokio::test]
async fn what_was_published_stays_when_its_listing_goes() {
    let world = World::start().await;
    world.endpoints("web", &["10.0.0.1"]).await;
    world.listing("web", into_config_map("web")).await;
    world.is("web", "True", "Published").await;
    world.delete_listing("web").await;
    world.endpoints("web", &["10.0.0.2"]).await;
    world.listing("again", into_config_map("web")).await;
    // Another listing that asks for the same takes it over.
    world.says("out", &lines(&["10.0.0.2"])).await;
}
