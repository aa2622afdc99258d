//! A control plane, the replicas before it, and the oracle behind it.

use std::{collections::BTreeMap, ffi::OsString, fs, path::PathBuf, sync::Arc};

use anyhow::{Context, ensure};
use perennial_core::{kept::Kept, policy::Policy};
use perennial_testkit::{
    ControlPlane, Snapshot,
    oracle::{Judge, Oracle, Told},
};

use crate::{
    plan::{Harm, KEYS, Server, Shape},
    replica::Replica,
};

/// Where the keepers' records are.
const NAMESPACE: &str = "perennial";

/// Everything that runs. Stopped and removed on drop.
pub(crate) struct Cluster {
    // Dropped in this order: first those who talk, then whom they talk to.
    pub(crate) replicas: Vec<Replica>,
    pub(crate) oracle: Arc<Oracle>,
    pub(crate) plane: ControlPlane,
    pub(crate) snapshot: Option<Snapshot>,
    /// What was done to one server of several, and not undone yet.
    pub(crate) harmed: BTreeMap<Server, Harm>,
    kubeconfig: PathBuf,
    arguments: Vec<OsString>,
}

impl Cluster {
    pub(crate) async fn start(shape: Shape, arguments: &[OsString]) -> anyhow::Result<Self> {
        // The oracle reads what etcd stores.
        let json = "--storage-media-type=application/json";
        let plane = ControlPlane::builder().api_servers(shape.api_servers).etcd_members(shape.etcd_members);
        let plane = plane.without_audit().apiserver_flag(json).start().await?;
        let kubeconfig = plane.kubeconfig_for_keeper(NAMESPACE).await?;
        let judge = Judge::new(Policy::default(), NAMESPACE);
        let labels = KEYS.map(|key| (key.to_owned(), String::new())).into();
        ensure!(
            judge.keeps(&Kept { labels, ..Kept::default() }),
            "nobody would judge what becomes of {KEYS:?}"
        );
        let oracle = Arc::new(Oracle::follow(&plane, judge).await?);
        let arguments = arguments.to_vec();
        let mut cluster = Self {
            replicas: Vec::new(),
            oracle,
            plane,
            snapshot: None,
            harmed: BTreeMap::new(),
            kubeconfig,
            arguments,
        };
        for _ in 0..shape.replicas {
            cluster.join().await?;
        }
        cluster.ready().await?;
        Ok(cluster)
    }

    /// One more replica.
    pub(crate) async fn join(&mut self) -> anyhow::Result<()> {
        let logs = self.plane.logs();
        let number = self.replicas.len() as u64;
        let replica = Replica::start(&logs, &self.kubeconfig, NAMESPACE, &self.arguments, number).await?;
        self.replicas.push(replica);
        Ok(())
    }

    /// Waits until every replica that runs is in step.
    pub(crate) async fn ready(&self) -> anyhow::Result<()> {
        for (number, replica) in self.replicas.iter().enumerate().filter(|(_, replica)| !replica.is_down()) {
            replica.ready().await.with_context(|| format!("replica {number} is in step"))?;
        }
        Ok(())
    }

    /// The replicas that run and do not say yet that they have nothing to do.
    pub(crate) async fn restless(&self) -> Vec<usize> {
        let mut restless = Vec::new();
        for (number, replica) in self.replicas.iter().enumerate() {
            if !replica.is_down() && !replica.is_idle().await {
                restless.push(number);
            }
        }
        restless
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
}
