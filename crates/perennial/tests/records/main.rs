//! Records, policies and permissions: what people do to them, and what the keeper makes of it.
//!
//! The world is that of `keeper/main.rs`.

mod broken;

#[path = "../keeper/world.rs"]
mod world;
