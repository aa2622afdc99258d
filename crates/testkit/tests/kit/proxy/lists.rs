//! What goes wrong with lists, in one answer and as a stream.

use kube::{
    Error,
    api::{ListParams, VersionMatch},
};
use perennial_testkit::proxy::{Fault, Matcher};

use super::world::{World, raw, until};

fn lists() -> Matcher {
    Matcher::lists("configmaps")
}

fn added(names: &[String]) -> Vec<String> {
    names.iter().map(|name| format!("ADDED {name}")).collect()
}

#[tokio::test]
async fn a_stale_list_is_what_it_was_and_a_stale_stream_goes_on_from_there() {
    let world = World::new().await;
    world.create("a").await;
    let then = world.version().await;
    world.create("b").await;
    let now = world.version().await;
    let _stale = world.proxy.inject(lists(), Fault::Stale(then));
    let list = world.through.list(&ListParams::default()).await.unwrap();
    assert_eq!(list.metadata.resource_version, Some(then.to_string()));
    assert_eq!(world.names().await.unwrap(), ["a"]);
    let exactly = ListParams::default().at(&now.to_string()).matching(VersionMatch::Exact);
    assert_eq!(world.through.list(&exactly).await.unwrap().items.len(), 2);
    let mut watch = world.watch().await;
    assert_eq!(watch.list().await, ["ADDED a"]);
    assert_eq!(watch.next().await, "ADDED b");
    world.create("c").await;
    assert_eq!(watch.next().await, "ADDED c");
}

#[tokio::test]
async fn a_stale_stream_that_is_held_stays_in_the_past() {
    let world = World::new().await;
    world.create("a").await;
    let then = world.version().await;
    world.create("b").await;
    let _stale = world.proxy.inject(lists(), Fault::Stale(then));
    let hold = world.proxy.inject(Matcher::watches("configmaps").named("b"), Fault::Hold);
    let mut watch = world.watch().await;
    assert_eq!(watch.list().await, ["ADDED a"]);
    until("it is held", || hold.met() == 1).await;
    assert!(watch.is_silent());
    hold.lift();
    assert_eq!(watch.next().await, "ADDED b");
}

#[tokio::test]
async fn a_list_is_empty() {
    let world = World::new().await;
    world.create("a").await;
    let _empty = world.proxy.inject(lists(), Fault::Empty.times(2));
    let list = world.through.list(&ListParams::default()).await.unwrap();
    assert!(list.items.is_empty());
    assert!(list.metadata.resource_version.is_some());
    let mut watch = world.watching().await;
    world.create("b").await;
    assert_eq!(watch.next().await, "ADDED b");
    assert_eq!(world.names().await.unwrap(), ["a", "b"]);
}

#[tokio::test]
async fn a_list_is_thin() {
    let world = World::new().await;
    let mut all = Vec::new();
    for index in 10..50 {
        all.push(format!("c{index}"));
        world.create(&format!("c{index}")).await;
    }
    let thin = world.proxy.inject(lists(), Fault::Thin(0.5));
    let some = world.names().await.unwrap();
    assert!(!some.is_empty() && some.len() < all.len(), "{some:?}");
    let streamed = world.watch().await.list().await;
    assert!(!streamed.is_empty() && streamed.len() < all.len(), "{streamed:?}");
    drop(thin);
    assert_eq!(world.watch().await.list().await, added(&all));
    assert_eq!(world.names().await.unwrap(), all);
}

#[tokio::test]
async fn a_list_breaks_in_the_middle() {
    let world = World::new().await;
    world.create("a").await;
    let _break = world.proxy.inject(lists(), Fault::Break.times(3));
    assert!(matches!(world.names().await, Err(Error::Service(_) | Error::HyperError(_))));
    let mut watch = world.watch().await;
    assert_eq!(watch.take(2).await, ["ADDED a", "END"]);
    let streamed = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    assert_eq!(raw(&world, &format!("{streamed}&timeoutSeconds=1")).await, None);
    assert!(raw(&world, &format!("{streamed}&timeoutSeconds=1")).await.is_some());
    assert_eq!(world.names().await.unwrap(), ["a"]);
}

#[tokio::test]
async fn a_list_is_edited() {
    let world = World::new().await;
    world.create("a").await;
    world.create("b").await;
    let hide = |item: serde_json::Value| {
        let hidden = item["metadata"]["name"] == "a" || item["object"]["metadata"]["name"] == "a";
        Some(if hidden { vec![] } else { vec![item] })
    };
    let _hide = world.proxy.inject(lists(), Fault::edit(hide));
    assert_eq!(world.names().await.unwrap(), ["b"]);
    assert_eq!(world.watch().await.list().await, ["ADDED b"]);
}
