//! What goes wrong with calls.

use std::time::Duration;

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Error,
    api::{ListParams, PostParams, WatchParams},
};
use perennial_testkit::{
    eventually,
    proxy::{Fault, Matcher, Proxy, Verb},
};
use tokio::runtime::Handle;

use super::world::{HOUR, SOON, Watch, World, config_map, plane, until};

fn configmaps() -> Matcher {
    Matcher::on("configmaps")
}

fn creates() -> Matcher {
    configmaps().verbs([Verb::Create])
}

async fn create(world: &World, name: &str) -> kube::Result<ConfigMap> {
    world.through.create(&PostParams::default(), &config_map(name)).await
}

async fn exists(world: &World, name: &str) -> bool {
    world.direct.get_opt(name).await.unwrap().is_some()
}

async fn until_it_exists(world: &World, name: &str) {
    let there = || async { Ok(world.direct.get_opt(name).await?) };
    eventually(SOON, "the request arrives", there).await.unwrap();
}

#[tokio::test]
async fn calls_are_refused_without_asking_the_api_server() {
    let world = World::new().await;
    for (code, reason) in [
        (409, "Conflict"),
        (429, "TooManyRequests"),
        (500, "InternalError"),
        (503, "ServiceUnavailable"),
        (410, "Expired"),
    ] {
        let _refuse = world.proxy.inject(creates(), Fault::Refuse(code).once());
        match create(&world, "a").await {
            Err(Error::Api(status)) => assert_eq!((status.code, status.reason.as_str()), (code, reason)),
            other => panic!("{other:?}"),
        }
        let entry = world.proxy.journal().pop().unwrap();
        assert_eq!((entry.server, entry.sender), (None, Some(code)));
    }
    assert!(!exists(&world, "a").await);
    create(&world, "a").await.unwrap();
}

#[tokio::test]
async fn throttling_tells_how_long_to_wait_and_a_dumb_proxy_speaks_no_kubernetes() {
    let world = World::new().await;
    world.proxy.inject(Matcher::lists("configmaps"), Fault::Throttle(429, 7).once()).keep();
    world.proxy.inject(Matcher::lists("configmaps"), Fault::Dumb(404).after(1)).keep();
    let ask = || async {
        let path = format!("/api/v1/namespaces/{}/configmaps", world.namespace);
        let request = http::Request::get(path).body(Vec::new().into()).unwrap();
        world.client().send(request).await.unwrap()
    };
    let throttled = ask().await;
    assert_eq!(throttled.status(), 429);
    assert_eq!(throttled.headers()["retry-after"], "7");
    let lost = ask().await;
    assert_eq!(lost.status(), 404);
    let body = lost.into_body().collect_bytes().await.unwrap();
    assert!(body.starts_with(b"<html>"), "{body:?}");
}

#[tokio::test]
async fn a_reply_is_lost_after_the_commit() {
    let world = World::new().await;
    let lose = world.proxy.inject(creates(), Fault::LoseReply.once());
    assert!(matches!(create(&world, "a").await, Err(Error::Service(_) | Error::HyperError(_))));
    assert!(exists(&world, "a").await);
    assert_eq!(lose.met(), 1);
    let entry = world.proxy.journal().pop().unwrap();
    assert_eq!((entry.server, entry.sender), (Some(201), None));
}

#[tokio::test]
async fn a_partition_cuts_what_is_open_and_what_is_new() {
    let world = World::new().await;
    let mut watch = world.watching().await;
    let partition = world.proxy.partition(&Matcher::any());
    assert_eq!(watch.next().await, "END");
    assert!(create(&world, "a").await.is_err());
    assert!(!exists(&world, "a").await);
    drop(partition);
    create(&world, "a").await.unwrap();
}

#[tokio::test]
async fn watches_alone_may_be_cut() {
    let world = World::new().await;
    let mut watch = world.watching().await;
    let _partition = world.proxy.partition(&Matcher::watches("configmaps"));
    assert_eq!(watch.next().await, "END");
    create(&world, "a").await.unwrap();
    assert!(world.names().await.unwrap().contains(&"a".to_owned()));
}

#[tokio::test]
async fn a_request_that_hangs_arrives_when_the_fault_is_lifted() {
    let world = World::new().await;
    for fault in [Fault::Hang, Fault::DelayRequest(HOUR)] {
        let name = format!("{fault:?}").to_lowercase().replace(['(', ')', '.'], "");
        let hang = world.proxy.inject(creates(), fault);
        let (created, ()) = tokio::join!(create(&world, &name), async {
            until("it hangs", || hang.met() == 1).await;
            assert!(!exists(&world, &name).await);
            hang.lift();
        });
        created.unwrap();
    }
}

#[tokio::test]
async fn a_late_request_arrives_though_its_sender_has_gone() {
    let world = World::new().await;
    let hang = world.proxy.inject(creates(), Fault::Hang);
    tokio::select! {
        created = create(&world, "a") => panic!("{created:?}"),
        () = until("it hangs", || hang.met() == 1) => {}
    }
    // Its connection is closed; another one tells that the proxy goes on.
    world.through.list(&ListParams::default()).await.unwrap();
    assert!(!exists(&world, "a").await);
    hang.lift();
    until_it_exists(&world, "a").await;
}

#[tokio::test]
async fn a_reply_that_hangs_comes_when_the_fault_is_lifted() {
    let world = World::new().await;
    for (name, fault) in [("a", Fault::HangReply), ("b", Fault::DelayReply(HOUR))] {
        let hang = world.proxy.inject(creates(), fault);
        let (created, ()) = tokio::join!(create(&world, name), async {
            until_it_exists(&world, name).await;
            assert_eq!(world.proxy.journal().pop().unwrap().sender, None);
            hang.lift();
        });
        created.unwrap();
    }
}

#[tokio::test]
async fn what_hangs_can_be_cut() {
    let world = World::new().await;
    let hang = world.proxy.inject(creates(), Fault::Hang);
    let (created, ()) = tokio::join!(create(&world, "a"), async {
        until("it hangs", || hang.met() == 1).await;
        world.proxy.cut(&creates());
    });
    assert!(created.is_err());
    hang.lift();
    create(&world, "b").await.unwrap();
    assert!(!exists(&world, "a").await);
}

#[tokio::test]
async fn bytes_dribble() {
    let world = World::new().await;
    world.create("a").await;
    let slow = world.proxy.inject(configmaps(), Fault::Dribble(100, Duration::from_millis(1)));
    assert!(world.names().await.unwrap().contains(&"a".to_owned()));
    assert!(world.watch().await.list().await.contains(&"ADDED a".to_owned()));
    drop(slow);
    let stuck = world.proxy.inject(configmaps(), Fault::Dribble(100, HOUR));
    let (names, ()) = tokio::join!(world.names(), async {
        let told = || world.proxy.journal().pop().unwrap().sender == Some(200);
        until("the reply has begun", || stuck.met() == 1 && told()).await;
        stuck.lift();
    });
    assert!(names.unwrap().contains(&"a".to_owned()));
}

#[tokio::test]
async fn chance_follows_the_seed() {
    async fn luck(seed: u64) -> Vec<bool> {
        let world = World::seeded(seed).await;
        let _refuse = world.proxy.inject(configmaps(), Fault::Refuse(500).chance(0.5));
        let mut luck = Vec::new();
        for _ in 0..30 {
            luck.push(world.names().await.is_ok());
        }
        luck
    }
    let one = luck(1).await;
    assert!(one.contains(&true) && one.contains(&false));
    assert_eq!(luck(1).await, one);
    assert_ne!(luck(2).await, one);
}

/// Whatever happens on the way, the journal knows what the API server did.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_storm_of_faults_the_journal_tells_the_truth() {
    let world = World::seeded(3).await;
    let soon = Duration::from_millis(5);
    for fault in [
        Fault::DelayRequest(soon),
        Fault::DelayReply(soon),
        Fault::Cut,
        Fault::LoseReply,
        Fault::Refuse(500),
        Fault::Throttle(429, 1),
        Fault::Dribble(50, Duration::from_millis(1)),
        Fault::Break,
    ] {
        world.proxy.inject(creates(), fault.chance(0.15)).keep();
    }
    let creations = (0..200).map(|index| {
        let world = &world;
        async move { create(world, &format!("c{index}")).await.is_ok() }
    });
    let created = stream::iter(creations).buffer_unordered(20).collect::<Vec<bool>>().await;
    let journal = world.proxy.journal();
    assert_eq!(journal.len(), 200);
    let done = journal.iter().filter(|entry| entry.server == Some(201)).count();
    let told = journal.iter().filter(|entry| entry.sender == Some(201)).count();
    let there = world.direct.list(&ListParams::default()).await.unwrap();
    assert_eq!(there.items.len(), done);
    let known = created.iter().filter(|created| **created).count();
    assert!(0 < known && known < told && told < done && done < 200, "{known} {told} {done}");
}

#[tokio::test]
async fn nothing_is_left_of_a_proxy_that_is_dropped() {
    let world = World::new().await;
    world.create("a").await;
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let other = Proxy::start(&plane().await.1).await.unwrap();
    let through = Api::namespaced(other.client().unwrap(), &world.namespace);
    let hang = other.inject(creates(), Fault::Hang);
    let mut watch = Watch::start(&through, &WatchParams::default().initial_events(), "0").await;
    assert_eq!(watch.list().await, ["ADDED a"]);
    let _hold = other.inject(Matcher::streams(), Fault::Hold);
    let kubeconfig = other.kubeconfig().to_owned();
    tokio::select! {
        created = async { through.create(&PostParams::default(), &config_map("b")).await } => {
            panic!("{created:?}")
        }
        () = until("it hangs", || hang.met() == 1) => {}
    }
    assert!(tasks() > before);
    drop(other);
    assert_eq!(watch.next().await, "END");
    assert!(!kubeconfig.exists());
    drop((through, watch));
    until("its tasks have ended", || tasks() <= before).await;
    assert!(!exists(&world, "b").await);
}

#[tokio::test]
async fn faults_add_up_and_are_counted() {
    let world = World::new().await;
    let hang = world.proxy.inject(creates(), Fault::HangReply);
    let lose = world.proxy.inject(creates().named("nobody"), Fault::LoseReply);
    let lost = world.proxy.inject(Matcher::writes(), Fault::LoseReply.times(1));
    let (created, ()) = tokio::join!(create(&world, "a"), async {
        until_it_exists(&world, "a").await;
        hang.lift();
    });
    assert!(created.is_err());
    assert_eq!((lose.met(), lost.met()), (0, 1));
    create(&world, "b").await.unwrap();
}
