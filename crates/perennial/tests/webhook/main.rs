//! The webhook against a real API server, asked by real kubelet identities: what nodes are born with, and that nothing it does
//! or fails to do keeps one from registering.
//!
//! The world is that of `keeper/main.rs`.
#![expect(clippy::disallowed_methods, reason = "tests run on the API server's machine")]
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "what a test needs and lacks fails it; counters are whole"
)]

mod born;
mod callers;
mod certificates;
mod gate;
mod hindered;
mod hook;
mod secrets;
mod strict;

#[path = "../keeper/audit.rs"]
mod audit;
#[path = "../keeper/plane.rs"]
mod plane;
#[path = "../keeper/world.rs"]
mod world;
