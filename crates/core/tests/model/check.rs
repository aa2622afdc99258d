//! Explores a world, and tells how large it was.

use stateright::{Checker as _, HasDiscoveries, Model as _};

use super::bounds::Config;
use super::guards::Guard;
use super::model::Action;
use super::state::State;

/// Whether to explore as much as a few minutes allow, instead of as much as every test run can bear.
pub(crate) fn full() -> bool {
    #[expect(clippy::disallowed_methods, reason = "how much is tested is no part of the core")]
    std::env::var("MODEL_DEPTH").is_ok_and(|depth| depth == "full")
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(2)
}

/// Visits every state; none may break anything.
pub(crate) fn explore(config: Config) {
    let (name, budget) = (config.name, config.budget);
    let replicas = (config.replicas.len(), config.joiners.len());
    let checker =
        config.checker().threads(threads()).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    println!(
        "{name}: {} states, {} unique, depth {}; {replicas:?} replicas and joiners, {budget:?}",
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth(),
    );
    if let Some((property, path)) = checker.discoveries().into_iter().next() {
        let last = path.last_state().clone();
        let how = last.broken.or_else(|| checker.model().settled(&last));
        let step = |(state, action): (State, Option<Action>)| {
            format!(
                "{state}
{}
",
                action.map_or_else(String::new, |action| format!("  {action:?}"))
            )
        };
        let told: String = path.into_vec().into_iter().map(step).collect();
        panic!("{name}: not \"{property}\" ({how:?})\n{told}");
    }
}

/// Takes a guard out: something must break.
pub(crate) fn breaks(mut config: Config, guard: Guard) {
    config.without = Some(guard);
    let checker =
        config.checker().threads(threads()).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let discoveries = checker.discoveries();
    let found = discoveries.into_iter().min_by_key(|(_, path)| path.clone().into_actions().len());
    let Some((property, path)) = found else {
        panic!("without {guard:?} nothing breaks in {} states", checker.unique_state_count());
    };
    let how = path.last_state().broken.or_else(|| checker.model().settled(path.last_state()));
    let actions = path.into_actions();
    println!(
        "without {guard:?}: not \"{property}\" ({how:?}) after {} steps, {} states: {actions:?}",
        actions.len(),
        checker.unique_state_count(),
    );
}
