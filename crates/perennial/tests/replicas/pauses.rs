//! A replica stands still in the middle of a write, others go on, and it wakes up.

use kube::api::DeleteParams;
use perennial_core::record::{Record, State, record_name};
use perennial_testkit::eventually;
use perennial_testkit::proxy::{Entry, Fault, Injection, Matcher, Moment, Proxy, Verb};

use crate::members::NEVER;
use crate::through::first_for;
use crate::world::{SOON, World, connect, pairs};

/// The writes of one node's record.
fn writes_of(node: &str) -> Matcher {
    Matcher::on("configmaps").verbs([Verb::Update]).named(&record_name(node))
}

fn patches_of(node: &str) -> Matcher {
    Matcher::on("nodes").verbs([Verb::Patch]).named(node)
}

/// Lets go of the one call that the fault has met, and waits until the API server has answered it.
async fn let_go(proxy: &Proxy, what: &Matcher, hangs: Injection) {
    assert_eq!(hangs.met(), 1);
    let unanswered = |entry: &Entry| what.takes(&entry.call) && entry.server.is_none();
    let late = proxy.journal().into_iter().find(unanswered).unwrap().call.index;
    hangs.lift();
    eventually(SOON, "the API server answers the late call", || async {
        let entry = proxy.journal().into_iter().find(|entry| entry.call.index == late);
        Ok(entry.unwrap().server)
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_to_b_to_a_with_a_writer_that_was_paused_ends_with_a() {
    let mut world = World::without_keeper("").await;
    let [slow, _quick] = world.two_members(|members| members.lease = NEVER).await;
    let nodes = first_for("a", &["a", "b"], 3);
    world.begin_with(&nodes, "a").await;
    world.silence().await;
    for node in &nodes {
        let writes = writes_of(node);
        // It is about to write "b", and does not get to it.
        let hangs = slow.inject(writes.clone(), Fault::Hang.once());
        world.label(node, "team", Some("b")).await;
        world.recorded(node, &pairs([("team", "b")])).await;
        world.label(node, "team", Some("a")).await;
        world.recorded(node, &pairs([("team", "a")])).await;
        let before = world.config_map(node).await;
        let_go(&slow, &writes, hangs).await;
        assert_eq!(world.config_map(node).await, before, "the second in line wrote both, and that stands");
    }
    world.silence().await;
    for node in &nodes {
        assert_eq!(world.record(node).await.unwrap().kept.labels, pairs([("team", "a")]));
        assert_eq!(world.labels(node).await, pairs([("team", "a")]));
    }
}

#[tokio::test]
async fn a_late_write_does_not_bring_back_what_the_end_no_longer_said() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let mut world = World::without_keeper("").await;
    let [slow, _quick] = world.two_members(|members| members.lease = NEVER).await;
    let nodes = first_for("a", &["a", "b"], 2);
    world.begin_with(&nodes, "a").await;
    world.silence().await;
    for node in &nodes {
        let writes = writes_of(node);
        let hangs = slow.inject(writes.clone(), Fault::Hang.once());
        world.label(node, "team", Some("b")).await;
        world.recorded(node, &pairs([("team", "b")])).await;
        world.label(node, "team", Some("a")).await;
        world.delete(node).await;
        world.closed(node, &pairs([("team", "a")])).await;
        // Nobody could look it up any more.
        world.plane.compact(world.plane.revision().await.unwrap()).await.unwrap();
        let_go(&slow, &writes, hangs).await;
        world.register(node, &pairs([])).await;
    }
    world.all_are_back(&nodes, "a").await;
    world.silence().await;
    world.given_once(&nodes, 1);
    world.nothing_is_in_doubt(&nodes).await;
}

#[tokio::test]
async fn a_late_patch_undoes_nothing_that_a_hand_did_since() {
    let mut world = World::without_keeper("").await;
    let [slow, _quick] = world.two_members(|members| members.lease = NEVER).await;
    let nodes = first_for("a", &["a", "b"], 3);
    world.begin_with(&nodes, "blue").await;
    for node in &nodes {
        let patches = patches_of(node);
        let hangs = slow.inject(patches.clone(), Fault::Hang.once());
        world.return_with(node, "green").await;
        // The second in line gives it; then a person takes it away.
        world.labels_become(node, &pairs([("team", "green")])).await;
        world.label(node, "team", None).await;
        let_go(&slow, &patches, hangs).await;
    }
    world.silence().await;
    for node in &nodes {
        assert_eq!(world.labels(node).await, pairs([]), "{node}");
        assert!(world.record(node).await.unwrap().kept.is_empty());
    }
    world.given_once(&nodes, 1);
}

#[tokio::test]
async fn a_late_patch_does_not_reach_the_next_incarnation() {
    let mut world = World::without_keeper("").await;
    let [slow, _quick] = world.two_members(|members| members.lease = NEVER).await;
    let nodes = first_for("a", &["a", "b"], 2);
    world.begin_with(&nodes, "blue").await;
    for node in &nodes {
        let patches = patches_of(node);
        let hangs = slow.inject(patches.clone(), Fault::Hang.once());
        world.return_with(node, "green").await;
        world.labels_become(node, &pairs([("team", "green")])).await;
        // Another life, with a name of its own for what it bears: nothing of "green" is owed to it.
        world.label(node, "team", None).await;
        world.label(node, "zone", Some("z1")).await;
        world.return_with(node, "red").await;
        world.labels_become(node, &pairs([("team", "red"), ("zone", "z1")])).await;
        let_go(&slow, &patches, hangs).await;
    }
    world.silence().await;
    for node in &nodes {
        assert_eq!(world.labels(node).await, pairs([("team", "red"), ("zone", "z1")]));
    }
    world.given_once(&nodes, 2);
}

#[tokio::test]
async fn a_record_that_is_created_late_after_a_person_removed_one_is_emptied() {
    let mut world = World::without_keeper("").await;
    let [slow, _quick] = world.two_members(|members| members.lease = NEVER).await;
    let nodes = first_for("a", &["a", "b"], 2);
    let creates = Matcher::on("configmaps").verbs([Verb::Create]);
    let labels = pairs([("team", "blue")]);
    for node in &nodes {
        let hangs = slow.inject(creates.clone(), Fault::Hang.once());
        world.register(node, &labels).await;
        // The second in line writes it; then a person forgets the node.
        world.recorded(node, &labels).await;
        world.delete(node).await;
        world.closed(node, &labels).await;
        world.config_maps().delete(&record_name(node), &DeleteParams::default()).await.unwrap();
        let_go(&slow, &creates, hangs).await;
        let emptied = |record: &Record| record.state == State::Closed && record.kept.is_empty();
        world.record_becomes(node, "is empty", emptied).await;
        world.register(node, &pairs([])).await;
    }
    world.silence().await;
    for node in &nodes {
        assert_eq!(world.labels(node).await, pairs([]), "{node}");
    }
    world.given_once(&nodes, 0);
}

#[tokio::test]
async fn a_record_that_was_read_before_a_person_removed_it_takes_no_later_end_along() {
    let mut world = World::without_keeper("").await;
    let proxy = world.proxy().await;
    let account = connect(proxy.kubeconfig()).await;
    world.interpose(|_| (account, ()));
    world.start_keeper().await;
    for node in ["worker-1", "beside"] {
        world.register(node, &pairs([("team", "blue")])).await;
        world.recorded(node, &pairs([("team", "blue")])).await;
    }
    world.replace_keeper().await;
    let read = Matcher::on("configmaps").verbs([Verb::Get]).named(&record_name("worker-1"));
    let hangs = proxy.inject(read.clone(), Fault::HangReply.once());
    world.label("worker-1", "team", Some("green")).await;
    eventually(SOON, "the API server has answered with the record", || async {
        let answered = |entry: &Entry| read.takes(&entry.call) && entry.server == Some(200);
        Ok(proxy.journal().iter().any(answered).then_some(()))
    })
    .await
    .unwrap();
    world.config_maps().delete(&record_name("worker-1"), &DeleteParams::default()).await.unwrap();
    world.delete("worker-1").await;
    // Both watches have told by the time that it deals with what comes after.
    world.label("beside", "team", Some("green")).await;
    world.recorded("beside", &pairs([("team", "green")])).await;
    world.edit_record("beside", "somebody's").await;
    world.recorded("beside", &pairs([("team", "green")])).await;
    assert_eq!(hangs.met(), 1, "one read, which waits");
    hangs.lift();
    world.closed("worker-1", &pairs([("team", "green")])).await;
    world.register("worker-1", &pairs([])).await;
    world.labels_become("worker-1", &pairs([("team", "green")])).await;
}

/// The real binary is frozen at one of its writes, another replica does the work, and it is thawed.
async fn frozen_at(call: Matcher, node: &str, world: &mut World, past_its_lease: bool) {
    let proxy = world.proxy().await;
    let frozen = world.process(&proxy, "a").start().await.unwrap();
    world.sees("b", 2).await;
    for moment in [Moment::BeforeRequest, Moment::BeforeReply] {
        let value = format!("{moment:?}");
        let stop = proxy.stop(call.clone(), 0, moment);
        world.return_with(node, &value).await;
        let stopped = stop.reached().await.unwrap();
        frozen.pause().await.unwrap();
        if past_its_lease {
            world.sees("b", 1).await;
        }
        world.all_are_back(&[node.to_owned()], &value).await;
        // What it was about to do is done late, and what it hears is old.
        stopped.go_on();
        frozen.resume().await.unwrap();
        world.sees("b", 2).await;
        eventually(SOON, "it is at rest", || async {
            let metrics = frozen.metrics().await?;
            let pending = metrics["perennial_pending"] + metrics["perennial_inflight"];
            if pending == 0.0 { Ok(Some(())) } else { Err(anyhow::anyhow!("{pending}")) }
        })
        .await
        .unwrap();
        world.silence().await;
        assert_eq!(world.labels(node).await, pairs([("team", &value)]));
        assert_eq!(world.record(node).await.unwrap().kept.labels, pairs([("team", &value)]));
    }
    frozen.stop().await.unwrap();
    world.sees("b", 1).await;
}

#[tokio::test]
async fn a_replica_frozen_in_the_middle_of_a_write_undoes_nothing_when_it_wakes_up() {
    let mut world = World::without_keeper("").await;
    world.start_member("b").await;
    let nodes = first_for("a", &["a", "b"], 2);
    world.begin_with(&nodes, "blue").await;
    frozen_at(writes_of(&nodes[0]), &nodes[0], &mut world, false).await;
    frozen_at(patches_of(&nodes[1]), &nodes[1], &mut world, false).await;
    world.given_once(&nodes, 2);
}

#[tokio::test]
async fn a_replica_frozen_past_its_lease_undoes_nothing_when_it_wakes_up() {
    let mut world = World::without_keeper("").await;
    world.start_member("b").await;
    let nodes = first_for("a", &["a", "b"], 1);
    world.begin_with(&nodes, "blue").await;
    frozen_at(patches_of(&nodes[0]), &nodes[0], &mut world, true).await;
    world.given_once(&nodes, 2);
}
