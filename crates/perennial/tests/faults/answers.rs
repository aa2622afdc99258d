//! Answers that are no answers: refusals of every kind, lost replies, broken watches.

use std::time::Duration;

use perennial_core::record::State;
use perennial_testkit::eventually;
use serde_json::{Value, json};

use crate::wire::{Bend, Call, Wire};
use crate::world::{Labels, SOON, World, pairs};

const NODE: &str = "worker-1";

/// A world whose keeper hangs on a wire.
async fn wired() -> (World, Wire) {
    let mut world = World::without_keeper("").await;
    let wire = world.interpose(Wire::before);
    world.start_keeper().await;
    (world, wire)
}

/// Ordinary labels, and a privileged one that has the keeper read the node's identity.
fn labels() -> Labels {
    pairs([("team", "blue"), ("example.com/rack", "r12"), ("node-role.kubernetes.io/gpu", "")])
}

fn machine(labels: &Labels) -> Value {
    json!({ "metadata": { "name": NODE, "labels": labels }, "spec": { "providerID": "aws:///a/i-1" } })
}

/// A node is recorded, deleted, and comes back, while calls of these kinds are bent again and again.
async fn a_life_under(bend: Bend, times: usize, calls: &[Call]) {
    let (mut world, wire) = wired().await;
    let arm = |kinds: &[Call]| {
        for call in kinds.iter().filter(|call| calls.contains(call)) {
            wire.bend(*call, times, bend.clone());
        }
    };
    arm(&[Call::RecordWrite, Call::NodeRead]);
    world.create(machine(&labels())).await;
    world.recorded(NODE, &labels()).await;
    assert_eq!(wire.unmet(), []);

    world.replace_keeper().await;
    arm(&[Call::RecordWrite, Call::RecordRead, Call::NodeRead, Call::NodePatch]);
    world.delete(NODE).await;
    world.create(machine(&pairs([]))).await;

    world.labels_become(NODE, &labels()).await;
    let record = world.record_becomes(NODE, "is open", |record| record.state == State::Open).await;
    assert!(record.given);
    assert_eq!(record.kept.labels, labels());
    assert_eq!(wire.unmet(), []);
    world.caught_up().await;
    assert_eq!(world.patches_of(NODE), 1, "given once");
    assert_eq!(world.labels(NODE).await, labels());
}

/// What is done for a node.
const ALL: [Call; 4] = [Call::RecordWrite, Call::RecordRead, Call::NodeRead, Call::NodePatch];

#[tokio::test]
async fn conflicts_are_decided_again() {
    a_life_under(Bend::Refuse(409), 2, &ALL).await;
}

#[tokio::test]
async fn what_is_not_found_for_a_moment_is_looked_for_again() {
    a_life_under(Bend::Refuse(404), 2, &ALL).await;
}

#[tokio::test]
async fn a_proxy_that_finds_no_page_does_not_say_that_a_record_is_gone() {
    a_life_under(Bend::Proxy(404), 2, &ALL).await;
}

#[tokio::test]
async fn a_proxy_that_finds_no_page_does_not_have_a_node_that_is_away_forgotten() {
    let (mut world, wire) = wired().await;
    world.create(machine(&labels())).await;
    world.recorded(NODE, &labels()).await;
    world.replace_keeper().await;
    world.caught_up().await;
    wire.bend(Call::RecordRead, 2, Bend::Proxy(404));
    world.delete(NODE).await;
    world.closed(NODE, &labels()).await;
    assert_eq!(wire.unmet(), []);
}

#[tokio::test]
async fn gone_is_no_answer_to_a_write_or_a_read() {
    a_life_under(Bend::Refuse(410), 2, &ALL).await;
}

#[tokio::test]
async fn server_errors_are_tried_again() {
    a_life_under(Bend::Refuse(500), 2, &ALL).await;
}

#[tokio::test]
async fn a_server_that_is_not_available_is_asked_again() {
    a_life_under(Bend::Refuse(503), 2, &ALL).await;
}

#[tokio::test]
async fn replies_that_are_lost_after_the_server_did_it_change_nothing() {
    a_life_under(Bend::LoseReply, 1, &ALL).await;
}

#[tokio::test]
async fn writes_whose_reply_never_comes_are_read_again() {
    let (world, wire) = wired().await;
    world.create(machine(&labels())).await;
    world.recorded(NODE, &labels()).await;
    wire.bend(Call::NodePatch, 1, Bend::Hang);
    world.delete(NODE).await;
    world.create(machine(&pairs([]))).await;

    world.labels_become(NODE, &labels()).await;
    world.metric_reaches(r#"errors_total{kind="timeout"}"#, 1.0).await;
    let record = world.record_becomes(NODE, "is open", |record| record.state == State::Open).await;
    assert!(record.given);
    world.caught_up().await;
    assert_eq!(world.patches_of(NODE), 1, "given once");
}

#[tokio::test]
async fn a_throttling_server_is_left_alone_for_as_long_as_it_asks() {
    let (world, wire) = wired().await;
    for code in [429, 503] {
        wire.bend(Call::RecordWrite, 1, Bend::Throttle(code, 2));
    }
    world.register(NODE, &labels()).await;
    world.recorded(NODE, &labels()).await;

    let made = wire.made();
    let writes: Vec<_> = made.iter().filter(|made| made.call == Call::RecordWrite).collect();
    assert_eq!(writes.len(), 3);
    for pair in writes.windows(2) {
        let waited = pair[1].at - pair[0].at;
        assert!(waited.as_secs_f64() >= 1.9, "asked again after {waited:?}");
    }
    assert!((world.metric(r#"errors_total{kind="throttled"}"#) - 2.0).abs() < f64::EPSILON);
}

#[tokio::test]
async fn a_token_that_is_refused_for_a_while_costs_nothing_but_time() {
    let (mut world, wire) = wired().await;
    world.create(machine(&labels())).await;
    world.recorded(NODE, &labels()).await;
    world.replace_keeper().await;
    for call in [Call::NodeWatch, Call::RecordWatch, Call::Head].into_iter().chain(ALL) {
        wire.bend(call, 3, Bend::Refuse(401));
    }
    wire.cut();
    world.delete(NODE).await;
    world.create(machine(&pairs([]))).await;

    world.labels_become(NODE, &labels()).await;
    world.caught_up().await;
    assert_eq!(wire.unmet(), []);
    assert!(world.metric(r#"errors_total{kind="unauthorized"}"#) >= 9.0);
    assert_eq!(world.patches_of(NODE), 1, "given once");
}

#[tokio::test]
async fn a_server_that_is_just_starting_and_refuses_everybody_is_asked_again_soon() {
    let mut world = World::without_keeper("").await;
    let wire = world.interpose(Wire::before);
    world.configure(|config| config.retry_slowly = Duration::from_hours(1));
    world.start_keeper().await;
    for call in [Call::RecordWrite, Call::NodePatch, Call::RecordRead] {
        wire.bend(call, 2, Bend::Refuse(403));
    }
    world.register(NODE, &pairs([("team", "blue")])).await;
    world.recorded(NODE, &pairs([("team", "blue")])).await;
    world.replace_keeper().await;
    world.caught_up().await;
    world.delete(NODE).await;
    world.register(NODE, &pairs([])).await;
    world.labels_become(NODE, &pairs([("team", "blue")])).await;
    assert_eq!(wire.unmet(), []);
}

#[tokio::test]
async fn a_broken_watch_is_picked_up_where_it_was() {
    let (world, wire) = wired().await;
    world.register(NODE, &pairs([("team", "blue")])).await;
    world.recorded(NODE, &pairs([("team", "blue")])).await;
    for call in [Call::NodeWatch, Call::RecordWatch] {
        for code in [500, 503, 429] {
            wire.bend(call, 1, Bend::Refuse(code));
        }
    }
    wire.cut();
    world.label(NODE, "team", Some("green")).await;
    world.delete(NODE).await;
    world.register(NODE, &pairs([])).await;

    world.labels_become(NODE, &pairs([("team", "green")])).await;
    world.caught_up().await;
    // Neither watch is needed for that any more.
    eventually(SOON, "both watches were refused every time", || async {
        Ok(wire.unmet().is_empty().then_some(()))
    })
    .await
    .unwrap();
    assert!(world.metric("relists_total") < 0.5, "nothing had to be listed anew");
    assert!(world.metric(r#"proofs_total{kind="proved"}"#) < 0.5, "the end was seen, not proved");
}

#[tokio::test]
async fn a_watch_that_ends_at_once_again_and_again_is_not_asked_in_a_hot_loop() {
    let (world, wire) = wired().await;
    wire.bend(Call::NodeWatch, 4, Bend::edit(|_| None));
    wire.cut();
    // Each watch ends with its first event, and the events in between come with the next.
    for round in 0..4 {
        let value = round.to_string();
        let stamp = pairs([("round", value.as_str())]);
        if round == 0 {
            world.register(NODE, &stamp).await;
        } else {
            world.label(NODE, "round", Some(&value)).await;
        }
    }
    world.recorded(NODE, &pairs([("round", "3")])).await;
    assert_eq!(wire.unmet(), []);

    let made = wire.made();
    let watches: Vec<_> = made.iter().filter(|made| made.call == Call::NodeWatch).collect();
    let spent = watches[4].at - watches[0].at;
    // The waits double from 100 ms, and chance takes at most half.
    assert!(spent.as_secs_f64() >= 0.75, "five watches within {spent:?}");
}

#[tokio::test]
async fn a_proof_goes_on_after_answers_of_every_kind() {
    let (mut world, wire) = wired().await;
    world.register(NODE, &pairs([("team", "blue")])).await;
    world.recorded(NODE, &pairs([("team", "blue")])).await;
    world.crash_keeper().await;
    world.label(NODE, "team", Some("green")).await;
    world.delete(NODE).await;
    world.register(NODE, &pairs([])).await;
    for bend in [
        Bend::Refuse(500),
        Bend::Throttle(429, 1),
        Bend::Refuse(401),
        Bend::Refuse(409),
        Bend::Proxy(404),
        Bend::LoseReply,
    ] {
        wire.bend(Call::NodePast, 1, bend);
    }
    world.start_keeper().await;

    world.labels_become(NODE, &pairs([("team", "green")])).await;
    assert_eq!(wire.unmet(), []);
    assert!((world.metric(r#"proofs_total{kind="proved"}"#) - 1.0).abs() < f64::EPSILON);
    world.caught_up().await;
    assert_eq!(world.patches_of(NODE), 1, "given once");
}
