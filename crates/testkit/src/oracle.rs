//! An oracle that does not trust the keeper.
//!
//! It reads etcd's own history, in which every change of a Node and of a record stands once and in one order, and
//! judges it against the six points of "What must never break". It asks no keeper anything.
//!
//! ```text
//! etcd ──watch, by revision──> History ──Entry──> Judge ──> violations, each with its node's timeline
//! the driver ──what it did: faults, compactions, "be silent now"──^
//! ```
//! The [`Judge`] is a pure fold over entries: hand-made histories test it, one for each way to break a promise.
//! It uses the keeper's own reader of records and its policy, but none of its decisions: what is owed to a node is
//! worked out again from the lives of that node alone.
//!
//! Whoever plays people and kubelets puts a fresh [`HAND`] into every write, so that history itself tells their
//! writes from the keepers', also those whose answer was lost.

mod follow;
mod history;
mod judge;
mod life;
mod owed;
mod stored;
#[cfg(test)]
mod tests;
mod timeline;
mod versions;
mod violation;

pub use follow::Oracle;
pub use history::{Entry, Fact, HAND, Sighting, Told};
pub use judge::{Judge, Tally};
pub use versions::Versions;
pub use violation::{Breach, Violation};
