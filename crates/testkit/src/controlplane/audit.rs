//! The API server's audit log: who asked for what, and what the answer was.

use std::fs;

use anyhow::Context;
use serde_json::Value;

use super::ControlPlane;

/// One line of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// `ResponseComplete`; for a watch also `ResponseStarted`, when it begins.
    pub stage: String,
    /// Who asked, e.g. `system:serviceaccount:NAMESPACE:NAME`.
    pub user: String,
    /// What the program calls itself.
    pub user_agent: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, …
    pub verb: String,
    /// The whole path and query.
    pub uri: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Plural name of the kind, e.g. `nodes`; empty for paths like `/readyz`.
    pub resource: String,
    /// E.g. `status`; empty for the object itself.
    pub subresource: String,
    /// Empty for what has none.
    pub namespace: String,
    /// Empty for lists.
    pub name: String,
    /// HTTP status of the answer.
    pub code: u16,
}

impl AuditEntry {
    fn parse(line: &str) -> anyhow::Result<Self> {
        let event: Value = serde_json::from_str(line).context("a line of the audit log is not JSON")?;
        let text = |pointer| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let code = event.pointer("/responseStatus/code").and_then(Value::as_u64).unwrap_or_default();
        Ok(Self {
            stage: text("/stage"),
            user: text("/user/username"),
            user_agent: text("/userAgent"),
            verb: text("/verb"),
            uri: text("/requestURI"),
            group: text("/objectRef/apiGroup"),
            resource: text("/objectRef/resource"),
            subresource: text("/objectRef/subresource"),
            namespace: text("/objectRef/namespace"),
            name: text("/objectRef/name"),
            code: u16::try_from(code)?,
        })
    }
}

impl ControlPlane {
    /// The audit log so far. A request shows up a moment after its answer, so wait for what must be there.
    pub fn audit(&self) -> anyhow::Result<Vec<AuditEntry>> {
        let path = self.logs().join("audit.log");
        let log = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        // The last line may be half written.
        let whole = log.rfind('\n').map_or("", |end| &log[..end]);
        whole.lines().map(AuditEntry::parse).collect()
    }
}
