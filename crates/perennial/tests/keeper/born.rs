//! A node that comes with labels and a stamp, as a webhook gives them that may have been behind.

use serde_json::json;

use crate::world::{Labels, World, pairs};

/// Registers a node that was given some labels at birth, and has others of its own.
async fn born(world: &World, name: &str, given: &Labels, own: &Labels) {
    let stamp: Vec<String> = given.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let annotations = pairs([("born.perennial.dev/perennial", &stamp.join(" "))]);
    let labels: Labels = given.clone().into_iter().chain(own.clone()).collect();
    world.create(json!({ "metadata": { "name": name, "labels": labels, "annotations": annotations } })).await;
}

/// It bears its mark, and no stamp.
async fn is_confirmed(world: &World, name: &str) {
    let node = world.is_marked(name).await;
    let annotations = node.metadata.annotations.unwrap_or_default();
    assert!(!annotations.keys().any(|key| key.starts_with("born.")), "{annotations:?}");
}

#[tokio::test]
async fn what_it_was_rightly_born_with_stays() {
    let world = World::start().await;
    let all = pairs([("team", "blue"), ("pool", "gpu")]);
    world.register("worker-1", &all).await;
    world.recorded("worker-1", &all).await;
    world.delete("worker-1").await;
    born(&world, "worker-1", &all, &pairs([])).await;
    is_confirmed(&world, "worker-1").await;
    assert_eq!(world.labels("worker-1").await, all);
    world.recorded("worker-1", &all).await;
}

#[tokio::test]
async fn what_it_should_not_have_been_born_with_is_put_right() {
    let world = World::start().await;
    world.register("worker-1", &pairs([("changed", "1"), ("removed", "1"), ("same", "1")])).await;
    world.label("worker-1", "changed", Some("2")).await;
    world.label("worker-1", "removed", None).await;
    world.delete("worker-1").await;
    let given = pairs([("changed", "1"), ("removed", "1"), ("same", "1")]);
    born(&world, "worker-1", &given, &pairs([("own", "1")])).await;
    let right = pairs([("changed", "2"), ("own", "1"), ("same", "1")]);
    world.labels_become("worker-1", &right).await;
    is_confirmed(&world, "worker-1").await;
    world.recorded("worker-1", &right).await;
}

#[tokio::test]
async fn where_all_was_removed_before_it_ended_nothing_of_it_comes_back() {
    let world = World::start().await;
    world.register("worker-1", &pairs([("removed", "1")])).await;
    world.recorded("worker-1", &pairs([("removed", "1")])).await;
    world.label("worker-1", "removed", None).await;
    world.delete("worker-1").await;
    born(&world, "worker-1", &pairs([("removed", "1")]), &pairs([])).await;
    world.labels_become("worker-1", &pairs([])).await;
    is_confirmed(&world, "worker-1").await;
}

#[tokio::test]
async fn one_that_dies_before_it_is_confirmed_passes_on_nothing_that_was_wrong() {
    let world = World::start().await;
    world.register("worker-1", &pairs([("changed", "1"), ("removed", "1")])).await;
    world.label("worker-1", "changed", Some("2")).await;
    world.label("worker-1", "removed", None).await;
    for life in 0..10 {
        world.delete("worker-1").await;
        born(&world, "worker-1", &pairs([("changed", "1"), ("removed", "1")]), &pairs([])).await;
        if life % 2 == 0 {
            world.labels_become("worker-1", &pairs([("changed", "2")])).await;
        }
    }
    world.labels_become("worker-1", &pairs([("changed", "2")])).await;
}

#[tokio::test]
async fn a_forged_stamp_takes_nothing_that_a_kubelet_could_not_take() {
    let world = World::start().await;
    let all = pairs([("team", "blue")]);
    world.register("worker-1", &all).await;
    world.recorded("worker-1", &all).await;
    world.delete("worker-1").await;
    let role = pairs([("node-role.kubernetes.io/db", "")]);
    born(&world, "worker-1", &role, &pairs([])).await;
    is_confirmed(&world, "worker-1").await;
    let both: Labels = all.into_iter().chain(role).collect();
    assert_eq!(world.labels("worker-1").await, both);
}
