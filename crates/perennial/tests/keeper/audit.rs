//! What the keeper asked of the API server, by the API server's own account.
#![allow(dead_code, reason = "each suite asks its own questions")]

use std::collections::BTreeMap;

use perennial_testkit::{AuditEntry, eventually};

use crate::world::{SOON, World};

const READS: [&str; 3] = ["get", "list", "watch"];

impl World {
    /// Everything the keeper has asked for so far, but for the questions of the test itself. A watch is there
    /// once it began.
    pub(crate) async fn asked_by_keeper(&self) -> Vec<AuditEntry> {
        self.audit_is_complete().await;
        self.audit_of_keeper().filter(|entry| entry.resource != "selfsubjectaccessreviews").collect()
    }

    /// The writes among them, Events too.
    pub(crate) async fn written_by_keeper(&self) -> Vec<AuditEntry> {
        let writes = |entry: &AuditEntry| !READS.contains(&entry.verb.as_str());
        self.asked_by_keeper().await.into_iter().filter(writes).collect()
    }

    /// Everything that the keeper asked for and got an answer to, but for the posting of Events.
    pub(crate) async fn keeper_requests(&self) -> Vec<AuditEntry> {
        let asked = |entry: &AuditEntry| entry.stage == "ResponseComplete" && entry.resource != "events";
        self.asked_by_keeper().await.into_iter().filter(asked).collect()
    }

    /// What the keeper wrote, or tried to, in the order of the answers, as `verb resource name`. Events, and what
    /// it wrote about the probe of the test, are left out.
    pub(crate) async fn keeper_writes(&self) -> Vec<String> {
        let writes = self.written_by_keeper().await.into_iter().filter(|entry| entry.resource != "events");
        let spoken = writes.map(|entry| format!("{} {} {}", entry.verb, entry.resource, entry.name));
        spoken.filter(|write| !write.ends_with("probe-of-the-test")).collect()
    }

    /// How often the keeper patched the nodes of this name. What was asked before the last
    /// [`World::caught_up`] is counted for certain.
    pub(crate) fn patches_of(&self, node: &str) -> usize {
        self.patches().get(node).copied().unwrap_or_default()
    }

    /// The same for all nodes, by name.
    pub(crate) fn patches(&self) -> BTreeMap<String, usize> {
        let mut patches = BTreeMap::new();
        for entry in self.audit_of_keeper() {
            if entry.verb == "patch" && entry.resource == "nodes" && entry.code == 200 {
                *patches.entry(entry.name).or_default() += 1;
            }
        }
        patches
    }

    fn audit_of_keeper(&self) -> impl Iterator<Item = AuditEntry> {
        let keeper = self.keepers_name();
        self.plane.audit_of(|entry| entry.user == keeper).unwrap().into_iter()
    }

    /// A request shows up a moment after its answer: waits for one that is made now.
    async fn audit_is_complete(&self) {
        let name = format!("audit-{}", rand::random::<u64>());
        assert!(self.config_maps().get_opt(&name).await.unwrap().is_none());
        eventually(SOON, "the audit log is complete", || async {
            Ok(self.plane.audit_of(|entry| entry.name == name)?.pop().map(drop))
        })
        .await
        .unwrap();
    }
}
