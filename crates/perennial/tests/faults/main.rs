//! The keeper while everything around it breaks; the world is that of `keeper/main.rs`.
//!
//! Servers are restarted, frozen and turned back; the keeper is killed, cut off and lied to. Whatever happens, no
//! label is lost, none is removed that nobody removed, and nothing is given twice.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod answers;
#[path = "../keeper/audit.rs"]
mod audit;
mod fleet;
mod history;
mod lists;
mod mass;
mod outage;
mod pages;
mod past;
#[path = "../keeper/plane.rs"]
mod plane;
mod process;
mod unreadable;
mod wire;
#[path = "../keeper/world.rs"]
mod world;
