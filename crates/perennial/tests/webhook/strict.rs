//! Strict mode: a node is deleted once what is kept of it is recorded.

use std::sync::Arc;

use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::DeleteParams;
use perennial_testkit::eventually;
use perennial_testkit::proxy::{Fault, Matcher, Proxy, Verb};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};

use crate::hook::NAME;
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

/// Asks the webhook as the API server would, with whatever one likes.
async fn ask(world: &World, hook: &crate::hook::Hook, review: &Value) -> Value {
    let secrets: Api<Secret> = Api::namespaced(world.plane.admin(), world.namespace());
    let authorities = secrets.get(NAME).await.unwrap().data.unwrap().remove("ca.crt").unwrap().0;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&authorities).map(Result::unwrap));
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let https = HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http1().build();
    let client = Client::builder(TokioExecutor::new()).build(https);
    let request = Request::post(format!("https://{}/gone", hook.address))
        .body(Full::<bytes::Bytes>::from(review.to_string()));
    let answer = client.request(request.unwrap()).await.unwrap().into_body().collect().await.unwrap();
    serde_json::from_slice(&answer.to_bytes()).unwrap()
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
    assert_eq!(ask(&world, &hook, &review).await["response"]["allowed"], true);
    // Whatever it was told, it goes on following the node.
    world.label("worker-1", "rack", Some("7")).await;
    let all = pairs([("team", "blue"), ("rack", "7")]);
    world.caught_up().await;
    assert_eq!(world.record("worker-1").await.unwrap().kept.labels, all);
}
