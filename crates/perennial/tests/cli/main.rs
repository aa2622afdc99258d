//! The commands for people, against a real API server: what they show, what they change, and what they refuse.
//!
//! The world is that of `keeper/main.rs`; a person is whoever types. What is shown is compared with snapshots, in which ages,
//! uids and times are replaced: `INSTA_UPDATE=always cargo test -p perennial --test cli` writes them anew.
#![expect(clippy::disallowed_methods, reason = "tests run on the API server's machine")]
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "what a test cannot go on without fails it; gauges are whole"
)]

mod errors;
mod hands;
mod listings;
mod moves;
mod person;
mod pipes;
mod policies;
mod process;
mod restore;
mod rights;
mod rollback;
mod seals;
mod see;

#[path = "../keeper/plane.rs"]
mod plane;
#[path = "../keeper/world.rs"]
mod world;
