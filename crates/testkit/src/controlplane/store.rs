//! What the API servers store in: etcd, or kine over `SQLite`, as k3s does.

use std::{env, io::Write as _, path::Path, thread};

use anyhow::bail;

use crate::{pki::Credential, port::Port, process::Launch};

/// Names the store of all control planes that this process starts: `etcd`, which is the default, or `kine`.
const VARIABLE: &str = "K8S_STORE";
/// k3s's own, but for waiting for the disk.
const SQLITE: &str = "_journal_mode=WAL&_busy_timeout=30000&_synchronous=OFF&_txlock=immediate&_stmt_cache_size=20&cache=shared";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    Etcd,
    Kine,
}

impl Store {
    pub(crate) fn chosen() -> anyhow::Result<Self> {
        match env::var(VARIABLE).as_deref() {
            Err(env::VarError::NotPresent) | Ok("" | "etcd") => Ok(Self::Etcd),
            Ok("kine") => Ok(Self::Kine),
            other => bail!("{VARIABLE} is etcd or kine, not {other:?}"),
        }
    }
}

/// Whether a test has to end before it begins, since the control planes of this run store in kine and the test needs
/// etcd itself: its own API, several members, or a history that is compacted when the test says so. Then it says so on
/// stderr, by the test's name and past the test harness, which captures what passing tests print.
#[must_use]
pub fn left_out_on_kine() -> bool {
    let left_out = Store::chosen().is_ok_and(|store| store == Store::Kine);
    if left_out {
        let test = thread::current();
        let line = format!("left out on kine: {} needs etcd itself\n", test.name().unwrap_or("a test"));
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    left_out
}

/// How kine is run: etcd's API by gRPC alone, TLS and client certificates.
pub(super) struct Kine<'a> {
    pub(super) program: &'a Path,
    pub(super) log: &'a Path,
    pub(super) data: &'a Path,
    pub(super) port: &'a Port,
    /// Where it says by HTTP that it is there, once it serves.
    pub(super) metrics: &'a Port,
    pub(super) authority: &'a Path,
    pub(super) server: &'a Credential,
}

impl Kine<'_> {
    pub(super) fn launch(&self) -> Launch {
        let database = self.data.join("state.db");
        Launch::new("kine", self.program, self.log)
            .arg(format!("--listen-address={}", self.port.address()))
            .arg(format!("--endpoint=sqlite://{}?{SQLITE}", database.display()))
            .arg(format!("--server-cert-file={}", self.server.certificate.display()))
            .arg(format!("--server-key-file={}", self.server.key.display()))
            .arg(format!("--trusted-ca-file={}", self.authority.display()))
            .arg(format!("--metrics-bind-address={}", self.metrics.address()))
            .arg("--metrics-ignore-tls-config")
    }
}
