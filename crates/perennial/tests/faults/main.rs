//! See `keeper/main.rs`.

#[path = "../keeper/world.rs"]
mod world;
