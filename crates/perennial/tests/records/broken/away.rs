//! The node is away: nothing is given when it returns, and the record stays as it is for a person to see.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams};
use perennial_core::record::{Record, SCHEMA, record_name};
use serde_json::json;

use super::{NODE, labels, mebibyte, wrong_types};
use crate::world::{World, pairs};

impl World {
    /// The node was recorded and is away.
    async fn away_node(&self) -> Record {
        self.recorded_node().await;
        self.delete(NODE).await;
        self.closed(NODE, &labels()).await
    }

    /// The node returns with a label of its own. Neither it nor its record is touched.
    async fn returns_and_gets_nothing(&self, record: &ConfigMap) {
        let returned = self.register(NODE, &pairs([("own", "yes")])).await;
        self.caught_up_but(1).await;
        assert_eq!(self.node(NODE).await, returned);
        assert_eq!(self.config_map(NODE).await.as_ref(), Some(record));
    }

    /// The record was broken: its bytes are safe, it is told, and nothing comes of it.
    async fn is_unreadable(&self, broken: &ConfigMap) {
        self.copied_aside(broken).await;
        self.event(NODE, "RecordUnreadable").await;
        self.returns_and_gets_nothing(broken).await;
        assert_eq!(self.set_aside().await.len(), 1);
    }
}

#[tokio::test]
async fn a_node_whose_record_was_deleted_while_it_was_away_is_forgotten() {
    let world = World::start().await;
    world.away_node().await;
    world.config_maps().delete(&record_name(NODE), &DeleteParams::default()).await.unwrap();

    let returned = world.register(NODE, &pairs([])).await;
    world.caught_up().await;
    assert_eq!(world.node(NODE).await, returned);
    assert_eq!(world.config_map(NODE).await, None);
}

#[tokio::test]
async fn an_emptied_record_gives_nothing() {
    let world = World::start().await;
    world.away_node().await;
    let broken = world.put_into_record(json!(null)).await;
    assert_eq!(broken.data, None);
    world.is_unreadable(&broken).await;
}

#[tokio::test]
async fn broken_json_gives_nothing() {
    let world = World::start().await;
    let record = world.away_node().await.to_json();
    let broken = world.put_text(&record[..record.len() - 2]).await;
    world.is_unreadable(&broken).await;
}

#[tokio::test]
async fn a_record_that_names_another_node_gives_nothing() {
    let world = World::start().await;
    let record = world.away_node().await;
    let broken = world.put_text(&Record { node: "worker-2".to_owned(), ..record }.to_json()).await;
    world.is_unreadable(&broken).await;
}

#[tokio::test]
async fn a_mebibyte_of_text_gives_nothing() {
    let world = World::start().await;
    world.away_node().await;
    let broken = world.put_text(&mebibyte()).await;
    world.is_unreadable(&broken).await;
}

#[tokio::test]
async fn a_config_map_put_in_the_records_place_gives_nothing() {
    let world = World::start().await;
    world.away_node().await;
    let broken = world.replace_record("my own notes").await;
    world.is_unreadable(&broken).await;
}

#[tokio::test]
async fn a_wrong_type_in_any_field_gives_nothing() {
    let world = World::start().await;
    let record = world.away_node().await;
    let wrong = wrong_types(&record);
    for (path, text) in &wrong {
        println!("{path}");
        let broken = world.put_text(text).await;
        world.copied_aside(&broken).await;
    }
    let last = world.config_map(NODE).await.unwrap();
    world.event(NODE, "RecordUnreadable").await;
    world.returns_and_gets_nothing(&last).await;
    assert_eq!(world.set_aside().await.len(), wrong.len());
}

#[tokio::test]
async fn a_record_broken_while_the_keeper_was_down_gives_nothing() {
    let mut world = World::start().await;
    world.away_node().await;
    world.stop_keeper().await;
    let broken = world.put_text("{").await;
    world.start_keeper().await;
    world.is_unreadable(&broken).await;
}

#[tokio::test]
async fn a_record_of_a_newer_schema_is_neither_written_nor_given() {
    let world = World::start().await;
    let mut record = json!(world.away_node().await);
    record["schema"] = json!(SCHEMA + 1);
    record["invention"] = json!({ "of": "the future" });
    let newer = world.put_text(&record.to_string()).await;

    world.event(NODE, "RestoreSkipped").await;
    world.returns_and_gets_nothing(&newer).await;
    assert_eq!(world.set_aside().await, []);
}

#[tokio::test]
async fn a_record_of_a_newer_schema_is_not_erased_and_holds_up_nobody() {
    let world = World::start().await;
    let mut record = json!(world.away_node().await);
    record["schema"] = json!(SCHEMA + 1);
    record["invention"] = json!({ "of": "the future" });
    world.put_text(&record.to_string()).await;
    // As a newer build writes it: its annotations say so too.
    let summary = format!("schema={} and more", SCHEMA + 1);
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { "perennial.dev/summary": summary } } }));
    let newer = world.config_maps().patch(&record_name(NODE), &PatchParams::default(), &patch).await.unwrap();
    world.event(NODE, "RestoreSkipped").await;
    world.metric_reaches("records_unreadable", 1.0).await;

    world.change_policy("retention: 1s\nmaxAbsent: 1");
    world.register("worker-2", &labels()).await;
    world.recorded("worker-2", &labels()).await;
    world.delete("worker-2").await;
    world.record_goes("worker-2").await;
    assert_eq!(world.config_map(NODE).await.as_ref(), Some(&newer));

    // Nor on a person's word to an older build.
    world.register(NODE, &pairs([])).await;
    world.annotate(NODE, "perennial.dev/forget", Some("true")).await;
    world.caught_up_but(1).await;
    assert_eq!(world.config_map(NODE).await.as_ref(), Some(&newer));
    assert_eq!(world.set_aside().await, []);
}

#[tokio::test]
async fn a_record_that_was_mended_by_hand_is_given() {
    let world = World::start().await;
    let record = world.away_node().await;
    let broken = world.put_text("{").await;
    world.copied_aside(&broken).await;
    world.put_text(&record.to_json()).await;

    world.register(NODE, &pairs([])).await;
    world.labels_become(NODE, &labels()).await;
}

#[tokio::test]
async fn a_node_whose_record_broke_unnoticed_gets_its_end_back_if_that_was_seen() {
    let mut world = World::start().await;
    world.recorded_node().await;
    world.stop_keeper().await;
    world.put_text("{").await;
    world.start_keeper().await;
    world.caught_up().await;
    world.delete(NODE).await;
    world.event(NODE, "RecordUnreadable").await;
    world.closed(NODE, &labels()).await;
    assert_eq!(world.set_aside().await.len(), 1);
    world.register(NODE, &pairs([])).await;
    world.labels_become(NODE, &labels()).await;
}
