//! The settings of the status page.

use super::source::{Sources, Surroundings};
use super::{Error, check, names};

/// What the status page shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageConfig {
    /// The values of labels, and not only their keys.
    pub values: bool,
    /// Further names by which browsers may ask for it: `*.` before one is all below it, `*` alone is any.
    pub hosts: Vec<String>,
}

/// What the status page shows, where there is one.
pub(super) fn find(
    sources: &mut Sources<'_>,
    page: Option<&str>,
    values: bool,
    hosts: Option<&str>,
) -> Result<Option<PageConfig>, Error> {
    let on = sources.checked(&names::PAGE, page, check::on_or_off)?.unwrap_or(true);
    let values = sources.switch(&names::PAGE_VALUES, values)?;
    let hosts = sources.checked(&names::PAGE_HOSTS, hosts, check::hosts)?;
    let beside = values.then_some("--page-values").or(hosts.is_some().then_some("--page-hosts"));
    if let Some(second) = beside.filter(|_| !on) {
        return Err(Error::Conflict {
            first: "--page off",
            second,
            remedy: "a page that is not there shows nothing and has no name; leave one of them out",
        });
    }
    let hosts = hosts.into_iter().flatten().chain(Surroundings::host()).collect();
    Ok(on.then_some(PageConfig { values, hosts }))
}
