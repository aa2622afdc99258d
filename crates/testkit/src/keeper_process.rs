//! The `perennial` binary as a child process: what the tests and the demo run, kill and freeze.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::ExitStatus,
    time::Duration,
};

use anyhow::Context;

use crate::{
    clock::wrong_by,
    endpoint::{Endpoint, anonymous},
    port::Port,
    process::Launch,
    server::Server,
};

mod metrics;

const READY: Duration = Duration::from_mins(1);
/// A keeper that is asked to end finishes what it has begun.
const GRACE: Duration = Duration::from_secs(20);

/// What may be chosen about a keeper.
#[derive(Clone, Debug)]
pub struct KeeperBuilder {
    program: PathBuf,
    logs: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
}

impl KeeperBuilder {
    /// Uses this kubeconfig.
    #[must_use]
    pub fn kubeconfig(self, path: impl AsRef<Path>) -> Self {
        self.arg("--kubeconfig").arg(path.as_ref())
    }

    /// Keeps its records in this namespace.
    #[must_use]
    pub fn namespace(self, namespace: &str) -> Self {
        self.arg("--namespace").arg(namespace)
    }

    /// Reads its policy from this file.
    #[must_use]
    pub fn policy(self, path: impl AsRef<Path>) -> Self {
        self.arg("--policy").arg(path.as_ref())
    }

    /// Adds an argument of `perennial run`.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Sets an environment variable. Of our own only a few are passed on, `PATH` and `HOME` among them.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Makes its wall clock wrong by so many hours. The monotonic clock stays right.
    pub fn clock_wrong_by(self, hours: i64) -> anyhow::Result<Self> {
        let environment = wrong_by(hours)?.into_iter();
        Ok(environment.fold(self, |builder, (name, value)| builder.env(name, value)))
    }

    /// Starts it, and returns when it is ready: after its first complete sync.
    pub async fn start(self) -> anyhow::Result<KeeperProcess> {
        let keeper = self.spawn().await?;
        keeper.ready(READY).await?;
        Ok(keeper)
    }

    /// Starts it, and does not wait.
    pub async fn spawn(self) -> anyhow::Result<KeeperProcess> {
        let port = Port::claim()?;
        let name = format!("perennial-{}", port.number());
        let launch = Launch::new(&name, self.program, self.logs.join(format!("{name}.log")))
            .args(["run", "--admin-address", &port.address()])
            .args(self.arguments);
        let launch =
            self.environment.into_iter().fold(launch, |launch, (name, value)| launch.env(name, value));
        let endpoint = Endpoint::http(&port);
        let server = Server::new(launch, port, endpoint, anonymous());
        server.spawn().await?;
        Ok(KeeperProcess { server })
    }
}

/// A keeper that runs, or ran and may be started again. Killed on drop.
#[derive(Debug)]
pub struct KeeperProcess {
    server: Server,
}

impl KeeperProcess {
    /// Begins to describe one: the binary (in a test `env!("CARGO_BIN_EXE_perennial")`), and the folder for its log.
    pub fn builder(program: impl Into<PathBuf>, logs: impl Into<PathBuf>) -> KeeperBuilder {
        KeeperBuilder {
            program: program.into(),
            logs: logs.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
        }
    }

    /// The `perennial` beside the running program, where cargo puts the binaries of one workspace.
    pub fn beside_current_exe() -> anyhow::Result<PathBuf> {
        let current = std::env::current_exe()?;
        // Test binaries are one folder deeper, in `deps`.
        let folders = current.ancestors().skip(1).take(2);
        let mut candidates = folders.map(|folder| folder.join("perennial"));
        candidates.find(|path| path.is_file()).with_context(|| {
            format!("no perennial beside {} (run `cargo build -p perennial`)", current.display())
        })
    }

    /// Waits until it is ready.
    pub async fn ready(&self, within: Duration) -> anyhow::Result<()> {
        self.server.ready(within).await
    }

    /// Starts it again after [`KeeperProcess::stop`] or [`KeeperProcess::kill9`], and returns when it is ready.
    pub async fn start_again(&self) -> anyhow::Result<()> {
        self.server.start(READY).await
    }

    /// Starts it again, and does not wait.
    pub async fn spawn_again(&self) -> anyhow::Result<()> {
        self.server.spawn().await
    }

    /// Asks it to end (SIGTERM), and kills it if it does not.
    pub async fn stop(&self) -> anyhow::Result<ExitStatus> {
        self.server.stop(GRACE).await
    }

    /// Kills it (SIGKILL), in the middle of whatever it does.
    pub async fn kill9(&self) -> anyhow::Result<()> {
        self.server.kill().await.map(drop)
    }

    /// Waits until it has ended by itself.
    pub async fn ended(&self, within: Duration) -> anyhow::Result<ExitStatus> {
        self.server.ended(within).await
    }

    /// Freezes it (SIGSTOP).
    pub async fn pause(&self) -> anyhow::Result<()> {
        self.server.pause().await
    }

    /// Lets it go on (SIGCONT).
    pub async fn resume(&self) -> anyhow::Result<()> {
        self.server.resume().await
    }

    /// Fails with the tail of its log if it does not run.
    pub async fn check(&self) -> anyhow::Result<()> {
        self.server.check().await
    }

    /// Its process id, unless it is stopped.
    pub async fn pid(&self) -> Option<u32> {
        self.server.pid().await
    }

    /// `http://127.0.0.1:PORT` of its own pages.
    pub fn url(&self) -> &str {
        self.server.endpoint().url()
    }

    /// One of its own pages, e.g. `/livez`: the text of a good answer, an error for any other.
    pub async fn get(&self, path: &str) -> anyhow::Result<String> {
        self.server.endpoint().get(&anonymous(), path).await
    }

    /// Its metrics, by name and labels as they stand in the text: `name{label="value"}`.
    pub async fn metrics(&self) -> anyhow::Result<BTreeMap<String, f64>> {
        metrics::parse(&self.get("/metrics").await?)
    }

    /// Its log so far, over all its runs.
    pub fn log(&self) -> anyhow::Result<String> {
        let path = self.server.launch().log();
        fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
    }
}
