//! How kube-apiserver is run: with the authorizers and admission that every cluster has.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    pki::{Authority, Credential},
    port::Port,
    process::Launch,
};

/// One line for each request when it is answered, and one more when a long one (a watch) begins.
const AUDIT_POLICY: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
 "omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}"#;

pub(super) struct Flags<'a> {
    /// Distinguishes it from the others in the names of its files.
    pub(super) name: &'a str,
    pub(super) program: &'a Path,
    pub(super) log: &'a Path,
    pub(super) port: &'a Port,
    /// The port at which it reaches etcd.
    pub(super) etcd: u16,
    pub(super) etcd_client: &'a Credential,
    pub(super) authority: &'a Authority,
    /// The public and the private key of service account tokens: all servers accept what any of them signed.
    pub(super) service_accounts: &'a (PathBuf, PathBuf),
    /// Where the audit log goes, if there shall be one.
    pub(super) audit: Option<&'a Path>,
    pub(super) watch_cache: bool,
    pub(super) more: &'a [String],
}

impl Flags<'_> {
    pub(super) fn launch(&self) -> anyhow::Result<Launch> {
        let ca = self.authority.certificate();
        let server = self.authority.server(self.name)?;
        let (public, private) = self.service_accounts;
        let launch = Launch::new(self.name, self.program, self.log)
            .arg(format!("--etcd-servers=https://127.0.0.1:{}", self.etcd))
            .arg(flag("--etcd-cafile", &ca))
            .arg(flag("--etcd-certfile", &self.etcd_client.certificate))
            .arg(flag("--etcd-keyfile", &self.etcd_client.key))
            .arg("--bind-address=127.0.0.1")
            .arg("--advertise-address=127.0.0.1")
            .arg(format!("--secure-port={}", self.port.number()))
            .arg(flag("--tls-cert-file", &server.certificate))
            .arg(flag("--tls-private-key-file", &server.key))
            .arg(flag("--client-ca-file", &ca))
            .arg("--authorization-mode=Node,RBAC")
            .arg("--enable-admission-plugins=NodeRestriction")
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            .arg(flag("--service-account-key-file", public))
            .arg(flag("--service-account-signing-key-file", private))
            .arg("--service-cluster-ip-range=10.0.0.0/24")
            // The loopback address is not one that an endpoint may have.
            .arg("--endpoint-reconciler-type=none")
            .arg(format!("--watch-cache={}", self.watch_cache))
            .args(self.audit_flags()?);
        // Last, so that they win.
        Ok(launch.args(self.more))
    }

    fn audit_flags(&self) -> anyhow::Result<Vec<String>> {
        let Some(path) = self.audit else { return Ok(Vec::new()) };
        let policy: PathBuf = path.with_extension("policy");
        fs::write(&policy, AUDIT_POLICY)?;
        // Its size in megabytes before it is rotated away: never.
        let size = "--audit-log-maxsize=1000000".to_owned();
        Ok(vec![flag("--audit-policy-file", &policy), flag("--audit-log-path", path), size])
    }
}

fn flag(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}
