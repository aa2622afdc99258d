//! Events of a watch that cannot be read, or that not every client can.

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request};
use kube::Client;
use kube::api::{Patch, PatchParams};
use kube::client::Body;
use perennial_core::record::State;
use serde_json::{Value, json};

use crate::wire::{Bend, Call, Wire};
use crate::world::{World, pairs};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

async fn send(client: &Client, method: Method, node: &str, body: Vec<u8>) -> Vec<u8> {
    let request = Request::builder().method(method).uri(format!("/api/v1/nodes/{node}"));
    let request = request.header(ACCEPT, PROTOBUF).header(CONTENT_TYPE, PROTOBUF);
    let answer = client.send(request.body(Body::from(body)).unwrap()).await.unwrap();
    assert!(answer.status().is_success(), "{answer:?}");
    answer.into_body().collect_bytes().await.unwrap().to_vec()
}

/// Writes two bytes that are not UTF-8 into an annotation of this node, as its own kubelet.
async fn write_bytes_as_kubelet(world: &World, node: &str) {
    let marker = "##the-bytes-go-here##";
    world.annotate(node, "example.com/note", Some(marker)).await;
    let kubelet = world.plane.kubelet(node).unwrap();
    let mut object = send(&kubelet, Method::GET, node, Vec::new()).await;
    let at = object.windows(marker.len()).position(|bytes| bytes == marker.as_bytes()).unwrap();
    object[at..at + 2].copy_from_slice(b"\xff\xfe");
    send(&kubelet, Method::PUT, node, object).await;
}

#[tokio::test]
async fn a_node_with_an_annotation_that_is_not_utf8_is_followed_like_any_other() {
    let world = World::with_policy("rules: [{annotations: {include: [\"example.com/*\"]}}]").await;
    let node = "worker-1";
    world.register(node, &pairs([("trusted", "yes"), ("team", "blue")])).await;
    world.recorded(node, &pairs([("trusted", "yes"), ("team", "blue")])).await;
    write_bytes_as_kubelet(&world, node).await;
    let note = "\u{fffd}\u{fffd}the-bytes-go-here##";
    let read = |record: &perennial_core::record::Record| record.kept.annotations["example.com/note"] == note;
    world.record_becomes(node, "has the annotation as JSON shows it", read).await;

    // A JSON merge patch would make the bytes UTF-8.
    let patch = Patch::Strategic(json!({ "metadata": { "labels": { "trusted": null } } }));
    world.nodes().patch(node, &PatchParams::default(), &patch).await.unwrap();
    world.recorded(node, &pairs([("team", "blue")])).await;
    world.delete(node).await;
    let record = world.closed(node, &pairs([("team", "blue")])).await;
    assert_eq!(record.unproved, None);
    assert!(world.metric(r#"errors_total{kind="malformed"}"#) < 0.5);
    world.register(node, &pairs([])).await;
    world.labels_become(node, &pairs([("team", "blue")])).await;
}

/// Makes the events of this type about this node unreadable.
fn garbled(kind: &'static str, node: &'static str) -> Bend {
    Bend::edit(move |mut event: Value| {
        if event["type"] == kind && event["object"]["metadata"]["name"] == node {
            event["object"]["metadata"]["labels"] = json!("none");
        }
        Some(vec![event])
    })
}

#[tokio::test]
async fn a_change_whose_event_cannot_be_read_is_recorded_all_the_same() {
    let mut world = World::without_keeper("").await;
    let wire = world.interpose(Wire::before);
    wire.bend(Call::NodeList, 1, garbled("MODIFIED", "worker-1"));
    world.start_keeper().await;
    world.register("worker-1", &pairs([("team", "blue")])).await;
    world.recorded("worker-1", &pairs([("team", "blue")])).await;
    world.label("worker-1", "team", Some("green")).await;
    world.recorded("worker-1", &pairs([("team", "green")])).await;
    world.metric_reaches(r#"errors_total{kind="malformed"}"#, 1.0).await;
    assert!(world.metric("relists_total") < 0.5, "one object was read");
}

#[tokio::test]
async fn a_deletion_whose_event_cannot_be_read_is_recorded_all_the_same() {
    let mut world = World::without_keeper("").await;
    let wire = world.interpose(Wire::before);
    wire.bend(Call::NodeList, 1, garbled("DELETED", "worker-1"));
    world.start_keeper().await;
    world.register("worker-1", &pairs([("team", "blue")])).await;
    world.recorded("worker-1", &pairs([("team", "blue")])).await;
    world.label("worker-1", "team", Some("green")).await;
    world.delete("worker-1").await;
    let record = world.closed("worker-1", &pairs([("team", "green")])).await;
    assert_eq!((record.state, record.unproved), (State::Closed, None));
    world.metric_reaches("relists_total", 1.0).await;
}
