//! An API server that cannot read old versions, though it answers everything else.

use crate::wire::{Bend, Call, Wire};
use crate::world::{World, pairs};

/// A node that changed, was deleted and came back bare while no keeper ran, and a keeper whose questions about the past are
/// refused so many times.
async fn returned_unseen(refused: usize) -> World {
    let mut world = World::without_keeper("").await;
    let wire = world.interpose(Wire::before);
    world.start_keeper().await;
    world.register("worker-1", &pairs([("team", "blue")])).await;
    world.recorded("worker-1", &pairs([("team", "blue")])).await;
    world.stop_keeper().await;
    world.label("worker-1", "team", Some("green")).await;
    world.delete("worker-1").await;
    world.register("worker-1", &pairs([])).await;
    wire.bend(Call::NodePast, refused, Bend::Refuse(500));
    world.start_keeper().await;
    world
}

#[tokio::test]
async fn where_the_past_can_never_be_read_what_is_recorded_is_given_in_doubt() {
    let world = returned_unseen(usize::MAX).await;
    world.labels_become("worker-1", &pairs([("team", "blue")])).await;
    world.event("worker-1", "EndUnproved").await;
    world.caught_up().await;
    assert!(world.metric(r#"errors_total{kind="server"}"#) > 4.5, "it was asked for more than once");
}

#[tokio::test]
async fn where_the_past_cannot_be_read_for_a_while_it_is_asked_for_again() {
    let world = returned_unseen(3).await;
    world.labels_become("worker-1", &pairs([("team", "green")])).await;
    world.caught_up().await;
    assert!(world.metric(r#"proofs_total{kind="lost"}"#) < 0.5);
}
