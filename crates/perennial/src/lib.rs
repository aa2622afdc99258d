//! The one binary and its library.
//!
//! ```text
//! command line ─┐
//! environment  ─┼─> args (as typed) ─> config (checked, ready) ─> run ─┬─> admin: probes, metrics
//! policy file  ─┘                                                     ├─> members: who else is at work
//!                                                                       ├─> keeper: observe, decide, apply
//!                                                                       └─> webhook: what nodes are born with
//!                                                          └─> cli: what people see and do, with their own account
//! ```
//!
//! Strings are read once, in [`args`] and [`config`]; after that nobody sees a raw one, and nothing
//! else reads the environment, but for the headers that [`traces`] sends. [`run()`] wires the parts together and owns their lives: the first signal
//! drains, the second aborts, and the exit code is a return value, never a `process::exit`.

pub mod admin;
pub mod args;
mod ask;
pub mod check;
pub mod cli;
pub mod client;
pub mod cluster;
pub mod config;
mod https;
pub mod keeper;
mod listener;
pub mod lister;
pub mod log;
pub mod members;
pub mod metrics;
mod run;
pub mod shutdown;
pub mod tls;
pub mod traces;
pub mod webhook;

pub use args::Args;
pub use config::{Config, KeeperConfig, ListerConfig, MembersConfig};
pub use run::{Error, run};
