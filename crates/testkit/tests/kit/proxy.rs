//! The fault proxy before a real API server: each fault shows, and nothing else does.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod calls;
mod events;
mod lists;
mod stops;
mod transparent;
mod world;
