//! Labels are remembered and come back.

use perennial_core::record::State;

use crate::world::{World, pairs};

#[tokio::test]
async fn labels_come_back_after_delete_and_recreate() {
    let world = World::start().await;
    let labels = pairs([("team", "blue"), ("example.com/rack", "r12")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;

    world.delete("worker-1").await;
    world.register("worker-1", &pairs([])).await;

    world.labels_become("worker-1", &labels).await;
    let record =
        world.record_becomes("worker-1", "is open again", |record| record.state == State::Open).await;
    assert!(record.given);
    let event = world.event("worker-1", "MetadataRestored").await;
    assert_eq!(event.message.unwrap(), "restored example.com/rack, team");
}
