//! The brake: beyond a day's allowance nothing more shrinks or vanishes by itself until somebody confirms.

use kube::api::{Patch, PatchParams};
use perennial_testkit::eventually;
use serde_json::{Value, json};

use crate::world::{Labels, SOON, World, pairs};

const NODES: [&str; 5] = ["n1", "n2", "n3", "n4", "n5"];
const BRAKE: &str = "perennial-brake";
const CONFIRM: &str = "perennial.dev/confirm";
const NARROW: &str = "
narrow: now
rules: [{labels: {include: [keep, probe]}}]
brake: {atLeast: 2, share: 0}
";

fn labels() -> Labels {
    pairs([("keep", "yes"), ("drop", "yes")])
}

impl World {
    /// Five nodes that are recorded.
    async fn five_nodes(&self) {
        for name in NODES {
            self.register(name, &labels()).await;
            self.recorded(name, &labels()).await;
        }
    }

    /// Waits until so many of the five have a record with exactly these labels.
    async fn records_with(&self, labels: &Labels, wanted: usize) {
        eventually(SOON, &format!("{wanted} records with {labels:?}"), || async {
            let mut found = 0;
            for name in NODES {
                found += usize::from(self.record(name).await.is_some_and(|it| it.kept.labels == *labels));
            }
            if found == wanted { Ok(Some(())) } else { Err(anyhow::anyhow!("{found}")) }
        })
        .await
        .unwrap();
    }

    /// What the brake's ConfigMap says: how much is spent, whether it is on, and whether a confirmation waits.
    async fn brake(&self) -> (u64, bool, bool) {
        let map = self.config_maps().get(BRAKE).await.unwrap();
        let count: Value = serde_json::from_str(&map.data.unwrap()["brake.json"]).unwrap();
        let confirmed = map.metadata.annotations.is_some_and(|pairs| pairs.contains_key(CONFIRM));
        (count["spent"].as_u64().unwrap(), count["engaged"].as_bool().unwrap(), confirmed)
    }

    /// Waits until the brake is on and so many nodes wait for it.
    async fn brake_holds(&self, nodes: u32) {
        self.metric_reaches("brake_engaged", 1.0).await;
        eventually(SOON, "the brake is on", || async {
            match self.brake().await {
                (_, true, false) => Ok(Some(())),
                other => Err(anyhow::anyhow!("{other:?}")),
            }
        })
        .await
        .unwrap();
        self.caught_up_but(nodes).await;
        self.metric_reaches("brake_held", f64::from(nodes)).await;
        assert_eq!(self.metric("pending_oldest_seconds"), 0.0, "a person decides how long that takes");
        assert_eq!(self.metric("nodes_current_ratio"), 1.0, "all that is on nodes is recorded");
        assert_eq!(self.metric("brake_engaged"), 1.0);
    }

    /// A person confirms.
    async fn confirm(&self) {
        let patch = json!({ "metadata": { "annotations": { CONFIRM: "yes" } } });
        self.config_maps().patch(BRAKE, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }
}

#[tokio::test]
async fn collection_stops_at_the_brake_over_a_restart_until_somebody_confirms() {
    let mut world = World::with_policy("{retention: 1s, brake: {atLeast: 2, share: 0}}").await;
    world.five_nodes().await;
    for name in NODES {
        world.delete(name).await;
    }
    world.brake_holds(3).await;
    world.records_with(&labels(), 3).await;

    world.crash_keeper().await;
    world.start_keeper().await;
    world.brake_holds(3).await;
    world.records_with(&labels(), 3).await;

    world.confirm().await;
    world.records_with(&labels(), 1).await;
    world.brake_holds(1).await;
    world.records_with(&labels(), 1).await;

    world.confirm().await;
    world.records_with(&labels(), 0).await;
    world.caught_up().await;
    assert_eq!(world.brake().await, (2, false, false), "all that was reserved counts as spent");
    assert_eq!((world.metric("brake_engaged"), world.metric("brake_held")), (0.0, 0.0));
}

#[tokio::test]
async fn the_brakes_allowance_is_a_share_of_all_records_where_that_is_more() {
    let world = World::with_policy("{retention: 1s, brake: {atLeast: 1, share: 0.6}}").await;
    world.five_nodes().await;
    for name in NODES {
        world.delete(name).await;
    }
    world.metric_reaches("brake_engaged", 1.0).await;
    world.records_with(&labels(), 2).await;
    assert_eq!(world.brake().await, (3, true, false));
}

#[tokio::test]
async fn a_person_who_forgets_a_node_is_not_held_by_the_brake() {
    let world = World::with_policy("brake: {atLeast: 0, share: 0}").await;
    world.five_nodes().await;
    for name in NODES {
        world.annotate(name, "perennial.dev/forget", Some("true")).await;
        world.record_goes(name).await;
    }
}

#[tokio::test]
async fn a_brake_that_allows_nothing_lets_nothing_go() {
    let world = World::with_policy("{retention: 1s, brake: {atLeast: 0, share: 0}}").await;
    world.five_nodes().await;
    for name in NODES {
        world.delete(name).await;
    }
    world.brake_holds(5).await;
    world.records_with(&labels(), 5).await;
    // What is held by the brake is not lost: it is given back as ever.
    world.register("n1", &pairs([])).await;
    world.labels_become("n1", &labels()).await;
}

#[tokio::test]
async fn a_policy_narrowed_at_once_stops_at_the_brake_until_somebody_confirms() {
    let world = World::start().await;
    world.five_nodes().await;
    world.change_policy(NARROW);
    world.brake_holds(3).await;
    world.records_with(&pairs([("keep", "yes")]), 2).await;
    world.records_with(&labels(), 3).await;

    world.confirm().await;
    world.records_with(&pairs([("keep", "yes")]), 4).await;
    world.brake_holds(1).await;
    world.confirm().await;
    world.records_with(&pairs([("keep", "yes")]), 5).await;
    world.caught_up().await;
    assert_eq!(world.metric("brake_engaged"), 0.0);
    for name in NODES {
        assert_eq!(world.labels(name).await, labels(), "nodes are not what a policy shrinks");
    }
}
