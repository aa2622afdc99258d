//! A server that does not stream lists.

use perennial_testkit::proxy::{Fault, Matcher, Proxy, Verb};
use perennial_testkit::{ControlPlane, Fleet};
use serde_json::json;

use crate::fleet::{all_recorded, all_restored};
use crate::world::{World, connect, pairs};

/// More than one page of nodes, and of records.
const NODES: usize = 600;

#[tokio::test(flavor = "multi_thread")]
async fn where_lists_are_not_streamed_they_are_read_in_pages() {
    let flag = "--feature-gates=WatchList=false";
    let plane = ControlPlane::builder().apiserver_flag(flag).start().await.unwrap();
    let mut world = World::on(plane, "").await;
    let fleet = Fleet::new(world.plane.admin());
    fleet.create(0..NODES).await.unwrap();
    world.start_keeper().await;
    all_recorded(&world, NODES).await;
    world.crash_keeper().await;
    fleet.recreate(0..NODES).await.unwrap();
    world.start_keeper().await;
    all_recorded(&world, NODES).await;
    all_restored(&world.plane, NODES).await;

    let asked = world.plane.audit().unwrap();
    let pages = |resource: &str| {
        let listed = asked.iter().filter(|entry| entry.verb == "list" && entry.resource == resource);
        listed.filter(|entry| entry.uri.contains("limit=500") && entry.uri.contains("continue=")).count()
    };
    assert!(pages("nodes") >= 2, "both starts read a second page of nodes");
    assert!(pages("configmaps") >= 1, "the second start read a second page of records");
    assert!(world.patches().values().all(|times| *times == 1), "given once");
}

/// As kube-apiserver 1.34 and later does it over an etcd older than 3.5.13.
#[tokio::test]
async fn where_streamed_lists_end_with_an_error_event_they_are_read_in_pages() {
    let mut world = World::without_keeper("").await;
    let proxy = Proxy::start(world.kubeconfig()).await.unwrap();
    let error = json!({ "type": "ERROR", "object": {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "InternalError", "code": 500,
        "message": "a watch stream was requested by the client but the required storage feature \
                    RequestWatchProgress is disabled",
    } });
    let old = Fault::edit(move |_| Some(vec![error.clone()]));
    let refuses = proxy.inject(Matcher::any().verbs([Verb::ListWatch]), old);
    let account = connect(proxy.kubeconfig()).await;
    world.interpose(|_| (account, ()));
    world.register("worker-1", &pairs([("team", "blue")])).await;
    world.start_keeper().await;
    world.recorded("worker-1", &pairs([("team", "blue")])).await;
    world.label("worker-1", "team", Some("green")).await;
    world.delete("worker-1").await;
    world.closed("worker-1", &pairs([("team", "green")])).await;

    // The next list is tried as a stream again.
    let (met, expires) = (refuses.met(), proxy.inject(Matcher::watches("nodes"), Fault::Expire.once()));
    world.metric_reaches("relists_total", 1.0).await;
    drop(expires);
    world.register("worker-1", &pairs([])).await;
    world.labels_become("worker-1", &pairs([("team", "green")])).await;
    assert!(refuses.met() > met);
}
