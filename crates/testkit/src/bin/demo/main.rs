//! `make demo`: a fleet whose nodes come and go, a keeper that is killed in between, and every label counted.
//!
//! ```text
//! args ─> run ─┬─> scenes: people label, nodes go and return, the keeper is killed ──> cluster ──> API server
//!              ├─> eyes: the demo's own watch ──> board: what is wanted, seen, measured     <──────────┘
//!              └─> view: the board as a table redrawn in place, or as lines
//!                  verdict: a last list, compared label by label
//! ```
//! Nothing here asks the keeper how it is doing: what counts is what a client of the API server can see.

mod args;
mod board;
mod cluster;
mod edit;
mod eyes;
mod run;
mod scenes;
mod verdict;
mod view;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    run::run(&args::Args::parse())
}
