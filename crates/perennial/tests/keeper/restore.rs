//! Labels are remembered and come back.

use perennial_core::record::{State, record_name};

use crate::world::{Labels, World, pairs};

/// The labels that `worker-1` ends up with when it bore `kept` and comes back with `born`, under this policy.
async fn restored(policy: &str, kept: &Labels, born: &Labels) -> Labels {
    let world = World::with_policy(policy).await;
    world.register("worker-1", kept).await;
    world.recorded("worker-1", kept).await;
    world.delete("worker-1").await;
    world.register("worker-1", born).await;
    let node = world.is_marked("worker-1").await;
    let labels = node.metadata.labels.unwrap_or_default();
    world
        .record_becomes("worker-1", "is open with what the node bears", |record| {
            record.state == State::Open && record.given && record.kept.labels == labels
        })
        .await;
    labels
}

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

#[tokio::test]
async fn labels_come_back_after_a_long_absence() {
    let world = World::start().await;
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;

    world.delete("worker-1").await;
    world.closed("worker-1", &labels).await;
    world.register("worker-1", &pairs([])).await;

    world.labels_become("worker-1", &labels).await;
}

#[tokio::test]
async fn a_label_present_on_the_newborn_is_not_overwritten() {
    let kept = pairs([("rack", "r1"), ("team", "blue")]);
    let born = pairs([("team", "green"), ("zone", "b")]);
    let labels = restored("", &kept, &born).await;
    assert_eq!(labels, pairs([("rack", "r1"), ("team", "green"), ("zone", "b")]));
}

#[tokio::test]
async fn a_label_present_on_the_newborn_is_overwritten_where_the_policy_says_so() {
    let kept = pairs([("rack", "r1"), ("team", "blue")]);
    let born = pairs([("team", "green"), ("zone", "b")]);
    let labels = restored("rules: [{merge: overwrite}]", &kept, &born).await;
    assert_eq!(labels, pairs([("rack", "r1"), ("team", "blue"), ("zone", "b")]));
}

#[tokio::test]
async fn only_labels_that_match_a_pattern_are_overwritten_where_the_policy_names_patterns() {
    let kept = pairs([("example.com/tier", "gold"), ("rack", "r1"), ("team", "blue")]);
    let born = pairs([("example.com/tier", "none"), ("rack", "r2"), ("team", "green")]);
    let policy = r#"rules: [{merge: {overwrite: ["example.com/*", "team"]}}]"#;
    let labels = restored(policy, &kept, &born).await;
    assert_eq!(labels, pairs([("example.com/tier", "gold"), ("rack", "r2"), ("team", "blue")]));
}

#[tokio::test]
async fn a_newborn_that_lacks_nothing_is_marked_and_left_as_it_is() {
    let kept = pairs([("rack", "r1"), ("team", "blue")]);
    assert_eq!(restored("", &kept, &kept).await, kept);
}

#[tokio::test]
async fn an_empty_value_on_the_newborn_is_a_value_and_is_not_overwritten() {
    let labels = restored("", &pairs([("team", "blue")]), &pairs([("team", "")])).await;
    assert_eq!(labels, pairs([("team", "")]));
}

#[tokio::test]
async fn everything_that_the_label_syntax_allows_comes_back() {
    let longest_prefix = format!("{0}.{0}.{0}.{1}", "p".repeat(63), "q".repeat(61));
    assert_eq!(longest_prefix.len(), 253);
    let longest_name = format!("N{}9", "-_.".repeat(20) + "x");
    assert_eq!(longest_name.len(), 63);
    let longest_value = format!("0{}Z", "._-".repeat(20) + "y");
    assert_eq!(longest_value.len(), 63);
    let labels: Labels = [
        ("a".to_owned(), String::new()),
        ("0".to_owned(), "0".to_owned()),
        ("Z".to_owned(), "true".to_owned()),
        ("empty.example.com/flag".to_owned(), String::new()),
        ("x/y".to_owned(), "a--b".to_owned()),
        ("example.com/A.b_c-d".to_owned(), "A.b_c-d".to_owned()),
        (format!("{longest_prefix}/{longest_name}"), longest_value.clone()),
        (longest_name, longest_value),
        ("null".to_owned(), "null".to_owned()),
    ]
    .into();
    assert_eq!(restored("", &labels, &pairs([])).await, labels);
}

#[tokio::test]
async fn a_node_with_the_longest_name_gets_its_labels_back() {
    let world = World::start().await;
    let [name, twin] =
        ["a", "b"].map(|last| format!("{0}.{0}.{0}.{1}{last}", "n".repeat(63), "m".repeat(60)));
    assert_eq!(name.len(), 253);
    assert_ne!(record_name(&name), record_name(&twin), "names that differ at the last letter");
    for (node, team) in [(&name, "blue"), (&twin, "green")] {
        world.register(node, &pairs([("team", team)])).await;
        world.recorded(node, &pairs([("team", team)])).await;
        world.delete(node).await;
        world.register(node, &pairs([])).await;
    }
    world.labels_become(&name, &pairs([("team", "blue")])).await;
    world.labels_become(&twin, &pairs([("team", "green")])).await;
}

#[tokio::test]
async fn a_node_that_comes_back_again_and_again_gets_its_labels_back_each_time() {
    let world = World::start().await;
    let mut labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    for round in 0..5 {
        let key = format!("round-{round}");
        world.label("worker-1", &key, Some("yes")).await;
        labels.insert(key, "yes".to_owned());
        world.delete("worker-1").await;
        world.register("worker-1", &pairs([])).await;
        world.labels_become("worker-1", &labels).await;
    }
}
