//! The lister's rules: what a page says of a Service's endpoints, and when it may replace another.

mod page;
mod versions;

pub use page::{Format, Page, Stamp};
pub use versions::{Versions, VersionsError};
