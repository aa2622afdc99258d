//! The lister's rules: what a page says of a Service's endpoints, and when it may replace another.
//!
//! ```text
//! slices ─ merge ─> endpoints ─ render ─> page ─ decide ─> plan ─ fence, for each destination ─> write
//! ```

mod decide;
mod endpoints;
mod fence;
mod guard;
mod pace;
mod page;
mod plan;
mod template;
mod versions;

pub use decide::{Sight, decide};
pub use endpoints::{Address, Endpoint, Port, Select, Slice, merge};
pub use fence::{Found, fence};
pub use guard::{Guards, Held};
pub use pace::{Pace, PaceError, Paced};
pub use page::{Format, Page, Stamp};
pub use plan::{Lack, Plan, Why, Write};
pub use template::{Facts, MAX_PAGE, MAX_TEMPLATE, Template, TemplateError};
pub use versions::{Versions, VersionsError};
