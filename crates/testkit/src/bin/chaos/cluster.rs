//! A control plane, the replicas before it, and the oracle behind it.

use std::{ffi::OsString, fs, path::PathBuf, process::Stdio, sync::Arc, time::Duration};

use anyhow::{Context, ensure};
use perennial_core::policy::Policy;
use perennial_testkit::{
    ControlPlane, Snapshot, eventually,
    oracle::{Judge, Oracle, Told},
};
use tokio::process::Command;

use crate::replica::Replica;

/// The namespace and the service account of `deploy/rbac.yaml`.
const ACCOUNT: (&str, &str) = ("perennial", "perennial");
const RBAC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/rbac.yaml");
const SOON: Duration = Duration::from_mins(1);

/// Everything that runs. Stopped and removed on drop.
pub(crate) struct Cluster {
    // Dropped in this order: first those who talk, then whom they talk to.
    pub(crate) replicas: Vec<Replica>,
    pub(crate) oracle: Arc<Oracle>,
    pub(crate) plane: ControlPlane,
    pub(crate) snapshot: Option<Snapshot>,
    kubeconfig: PathBuf,
    arguments: Vec<OsString>,
}

impl Cluster {
    pub(crate) async fn start(replicas: usize, arguments: &[OsString]) -> anyhow::Result<Self> {
        // The oracle reads what etcd stores.
        let json = "--storage-media-type=application/json";
        let plane = ControlPlane::builder().without_audit().apiserver_flag(json).start().await?;
        let (namespace, name) = ACCOUNT;
        let kubeconfig = plane.kubeconfig_for_service_account(namespace, name).await?;
        let judge = Judge::new(Policy::default(), namespace);
        let oracle = Arc::new(Oracle::follow(&plane, judge).await?);
        let arguments = arguments.to_vec();
        let mut cluster = Self { replicas: Vec::new(), oracle, plane, snapshot: None, kubeconfig, arguments };
        cluster.grant().await.context("granting deploy/rbac.yaml")?;
        for _ in 0..replicas {
            cluster.join().await?;
        }
        cluster.ready().await?;
        Ok(cluster)
    }

    /// One more replica.
    pub(crate) async fn join(&mut self) -> anyhow::Result<()> {
        let logs = self.plane.logs();
        let number = self.replicas.len() as u64;
        let replica = Replica::start(&logs, &self.kubeconfig, ACCOUNT.0, &self.arguments, number).await?;
        self.replicas.push(replica);
        Ok(())
    }

    /// Waits until every replica is in step.
    pub(crate) async fn ready(&self) -> anyhow::Result<()> {
        for (number, replica) in self.replicas.iter().enumerate() {
            replica.ready().await.with_context(|| format!("replica {number} is in step"))?;
        }
        Ok(())
    }

    /// Other replicas in the place of those that run, with other ways to the API server.
    pub(crate) async fn renew(&mut self) -> anyhow::Result<()> {
        let many = self.replicas.len();
        for mut replica in std::mem::take(&mut self.replicas) {
            replica.stop().await?;
        }
        for _ in 0..many {
            self.join().await?;
        }
        self.ready().await
    }

    /// Writes something into the timelines.
    pub(crate) fn note(&self, note: String) {
        self.oracle.tell(Told::Note(note));
    }

    /// The last lines of each replica's log that name a node.
    pub(crate) fn said_about(&self, node: &str, most: usize) -> anyhow::Result<Vec<String>> {
        let mut said = Vec::new();
        for entry in fs::read_dir(self.plane.logs())? {
            let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
            let Some(name) = name.to_str().filter(|name| name.starts_with("perennial-")) else { continue };
            let log = fs::read_to_string(&path)?;
            let lines: Vec<&str> = log.lines().filter(|line| line.contains(node)).collect();
            let last = lines.iter().skip(lines.len().saturating_sub(most));
            said.extend(last.map(|line| format!("{name}: {line}")));
        }
        Ok(said)
    }

    async fn grant(&self) -> anyhow::Result<()> {
        let admin = self.plane.kubeconfig_for_admin()?;
        self.kubectl(&admin, &["apply", "-f", RBAC]).await?;
        let asked = ["auth", "can-i", "delete", "configmaps", "--namespace", ACCOUNT.0];
        eventually(SOON, "the permissions count", || async {
            self.kubectl(&self.kubeconfig, &asked).await?;
            Ok(Some(()))
        })
        .await
    }

    async fn kubectl(&self, kubeconfig: &PathBuf, arguments: &[&str]) -> anyhow::Result<()> {
        let mut command = Command::new(self.plane.assets().kubectl());
        let command = command.arg("--kubeconfig").arg(kubeconfig).args(arguments);
        // Ctrl-C is for us alone.
        let output = command.stdin(Stdio::null()).process_group(0).kill_on_drop(true).output().await?;
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "kubectl {}: {}", arguments.join(" "), told.trim());
        Ok(())
    }
}
