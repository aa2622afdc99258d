//! The keeper's protocol, explored exhaustively within small bounds.
//!
//! Every state of a small world is visited: one node name, some replicas whose streams lag, and whatever may go
//! wrong. The replicas run the very functions that run in production; what is modelled is the world around them.

mod apply;
mod bounds;
mod canon;
mod check;
mod guards;
mod model;
mod observe;
mod show;
mod state;
mod truth;

use bounds::{Budget, Config};
use check::explore;

fn env(name: &str, or: u8) -> u8 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(or)
}

#[test]
fn explore_by_environment() {
    let steps = env("STEPS", 4);
    let mut config = Config::new("by environment", steps, env("LIVES", 3));
    config.replicas = &[0, 0, 0][..usize::from(env("UP", 2))];
    config.joiners = &[0, 0, 0][..usize::from(env("DOWN", 0))];
    config.budget = Budget {
        crashes: env("CRASHES", 0),
        lost: env("LOST", 0),
        pauses: env("PAUSES", 0),
        relists: env("RELISTS", 0),
        blanks: env("BLANKS", 0),
        compactions: env("COMPACTIONS", 0),
        restores: env("RESTORES", 0),
        moves: env("MOVES", 0),
        late: env("LATE", 0),
        over_cap: env("CAP", 0),
        removals: env("REMOVALS", 0),
        ..config.budget
    };
    let t = std::time::Instant::now();
    explore(config);
    println!("{:?}", t.elapsed());
}
