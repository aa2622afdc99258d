//! Those who are measured: Perennial, and what else one might write for the same.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Context, ensure};
use clap::ValueEnum;
use perennial_testkit::{ControlPlane, KeeperProcess, Launch, Port, Process};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::usage::{self, Memory};

/// Where all of them keep their records.
pub(crate) const NAMESPACE: &str = "perennial";
const PEERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/build");
/// How long one may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(20);
/// How often one is asked whether it is ready: seldom enough to cost it next to nothing.
const ASKED: Duration = Duration::from_millis(10);

/// Who keeps labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Contender {
    /// This one
    Perennial,
    /// A Go controller on controller-runtime
    ControllerRuntime,
    /// A Python operator on kopf
    Kopf,
    /// A Rust controller on kube-rs, as most would write it
    KubeRs,
}

impl Contender {
    /// What people call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Perennial => "Perennial",
            Self::ControllerRuntime => "controller-runtime",
            Self::Kopf => "kopf",
            Self::KubeRs => "kube-rs",
        }
    }

    /// How the names of its records begin.
    pub(crate) fn records(self) -> &'static str {
        match self {
            Self::Perennial => "node-record.",
            _ => "node-",
        }
    }

    /// Its program, which was built before.
    fn program(self) -> anyhow::Result<PathBuf> {
        match self {
            Self::Perennial => KeeperProcess::beside_current_exe(),
            Self::KubeRs => {
                let program = env::current_exe()?.with_file_name("peer-kube-rs");
                ensure!(program.is_file(), "no {} to run: run `make peers`", program.display());
                Ok(program)
            }
            Self::ControllerRuntime | Self::Kopf => {
                let built = Command::new(PEERS).args(["--print-dir", "--no-build"]).output();
                let built = built.with_context(|| format!("running {PEERS}"))?;
                let told = String::from_utf8_lossy(&built.stderr);
                ensure!(built.status.success(), "{} (run `make peers`)", told.trim());
                Ok(Path::new(String::from_utf8(built.stdout)?.trim_end()).join(self.name()))
            }
        }
    }

    /// Starts it, and does not wait.
    pub(crate) fn start(self, plane: &ControlPlane, kubeconfig: &Path) -> anyhow::Result<Running> {
        self.start_with(plane, kubeconfig, &[])
    }

    /// The same, with further arguments.
    pub(crate) fn start_with(
        self,
        plane: &ControlPlane,
        kubeconfig: &Path,
        arguments: &[&str],
    ) -> anyhow::Result<Running> {
        let port = Port::claim()?;
        let log = plane.logs().join(format!("{}.log", self.name()));
        let launch = Launch::new(self.name(), self.program()?, log);
        let launch = match self {
            Self::Perennial => launch
                .args(["run", "--admin-address", &port.address(), "--namespace", NAMESPACE, "--kubeconfig"])
                .arg(kubeconfig)
                .args(["--member", "replica-1"]),
            _ => launch.env("KUBECONFIG", kubeconfig).env("NAMESPACE", NAMESPACE),
        };
        Ok(Running { process: launch.args(arguments).start()?, port })
    }
}

/// One that runs.
pub(crate) struct Running {
    process: Process,
    port: Port,
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub(crate) fn memory(&self) -> anyhow::Result<Memory> {
        usage::memory(self.process.pid())
    }

    /// Waits until it says that it is ready, as Perennial does once it is in step with the cluster.
    pub(crate) fn ready(&self) -> impl Future<Output = Instant> + use<> {
        let address = self.port.address();
        async move {
            let mut ticks = tokio::time::interval(ASKED);
            loop {
                ticks.tick().await;
                // Nobody listens yet, or not yet for that.
                if is_ready(&address).await.unwrap_or(false) {
                    return Instant::now();
                }
            }
        }
    }

    /// Fails with the end of its log if it has ended.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        self.process.check()
    }

    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        self.process.stop(GRACE).await.map(drop)
    }
}

async fn is_ready(address: &str) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET /readyz HTTP/1.0\r\n\r\n").await?;
    let mut status = [0; 12];
    stream.read_exact(&mut status).await?;
    Ok(status.ends_with(b" 200"))
}

/// A copy of a kubeconfig that leads somewhere else.
pub(crate) fn detour(kubeconfig: &Path, from: &str, to: &str) -> anyhow::Result<PathBuf> {
    let text = fs::read_to_string(kubeconfig)?;
    ensure!(text.contains(from), "{} does not lead to {from}", kubeconfig.display());
    let path = kubeconfig.with_extension("detour");
    fs::write(&path, text.replace(from, to))?;
    Ok(path)
}
