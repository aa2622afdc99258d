//! The policy: rules by selector, and what happens when it changes while the keeper runs.

use perennial_core::policy::Policy;
use perennial_core::record::Record;
use serde_json::json;

use crate::world::{World, pairs};

const NODE: &str = "worker-1";
const PROBE: &str = "probe-of-the-test";
const ONLY_TEAM: &str = "rules: [{labels: {include: [team, probe]}}]";
const BY_POOL: &str = r#"
rules:
  - name: gpu
    selector: "pool=gpu"
    annotations: {include: ["example.com/*"]}
    merge: overwrite
  - name: test
    selector: "tier=test"
    labels: {include: []}
  - name: others
"#;

#[tokio::test]
async fn a_bare_newborn_is_matched_by_the_labels_that_its_record_remembers() {
    let world = World::with_policy(BY_POOL).await;
    let labels = pairs([("pool", "gpu"), ("team", "blue")]);
    world
        .create(json!({
            "metadata": { "name": NODE, "labels": labels, "annotations": { "example.com/note": "left door" } },
        }))
        .await;
    let record = world.recorded(NODE, &labels).await;
    assert_eq!(record.kept.annotations, pairs([("example.com/note", "left door")]));
    world.delete(NODE).await;

    // Only the first rule overwrites, and gives annotations.
    world.register(NODE, &pairs([("team", "red")])).await;
    world.labels_become(NODE, &labels).await;
    let node = world.is_marked(NODE).await;
    assert_eq!(node.metadata.annotations.unwrap()["example.com/note"], "left door");
}

#[tokio::test]
async fn a_label_of_the_newborn_counts_for_the_selector_before_what_is_recorded() {
    let world = World::with_policy(BY_POOL).await;
    let labels = pairs([("pool", "gpu"), ("team", "blue")]);
    world.register(NODE, &labels).await;
    world.recorded(NODE, &labels).await;
    world.delete(NODE).await;

    // Another pool now: the last rule speaks, which does not overwrite.
    world.register(NODE, &pairs([("pool", "cpu"), ("team", "red")])).await;
    world.is_marked(NODE).await;
    assert_eq!(world.labels(NODE).await, pairs([("pool", "cpu"), ("team", "red")]));
}

#[tokio::test]
async fn a_rule_that_keeps_nothing_leaves_its_nodes_alone() {
    let world = World::with_policy(BY_POOL).await;
    let born = world.register(NODE, &pairs([("tier", "test"), ("team", "blue")])).await;
    world.caught_up().await;
    assert_eq!(world.config_map(NODE).await, None);
    assert_eq!(world.node(NODE).await, born);
}

#[tokio::test]
async fn a_node_that_no_rule_matches_is_left_alone() {
    let world = World::with_policy("rules: [{selector: 'pool=gpu'}, {selector: probe}]").await;
    let born = world.register(NODE, &pairs([("pool", "cpu")])).await;
    world.caught_up().await;
    assert_eq!(world.config_map(NODE).await, None);
    assert_eq!(world.node(NODE).await, born);
}

#[tokio::test]
async fn a_policy_that_is_widened_while_the_keeper_runs_widens_records_at_once() {
    let world = World::with_policy(ONLY_TEAM).await;
    let labels = pairs([("team", "blue"), ("example.com/rack", "r12")]);
    let node = world.register(NODE, &labels).await;
    world.recorded(NODE, &pairs([("team", "blue")])).await;

    world.change_policy("");
    world.recorded(NODE, &labels).await;
    assert_eq!(world.node(NODE).await, node);
}

#[tokio::test]
async fn a_policy_that_asks_for_taints_while_the_keeper_runs_gets_them_at_once() {
    let world = World::start().await;
    let taints = json!([{ "key": "dedicated", "value": "gpu", "effect": "NoSchedule" }]);
    world
        .create(json!({ "metadata": { "name": NODE, "labels": { "a": "b" } }, "spec": { "taints": taints } }))
        .await;
    world.recorded(NODE, &pairs([("a", "b")])).await;

    world.change_policy("rules: [{taints: {include: [dedicated]}}]");
    let kept = |record: &Record| record.kept.taints.iter().any(|taint| taint.key == "dedicated");
    world.record_becomes(NODE, "keeps the taint", kept).await;
}

#[tokio::test]
async fn a_policy_that_is_narrowed_rewrites_nothing_by_itself() {
    let world = World::start().await;
    let labels = pairs([("team", "blue"), ("example.com/rack", "r12")]);
    world.register(NODE, &labels).await;
    world.recorded(NODE, &labels).await;
    world.caught_up().await;
    let before = world.config_map(NODE).await;

    world.change_policy(ONLY_TEAM);
    world.caught_up().await;
    let known = Policy::parse(ONLY_TEAM).unwrap().digest();
    assert_eq!(world.record(PROBE).await.unwrap().policy, known, "the new policy counts");
    assert_eq!(world.config_map(NODE).await, before);

    world.label(NODE, "team", Some("red")).await;
    world.recorded(NODE, &pairs([("team", "red")])).await;
    let whole = pairs([("team", "red"), ("example.com/rack", "r12")]);
    assert_eq!(world.labels(NODE).await, whole);
}

#[tokio::test]
async fn a_policy_that_keeps_more_of_one_kind_and_less_of_another_takes_nothing_by_itself() {
    let world = World::with_policy("rules: [{labels: {include: [team, floor, probe]}}]").await;
    world.register(NODE, &pairs([("team", "blue"), ("floor", "3"), ("rack", "r12")])).await;
    world.recorded(NODE, &pairs([("team", "blue"), ("floor", "3")])).await;

    world.change_policy("rules: [{labels: {include: [team, rack, probe]}}]");
    world.recorded(NODE, &pairs([("team", "blue"), ("floor", "3"), ("rack", "r12")])).await;
    world.caught_up().await;
    let record = world.record(NODE).await.unwrap();
    assert_eq!(record.kept.labels, pairs([("team", "blue"), ("floor", "3"), ("rack", "r12")]));
}
