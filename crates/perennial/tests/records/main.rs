//! Records, policies and permissions: what people do to them, and what the keeper makes of it.
//!
//! The world is that of `keeper/main.rs`.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "what a test cannot go on without fails it; gauges are whole"
)]

#[path = "../keeper/audit.rs"]
mod audit;
mod brake;
mod broken;
mod clocks;
mod collection;
mod hands;
mod identity;
mod names;
mod policy;
mod privileged;
mod rbac;
mod roles;
mod seals;
mod spec;

#[path = "../keeper/plane.rs"]
mod plane;
#[path = "../keeper/world.rs"]
mod world;
