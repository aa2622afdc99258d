//! What people get wrong, and what the lister says to it: nothing is lost, and what is wrong is told.

use serde_json::json;

use crate::world::{World, into_config_map, lines};

#[tokio::test]
async fn an_empty_service_keeps_the_last_good_page_until_a_person_lets_it_out() {
    let world = World::start().await;
    world.service("web").await;
    world.endpoints("web", &["10.0.0.1"]).await;
    world.listing("web", into_config_map("web")).await;
    world.is("web", "True", "Published").await;
    world.endpoints("web", &[]).await;
    let message = world.is("web", "False", "Held").await;
    assert!(message.contains("at least 1"), "{message}");
    world.told("Held").await;
    assert_eq!(world.published("out", "index.html").await, Some(lines(&["10.0.0.1"])));
    world.serves("a", "web", &lines(&["10.0.0.1"])).await;
    let status = world.status("web").await;
    let held = status.conditions.iter().find(|condition| condition.kind == "Held").unwrap();
    let release = held.message.rsplit_once("perennial.dev/release=").unwrap().1.to_owned();
    let wrong = json!({ "metadata": { "annotations": { "perennial.dev/release": "0".repeat(32) } } });
    world.patch_listing("web", wrong).await;
    let right = json!({ "metadata": { "annotations": { "perennial.dev/release": release } } });
    world.patch_listing("web", right).await;
    world.says("out", "").await;
    world.is("web", "True", "Published").await;
}

#[tokio::test]
async fn a_service_that_shrinks_too_much_is_held_and_let_go_when_it_grows_again() {
    let world = World::start().await;
    world.endpoints("web", &["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]).await;
    let mut spec = into_config_map("web");
    spec["guards"] = json!({ "maxShrinkPercent": 50 });
    world.listing("web", spec).await;
    world.is("web", "True", "Published").await;
    world.endpoints("web", &["10.0.0.1"]).await;
    world.is("web", "False", "Held").await;
    world.endpoints("web", &["10.0.0.1", "10.0.0.2"]).await;
    world.says("out", &lines(&["10.0.0.1", "10.0.0.2"])).await;
    world.is("web", "True", "Published").await;
}

#[tokio::test]
async fn a_lister_that_starts_knows_what_a_page_shrank_from() {
    let mut world = World::start().await;
    world.endpoints("web", &["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]).await;
    let mut spec = into_config_map("web");
    spec["guards"] = json!({ "maxShrinkPercent": 50 });
    world.listing("web", spec).await;
    world.is("web", "True", "Published").await;
    world.listers.remove("a").unwrap().stop().await;
    world.endpoints("web", &["10.0.0.1"]).await;
    world.start_lister("b").await;
    world.is("web", "False", "Held").await;
    assert_eq!(world.published("out", "index.html").await.unwrap().lines().count(), 4);
}

#[tokio::test]
async fn a_service_that_is_not_there_is_told_from_one_that_is_empty() {
    let world = World::start().await;
    world.listing("web", into_config_map("web")).await;
    let message = world.is("web", "False", "ServiceNotFound").await;
    assert!(message.contains("\"web\""), "{message}");
    world.service("web").await;
    world.is("web", "False", "Held").await;
    world.endpoints("web", &["10.0.0.1"]).await;
    world.says("out", &lines(&["10.0.0.1"])).await;
}

#[tokio::test]
async fn a_broken_template_keeps_the_last_good_page_and_says_where_it_is_broken() {
    let world = World::start().await;
    world.endpoints("web", &["10.0.0.1"]).await;
    world.listing("web", into_config_map("web")).await;
    world.is("web", "True", "Published").await;
    for (broken, word) in [
        ("one\n{% for x in endpoints %}", "line"),
        ("{{ endpoint.adress }}", "endpoint"),
        ("{{ range .Items }}{{ .Name }}{{ end }}", "Go's template syntax"),
        ("{{ 'x' * 1000000000 }}", "only numbers can be multiplied"),
    ] {
        world.patch_listing("web", json!({ "spec": { "template": { "inline": broken } } })).await;
        perennial_testkit::eventually(crate::world::SOON, word, || async {
            let status = world.status("web").await;
            let ready = status.conditions.into_iter().find(|one| one.kind == "Ready");
            match ready {
                Some(ready) if ready.reason == "TemplateBroken" && ready.message.contains(word) => {
                    Ok(Some(()))
                }
                other => Err(anyhow::anyhow!("{other:?}")),
            }
        })
        .await
        .unwrap();
        assert_eq!(world.published("out", "index.html").await, Some(lines(&["10.0.0.1"])));
    }
    world.told("TemplateBroken").await;
    world.patch_listing("web", json!({ "spec": { "template": { "inline": "{{ count }}" } } })).await;
    world.says("out", "1").await;
}

#[tokio::test]
async fn what_the_schema_lets_pass_is_refused_by_name() {
    let world = World::start().await;
    world.endpoints("web", &["10.0.0.1"]).await;
    let mut spec = into_config_map("web");
    spec["pace"] = json!({ "min": "soon", "max": "10s" });
    world.listing("web", spec).await;
    let message = world.is("web", "False", "InvalidSpec").await;
    assert!(message.contains("spec.pace.min") && message.contains("soon"), "{message}");
    world.patch_listing("web", json!({ "spec": { "pace": { "min": "100ms" } } })).await;
    world.says("out", &lines(&["10.0.0.1"])).await;
    world.is("web", "True", "Published").await;
}

#[tokio::test]
async fn a_config_map_of_somebody_else_is_not_touched_and_stops_no_other_destination() {
    let world = World::start().await;
    world.config_map("theirs", "index.html", "ours").await;
    world.endpoints("web", &["10.0.0.1"]).await;
    let mut spec = into_config_map("web");
    spec["destinations"] = json!([
        { "name": "theirs", "configMap": { "name": "theirs" } },
        { "name": "out", "configMap": { "name": "out" } },
    ]);
    world.listing("web", spec).await;
    world.says("out", &lines(&["10.0.0.1"])).await;
    let message = world.is("web", "False", "DestinationFailing").await;
    assert!(message.starts_with("theirs: "), "{message}");
    assert_eq!(world.published("theirs", "index.html").await.as_deref(), Some("ours"));
    let status = world.status("web").await;
    let reasons: Vec<bool> = status.destinations.iter().map(|one| one.reason.is_some()).collect();
    assert_eq!(reasons, [true, false], "{status:?}");
}

#[tokio::test]
async fn a_page_that_a_hand_changed_or_removed_is_put_right() {
    let world = World::start().await;
    world.endpoints("web", &["10.0.0.1"]).await;
    world.listing("web", into_config_map("web")).await;
    world.says("out", &lines(&["10.0.0.1"])).await;
    let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> =
        kube::Api::namespaced(world.client(), &world.namespace);
    maps.delete("out", &kube::api::DeleteParams::default()).await.unwrap();
    world.says("out", &lines(&["10.0.0.1"])).await;
}
