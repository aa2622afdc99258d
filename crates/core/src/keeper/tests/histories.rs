//! Random histories of a small world: whatever happens in whatever order, nothing kept is lost.

use std::sync::Arc;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::dsl::*;
use super::totality::POLICIES;
use super::world::World;
use crate::keeper::{Mark, Plan};
use crate::kept::Pairs;
use crate::record::State;

/// What may happen next.
#[derive(Clone, Debug)]
enum Step {
    Create(Pairs),
    Label(String, Option<String>),
    Delete,
    Deliver(usize),
    Think(usize),
    Act(usize),
    /// Think and act.
    Both(usize),
    Tick,
    Relist(usize),
    Restart(usize),
    Compact,
}

fn labels() -> impl Strategy<Value = Pairs> {
    btree_map("[abc]", "[12]", 0..3)
}

/// Steps of a world that every replica sees whole, if late.
fn watched(replicas: usize) -> BoxedStrategy<Step> {
    let who = move || 0..replicas;
    prop_oneof![
        3 => labels().prop_map(Step::Create),
        3 => ("[abc]", proptest::option::of("[12]")).prop_map(|(key, value)| Step::Label(key, value)),
        3 => Just(Step::Delete),
        8 => who().prop_map(Step::Deliver),
        2 => who().prop_map(Step::Think),
        2 => who().prop_map(Step::Act),
        6 => who().prop_map(Step::Both),
        1 => Just(Step::Tick),
    ]
    .boxed()
}

/// The same, with watches that break and replicas that start anew.
fn unwatched(replicas: usize) -> BoxedStrategy<Step> {
    let who = move || 0..replicas;
    prop_oneof![
        8 => watched(replicas),
        1 => who().prop_map(Step::Relist),
        1 => who().prop_map(Step::Restart),
    ]
    .boxed()
}

fn play(world: &mut World, steps: &[Step]) {
    for step in steps {
        match step {
            Step::Create(labels) => world.create(labels.clone()),
            Step::Label(key, value) => world.label(key, value.as_deref()),
            Step::Delete => world.delete(),
            Step::Deliver(at) => world.deliver(*at),
            Step::Think(at) => world.think(*at),
            Step::Act(at) => world.act(*at),
            Step::Both(at) => world.step(*at),
            Step::Tick => world.now += CLOSE_AFTER,
            Step::Relist(at) => world.relist(*at),
            Step::Restart(at) => world.restart(*at),
            Step::Compact => world.compact(),
        }
    }
}

/// What must be true once nobody has anything to do any more.
fn check_rest(world: &World) -> Result<(), TestCaseError> {
    let record = world.record.as_ref().map(|(_, record)| record);
    let Some(node) = &world.node else {
        let kept = record.map(|record| record.kept.labels.clone()).unwrap_or_default();
        for (key, values) in &world.owed {
            prop_assert!(
                kept.get(key).is_some_and(|value| values.contains(value)),
                "{} of {:?}",
                key,
                record
            );
        }
        prop_assert!(record.is_none_or(|record| record.state == State::Closed), "{:?}", record);
        if !world.gaps {
            prop_assert_eq!(kept.len(), world.owed.len(), "what was removed by hand stays away");
        }
        return Ok(());
    };
    prop_assert!(world.owed.is_empty() || node.mark != Mark::None, "not restored: {:?}", node);
    match record {
        None => prop_assert!(node.labels.is_empty()),
        Some(record) if record.incarnation.uid == node.uid => {
            prop_assert_eq!((record.state, &record.kept.labels), (State::Open, &node.labels));
        }
        Some(record) => {
            prop_assert!(node.labels.is_empty() && record.is_empty() && record.state == State::Closed);
        }
    }
    Ok(())
}

/// Plays a history to its end, and sees that the rest it comes to is one.
fn play_out(mut world: World, steps: &[Step]) -> Result<World, TestCaseError> {
    play(&mut world, steps);
    world.settle();
    let writes = world.writes;
    world.settle();
    prop_assert_eq!(world.writes, writes, "silence");
    for at in 0..world.replicas.len() {
        prop_assert!(matches!(world.plan(at), Plan::Rest(_)));
    }
    Ok(world)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn one_replica_that_watches_loses_nothing_and_gives_once(steps in vec(watched(1), 0..40)) {
        check_rest(&play_out(World::new(DEFAULT.clone(), 1, false), &steps)?)?;
    }

    #[test]
    fn two_replicas_that_lag_lose_nothing_and_give_once(steps in vec(watched(2), 0..50)) {
        check_rest(&play_out(World::new(DEFAULT.clone(), 2, false), &steps)?)?;
    }

    #[test]
    fn an_overwriting_policy_loses_nothing_either(steps in vec(watched(2), 0..50)) {
        check_rest(&play_out(World::new(POLICIES[1].clone(), 2, false), &steps)?)?;
    }

    #[test]
    fn what_a_record_named_survives_gaps_and_restarts(steps in vec(unwatched(1), 0..40)) {
        check_rest(&play_out(World::new(DEFAULT.clone(), 1, true), &steps)?)?;
    }

    #[test]
    fn two_replicas_with_gaps_lose_nothing_that_a_record_named(steps in vec(unwatched(2), 0..60)) {
        check_rest(&play_out(World::new(DEFAULT.clone(), 2, true), &steps)?)?;
    }

    #[test]
    fn a_history_that_is_compacted_is_lived_through(
        steps in vec(prop_oneof![9 => unwatched(2), 1 => Just(Step::Compact)], 0..60),
    ) {
        let mut world = World::new(Arc::clone(&DEFAULT), 2, true);
        // What is owed past history is in doubt; that it is given once and that all rest is not.
        for step in &steps {
            play(&mut world, std::slice::from_ref(step));
            world.owed.clear();
        }
        play_out(world, &[])?;
    }
}
