//! What the keeper reads of the cluster as a whole, beside its work: where history stands, and the contents of
//! the closed records. It is read in a task of its own, since an API server that does not answer must hold up
//! neither the folding of events nor a shutdown.

use perennial_core::record::Version;
use tracing::debug;

use super::api::Api;
use super::ledger::Suspect;
use super::object::RecordObject;
use crate::cluster::{Chosen, List, backoff};

/// What was read.
#[derive(Debug)]
pub(crate) enum Checked {
    /// Where history stands now.
    Head(Version),
    /// One page of the closed records.
    Closed(List<RecordObject>),
    /// The closed records cannot be fetched at once: they are read one by one.
    ClosedLater,
    /// Whether a suspect was read, and belongs to another history.
    Suspected(bool),
}

/// Asks where history stands, until somebody answers. An answer from before `seen` is asked for twice: what
/// follows from it is that nothing this replica saw counts.
pub(crate) async fn head(api: Api, seen: Version) -> Checked {
    let (mut failures, mut surprised) = (0, false);
    loop {
        match api.cluster().head(api.nodes(), &Chosen::All).await {
            Ok(head) if head < seen && !surprised => surprised = true,
            Ok(head) => return Checked::Head(head),
            Err(error) => {
                failures += 1;
                api.cluster().metrics().error(error.kind());
                debug!(%error, "cannot compare histories, trying again");
                tokio::time::sleep(backoff(failures)).await;
            }
        }
    }
}

/// Reads a suspect directly, until somebody answers. What is asked for now and is older than what was known before belongs
/// to another history. It is asked for twice, since what follows is that nothing this replica saw counts.
pub(crate) async fn suspect(api: Api, suspect: Suspect) -> Checked {
    let (mut failures, mut surprised) = (0, false);
    loop {
        let (read, known) = match &suspect {
            Suspect::Node(name, known) => {
                let read = api.read_node(name).await;
                (read.map(|read| read.map_or_else(|at| at, |node| node.metadata.resource_version)), *known)
            }
            Suspect::Record(name, known) => {
                let read = api.read_record(name).await;
                (
                    read.map(|read| read.map_or_else(|at| at, |object| object.metadata.resource_version)),
                    *known,
                )
            }
        };
        match read {
            Ok(version) if version < known && !surprised => surprised = true,
            Ok(version) => return Checked::Suspected(version < known),
            Err(error) => {
                failures += 1;
                api.cluster().metrics().error(error.kind());
                debug!(?suspect, %error, "cannot compare histories, trying again");
                tokio::time::sleep(backoff(failures)).await;
            }
        }
    }
}

/// Fetches closed records: they are what restores are made of, so their contents are kept at hand.
pub(crate) async fn closed(api: Api, next: Option<String>) -> Checked {
    match api.closed_records(next).await {
        Ok(page) => Checked::Closed(page),
        Err(error) => {
            api.cluster().metrics().error(error.kind());
            debug!(%error, "cannot fetch the closed records: they are read one by one");
            Checked::ClosedLater
        }
    }
}
