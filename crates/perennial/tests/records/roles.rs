//! Capture and restore as two keepers: together they do the whole job, and each alone only its part.

use perennial_core::record::{Record, State};

use crate::world::{Labels, World, pairs};

const NODE: &str = "worker-1";

fn labels() -> Labels {
    pairs([("team", "blue"), ("example.com/rack", "r12")])
}

impl World {
    /// A cluster with a keeper that only records.
    async fn capturing() -> Self {
        let mut world = Self::without_keeper("").await;
        world.configure(|config| config.restore = false);
        world.start_keeper().await;
        world
    }
}

#[tokio::test]
async fn two_keepers_that_split_the_work_do_all_of_it() {
    let mut world = World::capturing().await;
    world
        .start_keeper_beside(|config| {
            config.capture = false;
            config.restore = true;
        })
        .await;
    world.register(NODE, &labels()).await;
    world.recorded(NODE, &labels()).await;

    for value in ["red", "green"] {
        world.label(NODE, "team", Some(value)).await;
        let mut expected = labels();
        expected.insert("team".to_owned(), value.to_owned());
        world.recorded(NODE, &expected).await;
        world.delete(NODE).await;
        world.register(NODE, &pairs([])).await;
        world.labels_become(NODE, &expected).await;
        let open = |record: &Record| record.state == State::Open && record.given;
        let record = world.record_becomes(NODE, "is open again", open).await;
        assert_eq!(record.kept.labels, expected);
    }
}

#[tokio::test]
async fn a_keeper_that_only_captures_records_every_end_and_gives_nothing() {
    let world = World::capturing().await;
    world.register(NODE, &labels()).await;
    world.recorded(NODE, &labels()).await;
    world.delete(NODE).await;
    let born = world.register(NODE, &pairs([("own", "yes")])).await;

    let record = world.closed(NODE, &labels()).await;
    world.caught_up_but(1).await;
    assert_eq!(world.node(NODE).await, born);
    assert_eq!(world.record(NODE).await, Some(record));

    // The second life ends without having got its own back: nothing of the first is lost by it.
    world.delete(NODE).await;
    let mut both = labels();
    both.extend(pairs([("own", "yes")]));
    world.closed(NODE, &both).await;
}

#[tokio::test]
async fn a_keeper_that_only_restores_gives_what_is_recorded_and_records_nothing() {
    let mut world = World::start().await;
    world.register(NODE, &labels()).await;
    world.recorded(NODE, &labels()).await;
    world.delete(NODE).await;
    world.closed(NODE, &labels()).await;
    world.stop_keeper().await;

    world.configure(|config| config.capture = false);
    world.start_keeper().await;
    world.register("worker-2", &labels()).await;
    world.register(NODE, &pairs([])).await;
    world.labels_become(NODE, &labels()).await;
    world.label(NODE, "team", Some("red")).await;
    world.delete("worker-2").await;
    world.metric_reaches("skips_total{kind=\"capture_off\"}", 2.0).await;
    world.stop_keeper().await;

    assert_eq!(world.config_map("worker-2").await, None);
    let record = world.record(NODE).await.unwrap();
    assert_eq!((record.state, record.kept.labels), (State::Giving, labels()));
}
