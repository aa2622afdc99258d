//! Names at the edge of what the API server allows.

use perennial_core::record::{Record, State, record_name};

use crate::world::{World, pairs};

#[tokio::test]
async fn a_node_name_of_253_characters_works_like_any_other() {
    let mut world = World::start().await;
    let name =
        [&"a".repeat(63), &"b".repeat(63), &"c".repeat(63), &"d".repeat(61)].map(String::as_str).join(".");
    assert_eq!(name.len(), 253);
    let labels = pairs([("team", "blue")]);
    world.register(&name, &labels).await;
    let record = world.recorded(&name, &labels).await;
    assert_eq!(record.node, name);
    assert!(!record_name(&name).contains(&name), "it has a hashed tail");

    // A keeper that starts finds the node of a hashed record name by its annotation.
    world.delete(&name).await;
    world.closed(&name, &labels).await;
    world.stop_keeper().await;
    world.start_keeper().await;
    world.register(&name, &pairs([])).await;
    world.labels_become(&name, &labels).await;
    world.record_becomes(&name, "is open", |record: &Record| record.state == State::Open).await;
    world.event(&name, "MetadataRestored").await;

    world.annotate(&name, "perennial.dev/forget", Some("true")).await;
    world.record_goes(&name).await;
}

#[tokio::test]
async fn two_long_names_that_differ_at_the_end_have_records_of_their_own() {
    let world = World::start().await;
    for end in ["x", "y"] {
        let name = format!("{}{end}", "n".repeat(252));
        world.register(&name, &pairs([("end", end)])).await;
        world.recorded(&name, &pairs([("end", end)])).await;
        world.delete(&name).await;
    }
    for end in ["x", "y"] {
        let name = format!("{}{end}", "n".repeat(252));
        world.register(&name, &pairs([])).await;
        world.labels_become(&name, &pairs([("end", end)])).await;
    }
}
