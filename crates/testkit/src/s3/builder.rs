//! Options of versitygw, and its start.

use std::{fs, path::Path, time::Duration};

use anyhow::Context;

use super::{Credentials, S3Server};
use crate::{
    assets,
    endpoint::{Endpoint, anonymous},
    pki::Authority,
    port::Port,
    process::Launch,
    server::Server,
    workdir::Workdir,
};

/// Some milliseconds when nothing else runs; this is for machines on which much does.
pub(super) const READY: Duration = Duration::from_mins(1);
/// A disk of a few pages, mounted where nobody else sees it, which goes away with the process. The server is told again
/// to die with us: the kernel forgets that when somebody gets new rights.
const ON_A_SMALL_DISK: &str =
    r#"mount -t tmpfs -o size="$1" none "$2" && shift 2 && exec setpriv --pdeathsig KILL -- "$@""#;

/// What may be chosen about an S3 server.
#[derive(Clone, Debug, Default)]
pub struct S3Builder {
    tls: bool,
    space: Option<String>,
    also_at: Option<String>,
}

impl S3Builder {
    /// Serves by TLS, with a certificate of an authority that nobody knows.
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Gives it a disk of its own of this size, e.g. `1m`, so that [`S3Server::fill`] can fill it.
    ///
    /// It is a tmpfs in a mount namespace, which needs to be root with `CAP_SYS_ADMIN`, or a kernel that lets anybody
    /// have user namespaces. Where neither is so the start fails and says it.
    #[must_use]
    pub fn space(mut self, size: impl Into<String>) -> Self {
        self.space = Some(size.into());
        self
    }

    /// Listens at another address of this machine too, under the same port: pods of a cluster reach it there. See
    /// [`S3Server::url_at`].
    #[must_use]
    pub fn also_at(mut self, address: impl Into<String>) -> Self {
        self.also_at = Some(address.into());
        self
    }

    /// Starts it, and returns when it is ready.
    pub async fn start(self) -> anyhow::Result<S3Server> {
        let mut server = self.prepare()?;
        let Err(error) = server.server.start(READY).await else { return Ok(server) };
        server.workdir.keep_logs();
        let hint =
            if self.space.is_some() { "; a disk of its own needs root or user namespaces" } else { "" };
        let logs = server.logs().display().to_string();
        Err(error.context(format!("the S3 server did not start (logs kept in {logs}){hint}")))
    }

    fn prepare(&self) -> anyhow::Result<S3Server> {
        let workdir = Workdir::create("perennial-s3-")?;
        let authority = Authority::create(workdir.folder("pki")?).context("making certificates")?;
        let credentials = Credentials::make_up();
        let port = Port::claim()?;
        let data = workdir.folder("data")?;
        let log = workdir.logs().join("versitygw.log");
        let program = assets::versitygw()?;

        let mut launch = match &self.space {
            None => Launch::new("versitygw", program, log),
            Some(size) => on_a_small_disk(&program, &log, size, &data),
        };
        launch = launch
            .env("ROOT_ACCESS_KEY_ID", &credentials.access_key)
            .env("ROOT_SECRET_ACCESS_KEY", &credentials.secret_key)
            .args(["--port", &port.address(), "--health", "/health"])
            // As most servers have it: a connection may be one that broke while it was idle.
            .arg("--keep-alive")
            .arg("--iam-dir")
            .arg(workdir.folder("iam")?);
        if let Some(address) = &self.also_at {
            launch = launch.args(["--port", &format!("{address}:{}", port.number())]);
        }
        let endpoint = if self.tls {
            let credential = authority.server("versitygw")?;
            launch = launch.arg("--cert").arg(&credential.certificate).arg("--key").arg(&credential.key);
            Endpoint::https(port.number(), &authority)
        } else {
            Endpoint::http(&port)
        };
        launch = launch.arg("posix").arg(&data);
        Ok(S3Server {
            server: Server::new(launch, port, endpoint, anonymous()).health("/health"),
            credentials,
            authority,
            data,
            small: self.space.is_some(),
            workdir,
        })
    }
}

fn on_a_small_disk(program: &Path, log: &Path, size: &str, data: &Path) -> Launch {
    // Root needs no other user to be; in a container even root may not have the right, and then may do so as a user.
    let as_root = nix::unistd::geteuid().is_root() && may_mount();
    let user: &[&str] = if as_root { &[] } else { &["--user", "--map-root-user"] };
    Launch::new("versitygw", "unshare", log)
        .arg("--mount")
        .args(user)
        .args(["sh", "-c", ON_A_SMALL_DISK, "sh", size])
        .arg(data)
        .arg(program)
}

/// Whether this process has `CAP_SYS_ADMIN`, the 21st.
fn may_mount() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    capabilities
        .and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok())
        .is_some_and(|bits| bits >> 21 & 1 == 1)
}
