//! rollback: undo, on nodes that live and on nodes that are away.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;

use crate::person::compare;
use crate::world::{Labels, World, pairs};

fn labels() -> Labels {
    pairs([("team", "blue"), ("pool", "web")])
}

/// Three nodes, one of them away, and the time at which all was well; then somebody's hand slipped.
async fn slipped() -> (World, Timestamp) {
    let world = World::start().await;
    for name in ["worker-1", "worker-2", "worker-3"] {
        world.register(name, &labels()).await;
        world.recorded(name, &labels()).await;
    }
    let well = Timestamp::now();
    for name in ["worker-1", "worker-2", "worker-3"] {
        let slip = json!({ "metadata": { "labels": { "team": null, "pool": "other", "came": "since" } } });
        world.patch(name, slip).await;
        world.recorded(name, &pairs([("pool", "other"), ("came", "since")])).await;
    }
    world.delete("worker-3").await;
    world.closed("worker-3", &pairs([("pool", "other"), ("came", "since")])).await;
    (world, well)
}

#[tokio::test]
async fn what_was_removed_from_all_nodes_comes_back_and_what_came_since_stays() {
    let (world, well) = slipped().await;
    let person = world.hand();
    let dry = person.says(&format!("rollback --all --to {well} --dry-run")).await;
    compare("rollback-dry-run", &dry.all());
    assert_eq!(world.labels("worker-1").await, pairs([("pool", "other"), ("came", "since")]));

    let told = person.says(&format!("rollback --all --to {well}")).await.bad();
    assert!(told.contains("nobody is there to ask"), "{told}");
    let told = person.answering("").says(&format!("rollback --all --to {well}")).await.bad();
    assert!(told.contains("Nothing was changed."), "{told}");
    let done = person.answering("yes").says(&format!("rollback --all --to {well}")).await;
    assert!(done.err.contains("3 nodes rolled back."), "{done:?}");
    done.good();
    let back = pairs([("team", "blue"), ("pool", "web"), ("came", "since")]);
    for name in ["worker-1", "worker-2"] {
        assert_eq!(world.labels(name).await, back);
        world.recorded(name, &back).await;
    }
    let record = world.closed("worker-3", &back).await;
    assert_eq!(record.previous[0].kept.labels, pairs([("pool", "other"), ("came", "since")]));
    world.register("worker-3", &pairs([])).await;
    world.labels_become("worker-3", &back).await;

    // Once more, and nothing is left to do.
    world.caught_up().await;
    let again = person.says(&format!("rollback worker-1 worker-2 --to {well} --yes")).await;
    assert!(again.err.contains("Nothing to roll back, 2 unchanged."), "{again:?}");
}

#[tokio::test]
async fn exactly_takes_what_came_since_and_leaves_what_is_not_kept() {
    let (world, well) = slipped().await;
    world.label("worker-1", "kubernetes.io/arch", Some("amd64")).await;
    let person = world.hand();
    compare(
        "rollback-exact",
        &person.says(&format!("rollback worker-1 --to {well} --exact --dry-run")).await.all(),
    );
    person.says(&format!("rollback worker-1 worker-3 --to {well} --exact --yes")).await.good();
    let exact = pairs([("team", "blue"), ("pool", "web"), ("kubernetes.io/arch", "amd64")]);
    assert_eq!(world.labels("worker-1").await, exact);
    world.closed("worker-3", &labels()).await;
}

#[tokio::test]
async fn what_cannot_be_undone_is_said_and_does_not_stop_the_others() {
    let (world, well) = slipped().await;
    let person = world.hand();
    world.edit_record("worker-3", "{").await;
    let done = person.says(&format!("rollback --all --to {well} --yes")).await;
    assert!(done.err.contains("2 nodes rolled back, 1 failed."), "{done:?}");
    assert!(done.err.contains("no record can be read"), "{done:?}");
    assert_eq!(done.code, 1);
    let told = person.says("rollback worker-1 --to 2020-01-01T00:00:00Z --yes").await.bad();
    assert!(told.contains("nothing is remembered from before"), "{told}");
    let told = person.says("rollback worker-1 --to soon").await.bad();
    assert!(told.contains("\"soon\" is no time"), "{told}");
    let told = person.says("rollback nobody --to 1m").await.bad();
    assert_eq!(told, "Error from server (NotFound): nodes \"nobody\" not found\n");
}

#[tokio::test]
async fn what_a_narrower_policy_left_out_is_not_taken_for_new() {
    let world = World::with_policy("rules: [{labels: {include: [team, probe]}}]").await;
    world.register("worker-1", &labels()).await;
    world.recorded("worker-1", &pairs([("team", "blue")])).await;
    let well = Timestamp::now();
    world.change_policy("rules: [{}]");
    world.recorded("worker-1", &labels()).await;
    world.label("worker-1", "team", None).await;
    world.recorded("worker-1", &pairs([("pool", "web")])).await;

    let file = world.file("policy.yaml");
    std::fs::write(&file, "rules: [{}]").unwrap();
    let (person, wide) = (world.person(), file.display());
    let told =
        person.says(&format!("rollback worker-1 --to {well} --exact --yes --policy {wide}")).await.bad();
    for words in ["that state was kept under another policy", "the label pool", "leave out --exact"] {
        assert!(told.contains(words), "{told}");
    }
    assert_eq!(world.labels("worker-1").await, pairs([("pool", "web")]));
    person.says(&format!("rollback worker-1 --to {well} --yes --policy {wide}")).await.good();
    assert_eq!(world.labels("worker-1").await, labels());
    world.recorded("worker-1", &labels()).await;

    // The same for what is given when it returns.
    world.delete("worker-1").await;
    world.closed("worker-1", &labels()).await;
    let told =
        person.says(&format!("rollback worker-1 --to {well} --exact --yes --policy {wide}")).await.bad();
    assert!(told.contains("that state was kept under another policy"), "{told}");
    world.closed("worker-1", &labels()).await;
}

#[tokio::test]
async fn a_time_at_which_a_node_bore_nothing_is_a_state_like_any_other() {
    let world = World::start().await;
    world.register("worker-1", &labels()).await;
    world.recorded("worker-1", &labels()).await;
    world.patch("worker-1", json!({ "metadata": { "labels": { "team": null, "pool": null } } })).await;
    world.recorded("worker-1", &pairs([])).await;
    let bare = Timestamp::now();
    world.label("worker-1", "came", Some("since")).await;
    world.recorded("worker-1", &pairs([("came", "since")])).await;

    let person = world.hand();
    let plain = person.says(&format!("rollback worker-1 --to {bare} --yes")).await;
    assert!(plain.err.contains("Nothing to roll back"), "{plain:?}");
    assert_eq!(world.labels("worker-1").await, pairs([("came", "since")]));
    person.says(&format!("rollback worker-1 --to {bare} --exact --yes")).await.good();
    assert_eq!(world.labels("worker-1").await, pairs([]));
}

#[tokio::test]
async fn what_nobody_recorded_yet_is_not_taken() {
    let (mut world, well) = slipped().await;
    world.stop_keeper().await;
    world.label("worker-1", "unseen", Some("yes")).await;
    let told = world.hand().says(&format!("rollback worker-1 --to {well} --exact --yes")).await.bad();
    assert!(told.contains("the label unseen is not recorded yet"), "{told}");
    assert_eq!(world.labels("worker-1").await.get("came").map(String::as_str), Some("since"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_came_after_the_question_is_not_taken_by_the_answer() {
    let (world, well) = slipped().await;
    let world = Arc::new(world);
    let later = Arc::clone(&world);
    let line = format!("rollback worker-1 worker-2 --to {well} --exact");
    let person = world.hand();
    let told = person.says_yes_after(&line, async move {
        later.label("worker-1", "late", Some("yes")).await;
        let all = pairs([("pool", "other"), ("came", "since"), ("late", "yes")]);
        later.recorded("worker-1", &all).await;
    });
    let told = told.await;
    assert!(told.err.contains("would lose more than was shown (label late)"), "{told:?}");
    assert!(told.err.contains("1 node rolled back, 1 failed."), "{told:?}");
    assert_eq!(world.labels("worker-1").await.len(), 3);
    assert_eq!(world.labels("worker-2").await, labels());
}
