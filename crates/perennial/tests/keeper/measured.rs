//! What is measured: no more series for a thousand nodes than for ten, and what an alert needs to know.

use futures::{StreamExt as _, stream};
use perennial_testkit::eventually;
use serde_json::json;

use crate::world::{SOON, World, pairs};

/// The series of a scrape, without their values.
fn series(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.rsplit_once(' ').unwrap().0).collect()
}

/// Registers the nodes `from..to`, each with labels of its own.
async fn register(world: &World, from: usize, to: usize) {
    let nodes = stream::iter(from..to).map(|number| async move {
        let (name, rack) = (format!("worker-{number}"), format!("rack-{number}"));
        world.register(&name, &pairs([("team", "blue"), ("example.com/rack", &rack)])).await;
    });
    nodes.buffer_unordered(16).collect::<()>().await;
    eventually(SOON, &format!("{to} nodes are recorded"), || async {
        let known = ["nodes", "nodes_current", "pending"].map(|name| world.metric(name));
        let wanted = u32::try_from(to).unwrap();
        let recorded = known[..2].iter().all(|number| *number >= f64::from(wanted)) && known[2] < 0.5;
        if recorded { Ok(Some(())) } else { Err(anyhow::anyhow!("{known:?}")) }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_thousand_nodes_make_no_more_series_than_ten() {
    let world = World::start().await;
    register(&world, 0, 10).await;
    let few = world.scrape();
    register(&world, 10, 1000).await;
    // Whatever happens to nodes happens to some of them.
    for name in ["worker-1", "worker-2"] {
        world.delete(name).await;
    }
    world.register("worker-1", &pairs([])).await;
    world.is_marked("worker-1").await;
    world.metric_reaches("restores_total", 1.0).await;
    world.metric_reaches("records_absent", 1.0).await;
    let many = world.scrape();
    assert_eq!(series(&few), series(&many));
    assert!(series(&many).len() < 300, "{}", series(&many).len());
    assert!(!many.contains("worker") && !many.contains("rack"), "no label has the name of a node");
    assert!(many.contains("\nperennial_nodes 999\n"), "{many}");
}

#[tokio::test]
async fn a_restore_that_cannot_be_made_is_counted_until_it_is() {
    let world = World::start().await;
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.refuse_node_patches("worker-1").await;
    world.delete("worker-1").await;
    world.register("worker-1", &pairs([])).await;
    world.metric_reaches("restore_failing", 1.0).await;
    world.metric_reaches("unrestored_oldest_seconds", 1.0).await;
    world.metric_reaches("pending_oldest_seconds", 1.0).await;
    assert!((world.metric("unrestored") - 1.0).abs() < 0.5);
    let ages =
        ["10s", "1m", "10m", "longer"].map(|age| world.metric(&format!("pending_by_age{{age=\"{age}\"}}")));
    assert!((ages.iter().sum::<f64>() - 1.0).abs() < 0.5, "in one bucket: {ages:?}");

    world.allow_node_patches("worker-1").await;
    world.labels_become("worker-1", &labels).await;
    world.caught_up().await;
    for name in ["restore_failing", "unrestored", "unrestored_oldest_seconds", "pending_oldest_seconds"] {
        assert!(world.metric(name) < 0.5, "{name}");
    }
}

#[tokio::test]
async fn a_restore_is_counted_as_late_where_the_node_was_ready_before() {
    let world = World::start().await;
    let labels = pairs([("team", "blue")]);
    for (number, ready) in ["False", "True"].into_iter().enumerate() {
        let name = format!("worker-{number}");
        world.register(&name, &labels).await;
        world.recorded(&name, &labels).await;
        world.delete(&name).await;
        let conditions = json!([{ "type": "Ready", "status": ready }]);
        world.create(json!({ "metadata": { "name": name }, "status": { "conditions": conditions } })).await;
        world.labels_become(&name, &labels).await;
    }
    world.metric_reaches("restores_total", 2.0).await;
    assert!((world.metric("restored_after_ready_total") - 1.0).abs() < 0.5);
    assert!(world.metric("queue_seconds_count") > 3.5, "reads and writes began");
    assert!(world.metric("requests_inflight") < 3.5);
}
