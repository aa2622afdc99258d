//! A whole cluster on one machine: a control plane and three workers, each with a real kubelet, containerd and
//! kube-proxy; pods on cluster addresses, DNS, metrics. Nothing is pulled from a registry.
//!
//! ```text
//! host 10.99.0.1 ── perennial0 ──┐
//!                       control-plane 10.99.0.10: the switch; etcd, API server, controllers, scheduler
//!                                ├── worker-1 10.99.0.11: containerd, kubelet, kube-proxy; pods 10.244.1.0/24
//!                                ├── worker-2 10.99.0.12: …                                pods 10.244.2.0/24
//!                                └── worker-3 10.99.0.13: …                                pods 10.244.3.0/24
//! ```
//! A machine is a set of namespaces with runit as its first process, which starts again what exits. Kill that process
//! and the kernel ends all others on the machine, with their mounts and networks. From the host, pods and Services
//! are reached by their addresses, and pods reach the host at [`HOST`].
//!
//! All state is in one folder, so a cluster may be left running by one program and used by another: [`Cluster::start`]
//! makes one that goes with its owner, [`Cluster::start_detached`] one that stays, [`Cluster::find`] finds it.
//! There is one cluster on a machine at a time.
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use perennial_testkit::cluster::Cluster;
//!
//! let cluster = Cluster::start().await?;
//! cluster.import_image("perennial.tar").await?;
//! cluster.console().helm(["install", "perennial", "charts/perennial", "--wait"]).await?;
//! let worker = cluster.worker("worker-2")?;
//! cluster.console().kubectl(["delete", "node", worker.name()]).await?;
//! worker.restart_kubelet().await?;
//! worker.ready(cluster.console()).await?;
//! cluster.stop()?;
//! # Ok(())
//! # }
//! ```
//!
//! | file | what |
//! | --- | --- |
//! | `layout` | addresses, and files in the state folder |
//! | `machine`, `boot.sh`, `cgroups`, `network` | machines without hardware, and their cables |
//! | `certificates`, `control`, `node` | what runs on them, with which flags |
//! | `start`, `clean` | up and down |
//! | `worker`, `console`, `diagnostics` | what one does with a cluster |

use std::{
    path::{Path, PathBuf},
    thread,
};

use anyhow::{Context as _, bail, ensure};
use futures::future::try_join_all;

mod certificates;
mod cgroups;
mod clean;
mod command;
mod console;
mod control;
mod diagnostics;
mod layout;
mod life;
mod machine;
mod network;
mod node;
mod start;
mod wait;
mod worker;

pub use console::Console;
pub use layout::HOST;
pub use worker::{Worker, ready};

use crate::assets::ClusterAssets;
use layout::{Layout, WORKERS};
use life::Life;
use machine::Bond;

/// A running cluster. One that was started with [`Cluster::start`] is taken down on drop.
#[derive(Debug)]
pub struct Cluster {
    layout: Layout,
    console: Console,
    workers: Vec<Worker>,
    /// Whether there is nothing to take down on drop.
    stopped: bool,
}

impl Cluster {
    /// Starts one, and returns when its nodes are ready and its names and metrics are served. It tells its progress on
    /// standard error.
    ///
    /// It goes with its owner: on drop, when this future is dropped, when the process is killed. What a killed one left
    /// is removed before. Fails if a cluster is up already.
    pub async fn start() -> anyhow::Result<Self> {
        start::start(Bond::Owned).await
    }

    /// Starts one that goes on when this process ends. If the start fails or is dropped, it is taken down.
    pub async fn start_detached() -> anyhow::Result<Self> {
        let mut cluster = start::start(Bond::Detached).await?;
        cluster.stopped = true;
        Ok(cluster)
    }

    /// The cluster that somebody left running.
    pub fn find() -> anyhow::Result<Self> {
        let layout = Layout::find()?;
        let state = network::cluster_up().context("no cluster is up: `make up` starts one")?;
        ensure!(state == layout.folder(), "the cluster that is up has its state in {}", state.display());
        let assets = ClusterAssets::find()?;
        let workers =
            (1..=WORKERS).map(|number| Worker::new(number, &layout, &assets, Bond::Detached)).collect();
        Ok(Self { console: Console::new(layout.kubeconfig())?, layout, workers, stopped: true })
    }

    /// Takes down the cluster of this user, in whatever state it is, and removes what a killed one left. Tells whether
    /// there was anything. Fails if it goes with another process, which would be surprised.
    pub fn remove() -> anyhow::Result<bool> {
        let layout = Layout::find()?;
        if let Some(owner) = Life::recorded(&layout.owner()) {
            bail!("the cluster belongs to process {}, and goes with it", owner.pid);
        }
        let there = layout.folder().exists();
        let _lock = clean::lock(&layout)?;
        clean::clean(&layout)?;
        Ok(there)
    }

    /// Takes it down: no process, mount, network, control group or file is left.
    pub fn stop(mut self) -> anyhow::Result<()> {
        self.stopped = true;
        clean::clean(&self.layout)
    }

    /// Its administrator: kubeconfig, kubectl, helm, clients.
    #[must_use]
    pub fn console(&self) -> &Console {
        &self.console
    }

    /// A folder with kubectl and helm, for a `PATH`.
    #[must_use]
    pub fn tools(&self) -> PathBuf {
        self.layout.tools()
    }

    /// The logs of all programs: a folder for each machine.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.layout.logs()
    }

    /// All workers.
    #[must_use]
    pub fn workers(&self) -> &[Worker] {
        &self.workers
    }

    /// The worker of this name.
    pub fn worker(&self, name: &str) -> anyhow::Result<&Worker> {
        let names = || self.workers.iter().map(Worker::name).collect::<Vec<_>>().join(", ");
        self.workers
            .iter()
            .find(|worker| worker.name() == name)
            .with_context(|| format!("there is no worker {name}: there are {}", names()))
    }

    /// Imports an image into all workers, from a tar as `docker save` and OCI tools write it. Its pods need
    /// `imagePullPolicy: Never` or `IfNotPresent`.
    pub async fn import_image(&self, tar: impl AsRef<Path>) -> anyhow::Result<()> {
        let tars = [tar.as_ref()];
        try_join_all(self.workers.iter().map(|worker| worker.import(&tars))).await?;
        Ok(())
    }

    /// Gives an image that was imported another name besides, on all workers. Names are whole: `docker.io/library/NAME:TAG`.
    pub async fn tag_image(&self, name: &str, other: &str) -> anyhow::Result<()> {
        try_join_all(self.workers.iter().map(|worker| worker.tag(name, other))).await?;
        Ok(())
    }

    /// Writes all that may tell why something failed into a folder: logs, what kubectl says of everything (Secrets
    /// excepted), what the machines look like.
    pub async fn diagnostics(&self, folder: &Path) -> anyhow::Result<()> {
        diagnostics::machines(&self.layout, folder).await?;
        self.console.diagnostics(folder).await
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.stopped {
            return;
        }
        if thread::panicking() {
            say("taken down after a panic");
        }
        if let Err(error) = clean::clean(&self.layout) {
            say(&format!("could not be taken down, `make down` tries again: {error:#}"));
        }
    }
}

/// Tells how it goes on.
fn say(what: &str) {
    eprintln!("cluster: {what}");
}
