//! Streams that break, lag or lie: nothing is published before the first complete list, and nothing is taken from a
//! page because a watch broke.

use http::StatusCode;
use perennial_testkit::eventually;
use perennial_testkit::proxy::{Fault, Matcher, Proxy};

use serde_json::json;

use crate::world::{SOON, World, into_config_map, journal, lines};

async fn through_a_proxy() -> (World, Proxy) {
    let mut world = World::without_lister().await;
    let proxy = Proxy::start(world.kubeconfig()).await.unwrap();
    let kubeconfig = proxy.kubeconfig().to_owned();
    world.start_lister_through("a", &kubeconfig).await;
    (world, proxy)
}

#[tokio::test]
async fn nothing_is_published_before_the_first_list_is_complete() {
    let (world, proxy) = through_a_proxy().await;
    let of_web = || Matcher::on("endpointslices").query("name%3Dweb");
    let hang = proxy.inject(of_web(), Fault::Hang);
    world.service("web").await;
    world.endpoints("web", &["10.0.0.1"]).await;
    let mut unguarded = into_config_map("web");
    unguarded["guards"] = json!({ "minEndpoints": 0 });
    world.listing("web", unguarded).await;
    world.is("web", "Unknown", "Starting").await;
    eventually(SOON, "its slices are asked for", || async { Ok((hang.met() > 0).then_some(())) })
        .await
        .unwrap();
    // One that comes after it goes all the way meanwhile.
    world.endpoints("api", &["10.0.0.9"]).await;
    let mut after = into_config_map("api");
    after["destinations"][0]["configMap"]["name"] = json!("other");
    world.listing("api", after).await;
    world.is("api", "True", "Published").await;
    let path = format!("/listings/{}/web", world.namespace);
    assert_eq!(world.listers["a"].get(&path).await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(world.published("out", "index.html").await, None);
    hang.lift();
    proxy.cut(&of_web());
    world.says("out", &lines(&["10.0.0.1"])).await;
}

#[tokio::test]
async fn a_watch_that_breaks_and_lists_that_fail_take_nothing_from_a_page() {
    let (world, proxy) = through_a_proxy().await;
    world.endpoints("web", &["10.0.0.1"]).await;
    world.listing("web", into_config_map("web")).await;
    world.is("web", "True", "Published").await;
    let refuse = proxy.inject(Matcher::on("endpointslices"), Fault::Refuse(500));
    proxy.cut(&Matcher::on("endpointslices"));
    eventually(SOON, "it asks again and again", || async { Ok((refuse.met() > 3).then_some(())) })
        .await
        .unwrap();
    assert_eq!(world.published("out", "index.html").await, Some(lines(&["10.0.0.1"])));
    world.endpoints("web", &["10.0.0.2"]).await;
    refuse.lift();
    world.says("out", &lines(&["10.0.0.2"])).await;
}

#[tokio::test]
async fn history_that_is_gone_is_listed_anew_without_a_gap() {
    let (world, proxy) = through_a_proxy().await;
    world.endpoints("web", &["10.0.0.1"]).await;
    world.listing("web", into_config_map("web")).await;
    world.is("web", "True", "Published").await;
    let expire = proxy.inject(Matcher::watches("endpointslices"), Fault::Expire.once());
    proxy.cut(&Matcher::watches("endpointslices"));
    eventually(SOON, "its history is gone", || async { Ok((expire.met() > 0).then_some(())) }).await.unwrap();
    world.endpoints("web", &["10.0.0.2"]).await;
    world.says("out", &lines(&["10.0.0.2"])).await;
}

#[tokio::test]
async fn a_lost_reply_to_a_write_is_found_out() {
    let (world, proxy) = through_a_proxy().await;
    let lose = proxy.inject(Matcher::on("configmaps").named("out"), Fault::LoseReply.times(2));
    world.endpoints("web", &["10.0.0.1"]).await;
    world.listing("web", into_config_map("web")).await;
    world.says("out", &lines(&["10.0.0.1"])).await;
    world.is("web", "True", "Published").await;
    drop(lose);
    world.endpoints("web", &["10.0.0.2"]).await;
    world.says("out", &lines(&["10.0.0.2"])).await;
}

#[tokio::test]
async fn a_list_that_lacks_a_listing_does_not_end_it() {
    let (world, proxy) = through_a_proxy().await;
    world.endpoints("web", &["10.0.0.1"]).await;
    world.listing("web", into_config_map("web")).await;
    world.is("web", "True", "Published").await;
    let empty = proxy.inject(Matcher::on("listings").no_query("fieldSelector"), Fault::Empty);
    let expire =
        proxy.inject(Matcher::watches("listings").no_query("sendInitialEvents"), Fault::Expire.once());
    proxy.cut(&Matcher::watches("listings"));
    eventually(SOON, "it lists anew", || async { Ok((expire.met() > 0 && empty.met() > 0).then_some(())) })
        .await
        .unwrap();
    world.endpoints("web", &["10.0.0.2"]).await;
    world.says("out", &lines(&["10.0.0.2"])).await;
    world.serves("a", "web", &lines(&["10.0.0.2"])).await;
}

#[tokio::test]
async fn a_page_on_its_way_to_one_place_is_not_taken_for_that_of_the_next() {
    let (world, proxy) = through_a_proxy().await;
    world.endpoints("web", &["10.0.0.1"]).await;
    world.endpoints("api", &["10.0.0.9"]).await;
    world.listing("web", into_config_map("web")).await;
    world.is("web", "True", "Published").await;
    let journal = journal(&world, "other");
    let slow = Fault::DelayReply(std::time::Duration::from_secs(2));
    let slow = proxy.inject(Matcher::writes().named("out"), slow);
    world.endpoints("web", &["10.0.0.2"]).await;
    eventually(SOON, "a page is on its way", || async { Ok((slow.met() > 0).then_some(())) }).await.unwrap();
    let elsewhere = json!([{ "name": "out", "configMap": { "name": "other" } }]);
    world.patch_listing("web", json!({ "spec": { "service": "api", "destinations": elsewhere } })).await;
    world.says("other", &lines(&["10.0.0.9"])).await;
    eventually(SOON, "the slow answer is here", || async { Ok((proxy.waiting() == 0).then_some(())) })
        .await
        .unwrap();
    world.endpoints("api", &["10.0.0.8"]).await;
    world.says("other", &lines(&["10.0.0.8"])).await;
    world.is("web", "True", "Published").await;
    assert_eq!(world.published("out", "index.html").await, Some(lines(&["10.0.0.2"])));
    let seen = journal.lock().unwrap().clone();
    assert_eq!(seen, [lines(&["10.0.0.9"]), lines(&["10.0.0.8"])], "of the other Service alone");
}

#[tokio::test]
async fn a_page_of_another_history_is_replaced() {
    let world = World::start().await;
    world.endpoints("web", &["10.0.0.1"]).await;
    world.listing("web", into_config_map("web")).await;
    world.is("web", "True", "Published").await;
    world.comes_from_the_future("out").await;
    world.endpoints("web", &["10.0.0.2"]).await;
    world.says("out", &lines(&["10.0.0.2"])).await;
}
