//! Replicas that are not the same: other policies, other installations, other versions of the binary.

use std::sync::Arc;
use std::time::Duration;

use perennial_core::policy::Policy;
use perennial_core::record::{DATA_KEY, State};
use perennial_testkit::{AuditEntry, eventually};
use serde_json::Value;
use tokio::sync::watch;

use crate::members::NEVER;
use crate::through::first_for;
use crate::world::{Labels, SOON, World, connect, pairs};

const MEMBERS: [&str; 2] = ["a", "b"];

fn names(count: usize) -> Vec<String> {
    MEMBERS.iter().flat_map(|member| first_for(member, &MEMBERS, count)).collect()
}

/// Two replicas in the middle of a rollout: one keeps this, the other that.
async fn two_policies(world: &mut World, old: &str, new: &str) -> [watch::Sender<Arc<Policy>>; 2] {
    let policies = [old, new].map(|yaml| watch::channel(Arc::new(Policy::parse(yaml).unwrap())));
    let [(old, of_old), (new, of_new)] = policies;
    for (name, policy) in [("a", of_old), ("b", of_new)] {
        world
            .start_member_with(name, |config, members| {
                config.policy = policy;
                members.lease = NEVER;
            })
            .await;
    }
    for name in MEMBERS {
        world.sees(name, 2).await;
    }
    [old, new]
}

const TEAMS: &str = "rules: [{labels: {include: ['team', 'probe']}}]";
const ZONES: &str = "rules: [{labels: {include: ['zone', 'probe']}}]";
const BOTH: &str = "rules: [{labels: {include: ['team', 'zone', 'probe']}}]";

/// Nothing that either keeps is lost at a change, at an end or at a restore, whoever acts.
async fn nothing_is_lost_between(old: &str, new: &str) {
    let mut world = World::without_keeper("").await;
    let _policies = two_policies(&mut world, old, new).await;
    let nodes = names(3);
    let both = |team: &str| -> Labels { pairs([("team", team), ("zone", "z1")]) };
    for node in &nodes {
        world.register(node, &both("blue")).await;
        world.recorded(node, &both("blue")).await;
    }
    world.silence().await;
    for node in &nodes {
        world.label(node, "team", Some("green")).await;
        world.recorded(node, &both("green")).await;
    }
    world.silence().await;
    // A change right before an end that nobody has recorded when the node is back, and others that are closed first.
    for node in &nodes {
        world.label(node, "team", Some("red")).await;
        world.delete(node).await;
        if node != &nodes[0] {
            world.closed(node, &both("red")).await;
        }
        world.register(node, &pairs([])).await;
    }
    for node in &nodes {
        world.labels_become(node, &both("red")).await;
        let open = |record: &perennial_core::record::Record| record.state == State::Open;
        world.record_becomes(node, "is open", open).await;
        world.recorded(node, &both("red")).await;
    }
    world.silence().await;
    world.given_once(&nodes, 1);
}

#[tokio::test]
async fn while_a_policy_is_widened_nothing_that_either_keeps_is_lost() {
    nothing_is_lost_between(TEAMS, BOTH).await;
}

#[tokio::test]
async fn while_a_policy_is_changed_for_another_nothing_that_either_keeps_is_lost() {
    nothing_is_lost_between(TEAMS, ZONES).await;
}

#[tokio::test]
async fn a_replica_that_leaves_in_a_rollout_takes_nothing_along_that_only_another_keeps() {
    let mut world = World::without_keeper("").await;
    // Nobody closes before somebody leaves.
    world.configure(|config| config.close_after = NEVER);
    let _policies = two_policies(&mut world, TEAMS, BOTH).await;
    let labels = pairs([("team", "blue"), ("zone", "z1")]);
    let nodes = names(1);
    for node in &nodes {
        world.register(node, &labels).await;
        world.recorded(node, &labels).await;
        world.delete(node).await;
    }
    eventually(SOON, "the one that leaves has seen both ends", || async {
        Ok((world.metric_of("a", "nodes") == 0.0).then_some(()))
    })
    .await
    .unwrap();
    world.stop_member("a").await;
    for node in &nodes {
        world.closed(node, &labels).await;
    }
}

#[tokio::test]
async fn what_only_one_policy_keeps_does_not_wait_for_a_replica_of_the_other() {
    let mut world = World::without_keeper("").await;
    for (name, policy) in [("a", TEAMS), ("b", BOTH)] {
        let policy = watch::channel(Arc::new(Policy::parse(policy).unwrap())).1;
        let patient = |config: &mut perennial::KeeperConfig, members: &mut perennial::MembersConfig| {
            config.policy = policy;
            crate::members::patient(members);
        };
        world.start_member_with(name, patient).await;
    }
    for name in MEMBERS {
        world.sees(name, 2).await;
    }
    let node = &first_for("a", &MEMBERS, 1)[0];
    world.register(node, &pairs([("team", "blue")])).await;
    world.recorded(node, &pairs([("team", "blue")])).await;
    world.label(node, "zone", Some("z1")).await;
    world.recorded(node, &pairs([("team", "blue"), ("zone", "z1")])).await;
}

#[tokio::test]
async fn two_installations_keep_and_restore_the_same_nodes_without_a_fight() {
    let mut world = World::without_keeper("").await;
    let other = format!("{}-2", world.namespace());
    world.plane.service_account(&other, "perennial").await.unwrap();
    let admin = connect(&world.plane.kubeconfig_for_admin().unwrap()).await;
    world.start_member("one").await;
    world.spawn_member("two", admin, |config, members| {
        config.namespace.clone_from(&other);
        config.installation = "second".to_owned();
        members.namespace.clone_from(&other);
        members.takeover = Duration::from_millis(500);
    });
    world.member_is_ready("two").await;
    world.sees("one", 1).await;
    world.sees("two", 1).await;
    let nodes = names(3);
    world.begin_with(&nodes, "blue").await;
    for node in &nodes {
        world.return_with(node, "green").await;
    }
    world.all_are_back(&nodes, "green").await;
    for node in &nodes {
        world.is_marked(node).await;
        eventually(SOON, &format!("{node} bears the other's mark too"), || async {
            let node = world.node(node).await.metadata;
            let mark = node.annotations.unwrap_or_default().remove("restored.perennial.dev/second");
            if mark == node.uid { Ok(Some(())) } else { Err(anyhow::anyhow!("{mark:?}")) }
        })
        .await
        .unwrap();
    }
    world.silence().await;
    // What a hand takes away stays away, from both.
    world.label(&nodes[0], "team", None).await;
    world.recorded(&nodes[0], &pairs([])).await;
    world.silence().await;
    assert_eq!(world.labels(&nodes[0]).await, pairs([]));
    world.given_once(&nodes, 1);
    // The other goes by the administrator's name here.
    let by_other = |entry: &&AuditEntry| {
        let is_keeper = entry.user_agent.starts_with("perennial") && entry.user == "admin";
        is_keeper && entry.verb == "patch" && entry.resource == "nodes" && entry.code == 200
    };
    assert_eq!(world.plane.audit().unwrap().iter().filter(by_other).count(), nodes.len());
}

#[tokio::test]
async fn what_a_newer_binary_wrote_is_neither_written_nor_given_by_two_older_ones() {
    let mut world = World::without_keeper("").await;
    let _proxies = world.two_members(|members| members.takeover = Duration::ZERO).await;
    let nodes = names(2);
    world.begin_with(&nodes, "blue").await;
    world.silence().await;
    let mut newer = Vec::new();
    for node in &nodes {
        let text = world.config_map(node).await.unwrap().data.unwrap()[DATA_KEY].clone();
        let mut record: Value = serde_json::from_str(&text).unwrap();
        record["schema"] = 2.into();
        record["something"] = "new".into();
        world.edit_record(node, &record.to_string()).await;
        newer.push(world.config_map(node).await.unwrap());
    }
    for node in &nodes {
        world.label(node, "team", Some("green")).await;
    }
    for node in &nodes[..2] {
        world.delete(node).await;
        world.register(node, &pairs([])).await;
    }
    // Whatever else there is to do is done.
    let others = ["other-1".to_owned(), "other-2".to_owned()];
    world.begin_with(&others, "blue").await;
    for node in &others {
        world.return_with(node, "green").await;
    }
    world.all_are_back(&others, "green").await;
    for member in MEMBERS {
        // A life that its record does not let go on is something a person has to look at.
        world.metric_of_reaches(member, "records_unreadable", 4.0).await;
    }
    for (node, before) in nodes.iter().zip(&newer) {
        assert_eq!(world.config_map(node).await.as_ref(), Some(before), "{node}");
    }
    for node in &nodes[..2] {
        assert_eq!(world.labels(node).await, pairs([]));
    }
    world.given_once(&nodes, 0);
}
