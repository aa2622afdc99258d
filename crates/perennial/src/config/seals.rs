//! The keys that records are sealed with.

use std::path::PathBuf;
use std::sync::Arc;

use perennial_core::record::Seals;

use super::source::Sources;
use super::{Error, names};

/// The keys of the file that was named, where one was. `unsealed`: records without a seal are believed, too.
pub(super) fn find(
    sources: &mut Sources<'_>,
    file: Option<&str>,
    unsealed: bool,
) -> Result<Option<Arc<Seals>>, Error> {
    let unsealed = sources.switch(&names::ACCEPT_UNSEALED, unsealed)?;
    let Some(given) = sources.find(&names::RECORD_KEY, file)? else {
        return if unsealed {
            Err(Error::Missing {
                what: "--record-key",
                remedy: "without a key no record is sealed, and all are believed; leave --accept-unsealed out, or give one",
            })
        } else {
            Ok(None)
        };
    };
    let (key, path) = (given.key, PathBuf::from(given.value));
    let text = std::fs::read_to_string(&path).map_err(|source| Error::KeyFile {
        key,
        path: path.clone(),
        source,
    })?;
    let seals = Seals::parse(&text, unsealed).map_err(|source| Error::Keys { key, path, source })?;
    Ok(Some(Arc::new(seals)))
}
