//! Annotations, taints and cordon: kept and given where the policy asks for them, and never where it does not.

use k8s_openapi::api::core::v1::{Node, Taint};
use perennial_core::record::State;
use serde_json::{Value, json};

use crate::world::{Labels, MARK, World, pairs};

const NODE: &str = "worker-1";

/// A node with one of everything.
fn full_node() -> Value {
    json!({
        "metadata": {
            "name": NODE,
            "labels": { "team": "blue" },
            "annotations": { "example.com/note": "left door", "flannel.alpha.coreos.com/public-ip": "10.0.0.1" },
        },
        "spec": {
            "unschedulable": true,
            "taints": [{ "key": "dedicated", "value": "gpu", "effect": "NoSchedule" }],
        },
    })
}

fn annotations(node: &Node) -> Labels {
    let mut annotations = node.metadata.annotations.clone().unwrap_or_default();
    annotations.remove(MARK);
    annotations
}

fn taints(node: &Node) -> Vec<Taint> {
    node.spec.clone().unwrap().taints.unwrap_or_default()
}

fn cordoned(node: &Node) -> bool {
    node.spec.as_ref().unwrap().unschedulable == Some(true)
}

impl World {
    /// The full node is recorded, dies, and is born again with what `newborn` says; returns it as it was born.
    async fn reborn(&self, newborn: Value) -> Node {
        self.create(full_node()).await;
        self.recorded(NODE, &pairs([("team", "blue")])).await;
        self.delete(NODE).await;
        self.closed(NODE, &pairs([("team", "blue")])).await;
        self.create(newborn).await
    }
}

#[tokio::test]
async fn annotations_come_back_where_the_policy_keeps_them() {
    let world = World::with_policy(r#"rules: [{annotations: {include: ["*"]}}]"#).await;
    world.reborn(json!({ "metadata": { "name": NODE, "annotations": { "own": "yes" } } })).await;

    let node = world.is_marked(NODE).await;
    assert_eq!(annotations(&node), pairs([("example.com/note", "left door"), ("own", "yes")]));
    assert!(!cordoned(&node));
    assert!(!taints(&node).iter().any(|taint| taint.key == "dedicated"));
}

#[tokio::test]
async fn taints_come_back_beside_those_of_others_which_stay_to_the_letter() {
    let world = World::with_policy("rules: [{taints: {include: [dedicated]}}]").await;
    let others = json!([
        { "key": "example.com/evict", "value": "soon", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z" },
        { "key": "dedicated", "value": "other", "effect": "PreferNoSchedule" },
    ]);
    let born = world.reborn(json!({ "metadata": { "name": NODE }, "spec": { "taints": others } })).await;

    let node = world.is_marked(NODE).await;
    let ours = Taint {
        key: "dedicated".to_owned(),
        value: Some("gpu".to_owned()),
        effect: "NoSchedule".to_owned(),
        time_added: None,
    };
    assert!(taints(&born).iter().any(|taint| taint.time_added.is_some()), "the test's own taint");
    assert_eq!(taints(&node), [taints(&born), vec![ours]].concat());
    assert_eq!(annotations(&node), pairs([]));
    assert!(!cordoned(&node));
}

#[tokio::test]
async fn a_taint_that_the_newborn_bears_keeps_its_value_unless_the_policy_overwrites() {
    let other = json!([{ "key": "dedicated", "value": "own", "effect": "NoSchedule" }]);
    for (merge, value) in [("missing", "own"), ("overwrite", "gpu")] {
        let world =
            World::with_policy(&format!("rules: [{{taints: {{include: [dedicated]}}, merge: {merge}}}]"))
                .await;
        let born = world.reborn(json!({ "metadata": { "name": NODE }, "spec": { "taints": other } })).await;
        let node = world.is_marked(NODE).await;
        let of = |node: &Node| taints(node).into_iter().find(|taint| taint.key == "dedicated").unwrap();
        assert_eq!(of(&node).value.as_deref(), Some(value), "{merge}");
        assert_eq!(taints(&node).len(), taints(&born).len());
    }
}

#[tokio::test]
async fn a_cordon_comes_back_where_the_policy_keeps_it() {
    let world = World::with_policy("rules: [{cordon: true}]").await;
    let born = world.reborn(json!({ "metadata": { "name": NODE } })).await;

    let node = world.is_marked(NODE).await;
    assert!(cordoned(&node));
    assert_eq!(taints(&node), taints(&born));
    assert_eq!(annotations(&node), pairs([]));
}

#[tokio::test]
async fn a_cordon_taken_back_is_taken_back_in_the_record() {
    let world = World::with_policy("rules: [{cordon: true}]").await;
    world.create(full_node()).await;
    world.record_becomes(NODE, "is cordoned", |record| record.kept.unschedulable).await;

    world.patch(NODE, json!({ "spec": { "unschedulable": null } })).await;
    world.record_becomes(NODE, "is not cordoned", |record| !record.kept.unschedulable).await;
}

#[tokio::test]
async fn by_default_nothing_but_labels_is_kept_or_given() {
    let world = World::start().await;
    let born = world.reborn(json!({ "metadata": { "name": NODE } })).await;

    let node = world.is_marked(NODE).await;
    assert_eq!(node.metadata.labels, Some(pairs([("team", "blue")])));
    assert_eq!(annotations(&node), pairs([]));
    assert_eq!(node.spec, born.spec);
    let record = world.record_becomes(NODE, "is open", |record| record.state == State::Open).await;
    assert_eq!(record.kept.annotations, pairs([]));
    assert_eq!(record.kept.taints, []);
    assert!(!record.kept.unschedulable);
}

#[tokio::test]
async fn what_does_not_fit_into_a_record_is_told_and_leaves_the_one_that_is_there_as_it_is() {
    let world = World::with_policy(r#"rules: [{annotations: {include: ["*"]}}]"#).await;
    world.create(full_node()).await;
    let before = world.record_becomes(NODE, "is open", |record| !record.kept.annotations.is_empty()).await;

    // The API server allows 256 KiB of annotations; in JSON each of these takes six bytes.
    let large = "\u{1}".repeat(200 * 1024);
    world.annotate(NODE, "example.com/note", Some(&large)).await;
    let event = world.event(NODE, "RecordTooLarge").await;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    world.metric_reaches("records_refused_total", 1.0).await;
    assert_eq!(world.record(NODE).await, Some(before));

    world.annotate(NODE, "example.com/note", Some("right door")).await;
    let right = |record: &perennial_core::record::Record| {
        record.kept.annotations.get("example.com/note").is_some_and(|note| note == "right door")
    };
    world.record_becomes(NODE, "is saved again", right).await;
    assert_eq!(world.metric("records_refused_total"), 1.0, "it is told once");
}
