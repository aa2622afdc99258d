//! Ranks are taken among those that do the same: one that does not restore is waited for by nobody who does.

use crate::members::{NEVER, patient};
use crate::world::{World, pairs};

#[tokio::test]
async fn one_that_only_captures_and_one_that_only_restores_do_all_of_it_together() {
    let mut world = World::without_keeper("").await;
    world
        .start_member_with("captures", |config, members| {
            config.restore = false;
            members.roles.retain(|role| role.as_str() == "capture");
            patient(members);
        })
        .await;
    world
        .start_member_with("restores", |config, members| {
            config.capture = false;
            members.roles.retain(|role| role.as_str() == "restore");
            patient(members);
        })
        .await;
    world.sees("captures", 2).await;
    world.sees("restores", 2).await;
    let labels = pairs([("team", "blue")]);
    for number in 0..6 {
        let node = format!("worker-{number}");
        world.register(&node, &labels).await;
        world.recorded(&node, &labels).await;
        world.delete(&node).await;
        world.closed(&node, &labels).await;
        world.register(&node, &pairs([])).await;
        world.labels_become(&node, &labels).await;
    }
    // The last one is counted a moment after it is seen.
    world.metric_of_reaches("restores", "restores_total", 6.0).await;
    assert_eq!(world.metric_of("restores", "restores_total"), 6.0);
    assert_eq!(world.metric_of("captures", "restores_total"), 0.0);
}

#[tokio::test]
async fn where_nobody_else_restores_the_one_that_does_waits_for_nobody() {
    let mut world = World::without_keeper("").await;
    for name in ["b", "c", "d"] {
        world
            .start_member_with(name, |config, members| {
                config.restore = false;
                members.roles.retain(|role| role.as_str() == "capture");
                members.lease = NEVER;
            })
            .await;
    }
    world.start_member_with("a", |_, members| patient(members)).await;
    world.sees("a", 4).await;
    let labels = pairs([("team", "blue")]);
    for number in 0..4 {
        let node = format!("worker-{number}");
        world.register(&node, &labels).await;
        world.recorded(&node, &labels).await;
        world.delete(&node).await;
        world.register(&node, &pairs([])).await;
        world.labels_become(&node, &labels).await;
    }
    world.metric_of_reaches("a", "restores_total", 4.0).await;
    assert_eq!(world.metric_of("a", "restores_total"), 4.0);
}
