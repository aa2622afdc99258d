//! The API server's audit log: who asked for what, and what the answer was.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::PoisonError,
};

use anyhow::Context;
use serde_json::Value;

use super::{ControlPlane, numbered};

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

/// What was read of the log so far: it only grows, and on a shared control plane it grows long.
#[derive(Default)]
pub(super) struct Audit {
    /// Where the first line begins that is not among the entries.
    read: u64,
    entries: Vec<AuditEntry>,
}

impl Audit {
    /// Reads on from where it was.
    fn follow(&mut self, mut log: impl Read + Seek) -> anyhow::Result<&[AuditEntry]> {
        let mut text = String::new();
        log.seek(SeekFrom::Start(self.read))?;
        log.read_to_string(&mut text)?;
        // The last line may be half written.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let new: anyhow::Result<Vec<_>> = text[..whole].lines().map(AuditEntry::parse).collect();
        self.entries.extend(new?);
        self.read += u64::try_from(whole)?;
        Ok(&self.entries)
    }
}

impl ControlPlane {
    /// The audit log so far, of one API server after the other. A request shows up a moment after its answer, so wait
    /// for what must be there.
    pub fn audit(&self) -> anyhow::Result<Vec<AuditEntry>> {
        self.audit_of(|_| true)
    }

    /// The same of what is asked for alone.
    pub fn audit_of(&self, wanted: impl Fn(&AuditEntry) -> bool) -> anyhow::Result<Vec<AuditEntry>> {
        let mut audits = self.audits.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = Vec::new();
        for (index, audit) in audits.iter_mut().enumerate() {
            let path = audit_log(&self.logs(), index);
            let reading = || format!("reading {}", path.display());
            let log = File::open(&path).with_context(reading)?;
            let entries = audit.follow(log).with_context(reading)?;
            found.extend(entries.iter().filter(|entry| wanted(entry)).cloned());
        }
        Ok(found)
    }
}

/// The audit log of one of the API servers.
pub(super) fn audit_log(logs: &Path, server: usize) -> PathBuf {
    logs.join(numbered("audit", server)).with_extension("log")
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn a_log_is_read_on_from_its_last_whole_line() {
        let verbs = |audit: &mut Audit, log: &str| -> Vec<String> {
            let entries = audit.follow(Cursor::new(log)).unwrap();
            entries.iter().map(|entry| entry.verb.clone()).collect()
        };
        let mut audit = Audit::default();
        assert_eq!(verbs(&mut audit, ""), [""; 0]);
        assert_eq!(verbs(&mut audit, "{\"verb\": \"get\"}\n{\"verb\": \"li"), ["get"]);
        assert_eq!(verbs(&mut audit, "{\"verb\": \"get\"}\n{\"verb\": \"list\"}\n"), ["get", "list"]);
        assert_eq!(verbs(&mut audit, "{\"verb\": \"get\"}\n{\"verb\": \"list\"}\n"), ["get", "list"]);
    }
}
