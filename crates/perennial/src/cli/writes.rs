//! The writes that people ask for: each carries the uid and the version that was decided on.

use kube::api::{Patch, PatchParams};
use perennial_core::keeper::undo::Undo;
use perennial_core::keeper::{Live, Seen};
use perennial_core::record::Record;
use serde_json::{Value, json};

use super::ATTEMPTS;
use super::desk::Desk;
use super::error::Error;
use crate::cluster::ApiError;
use crate::keeper::NodeObject;

/// Whose hand it was, as the API server remembers. Not the keeper's: that one tells when a node was restored.
const MANAGER: &str = "perennial-cli";

/// Reads, decides and writes until nobody was faster.
pub(crate) async fn settle<T>(mut attempt: impl AsyncFnMut() -> Result<T, Error>) -> Result<T, Error> {
    for _ in 0..ATTEMPTS {
        match attempt().await {
            Err(error) if error.is_conflict() => {}
            done => return done,
        }
    }
    Err(Error::said("somebody else keeps changing it: try again"))
}

impl Desk {
    /// Sets an annotation of a Node, or removes it.
    pub(crate) async fn annotate(
        &self,
        name: &str,
        live: &Live,
        key: &str,
        value: Option<&str>,
    ) -> Result<(), Error> {
        self.patch_node(name, live, json!({ "metadata": { "annotations": { key: value } } })).await
    }

    /// Changes a Node back.
    pub(crate) async fn apply_undo(&self, name: &str, live: &Live, undo: &Undo) -> Result<(), Error> {
        let Undo { labels, annotations, taints, untaint, cordon, withheld: _ } = undo;
        let mut body = json!({ "metadata": { "labels": labels, "annotations": annotations } });
        if let Some(cordon) = cordon {
            body["spec"]["unschedulable"] = json!(cordon);
        }
        if !taints.is_empty() || !untaint.is_empty() {
            let taints = self.api.taints_with(name, live.version, taints, untaint).await;
            body["spec"]["taints"] = json!(self.told(taints)?);
        }
        self.patch_node(name, live, body).await
    }

    async fn patch_node(&self, name: &str, live: &Live, mut body: Value) -> Result<(), Error> {
        body["metadata"]["uid"] = json!(live.uid);
        body["metadata"]["resourceVersion"] = json!(live.version.to_string());
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let _: NodeObject = self.call(self.api.nodes().patch(name, &params, &Patch::Merge(body))).await?;
        Ok(())
    }

    /// Whoever writes over a record that is sealed needs a key: the keepers would not believe what came of it.
    pub(crate) fn may_seal(&self, over: Option<&Seen>) -> Result<(), Error> {
        if self.api.seals().is_none() && over.is_some_and(|seen| seen.sealed) {
            return Err(Error::said(
                "this record is sealed, and what is written over it must be, too: give the key with --record-key FILE",
            ));
        }
        Ok(())
    }

    /// Writes a record over the one that was seen, or where there was none.
    pub(crate) async fn write_record(&self, mut record: Record, over: Option<&Seen>) -> Result<(), Error> {
        self.may_seal(over)?;
        let fits = record.fit();
        fits.map_err(|why| Error::Said(format!("what is recorded of node {:?}: {why}", record.node)))?;
        let over = over.map(|seen| (seen.uid, seen.version));
        match self.api.write_record(&record, over).await {
            Ok(_) => Ok(()),
            // Where there was nothing to write over, what is not found is the namespace.
            Err(ApiError::NotFound) if over.is_none() => {
                Err(Error::NotFound(format!("namespaces {:?}", self.api.namespace())))
            }
            Err(error) => self.told(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conflict() -> Error {
        Error::Api { url: String::new(), error: ApiError::Conflict("it changed".to_owned()) }
    }

    #[tokio::test]
    async fn it_is_decided_again_when_somebody_was_faster() {
        let mut left = ATTEMPTS - 1;
        let done = settle(async || {
            if left == 0 {
                return Ok("done");
            }
            left -= 1;
            Err(conflict())
        });
        assert_eq!(done.await.unwrap(), "done");
    }

    #[tokio::test]
    async fn a_person_is_told_when_that_goes_on_and_of_anything_else_at_once() {
        let mut tries = 0;
        let told = settle(async || -> Result<(), Error> {
            tries += 1;
            Err(conflict())
        });
        assert!(told.await.unwrap_err().to_string().contains("somebody else keeps changing it"));
        assert_eq!(tries, ATTEMPTS);
        let told = settle(async || -> Result<(), Error> {
            tries += 1;
            Err(Error::said("no"))
        });
        assert_eq!((told.await.unwrap_err().to_string().as_str(), tries), ("error: no", ATTEMPTS + 1));
    }
}
