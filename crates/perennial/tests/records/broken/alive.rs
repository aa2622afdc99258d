//! The node lives: it is the authority, and its record is written anew from it.

use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::DeleteParams;
use perennial_core::record::{Record, SCHEMA, State, record_name};
use serde_json::json;

use super::{NODE, labels, mebibyte, wrong_types};
use crate::world::{World, pairs};

impl World {
    /// Waits until the record says what the node bears, as if for the first time.
    async fn written_anew(&self, node: &Node) {
        let uid = node.metadata.uid.clone().unwrap();
        let version = node.metadata.resource_version.clone().unwrap();
        let anew = |record: &Record| {
            record.state == State::Open
                && record.kept.labels == labels()
                && record.incarnation.uid.to_string() == uid
                && record.version.to_string() == version
        };
        self.record_becomes(NODE, "is written anew", anew).await;
    }

    /// The record was broken: its bytes are safe, it is told, and the node writes it anew.
    async fn is_rewritten(&self, broken: &ConfigMap) {
        let node = self.node(NODE).await;
        self.copied_aside(broken).await;
        self.written_anew(&node).await;
        self.event(NODE, "RecordUnreadable").await;
        self.caught_up().await;
        assert_eq!(self.node(NODE).await, node);
        assert_eq!(self.set_aside().await.len(), 1);
    }
}

#[tokio::test]
async fn a_record_deleted_while_its_node_lives_is_recorded_again() {
    let world = World::start().await;
    world.recorded_node().await;
    let node = world.node(NODE).await;
    world.config_maps().delete(&record_name(NODE), &DeleteParams::default()).await.unwrap();
    world.written_anew(&node).await;
    world.caught_up().await;
    assert_eq!(world.node(NODE).await, node);
}

#[tokio::test]
async fn an_emptied_record_is_written_anew() {
    let world = World::start().await;
    world.recorded_node().await;
    let broken = world.put_into_record(json!(null)).await;
    assert_eq!(broken.data, None);
    world.is_rewritten(&broken).await;
}

#[tokio::test]
async fn broken_json_is_written_anew_and_the_node_is_remembered_as_before() {
    let world = World::start().await;
    let record = world.recorded_node().await.to_json();
    let broken = world.put_text(&record[..record.len() - 2]).await;
    world.is_rewritten(&broken).await;

    world.delete(NODE).await;
    world.register(NODE, &pairs([])).await;
    world.labels_become(NODE, &labels()).await;
}

#[tokio::test]
async fn a_record_that_names_another_node_is_written_anew() {
    let world = World::start().await;
    let record = world.recorded_node().await;
    let broken = world.put_text(&Record { node: "worker-2".to_owned(), ..record }.to_json()).await;
    world.is_rewritten(&broken).await;
}

#[tokio::test]
async fn a_mebibyte_of_text_is_written_over() {
    let world = World::start().await;
    world.recorded_node().await;
    let broken = world.put_text(&mebibyte()).await;
    world.is_rewritten(&broken).await;
}

#[tokio::test]
async fn a_config_map_put_in_the_records_place_is_written_over() {
    let world = World::start().await;
    world.recorded_node().await;
    let broken = world.replace_record("my own notes").await;
    world.is_rewritten(&broken).await;
}

#[tokio::test]
async fn a_wrong_type_in_any_field_is_written_over() {
    let world = World::start().await;
    let record = world.recorded_node().await;
    let node = world.node(NODE).await;
    let wrong = wrong_types(&record);
    for (path, text) in &wrong {
        println!("{path}");
        let broken = world.put_text(text).await;
        world.copied_aside(&broken).await;
        world.written_anew(&node).await;
    }
    world.event(NODE, "RecordUnreadable").await;
    world.caught_up().await;
    assert_eq!(world.node(NODE).await, node);
    assert_eq!(world.set_aside().await.len(), wrong.len());
}

#[tokio::test]
async fn a_record_of_a_newer_schema_is_not_written_whatever_its_node_does() {
    let world = World::start().await;
    let mut record = json!(world.recorded_node().await);
    record["schema"] = json!(SCHEMA + 1);
    let newer = world.put_text(&record.to_string()).await;
    world.event(NODE, "RestoreSkipped").await;

    let node = world.label(NODE, "team", Some("red")).await;
    world.caught_up_but(1).await;
    assert_eq!(world.config_map(NODE).await, Some(newer));
    assert_eq!(world.node(NODE).await, node);
    assert_eq!(world.set_aside().await, []);
}
