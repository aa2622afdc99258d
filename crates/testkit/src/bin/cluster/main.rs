//! `make up`, `make restart-worker`, `make down`: a real cluster on this machine, for people.

use std::{future::pending, process::ExitCode};

use clap::Parser;
use perennial_testkit::cluster::Cluster;
use tokio::signal::unix::{SignalKind, signal};

/// A real cluster on this machine: a control plane and three workers, without Docker
#[derive(Debug, Parser)]
#[command(name = "cluster", max_term_width = 100)]
enum Args {
    /// Start one, and leave it running
    Up,
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
    // Dropped, a start takes down what it began.
    let ended = tokio::select! {
        ended = run(args) => ended.map(|()| ExitCode::SUCCESS),
        code = interrupted() => Ok(code),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("cluster: {error:#}");
        ExitCode::FAILURE
    })
}

async fn run(args: Args) -> anyhow::Result<()> {
    match args {
        Args::Up => {
            let cluster = Cluster::start_detached().await?;
            tell_how_to_use(&cluster);
        }
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
    Ok(())
}

/// In words that a shell understands.
fn tell_how_to_use(cluster: &Cluster) {
    println!("export KUBECONFIG={}", cluster.console().kubeconfig().display());
    println!("export PATH={}:$PATH", cluster.tools().display());
}

async fn interrupted() -> ExitCode {
    let received = async |kind| match signal(kind) {
        Ok(mut signals) => drop(signals.recv().await),
        Err(_) => pending().await,
    };
    let code = tokio::select! {
        () = received(SignalKind::interrupt()) => 130,
        () = received(SignalKind::terminate()) => 143,
        () = received(SignalKind::hangup()) => 129,
    };
    eprintln!("cluster: interrupted");
    ExitCode::from(code)
}
