//! One of two replicas hears what happens wrongly: not at all, twice, in another order, again after a while.

use std::time::Duration;

use perennial_testkit::eventually;
use perennial_testkit::proxy::{Entry, Fault, Matcher, Moment, Verb};

use crate::through::first_for;
use crate::world::{SOON, World, pairs};

const MEMBERS: [&str; 2] = ["a", "b"];

#[tokio::test]
async fn a_deletion_that_one_of_two_never_hears_of_costs_nothing() {
    let mut world = World::without_keeper("").await;
    let [deaf, _healthy] = world.two_members(|_| {}).await;
    let nodes: Vec<String> = MEMBERS.iter().flat_map(|member| first_for(member, &MEMBERS, 3)).collect();
    world.begin_with(&nodes, "blue").await;
    let drops = deaf.inject(Matcher::watches("nodes").event("DELETED"), Fault::Drop);
    for node in &nodes {
        world.return_with(node, "green").await;
    }
    world.all_are_back(&nodes, "green").await;
    // One that stays away lives on for whoever did not hear of its end, but only there.
    world.delete(&nodes[0]).await;
    world.closed(&nodes[0], &pairs([("team", "green")])).await;
    assert!(drops.met() > 0);
    drops.lift();
    world.expire(&deaf, "a").await;
    world.silence().await;
    world.given_once(&nodes, 1);
    world.nothing_is_in_doubt(&nodes).await;
}

#[tokio::test]
async fn a_life_that_is_read_before_the_watch_tells_of_it_waits_for_the_ends_on_their_way() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let mut world = World::without_keeper("").await;
    let proxy = world.proxy().await;
    world.start_through(&proxy, "a").await;
    let [node, other] = ["worker-1", "worker-2"].map(str::to_owned);
    world.begin_with(&[node.clone(), other.clone()], "blue").await;
    let patch = Matcher::on("nodes").verbs([Verb::Patch]).named(&node);
    let stop = proxy.stop(patch, 0, Moment::BeforeRequest);
    world.return_with(&node, "green").await;
    let stopped = stop.reached().await.unwrap();
    // It is about to give to one that dies now, with something of its own: its watch does not tell yet.
    let held = proxy.inject(Matcher::watches("nodes").named(&node), Fault::Hold);
    world.label(&node, "zone", Some("z1")).await;
    world.delete(&node).await;
    world.register(&node, &pairs([])).await;
    world.plane.compact(world.plane.revision().await.unwrap()).await.unwrap();
    let before = proxy.calls();
    stopped.go_on();
    eventually(SOON, "it reads the node", || async {
        let reads = |entry: &Entry| entry.call.verb == Verb::Get && entry.call.name.as_ref() == Some(&node);
        Ok(proxy.journal().iter().any(|entry| entry.call.index >= before && reads(entry)).then_some(()))
    })
    .await
    .unwrap();
    for round in ["1", "2", "3"] {
        world.return_with(&other, round).await;
        world.all_are_back(std::slice::from_ref(&other), round).await;
    }
    held.lift();
    world.labels_become(&node, &pairs([("team", "green"), ("zone", "z1")])).await;
    world.silence().await;
    world.given_once(&[node], 1);
}

#[tokio::test]
async fn a_replica_that_reads_ahead_of_its_node_watch_leaves_no_end_out() {
    let mut world = World::without_keeper("").await;
    world.configure(|config| config.close_after = Duration::ZERO);
    let [witness, other] = world.two_members(|members| members.takeover = Duration::ZERO).await;
    let nodes = first_for("a", &MEMBERS, 2);
    world.begin_with(&["beside".to_owned()], "blue").await;
    // Neither writes anything down of the first lives, and only one of them will have seen their ends.
    let writes = || Matcher::on("configmaps").verbs([Verb::Create, Verb::Update]);
    let hindered = [&witness, &other].map(|proxy| proxy.inject(writes(), Fault::Refuse(500)));
    let hold = |resource: &str| witness.inject(Matcher::watches(resource), Fault::Hold);
    let [lives, records] = [hold("nodes"), hold("configmaps")];
    for node in &nodes {
        world.register(node, &pairs([("team", "blue")])).await;
        world.delete(node).await;
    }
    world.crash_member("b").await;
    for node in &nodes {
        world.register(node, &pairs([("zone", "z1")])).await;
    }
    drop(hindered);
    // One that joins knows the second lives alone, and goes again.
    world.spawn_through(&other, "b", |_, members| members.takeover = Duration::ZERO).await;
    for node in &nodes {
        world.recorded(node, &pairs([("zone", "z1")])).await;
    }
    world.crash_member("b").await;
    for node in &nodes {
        world.delete(node).await;
    }
    let before = witness.calls();
    records.lift();
    for node in &nodes {
        eventually(SOON, "it reads the node", || async {
            let reads =
                |entry: &Entry| entry.call.verb == Verb::Get && entry.call.name.as_ref() == Some(node);
            let read = |entry: &Entry| entry.call.index >= before && reads(entry) && entry.sender.is_some();
            Ok(witness.journal().iter().any(read).then_some(()))
        })
        .await
        .unwrap();
    }
    // Whatever it would do about them it has done by the time that it has mended another record three times.
    for round in ["1", "2", "3"] {
        world.edit_record("beside", round).await;
        world.recorded("beside", &pairs([("team", "blue")])).await;
    }
    lives.lift();
    for node in &nodes {
        world.closed(node, &pairs([("team", "blue"), ("zone", "z1")])).await;
    }
}

/// Nodes live, change, die and return while one of two hears of it as the fault has it.
async fn one_hears(resource: &str, faults: [Fault; 3]) {
    let mut world = World::without_keeper("").await;
    let [bent, _straight] = world.two_members(|_| {}).await;
    let nodes: Vec<String> = MEMBERS.iter().flat_map(|member| first_for(member, &MEMBERS, 3)).collect();
    world.begin_with(&nodes, "blue").await;
    for (round, fault) in faults.into_iter().enumerate() {
        let said = format!("{fault:?}");
        let injection = bent.inject(Matcher::watches(resource), fault.chance(0.7));
        for color in ["red", "blue", "red"] {
            for node in &nodes {
                world.label(node, "team", Some(color)).await;
            }
        }
        let last = round.to_string();
        for node in &nodes {
            world.return_with(node, &last).await;
        }
        world.all_are_back(&nodes, &last).await;
        assert!(injection.met() > 0, "{said}");
        injection.lift();
        // A watch is not asked again for what it sent: what came wrong last is mended by what comes next.
        for node in &nodes {
            world.annotate(node, "example.com/round", Some(&last)).await;
        }
        world.silence().await;
        world.given_once(&nodes, round + 1);
    }
    world.nothing_is_in_doubt(&nodes).await;
}

#[tokio::test]
async fn events_of_nodes_that_come_twice_swapped_or_again_to_one_of_two_change_nothing() {
    one_hears("nodes", [Fault::Duplicate, Fault::Swap, Fault::Replay]).await;
}

#[tokio::test]
async fn events_of_records_that_come_twice_swapped_or_again_to_one_of_two_change_nothing() {
    one_hears("configmaps", [Fault::Duplicate, Fault::Swap, Fault::Replay]).await;
}
