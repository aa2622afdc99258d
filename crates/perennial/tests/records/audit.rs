//! What the keeper's account asked of the API server, by the API server's own word.

use perennial_testkit::{AuditEntry, eventually};

use crate::world::{SOON, World, pairs};

impl World {
    /// Everything the keeper's account has asked for so far, but for the questions of the test itself.
    pub(crate) async fn asked_by_keeper(&self) -> Vec<AuditEntry> {
        // A request shows up a moment after its answer, in order: what is deleted now closes the log.
        let sentinel = format!("sentinel-{}", self.plane.revision().await.unwrap());
        self.register(&sentinel, &pairs([])).await;
        self.delete(&sentinel).await;
        let audit = eventually(SOON, "the audit log is complete", || async {
            let audit = self.plane.audit()?;
            let complete = audit.iter().any(|entry| entry.name == sentinel && entry.verb == "delete");
            Ok(complete.then_some(audit))
        })
        .await
        .unwrap();
        let account = self.keepers_name();
        let by_keeper =
            |entry: &AuditEntry| entry.user == account && entry.resource != "selfsubjectaccessreviews";
        audit.into_iter().filter(by_keeper).collect()
    }

    /// The writes among them, Events too.
    pub(crate) async fn written_by_keeper(&self) -> Vec<AuditEntry> {
        let writes = |entry: &AuditEntry| !["get", "list", "watch"].contains(&entry.verb.as_str());
        self.asked_by_keeper().await.into_iter().filter(writes).collect()
    }
}
