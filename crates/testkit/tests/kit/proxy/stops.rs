//! Standing still at a call.

use kube::api::PostParams;
use perennial_testkit::proxy::{Fault, Matcher, Moment, Verb};
use tokio::time::timeout;

use super::world::{SOON, World, config_map, until};

#[tokio::test]
async fn a_stop_before_the_request_breaks_or_goes_on() {
    let world = World::new().await;
    for (name, goes_on) in [("a", false), ("b", true)] {
        let stop = world.proxy.stop(Matcher::any(), 1, Moment::BeforeRequest);
        world.names().await.unwrap();
        let (created, ()) = tokio::join!(
            async { world.through.create(&PostParams::default(), &config_map(name)).await },
            async {
                let stopped = timeout(SOON, stop.reached()).await.unwrap().unwrap();
                assert_eq!(stopped.call().verb, Verb::Create);
                assert_eq!(stopped.call().index + 1, world.proxy.calls());
                assert_eq!(world.direct.get_opt(name).await.unwrap(), None);
                if goes_on {
                    stopped.go_on();
                }
            }
        );
        assert_eq!(created.is_ok(), goes_on);
        assert_eq!(world.direct.get_opt(name).await.unwrap().is_some(), goes_on);
    }
}

#[tokio::test]
async fn a_stop_before_the_reply_has_it_committed() {
    let world = World::new().await;
    for (name, goes_on) in [("a", false), ("b", true)] {
        let stop = world.proxy.stop(Matcher::writes(), 0, Moment::BeforeReply);
        world.names().await.unwrap();
        let (created, ()) = tokio::join!(
            async { world.through.create(&PostParams::default(), &config_map(name)).await },
            async {
                let stopped = timeout(SOON, stop.reached()).await.unwrap().unwrap();
                assert!(world.direct.get_opt(name).await.unwrap().is_some());
                if goes_on {
                    stopped.go_on();
                }
            }
        );
        assert_eq!(created.is_ok(), goes_on);
    }
}

#[tokio::test]
async fn whoever_comes_after_a_stop_waits_uncounted_and_shares_its_fate() {
    let world = World::new().await;
    for goes_on in [false, true] {
        let stop = world.proxy.stop(Matcher::any(), 0, Moment::BeforeRequest);
        let (first, second, ()) = tokio::join!(
            world.names(),
            async {
                let name = format!("after-{goes_on}");
                world.through.create(&PostParams::default(), &config_map(&name)).await
            },
            async {
                let stopped = timeout(SOON, stop.reached()).await.unwrap().unwrap();
                until("another one waits", || world.proxy.waiting() == 1).await;
                assert_eq!(stopped.call().index + 1, world.proxy.calls());
                if goes_on {
                    stopped.go_on();
                }
            }
        );
        assert_eq!((first.is_ok(), second.is_ok()), (goes_on, goes_on));
        let written = world.direct.get_opt(&format!("after-{goes_on}")).await.unwrap();
        assert_eq!(written.is_some(), goes_on);
    }
    // A stop that was never reached is taken back.
    drop(world.proxy.stop(Matcher::any(), 0, Moment::BeforeRequest));
    world.names().await.unwrap();
}

#[tokio::test]
async fn a_stop_that_its_call_cannot_reach_is_told() {
    let world = World::new().await;
    let cut = world.proxy.inject(Matcher::any(), Fault::Cut.once());
    let stop = world.proxy.stop(Matcher::any(), 0, Moment::BeforeReply);
    assert!(world.names().await.is_err());
    assert!(timeout(SOON, stop.reached()).await.unwrap().is_err());
    assert_eq!(cut.met(), 1);
    world.names().await.unwrap();
}

#[tokio::test]
async fn the_journal_has_every_call() {
    let world = World::new().await;
    world.names().await.unwrap();
    world.through.create(&PostParams::default(), &config_map("a")).await.unwrap();
    world.through.get_opt("b").await.unwrap();
    let journal = world.proxy.journal();
    let told: Vec<_> = journal
        .iter()
        .map(|entry| (entry.call.index, entry.call.verb, entry.call.name.as_deref(), entry.server))
        .collect();
    assert_eq!(
        told,
        [
            (0, Verb::List, None, Some(200)),
            (1, Verb::Create, None, Some(201)),
            (2, Verb::Get, Some("b"), Some(404)),
        ]
    );
    assert!(journal.iter().all(|entry| entry.call.resource == "configmaps"));
    assert_eq!(world.proxy.calls(), 3);
}

#[tokio::test]
async fn a_stream_is_followed_from_the_end_of_its_list_until_it_breaks() {
    let world = World::new().await;
    assert!(!world.proxy.follows("configmaps"));
    let watch = world.watching().await;
    assert!(world.proxy.follows("configmaps") && !world.proxy.follows("nodes"));
    world.proxy.cut(&Matcher::streams());
    until("the stream is over", || !world.proxy.follows("configmaps")).await;
    drop(watch);
}
