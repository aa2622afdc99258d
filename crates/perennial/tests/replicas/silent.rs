//! Watches on which nothing comes any more though nobody closed them, as those of a server that is frozen.

use perennial_testkit::proxy::{Fault, Matcher};
use perennial_testkit::{KeeperProcess, eventually};

use crate::world::{SOON, World, connect, pairs};

#[tokio::test]
async fn watches_that_fall_silent_while_others_work_are_left_within_seconds() {
    let mut world = World::without_keeper("").await;
    let proxy = world.proxy().await;
    let account = connect(proxy.kubeconfig()).await;
    world.interpose(|_| (account, ()));
    world.start_keeper().await;
    for node in ["changes", "returns"] {
        world.register(node, &pairs([("team", "blue")])).await;
    }
    world.caught_up().await;

    let until_now = proxy.calls();
    let silent = Matcher::streams().when(move |call| call.index < until_now);
    let silence = proxy.inject(silent, Fault::Hold);
    world.label("changes", "team", Some("green")).await;
    world.label("returns", "team", Some("green")).await;
    world.delete("returns").await;
    world.register("returns", &pairs([])).await;
    world.recorded("changes", &pairs([("team", "green")])).await;
    world.labels_become("returns", &pairs([("team", "green")])).await;
    assert!(silence.met() > 0, "the open watches were to tell something");
    assert!(world.metric("relists_total") < 0.5, "nothing was listed anew");
    world.caught_up().await;
    assert_eq!(world.patches_of("returns"), 1);
}

/// The ages of all that a replica follows, as it says itself.
async fn ages(keeper: &KeeperProcess) -> [f64; 3] {
    let metrics = keeper.metrics().await.unwrap();
    ["nodes", "records", "leases"]
        .map(|kind| metrics[&format!("perennial_view_age_seconds{{kind=\"{kind}\"}}")])
}

#[tokio::test]
async fn a_replica_is_not_ready_while_the_api_server_is_frozen() {
    let world = World::alone("").await;
    let proxy = world.proxy().await;
    let keeper = world.process(&proxy, "a").start().await.unwrap();
    keeper.ready(SOON).await.unwrap();
    let young = ages(&keeper).await;
    assert!(young.iter().all(|age| *age < 30.0), "{young:?}");
    world.plane.pause_apiserver().await.unwrap();
    eventually(SOON, "it says that it knows nothing new", || async {
        Ok(keeper.get("/readyz").await.is_err().then_some(()))
    })
    .await
    .unwrap();
    let old = ages(&keeper).await;
    assert!(old.iter().any(|age| *age >= 30.0), "{old:?}");
    world.plane.resume_apiserver().await.unwrap();
    keeper.ready(SOON).await.unwrap();
    world.register("worker-1", &pairs([("team", "blue")])).await;
    world.recorded("worker-1", &pairs([("team", "blue")])).await;
}
