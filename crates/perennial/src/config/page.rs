//! The settings of the status page.

use super::source::Sources;
use super::{Error, check, names};

/// What the status page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageConfig {
    /// The values of labels, and not only their keys.
    pub values: bool,
}

/// What the status page shows, where there is one.
pub(super) fn find(
    sources: &mut Sources<'_>,
    page: Option<&str>,
    values: bool,
) -> Result<Option<PageConfig>, Error> {
    let on = sources.checked(&names::PAGE, page, check::on_or_off)?.unwrap_or(true);
    let values = sources.switch(&names::PAGE_VALUES, values)?;
    if values && !on {
        return Err(Error::Conflict {
            first: "--page off",
            second: "--page-values",
            remedy: "a page that is not there shows no values; leave one of them out",
        });
    }
    Ok(on.then_some(PageConfig { values }))
}
