//! Strict mode: a node is deleted once what is kept of it is recorded.

use kube::api::DeleteParams;
use perennial_testkit::eventually;
use perennial_testkit::proxy::{Fault, Matcher, Proxy, Verb};
use serde_json::{Value, json};

use crate::world::{SOON, World, connect, pairs};

/// A cluster of its own: what is left behind by a test that fails keeps others from deleting nodes.
async fn strict() -> (World, Proxy, crate::hook::Hook) {
    let mut world = World::alone("").await;
    let proxy = Proxy::start(world.kubeconfig()).await.unwrap();
    let through = connect(proxy.kubeconfig()).await;
    world.interpose(|_| (through, ()));
    let hook = world.start_with_strict_hook().await;
    (world, proxy, hook)
}

#[tokio::test]
async fn a_node_is_deleted_once_it_is_recorded_and_not_before() {
    let (world, proxy, hook) = strict().await;
    let (old, new) = (pairs([("team", "blue")]), pairs([("team", "red")]));
    world.register("worker-1", &old).await;
    world.recorded("worker-1", &old).await;
    let held = proxy.inject(Matcher::on("configmaps").verbs([Verb::Create, Verb::Update]), Fault::Hang);
    world.label("worker-1", "team", Some("red")).await;
    let nodes = world.nodes();
    let deleting = tokio::spawn(async move { nodes.delete("worker-1", &DeleteParams::default()).await });
    // The change is on its way to the record, and goes no further.
    eventually(SOON, "the record is about to be written", || async {
        Ok((world.metric("inflight") > 0.0).then_some(()))
    })
    .await
    .unwrap();
    assert!(world.nodes().get_opt("worker-1").await.unwrap().is_some());
    drop(held);
    deleting.await.unwrap().unwrap();
    world.recorded("worker-1", &new).await;
    assert!(hook.metric("deaths_total{kind=\"recorded\"}") >= 1.0);
}

#[tokio::test]
async fn where_it_cannot_be_recorded_it_is_not_deleted_unless_somebody_breaks_the_glass() {
    let (world, proxy, _hook) = strict().await;
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    let _held = proxy.inject(Matcher::on("configmaps").verbs([Verb::Create, Verb::Update]), Fault::Hang);
    world.label("worker-1", "team", Some("red")).await;
    let refused = world.nodes().delete("worker-1", &DeleteParams::default()).await.unwrap_err();
    let kube::Error::Api(status) = refused else { panic!("{refused}") };
    assert!(status.message.contains("kubectl annotate node worker-1"), "{}", status.message);
    let dry = DeleteParams { dry_run: true, ..DeleteParams::default() };
    world.nodes().delete("worker-1", &dry).await.unwrap();
    assert!(world.nodes().get_opt("worker-1").await.unwrap().is_some());
    world.annotate("worker-1", "perennial.dev/delete-unrecorded", Some("true")).await;
    world.delete("worker-1").await;
}

#[tokio::test]
async fn where_nobody_answers_only_broken_glass_helps() {
    let (world, _proxy, hook) = strict().await;
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    drop(hook);
    assert!(world.nodes().delete("worker-1", &DeleteParams::default()).await.is_err());
    world.annotate("worker-1", "perennial.dev/delete-unrecorded", Some("true")).await;
    world.delete("worker-1").await;
    world.closed("worker-1", &labels).await;
}

#[tokio::test]
async fn what_passes_is_not_taken_for_an_end() {
    let (world, _proxy, _hook) = strict().await;
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.patch("worker-1", serde_json::json!({ "metadata": { "finalizers": ["example.com/wait"] } })).await;
    world.recorded("worker-1", &labels).await;
    // It passes, and stays: somebody else's finalizer holds it.
    world.delete("worker-1").await;
    world.label("worker-1", "later", Some("1")).await;
    let all = pairs([("team", "blue"), ("later", "1")]);
    let record = world.recorded("worker-1", &all).await;
    assert!(record.deleted_at.is_none(), "{record:?}");
    world.patch("worker-1", serde_json::json!({ "metadata": { "finalizers": null } })).await;
    world.closed("worker-1", &all).await;
}

#[tokio::test]
async fn nodes_of_which_nothing_is_kept_are_deleted_at_once() {
    let (world, _proxy, _hook) = strict().await;
    world.register("worker-1", &pairs([])).await;
    world.delete("worker-1").await;
    world.annotate("probe-of-the-webhook", "perennial.dev/pause", Some("true")).await;
    world.delete("probe-of-the-webhook").await;
}

#[tokio::test]
async fn what_somebody_says_of_a_node_in_a_question_is_not_believed() {
    let (world, _proxy, hook) = strict().await;
    let labels = pairs([("team", "blue")]);
    let node = world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    let mut forged = serde_json::to_value(&node).unwrap();
    forged["metadata"]["labels"]["team"] = json!("red");
    forged["metadata"]["resourceVersion"] = json!("999999999");
    let request = json!({
        "uid": "u",
        "operation": "DELETE",
        "resource": { "group": "", "version": "v1", "resource": "nodes" },
        "oldObject": forged,
    });
    let review =
        json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request });
    let (_, answer) = hook.call(&world).await.post("/gone", &review.to_string()).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["response"]["allowed"], true);
    // Whatever it was told, it goes on following the node.
    world.label("worker-1", "rack", Some("7")).await;
    let all = pairs([("team", "blue"), ("rack", "7")]);
    world.caught_up().await;
    assert_eq!(world.record("worker-1").await.unwrap().kept.labels, all);
}
