//! `make demo`: a fleet whose nodes come and go, replicas that are killed and paused in between, and every label
//! counted.
//!
//! ```text
//! args ─> run ─┬─> scenes: people label, nodes go and return, replicas are killed ──> cluster ──> API server
//!              ├─> eyes: the demo's own watch ──> board: what is wanted, seen, measured    <──────────┘
//!              ├─> keepers: what the replicas say of their work ──> replicas, on the board
//!              └─> view: the board as a table redrawn in place, or as lines
//!                  verdict: a last list, compared label by label; lives: nothing given twice
//! ```
//! The replicas are asked who of them does what. Whether all is well they are not asked: what counts is what a client
//! of the API server can see.

mod args;
mod board;
mod cluster;
mod edit;
mod eyes;
mod keepers;
mod lives;
mod replicas;
mod run;
mod scenes;
mod verdict;
mod view;
mod web;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    run::run(&args::Args::parse())
}
