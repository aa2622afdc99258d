//! `make up`, `make restart-worker`, `make down`: a real cluster on this machine, for people.

use std::{ffi::OsString, process::ExitCode};

use anyhow::Context as _;
use clap::Parser;
use perennial_testkit::{cluster::Cluster, interrupted};

/// A real cluster on this machine: a control plane and three workers, without Docker
#[derive(Debug, Parser)]
#[command(name = "cluster", max_term_width = 100)]
enum Args {
    /// Start one, and leave it running
    Up,
    /// Start one, run a command with it, and take it down
    Run {
        /// The command, with KUBECONFIG and PATH set
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<OsString>,
    },
    /// Tell how to use the one that is up
    Env,
    /// End a worker's kubelet and start it again
    RestartWorker {
        /// Its name
        #[arg(default_value = "worker-1")]
        name: String,
    },
    /// Put another machine in a worker's place: the same name, empty disks, another provider id
    ReplaceWorker {
        /// Its name
        #[arg(default_value = "worker-1")]
        name: String,
    },
    /// Write all that may tell why something failed into a folder
    Diagnostics {
        /// The folder
        folder: std::path::PathBuf,
    },
    /// Stop it, and remove what it left
    Down,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let ended = tokio::select! {
        // We listen for signals before there is anything to take down.
        biased;
        by = interrupted() => {
            eprintln!("cluster: ended by {}", by.name);
            Ok(by.into())
        }
        // Dropped, a start takes down what it began.
        ended = run(args) => ended,
    };
    ended.unwrap_or_else(|error| {
        eprintln!("cluster: {error:#}");
        ExitCode::FAILURE
    })
}

async fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args {
        Args::Up => {
            let cluster = Cluster::start_detached().await?;
            tell_how_to_use(&cluster);
        }
        Args::Run { command } => return run_with_one(&command).await,
        Args::Env => tell_how_to_use(&Cluster::find()?),
        Args::RestartWorker { name } => {
            let cluster = Cluster::find()?;
            let worker = cluster.worker(&name)?;
            worker.restart_kubelet().await?;
            worker.ready(cluster.console()).await?;
            eprintln!("cluster: {name} is ready");
        }
        Args::ReplaceWorker { name } => {
            let cluster = Cluster::find()?;
            let worker = cluster.worker(&name)?;
            cluster.console().kubectl(["delete", "node", &name, "--ignore-not-found"]).await?;
            worker.replace().await?;
            worker.ready(cluster.console()).await?;
            eprintln!("cluster: {name} is ready, and another machine: {}", worker.provider_id()?);
        }
        Args::Diagnostics { folder } => {
            Cluster::find()?.diagnostics(&folder).await?;
            eprintln!("cluster: written to {}", folder.display());
        }
        Args::Down => {
            let there = Cluster::remove()?;
            eprintln!("cluster: {}", if there { "down" } else { "there was none" });
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn run_with_one(command: &[OsString]) -> anyhow::Result<ExitCode> {
    let cluster = Cluster::start().await?;
    let mut path = cluster.tools().into_os_string();
    if let Some(ours) = std::env::var_os("PATH") {
        path.push(":");
        path.push(ours);
    }
    let (program, arguments) = command.split_first().context("no command")?;
    let status = tokio::process::Command::new(program)
        .args(arguments)
        .env("KUBECONFIG", cluster.console().kubeconfig())
        .env("PATH", path)
        .kill_on_drop(true)
        .status()
        .await
        .with_context(|| format!("running {}", program.display()))?;
    cluster.stop()?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// In words that a shell understands.
fn tell_how_to_use(cluster: &Cluster) {
    println!("export KUBECONFIG={}", cluster.console().kubeconfig().display());
    println!("export PATH={}:$PATH", cluster.tools().display());
}
