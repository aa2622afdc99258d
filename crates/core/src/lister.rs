//! The lister's rules: what a page says of a Service's endpoints, and when it may replace another.

mod endpoints;
mod page;
mod versions;

pub use endpoints::{Address, Endpoint, Port, Select, Slice, merge};
pub use page::{Format, Page, Stamp};
pub use versions::{Versions, VersionsError};
