//! Two machines come back under each other's name.

use serde_json::json;

use crate::world::{Labels, World, pairs};

/// Machines m1 and m2 are nodes a and b with their own labels, leave, and come back bare as b and a.
async fn swapped(policy: &str) -> World {
    let world = World::with_policy(policy).await;
    let register = |name: &'static str, machine: &str, labels: Labels| {
        let spec = json!({ "providerID": format!("metal://{machine}") });
        world.create(json!({ "metadata": { "name": name, "labels": labels }, "spec": spec }))
    };
    for (name, machine) in [("a", "m1"), ("b", "m2")] {
        register(name, machine, pairs([("bore", name), (machine, "yes")])).await;
        world.recorded(name, &pairs([("bore", name), (machine, "yes")])).await;
    }
    for name in ["a", "b"] {
        world.delete(name).await;
    }
    for (name, machine) in [("a", "m2"), ("b", "m1")] {
        register(name, machine, pairs([])).await;
    }
    world
}

#[tokio::test]
async fn labels_follow_the_name_by_default() {
    let world = swapped("").await;
    world.labels_become("a", &pairs([("bore", "a"), ("m1", "yes")])).await;
    world.labels_become("b", &pairs([("bore", "b"), ("m2", "yes")])).await;
}

#[tokio::test]
async fn neither_gets_the_others_labels_where_name_and_machine_must_match() {
    let world = swapped("rules: [{identity: provider}]").await;
    for (name, machine) in [("a", "m1"), ("b", "m2")] {
        world.event(name, "RestoreSkipped").await;
        world.caught_up().await;
        assert_eq!(world.labels(name).await, pairs([]));
        let record = world.record(name).await.unwrap();
        assert_eq!(record.previous[0].kept.labels, pairs([("bore", name), (machine, "yes")]));
    }
}
