//! What nodes are born with.

use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use perennial::keeper::Door;
use perennial_core::record::{Record, Seals, State};
use perennial_testkit::eventually;
use perennial_testkit::proxy::{Fault, Matcher, Proxy};
use serde_json::json;

use crate::hook::{Hook, kubelet, lives, own};
use crate::world::{Labels, SOON, World, connect, pairs};

/// One key of every class, and whether a kubelet may set it by itself.
const CLASSES: [(&str, bool); 9] = [
    ("team", true),
    ("example.com/rack", true),
    ("node.kubernetes.io/pool", true),
    ("kubelet.kubernetes.io/pool", true),
    ("topology.kubernetes.io/zone", true),
    ("node-role.kubernetes.io/db", false),
    ("node-restriction.kubernetes.io/rack", false),
    ("storage.kubernetes.io/tier", false),
    ("kops.k8s.io/group", false),
];
/// Everything is kept, whoever else asserts it, on machines that nobody can tell apart.
const ALL: &str = "rules: [{labels: {excludeDefaults: false}, privileged: {withoutProviderID: true}}]";

fn classes(wanted: impl Fn(bool) -> bool) -> Labels {
    let wanted = CLASSES.into_iter().filter(|(_, own)| wanted(*own));
    wanted.map(|(key, _)| (key.to_owned(), "1".to_owned())).collect()
}

fn with(labels: &Labels, more: &Labels) -> Labels {
    labels.clone().into_iter().chain(more.clone()).collect()
}

/// Every version of a node from now on, until it bears its mark.
pub(crate) async fn versions_until_marked(
    world: &World,
    name: &str,
) -> impl Future<Output = Vec<Node>> + use<> {
    let nodes = world.nodes();
    let from = nodes.list_metadata(&ListParams::default().limit(1)).await.unwrap();
    let from = from.metadata.resource_version.unwrap();
    let params = WatchParams::default().fields(&format!("metadata.name={name}"));
    async move {
        let mut versions = Vec::new();
        let mut events = nodes.watch(&params, &from).await.unwrap().boxed();
        while let Some(event) = events.try_next().await.unwrap() {
            if let WatchEvent::Added(node) | WatchEvent::Modified(node) = event {
                let marks = |key: &String| key.starts_with("restored.perennial.dev/");
                let marked = node.metadata.annotations.iter().flatten().any(|(key, _)| marks(key));
                versions.push(node);
                if marked {
                    break;
                }
            }
        }
        versions
    }
}

#[tokio::test]
async fn nobody_ever_sees_it_without_its_labels() {
    let mut world = World::without_keeper("").await;
    let hook = world.start_with_hook().await;
    let labels = pairs([("team", "blue"), ("example.com/rack", "7")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;
    let versions = tokio::spawn(versions_until_marked(&world, "worker-1").await);
    world.join("worker-1").await;
    let versions = versions.await.unwrap();
    for node in &versions {
        let bears = node.metadata.labels.as_ref().unwrap();
        assert!(labels.iter().all(|(key, value)| bears.get(key) == Some(value)), "{bears:?}");
    }
    let last = versions.last().unwrap();
    assert!(!last.metadata.annotations.as_ref().unwrap().keys().any(|key| key.starts_with("born.")));
    assert_eq!(last.metadata.labels.clone().unwrap(), with(&labels, &own("worker-1")));
    assert!(hook.metric("births_total{kind=\"given\"}") >= 1.0);
    world.recorded("worker-1", &labels).await;
}

#[tokio::test]
async fn a_kubelet_is_never_refused_whatever_class_its_keys_are_of() {
    let mut world = World::without_keeper(ALL).await;
    let _hook = world.start_with_hook().await;
    let all = classes(|_| true);
    world.register("worker-1", &all).await;
    world.recorded("worker-1", &all).await;
    world.delete("worker-1").await;
    world.caught_up().await;
    let before = world.patches_of("worker-1");
    let born = world.join("worker-1").await.metadata.labels.unwrap();
    assert_eq!(born, with(&classes(|own| own), &own("worker-1")));
    world.labels_become("worker-1", &with(&all, &own("worker-1"))).await;
    let opened = |record: &Record| record.state == State::Open && record.given;
    world.record_becomes("worker-1", "is open again", opened).await;
    world.caught_up().await;
    assert_eq!(world.patches_of("worker-1"), before + 1, "all in one patch, once for this life");
}

#[tokio::test]
async fn a_kubelet_may_not_set_what_it_is_not_given() {
    // The API server's own word on the table above.
    let world = World::without_keeper("").await;
    for (number, (key, own)) in CLASSES.into_iter().enumerate() {
        let name = format!("worker-{number}");
        let node = json!({ "metadata": { "name": name, "labels": { key: "1" } } });
        let created = kubelet(&world, &name)
            .create(&PostParams::default(), &serde_json::from_value(node).unwrap())
            .await;
        assert_eq!(created.is_ok(), own, "{key}: {created:?}");
    }
}

#[tokio::test]
async fn what_it_brings_itself_is_not_touched() {
    let mut world = World::without_keeper("").await;
    let _hook = world.start_with_hook().await;
    let labels = pairs([("team", "blue"), ("pool", "old")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;
    let born = world.register("worker-1", &pairs([("pool", "new")])).await;
    let right = pairs([("team", "blue"), ("pool", "new")]);
    assert_eq!(born.metadata.labels.unwrap(), right);
    world.is_marked("worker-1").await;
    assert_eq!(world.labels("worker-1").await, right);
}

#[tokio::test]
async fn a_node_that_nobody_remembers_is_born_as_it_comes() {
    let mut world = World::without_keeper("").await;
    let hook = world.start_with_hook().await;
    let before = hook.metric("births_total{kind=\"nothing\"}");
    let born = world.join("worker-9").await;
    assert_eq!(born.metadata.labels.unwrap(), own("worker-9"));
    assert!(born.metadata.annotations.is_none_or(|all| !all.keys().any(|key| key.contains("perennial"))));
    assert_eq!(hook.metric("births_total{kind=\"nothing\"}"), before + 1.0);
}

#[tokio::test]
async fn one_that_is_paused_is_born_as_it_comes() {
    let mut world = World::without_keeper("").await;
    let _hook = world.start_with_hook().await;
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.annotate("worker-1", "perennial.dev/pause", Some("true")).await;
    world.record_becomes("worker-1", "is paused", |record| record.paused).await;
    world.delete("worker-1").await;
    assert_eq!(world.join("worker-1").await.metadata.labels.unwrap(), own("worker-1"));
}

#[tokio::test]
async fn a_record_with_labels_that_are_none_keeps_nobody_from_registering() {
    let mut world = World::without_keeper("").await;
    let hook = world.start_with_hook().await;
    let labels = pairs([("rack", "7"), ("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;
    let mut record = world.closed("worker-1", &labels).await;
    let longer = "a".repeat(64);
    let spoilt = pairs([("rack", "7"), ("team", "a b"), ("longer", &longer), ("no key", "1")]);
    record.kept.labels.clone_from(&spoilt);
    world.edit_record("worker-1", &record.to_json()).await;
    world.recorded("worker-1", &spoilt).await;
    eventually(SOON, "the webhook knows of it", || async {
        let born = would_be_born_with(&world, "worker-1").await;
        Ok((!born.contains_key("team")).then_some(()))
    })
    .await
    .unwrap();
    let born = world.join("worker-1").await;
    let right = with(&pairs([("rack", "7")]), &own("worker-1"));
    assert_eq!(born.metadata.labels.unwrap(), right);
    assert!(hook.metric("births_total{kind=\"given\"}") >= 1.0);
    // The keeper is not refused either, over and over.
    world.is_marked("worker-1").await;
    world.recorded("worker-1", &pairs([("rack", "7")])).await;
    assert_eq!(world.labels("worker-1").await, right);
    assert_eq!(world.metric("errors_total{kind=\"invalid\"}"), 0.0);
}

#[tokio::test]
async fn a_record_whose_seal_is_broken_gives_nothing_at_birth() {
    let mut world = World::without_keeper("").await;
    let seals = Seals::parse(&"k".repeat(64), false).unwrap();
    world.configure(|config| config.seals = Some(Arc::new(seals)));
    let _hook = world.start_with_hook().await;
    let labels = pairs([("team", "blue")]);
    for name in ["worker-1", "worker-2"] {
        world.register(name, &labels).await;
        world.recorded(name, &labels).await;
        world.delete(name).await;
        world.closed(name, &labels).await;
    }
    let text = world.record("worker-1").await.unwrap().to_json();
    world.edit_record("worker-1", &text.replace("blue", "red")).await;
    // Not even what it said before: nobody knows any more what is true.
    eventually(SOON, "the webhook knows of it", || async {
        Ok(would_be_born_with(&world, "worker-1").await.is_empty().then_some(()))
    })
    .await
    .unwrap();
    assert_eq!(world.join("worker-1").await.metadata.labels.unwrap(), own("worker-1"));
    world.event("worker-1", "RecordUnreadable").await;
    world.caught_up_but(1).await;
    assert_eq!(world.labels("worker-1").await, own("worker-1"));
    let whole = world.join("worker-2").await.metadata.labels.unwrap();
    assert_eq!(whole, with(&labels, &own("worker-2")), "one that is whole gives what it says");
}

#[tokio::test]
async fn a_kubelet_that_starts_again_finds_its_node_as_it_was() {
    let mut world = World::without_keeper("").await;
    let _hook = world.start_with_hook().await;
    world.join("worker-1").await;
    world.label("worker-1", "team", Some("blue")).await;
    let node = json!({ "metadata": { "name": "worker-1", "labels": own("worker-1") } });
    let node = serde_json::from_value(node).unwrap();
    let again = kubelet(&world, "worker-1").create(&PostParams::default(), &node).await;
    assert!(matches!(&again, Err(kube::Error::Api(status)) if status.code == 409), "{again:?}");
    world.recorded("worker-1", &pairs([("team", "blue")])).await;
}

#[tokio::test]
async fn a_dry_run_shows_what_it_would_be_born_with() {
    let mut world = World::without_keeper("").await;
    let _hook = world.start_with_hook().await;
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;
    assert_eq!(would_be_born_with(&world, "worker-1").await, labels);
    assert!(world.nodes().get_opt("worker-1").await.unwrap().is_none());
}

async fn would_be_born_with(world: &World, name: &str) -> Labels {
    let node = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    world.nodes().create(&dry, &node).await.unwrap().metadata.labels.unwrap_or_default()
}

/// The replica that answers stands still, and the node had another life since. Others give it what is right.
#[tokio::test]
async fn it_is_answered_without_a_word_to_the_api_server() {
    let mut world = World::without_keeper("").await;
    let proxy = Proxy::start(world.kubeconfig()).await.unwrap();
    let through = connect(proxy.kubeconfig()).await;
    world.interpose(|_| (through, ()));
    let _hook = world.start_with_hook().await;
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;
    world.closed("worker-1", &labels).await;
    // What it watches goes on; whatever it asks from now on is never answered.
    let unanswered = proxy.inject(Matcher::any().when(|call| !call.verb.streams()), Fault::Hang);
    let born = world.join("worker-1").await.metadata.labels.unwrap();
    assert_eq!(born, with(&labels, &own("worker-1")));
    drop(unanswered);
    world.is_marked("worker-1").await;
}

#[tokio::test]
async fn whatever_a_lagging_answer_got_wrong_is_put_right() {
    let mut world = World::without_keeper("").await;
    world.start_keeper().await;
    let proxy = Proxy::start(world.kubeconfig()).await.unwrap();
    let behind = connect(proxy.kubeconfig()).await;
    let door = Door::default();
    let at = door.clone();
    world.start_keeper_by(behind.clone(), |config| config.door = Some(at)).await;
    let hook = Hook::serve(&world, behind, door, lives()).await;
    world.ask(&hook, false).await;

    let old = pairs([("changed", "1"), ("removed", "1"), ("same", "1")]);
    world.register("worker-1", &old).await;
    world.recorded("worker-1", &old).await;
    world.delete("worker-1").await;
    world.closed("worker-1", &old).await;
    eventually(SOON, "the one that answers knows of the end", || async {
        Ok((would_be_born_with(&world, "worker-1").await == old).then_some(()))
    })
    .await
    .unwrap();
    let _held = ["nodes", "configmaps"].map(|what| proxy.inject(Matcher::watches(what), Fault::Hold));
    world.join("worker-1").await;
    world.is_marked("worker-1").await;
    world.label("worker-1", "changed", Some("2")).await;
    world.label("worker-1", "removed", None).await;
    world.delete("worker-1").await;
    let wrong = world.join("worker-1").await.metadata.labels.unwrap();
    assert_eq!(wrong, with(&old, &own("worker-1")), "it answers from what it knew");
    let right = with(&pairs([("changed", "2"), ("same", "1")]), &own("worker-1"));
    world.labels_become("worker-1", &right).await;
    world.is_marked("worker-1").await;
}
