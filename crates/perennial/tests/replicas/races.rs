//! Two replicas that do everything at the same time, and everything that may go wrong with it.

use std::time::Duration;

use kube::api::DeleteParams;
use perennial_core::record::{Record, record_name};
use perennial_testkit::proxy::{Fault, Injection, Matcher, Moment, Verb};

use crate::members::NEVER;
use crate::through::first_for;
use crate::world::{World, pairs};

const MEMBERS: [&str; 2] = ["a", "b"];

fn names(count: usize) -> Vec<String> {
    MEMBERS.iter().flat_map(|member| first_for(member, &MEMBERS, count)).collect()
}

#[tokio::test]
async fn two_that_race_through_refusals_and_lost_replies_give_everything_back_once() {
    let mut world = World::without_keeper("").await;
    // Neither waits for the other.
    let proxies = world.two_members(|members| members.takeover = Duration::ZERO).await;
    let nodes = names(4);
    world.begin_with(&nodes, "blue").await;
    let faults =
        [Fault::Refuse(409), Fault::Refuse(500), Fault::Throttle(429, 1), Fault::LoseReply, Fault::Cut];
    let writes = || Matcher::writes().when(|call| call.resource != "leases");
    let injected: Vec<_> = proxies
        .iter()
        .flat_map(|proxy| faults.clone().map(|fault| proxy.inject(writes(), fault.chance(0.12))))
        .collect();
    for round in 1..=3 {
        let color = round.to_string();
        for node in &nodes {
            world.return_with(node, &color).await;
        }
        world.all_are_back(&nodes, &color).await;
    }
    assert!(injected.iter().map(Injection::met).sum::<u64>() > 0);
    drop(injected);
    world.silence().await;
    world.given_once(&nodes, 3);
    world.nothing_is_in_doubt(&nodes).await;
    assert!(world.metric_of_all("member_duplicates_total") > 0.0, "they did race");
}

#[tokio::test]
async fn two_that_each_take_the_other_for_dead_are_harmless() {
    let mut world = World::without_keeper("").await;
    let [cut_off, _other] = world.two_members(|members| members.takeover = NEVER).await;
    let nodes = names(3);
    world.begin_with(&nodes, "blue").await;
    let apart = cut_off.partition(&Matcher::on("leases"));
    world.sees("a", 1).await;
    world.sees("b", 1).await;
    for node in &nodes {
        world.return_with(node, "green").await;
    }
    world.all_are_back(&nodes, "green").await;
    apart.lift();
    world.sees("a", 2).await;
    world.sees("b", 2).await;
    for node in &nodes {
        world.return_with(node, "red").await;
    }
    world.all_are_back(&nodes, "red").await;
    world.silence().await;
    world.given_once(&nodes, 2);
}

#[tokio::test]
async fn one_that_takes_the_other_for_dead_while_the_other_does_not_is_harmless() {
    let mut world = World::without_keeper("").await;
    let [blind, _other] = world.two_members(|members| members.takeover = NEVER).await;
    let nodes = names(3);
    world.begin_with(&nodes, "blue").await;
    // It renews its own Lease and does not hear of the other's.
    let apart = blind.partition(&Matcher::watches("leases"));
    world.sees("a", 1).await;
    for node in &nodes {
        world.return_with(node, "green").await;
    }
    world.all_are_back(&nodes, "green").await;
    assert_eq!(world.metric_of("b", "member_live"), 2.0);
    apart.lift();
    world.sees("a", 2).await;
    world.silence().await;
    world.given_once(&nodes, 1);
}

#[tokio::test]
async fn what_a_hand_does_while_two_are_about_to_restore_stands() {
    let mut world = World::without_keeper("").await;
    let [first, _second] = world.two_members(|_| {}).await;
    let nodes = first_for("a", &MEMBERS, 3);
    let labels = pairs([("team", "blue"), ("zone", "z1"), ("rack", "r1")]);
    for node in &nodes {
        world.register(node, &labels).await;
        world.recorded(node, &labels).await;
    }
    let given = pairs([("team", "hand"), ("zone", "z1"), ("rack", "r1")]);
    for (round, node) in nodes.iter().enumerate() {
        let stop =
            first.stop(Matcher::on("nodes").verbs([Verb::Patch]).named(node), 0, Moment::BeforeRequest);
        world.delete(node).await;
        world.register(node, &pairs([])).await;
        let stopped = stop.reached().await.unwrap();
        world.label(node, "team", Some("hand")).await;
        if round > 0 {
            // The other gives the rest meanwhile, and a hand takes some of it away again.
            world.labels_become(node, &given).await;
            world.label(node, "zone", None).await;
        }
        stopped.go_on();
    }
    world.labels_become(&nodes[0], &given).await;
    world.silence().await;
    let left = pairs([("team", "hand"), ("rack", "r1")]);
    for node in &nodes[1..] {
        assert_eq!(world.labels(node).await, left, "{node}");
        assert_eq!(world.record(node).await.unwrap().kept.labels, left, "{}", record_name(node));
    }
    world.given_once(&nodes, 1);
}

#[tokio::test]
async fn a_record_that_a_person_removes_while_two_hold_the_end_of_its_node_is_not_written_again() {
    let mut world = World::without_keeper("").await;
    // Both hold ends for long, and neither waits for the other.
    world.configure(|config| config.close_after = NEVER);
    let _proxies = world.two_members(|members| members.takeover = Duration::ZERO).await;
    let nodes = names(2);
    world.begin_with(&nodes, "blue").await;
    world.silence().await;
    for node in &nodes {
        world.delete(node).await;
    }
    world.silence().await;
    for node in &nodes {
        world.config_maps().delete(&record_name(node), &DeleteParams::default()).await.unwrap();
    }
    world.silence().await;
    for node in &nodes {
        world.register(node, &pairs([])).await;
    }
    world.silence().await;
    for node in &nodes {
        assert_eq!(world.labels(node).await, pairs([]), "{node}");
        assert!(world.record(node).await.is_none(), "{node}");
    }
    world.given_once(&nodes, 0);
}

#[tokio::test]
async fn a_life_that_ended_after_the_record_was_removed_is_kept_by_those_who_hear_of_the_removal_last() {
    let mut world = World::without_keeper("").await;
    world.configure(|config| config.close_after = NEVER);
    let proxies = world.two_members(|members| members.takeover = Duration::ZERO).await;
    let nodes = names(2);
    world.begin_with(&nodes, "blue").await;
    world.silence().await;
    for node in &nodes {
        world.delete(node).await;
    }
    world.silence().await;
    let hold = |resource: &str| {
        let watches = Matcher::watches(resource);
        proxies.each_ref().map(|proxy| proxy.inject(watches.clone(), Fault::Hold))
    };
    let [removals, lives] = [hold("configmaps"), hold("nodes")];
    for node in &nodes {
        world.config_maps().delete(&record_name(node), &DeleteParams::default()).await.unwrap();
        world.register(node, &pairs([("rack", "r12")])).await;
        world.delete(node).await;
    }
    drop(lives);
    // Whoever tries to close what it knows finds the record gone: that must not be the last word.
    for node in &nodes {
        world.register(&format!("{node}-beside"), &pairs([("team", "red")])).await;
    }
    for node in &nodes {
        world.recorded(&format!("{node}-beside"), &pairs([("team", "red")])).await;
    }
    drop(removals);
    for node in &nodes {
        let kept = |record: &Record| record.kept.labels.get("rack").is_some_and(|rack| rack == "r12");
        world.record_becomes(node, "holds what the later life bore", kept).await;
    }
    world.silence().await;
}

#[tokio::test]
async fn a_record_that_a_person_removed_is_not_written_again_by_the_replica_that_hears_of_the_end_last() {
    let mut world = World::without_keeper("").await;
    let proxies = world.two_members(|_| {}).await;
    let nodes = first_for("a", &MEMBERS, 3);
    world.begin_with(&nodes, "blue").await;
    world.silence().await;
    let [records, count] = [world.metric_of("a", "records"), f64::from(u32::try_from(nodes.len()).unwrap())];
    // There is something to write, and so all that the nodes bear is at hand.
    let writes = || Matcher::on("configmaps").verbs([Verb::Create, Verb::Update]);
    let hindered = proxies.each_ref().map(|proxy| proxy.inject(writes(), Fault::Refuse(500)));
    for node in &nodes {
        world.label(node, "team", Some("green")).await;
    }
    world.metric_of_reaches("a", "pending", count).await;
    let held = proxies[0].inject(Matcher::watches("nodes"), Fault::Hold);
    for node in &nodes {
        world.delete(node).await;
        world.config_maps().delete(&record_name(node), &DeleteParams::default()).await.unwrap();
    }
    world.metric_becomes("a", "records", records - count).await;
    // It knows of the removals, and its watch says that the nodes live.
    drop(hindered);
    world.metric_becomes("a", "pending", 0.0).await;
    held.lift();
    world.silence().await;
    for node in &nodes {
        world.register(node, &pairs([])).await;
    }
    world.silence().await;
    for node in &nodes {
        assert_eq!(world.labels(node).await, pairs([]), "{node}");
        assert!(world.record(node).await.is_none(), "{node}");
    }
    world.given_once(&nodes, 0);
}

#[tokio::test]
async fn an_end_that_was_forgotten_gives_nothing_to_the_life_that_is_recorded_when_it_is_heard_of() {
    let mut world = World::without_keeper("").await;
    world.configure(|config| config.close_after = NEVER);
    let [late, _other] = world.two_members(|members| members.takeover = Duration::ZERO).await;
    let nodes = names(2);
    world.begin_with(&nodes, "blue").await;
    world.silence().await;
    let records = world.metric_of("a", "records");
    let hold = |resource: &str| late.inject(Matcher::watches(resource), Fault::Hold);
    let [lives, removals] = [hold("nodes"), hold("configmaps")];
    let next = pairs([("zone", "z1")]);
    for node in &nodes {
        world.delete(node).await;
        world.config_maps().delete(&record_name(node), &DeleteParams::default()).await.unwrap();
        world.register(node, &next).await;
        world.recorded(node, &next).await;
    }
    world.register("beside", &next).await;
    world.recorded("beside", &next).await;
    removals.lift();
    world.metric_becomes("a", "records", records + 1.0).await;
    // It knows the records of the lives that are there, and its watch tells of the ends before them.
    lives.lift();
    world.silence().await;
    for node in &nodes {
        assert_eq!(world.labels(node).await, next, "{node}");
        assert_eq!(world.record(node).await.unwrap().kept.labels, next, "{node}");
    }
    world.given_once(&nodes, 0);
}
