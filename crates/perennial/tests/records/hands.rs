//! A person's hand: on a record, on a node's annotations, on the keeper's switches.

use kube::api::ListParams;
use perennial_core::record::{Record, State};

use crate::world::{Labels, World, pairs};

const NODE: &str = "worker-1";
const PAUSE: &str = "perennial.dev/pause";
const FORGET: &str = "perennial.dev/forget";

fn labels() -> Labels {
    pairs([("team", "blue"), ("example.com/rack", "r12")])
}

impl World {
    async fn known_node(&self) -> Record {
        self.register(NODE, &labels()).await;
        self.recorded(NODE, &labels()).await
    }

    async fn known_node_away(&self) -> Record {
        self.known_node().await;
        self.delete(NODE).await;
        self.closed(NODE, &labels()).await
    }

    /// Somebody edits what is kept in the record.
    async fn edit_labels(&self, record: &Record, labels: Labels) {
        let mut record = record.clone();
        record.kept.labels = labels;
        self.edit_record(NODE, &record.to_json()).await;
    }

    async fn paused_node(&self) -> Record {
        self.known_node().await;
        self.annotate(NODE, PAUSE, Some("true")).await;
        self.record_becomes(NODE, "remembers the pause", |record| record.paused).await
    }
}

#[tokio::test]
async fn a_record_edited_by_hand_while_its_node_is_away_is_given_as_edited() {
    let world = World::start().await;
    let record = world.known_node_away().await;
    let edited = pairs([("team", "red"), ("example.com/floor", "3")]);
    world.edit_labels(&record, edited.clone()).await;

    world.register(NODE, &pairs([])).await;
    world.labels_become(NODE, &edited).await;
    world.recorded(NODE, &edited).await;
}

#[tokio::test]
async fn a_record_edited_by_hand_while_the_keeper_was_down_is_given_as_edited() {
    let mut world = World::start().await;
    let record = world.known_node_away().await;
    world.stop_keeper().await;
    let edited = pairs([("team", "red")]);
    world.edit_labels(&record, edited.clone()).await;
    world.start_keeper().await;

    world.register(NODE, &pairs([])).await;
    world.labels_become(NODE, &edited).await;
}

#[tokio::test]
async fn a_record_edited_by_hand_while_its_node_lives_follows_the_node_again() {
    let world = World::start().await;
    let record = world.known_node().await;
    let node = world.node(NODE).await;
    world.edit_labels(&record, pairs([("team", "red")])).await;

    let followed = |now: &Record| now.kept == record.kept && now.sequence == record.sequence + 1;
    let record = world.record_becomes(NODE, "follows the node again", followed).await;
    assert_eq!(record.previous[0].kept.labels, pairs([("team", "red")]), "the edit stays for undo");
    assert_ne!(record.previous[0].policy, Some(record.policy), "what it lacks may have been there");
    world.caught_up().await;
    assert_eq!(world.node(NODE).await, node);
}

#[tokio::test]
async fn a_paused_node_is_left_alone_until_the_annotation_goes() {
    let world = World::start().await;
    world.paused_node().await;
    let paused = world.config_map(NODE).await;
    let node = world.label(NODE, "team", Some("red")).await;
    world.caught_up().await;
    assert_eq!(world.config_map(NODE).await, paused);
    assert_eq!(world.node(NODE).await, node);

    world.annotate(NODE, PAUSE, None).await;
    let expected = pairs([("team", "red"), ("example.com/rack", "r12")]);
    let record = world.recorded(NODE, &expected).await;
    assert!(!record.paused);
}

#[tokio::test]
async fn a_pause_is_remembered_over_a_death_and_ends_by_a_no_on_the_newborn() {
    let world = World::start().await;
    world.paused_node().await;
    let paused = world.config_map(NODE).await;
    world.delete(NODE).await;
    let born = world.register(NODE, &pairs([])).await;
    world.caught_up().await;
    assert_eq!(world.node(NODE).await, born);
    assert_eq!(world.config_map(NODE).await, paused);

    world.annotate(NODE, PAUSE, Some("false")).await;
    world.labels_become(NODE, &labels()).await;
    let open = |record: &Record| record.state == State::Open && !record.paused;
    world.record_becomes(NODE, "is open and not paused", open).await;
}

#[tokio::test]
async fn a_pause_is_remembered_over_a_restart_of_the_keeper() {
    let mut world = World::start().await;
    world.paused_node().await;
    world.delete(NODE).await;
    world.caught_up().await;
    world.stop_keeper().await;
    world.start_keeper().await;
    let born = world.register(NODE, &pairs([])).await;
    world.caught_up().await;
    assert_eq!(world.node(NODE).await, born);

    world.annotate(NODE, PAUSE, Some("false")).await;
    world.labels_become(NODE, &labels()).await;
}

#[tokio::test]
async fn a_node_paused_from_its_birth_is_neither_recorded_nor_given_anything() {
    let world = World::start().await;
    let node = serde_json::json!({
        "metadata": { "name": NODE, "labels": labels(), "annotations": { PAUSE: "true" } },
    });
    let born = world.create(node).await;
    world.caught_up().await;
    assert_eq!(world.record(NODE).await, None);
    assert_eq!(world.node(NODE).await, born);
}

#[tokio::test]
async fn a_node_that_shall_be_forgotten_loses_its_record_and_gets_nothing_back() {
    let world = World::start().await;
    world.known_node().await;
    let node = world.annotate(NODE, FORGET, Some("true")).await;
    world.record_goes(NODE).await;
    world.caught_up().await;
    assert_eq!(world.node(NODE).await, node);

    world.delete(NODE).await;
    let born = world.register(NODE, &pairs([])).await;
    world.caught_up().await;
    assert_eq!(world.node(NODE).await, born);
    assert_eq!(world.config_map(NODE).await, None);
}

#[tokio::test]
async fn a_node_marked_to_be_forgotten_and_deleted_at_once_is_forgotten() {
    let world = World::start().await;
    world.known_node().await;
    world.annotate(NODE, FORGET, Some("true")).await;
    world.delete(NODE).await;
    world.record_goes(NODE).await;
    let born = world.register(NODE, &pairs([])).await;
    world.caught_up().await;
    assert_eq!(world.node(NODE).await, born);
}

#[tokio::test]
async fn a_forgotten_node_is_recorded_again_when_the_annotation_goes() {
    let world = World::start().await;
    world.known_node().await;
    world.annotate(NODE, FORGET, Some("true")).await;
    world.record_goes(NODE).await;
    world.annotate(NODE, FORGET, None).await;
    let record = world.recorded(NODE, &labels()).await;
    assert_eq!(record.sequence, 1);
}

#[tokio::test]
async fn a_dry_run_writes_nothing_at_all() {
    let mut world = World::with_policy("rules: [{identity: provider}]").await;
    // Something to give, to save, to close, to mend, to skip and to erase.
    for name in ["returns", "changes", "dies", "broken", "unknown", "old"] {
        world.machine(name, "cloud://a", &labels()).await;
        world.recorded(name, &labels()).await;
    }
    world.delete("old").await;
    world.closed("old", &labels()).await;
    world.stop_keeper().await;
    world.change_policy("{retention: 1s, rules: [{identity: provider}]}");
    world.edit_record("broken", "{").await;
    for name in ["returns", "dies", "unknown"] {
        world.delete(name).await;
    }
    let maps = world.config_maps().list(&ListParams::default()).await.unwrap();
    let before = world.written_by_keeper().await.len();

    world.configure(|config| config.dry_run = true);
    world.start_keeper().await;
    world.label("broken", "team", Some("red")).await;
    world.machine("returns", "cloud://a", &pairs([])).await;
    world.register("unknown", &pairs([])).await;
    world.register("new", &labels()).await;
    world.label("changes", "team", Some("red")).await;
    // All of these, and the new one, are things to do.
    world.metric_reaches("pending", 7.0).await;
    world.metric_reaches("notices_total{kind=\"RecordUnreadable\"}", 1.0).await;
    assert_eq!(world.metric("dry_run"), 1.0);
    for owed in ["unrestored", "restore_failing", "unrestored_oldest_seconds", "pending_oldest_seconds"] {
        assert_eq!(world.metric(owed), 0.0, "{owed}: a dry run owes nothing");
    }
    world.stop_keeper().await;

    assert_eq!(world.written_by_keeper().await[before..], []);
    let after = world.config_maps().list(&ListParams::default()).await.unwrap();
    assert_eq!(after.items, maps.items);
    assert_eq!(world.labels("returns").await, pairs([]));
}
