//! `make chaos`: replicas that are killed, frozen and cut off, a fleet that never rests, and an oracle that judges.
//! ```text
//! args ─> run ── rounds ─> plan (seed, round) ──┬─> hands: what people and kubelets do ──┬──> API server, etcd
//!                                               └─> faults ──> replicas, control plane ──┘        │ history
//!                          verdict <── convergence, silence <────────── oracle <──────────────────┘
//! ```

mod args;
mod bytes;
mod cluster;
mod ears;
mod faults;
mod hands;
mod plan;
mod replica;
mod round;
mod run;
mod servers;
mod wire;

fn main() -> std::process::ExitCode {
    run::run(&<args::Args as clap::Parser>::parse())
}
