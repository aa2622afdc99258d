//! The pure rules of Perennial.
//!
//! Nothing here reads a clock, a file, the environment or the network: whatever a rule needs is an
//! argument, and what it wants done is a value. The binary observes and applies; this crate decides.

pub mod admission;
pub mod keeper;
pub mod kept;
pub mod lister;
pub mod policy;
pub mod ranks;
pub mod record;
