//! Records of nodes that do not come back go by themselves: after their time, or beyond the cap.

use crate::world::{World, pairs};

#[tokio::test]
async fn the_record_of_a_node_that_stays_away_goes_after_its_retention() {
    let world = World::with_policy("retention: 1s").await;
    let labels = pairs([("team", "blue")]);
    for name in ["stays", "leaves"] {
        world.register(name, &labels).await;
        world.recorded(name, &labels).await;
    }
    let bystander = world.config_map("stays").await;
    world.delete("leaves").await;
    world.record_goes("leaves").await;
    world.metric_reaches("erases_total{kind=\"expired\"}", 1.0).await;

    let born = world.register("leaves", &pairs([])).await;
    world.caught_up().await;
    assert_eq!(world.node("leaves").await, born);
    assert_eq!(world.config_map("stays").await, bystander, "a living node's record has no age");
}

#[tokio::test]
async fn a_record_goes_after_its_retention_also_when_the_keeper_was_down_meanwhile() {
    let mut world = World::with_policy("retention: 1s").await;
    let labels = pairs([("team", "blue")]);
    world.register("leaves", &labels).await;
    world.recorded("leaves", &labels).await;
    world.stop_keeper().await;
    world.delete("leaves").await;
    world.start_keeper().await;
    world.record_goes("leaves").await;
}

#[tokio::test]
async fn an_empty_record_goes_after_its_own_retention_and_its_node_lives_on() {
    let world = World::with_policy("emptyRetention: 1s").await;
    world.register("worker-1", &pairs([("team", "blue")])).await;
    world.recorded("worker-1", &pairs([("team", "blue")])).await;
    let node = world.label("worker-1", "team", None).await;
    world.record_goes("worker-1").await;
    world.metric_reaches("erases_total{kind=\"empty\"}", 1.0).await;
    world.caught_up().await;
    assert_eq!(world.node("worker-1").await, node);
    assert_eq!(world.config_map("worker-1").await, None);
}

#[tokio::test]
async fn beyond_the_cap_the_oldest_records_of_absent_nodes_go_first() {
    let world = World::with_policy("maxAbsent: 2").await;
    let labels = pairs([("team", "blue")]);
    // Names that do not sort as their ages do.
    let names = ["d", "b", "c", "a", "lives"];
    for name in names {
        world.register(name, &labels).await;
        world.recorded(name, &labels).await;
    }
    for name in ["d", "b", "c", "a"] {
        world.delete(name).await;
        world.caught_up().await;
    }
    world.record_goes("d").await;
    world.record_goes("b").await;
    world.metric_reaches("erases_total{kind=\"over_cap\"}", 2.0).await;
    world.closed("c", &labels).await;
    world.closed("a", &labels).await;
    world.recorded("lives", &labels).await;

    world.register("a", &pairs([])).await;
    world.labels_become("a", &labels).await;
}
