//! What the keeper asked of the API server, by the API server's own account.

use perennial_testkit::{AuditEntry, eventually};

use crate::world::{SOON, World};

const READS: [&str; 3] = ["get", "list", "watch"];

impl World {
    /// What the keeper wrote, or tried to, in the order of the answers, as `verb resource name`. What it wrote
    /// about the probe of the test is left out.
    pub(crate) async fn keeper_writes(&self) -> Vec<String> {
        let entries = self.keeper_requests().await.into_iter();
        let writes = entries.filter(|entry| !READS.contains(&entry.verb.as_str()));
        let spoken = writes.map(|entry| format!("{} {} {}", entry.verb, entry.resource, entry.name));
        spoken.filter(|write| !write.ends_with("probe-of-the-test")).collect()
    }

    /// Everything the keeper asked for, but for the posting of Events.
    pub(crate) async fn keeper_requests(&self) -> Vec<AuditEntry> {
        self.audit_is_complete().await;
        let keeper = self.keepers_name();
        let asked = |entry: &AuditEntry| {
            entry.user == keeper
                && entry.stage == "ResponseComplete"
                && !["events", "selfsubjectaccessreviews"].contains(&entry.resource.as_str())
        };
        self.plane.audit().unwrap().into_iter().filter(asked).collect()
    }

    /// A request shows up a moment after its answer: waits for one that is made now.
    async fn audit_is_complete(&self) {
        let name = format!("audit-{}", rand::random::<u64>());
        assert!(self.config_maps().get_opt(&name).await.unwrap().is_none());
        eventually(SOON, "the audit log is complete", || async {
            Ok(self.plane.audit()?.iter().any(|entry| entry.name == name).then_some(()))
        })
        .await
        .unwrap();
    }
}
