//! Records, policies and permissions: what people do to them, and what the keeper makes of it.
//!
//! The world is that of `keeper/main.rs`.

mod brake;
mod broken;
mod collection;
mod hands;
mod identity;
mod names;
mod policy;
mod privileged;
mod roles;
mod spec;

#[path = "../keeper/world.rs"]
mod world;
