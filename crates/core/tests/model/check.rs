//! Explores a world, and tells how large it was.

use stateright::{Checker, HasDiscoveries, Model as _};

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

fn check(config: Config) -> impl Checker<Config> {
    config.checker().threads(threads()).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join()
}

/// States, and what happened in each.
type Path = Vec<(State, Option<Action>)>;

/// The shortest path on which something broke, with what it was.
fn broken(checker: &impl Checker<Config>) -> Option<(String, Path)> {
    let found = checker.discoveries().into_iter().map(|(property, path)| (property, path.into_vec()));
    let (property, path) = found.min_by_key(|(_, path)| path.len())?;
    let (last, _) = path.last()?;
    let how = last.broken.or_else(|| checker.model().settled(last))?;
    Some((format!("not \"{property}\" ({how:?}) after {} steps", path.len() - 1), path))
}

fn tell(path: &[(State, Option<Action>)]) -> String {
    let step = |(state, action): &(State, Option<Action>)| match action {
        Some(action) => format!("  {state}\n{action:?}\n"),
        None => format!("  {state}\n"),
    };
    path.iter().map(step).collect()
}

/// Visits every state; none may break anything.
pub(crate) fn explore(config: Config) {
    let (name, budget) = (config.name, config.budget);
    let replicas = (config.replicas.len(), config.joiners.len());
    let checker = check(config);
    println!(
        "{name}: {} states, {} unique, depth {}; {} replicas, {} joiners, {budget:?}",
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth(),
        replicas.0,
        replicas.1,
    );
    if let Some((how, path)) = broken(&checker) {
        panic!("{name}: {how}\n{}", tell(&path));
    }
}

/// Takes a guard out: something must break.
pub(crate) fn breaks(mut config: Config, guard: Guard) {
    config.without = Some(guard);
    let checker = check(config);
    let states = checker.unique_state_count();
    let Some((how, path)) = broken(&checker) else {
        panic!("without {guard:?} nothing breaks in {states} states");
    };
    println!("without {guard:?}: {how}, {states} unique states\n{}", tell(&path));
}
