//! What goes wrong with the events of a stream.

use futures::{FutureExt, StreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api,
    api::{DeleteParams, PostParams, WatchParams},
};
use perennial_testkit::proxy::{Fault, Matcher};

use super::world::{HOUR, Watch, World, named, until};

fn watches() -> Matcher {
    Matcher::watches("configmaps")
}

#[tokio::test]
async fn events_are_dropped_and_duplicated() {
    let world = World::new().await;
    let mut watch = world.watching().await;
    let drops = world.proxy.inject(watches().named("b"), Fault::Drop);
    for name in ["a", "b", "c"] {
        world.create(name).await;
    }
    assert_eq!(watch.take(2).await, ["ADDED a", "ADDED c"]);
    assert_eq!(drops.met(), 1);
    drop(drops);
    let _twice = world.proxy.inject(watches().event("MODIFIED"), Fault::Duplicate.once());
    world.set("a", "1").await;
    world.set("a", "2").await;
    assert_eq!(watch.take(3).await, ["MODIFIED a=1", "MODIFIED a=1", "MODIFIED a=2"]);
}

#[tokio::test]
async fn events_are_swapped() {
    let world = World::new().await;
    let mut watch = world.watching().await;
    let swap = world.proxy.inject(watches(), Fault::Swap.once());
    world.create("a").await;
    until("one is kept back", || swap.met() == 1).await;
    assert!(watch.is_silent());
    world.create("b").await;
    assert_eq!(watch.take(2).await, ["ADDED b", "ADDED a"]);
}

#[tokio::test]
async fn held_events_come_in_order_when_the_fault_is_lifted() {
    let world = World::new().await;
    for fault in [Fault::Hold, Fault::Lag(HOUR)] {
        let mut watch = world.watch().await;
        watch.list().await;
        let hold = world.proxy.inject(watches(), fault);
        world.create("a").await;
        world.set("a", "1").await;
        world.direct.delete("a", &DeleteParams::default()).await.unwrap();
        until("they are held", || hold.met() >= 3).await;
        assert!(watch.is_silent());
        hold.lift();
        assert_eq!(watch.take(3).await, ["ADDED a", "MODIFIED a=1", "DELETED a=1"]);
    }
}

#[tokio::test]
async fn items_of_a_streamed_list_may_be_spared() {
    let world = World::new().await;
    world.create("a").await;
    let mut one = world.watch().await;
    assert!(one.list().await.contains(&"ADDED a".to_owned()));
    let _news = world.proxy.inject(watches().news(), Fault::Duplicate);
    let mut watch = world.watch().await;
    assert_eq!(watch.list().await, ["ADDED a"]);
    world.create("b").await;
    assert_eq!(watch.take(2).await, ["ADDED b", "ADDED b"]);
    let _all = world.proxy.inject(watches().named("a"), Fault::Drop);
    assert_eq!(world.watch().await.list().await, ["ADDED b"]);
}

#[tokio::test]
async fn one_resource_lags_while_another_does_not() {
    let world = World::new().await;
    let leases: Api<Lease> = Api::namespaced(world.client(), &world.namespace);
    let mut records = world.watching().await;
    let hold = world.proxy.inject(Matcher::watches("leases"), Fault::Hold);
    let lagging = leases.watch(&WatchParams::default(), "0").await.unwrap();
    let mut lagging = std::pin::pin!(lagging);
    let lease = Lease { metadata: named("a"), ..Lease::default() };
    leases.create(&PostParams::default(), &lease).await.unwrap();
    until("it is held", || hold.met() >= 1).await;
    world.create("a").await;
    assert_eq!(records.next().await, "ADDED a");
    assert!(lagging.next().now_or_never().is_none());
    hold.lift();
    assert!(lagging.next().await.unwrap().is_ok());
}

#[tokio::test]
async fn an_earlier_event_comes_again() {
    let world = World::new().await;
    let mut watch = world.watching().await;
    world.create("a").await;
    assert_eq!(watch.next().await, "ADDED a");
    let _again = world.proxy.inject(watches(), Fault::Replay.once());
    world.set("a", "1").await;
    world.set("a", "2").await;
    assert_eq!(watch.take(3).await, ["MODIFIED a=1", "ADDED a", "MODIFIED a=2"]);
}

#[tokio::test]
async fn history_expires_in_open_and_in_new_streams() {
    let world = World::new().await;
    let mut watch = world.watching().await;
    let expire = world.proxy.inject(watches(), Fault::Expire.times(2));
    assert_eq!(watch.take(2).await, ["ERROR 410", "END"]);
    let version = world.version().await.to_string();
    let mut watch = Watch::start(&world.through, &WatchParams::default(), &version).await;
    assert_eq!(watch.take(2).await, ["ERROR 410", "END"]);
    assert_eq!(expire.met(), 2);
    let _refuse = world.proxy.inject(watches(), Fault::Refuse(410).once());
    match world.through.watch(&WatchParams::default(), &version).await.map(drop) {
        Err(kube::Error::Api(status)) => assert_eq!(status.code, 410),
        other => panic!("{other:?}"),
    }
    world.watching().await;
}

#[tokio::test]
async fn events_are_edited() {
    let world = World::new().await;
    let mut watch = world.watching().await;
    let edit = Fault::edit(|mut event| {
        if event["object"]["metadata"]["name"] == "last" {
            return None;
        }
        event["object"]["data"]["is"] = "edited".into();
        Some(vec![event])
    });
    let _edit = world.proxy.inject(watches(), edit);
    world.create("a").await;
    world.create("last").await;
    assert_eq!(watch.take(2).await, ["ADDED a=edited", "END"]);
}

#[tokio::test]
async fn a_watch_breaks_in_the_middle_of_an_event() {
    let world = World::new().await;
    let version = world.version().await.to_string();
    let _break = world.proxy.inject(watches(), Fault::Break.once());
    let mut watch = Watch::start(&world.through, &WatchParams::default(), &version).await;
    world.create("a").await;
    assert_eq!(watch.next().await, "END");
    let mut watch = Watch::start(&world.through, &WatchParams::default(), &version).await;
    assert_eq!(watch.next().await, "ADDED a");
}

#[tokio::test]
async fn streams_end_with_the_proxy() {
    let world = World::new().await;
    let mut watch = world.watching().await;
    drop(world.proxy);
    assert_eq!(watch.next().await, "END");
    assert!(world.through.get_opt("a").await.is_err());
}
