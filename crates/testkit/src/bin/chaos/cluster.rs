//! A control plane, the replicas before it, and the oracle behind it.

use std::{collections::BTreeMap, ffi::OsString, fs, io::Write as _, path::PathBuf, sync::Arc};

use anyhow::{Context, ensure};
use perennial_core::{
    kept::{Kept, Taint},
    policy::Policy,
};
use perennial_testkit::{
    ControlPlane, Snapshot,
    oracle::{Judge, Oracle, Told},
};
use tempfile::NamedTempFile;

use crate::{
    plan::{Harm, KEYS, NOTES, Server, Setting, Shape, TAINTS},
    replica::{Order, Replica},
};

/// Where the keepers' records are.
pub(crate) const NAMESPACE: &str = "perennial";
/// Labels alone, as without a policy.
const LABELS: &str = "";
/// Everything that people set here.
const EVERYTHING: &str =
    "rules: [{annotations: {include: [\"example.com/*\"]}, taints: {include: [\"*\"]}, cordon: true}]";

/// Everything that runs. Stopped and removed on drop.
pub(crate) struct Cluster {
    // Dropped in this order: first those who talk, then whom they talk to.
    pub(crate) replicas: Vec<Replica>,
    pub(crate) oracle: Arc<Oracle>,
    pub(crate) plane: ControlPlane,
    pub(crate) snapshot: Option<Snapshot>,
    /// What was done to one server of several, and not undone yet.
    pub(crate) harmed: BTreeMap<Server, Harm>,
    setting: Setting,
    policy: NamedTempFile,
    kubeconfig: PathBuf,
    arguments: Vec<OsString>,
}

impl Cluster {
    pub(crate) async fn start(
        shape: Shape,
        setting: &Setting,
        arguments: &[OsString],
    ) -> anyhow::Result<Self> {
        let plane = ControlPlane::builder().api_servers(shape.api_servers).etcd_members(shape.etcd_members);
        let plane = plane.without_audit().start().await?;
        let kubeconfig = plane.kubeconfig_for_keeper(NAMESPACE).await?;
        let (policy, file) = policy(setting)?;
        let oracle = Arc::new(Oracle::follow(&plane, Judge::new(policy, NAMESPACE)).await?);
        let mut cluster = Self {
            replicas: Vec::new(),
            oracle,
            plane,
            snapshot: None,
            harmed: BTreeMap::new(),
            setting: setting.clone(),
            policy: file,
            kubeconfig,
            arguments: arguments.to_vec(),
        };
        for _ in 0..shape.replicas {
            cluster.join().await?;
        }
        cluster.ready().await?;
        Ok(cluster)
    }

    /// Other replicas in the place of those that run, if they are to run in another way from now on. No node is there.
    pub(crate) async fn set(&mut self, setting: &Setting) -> anyhow::Result<()> {
        if self.setting == *setting {
            return Ok(());
        }
        let (policy, file) = policy(setting)?;
        self.oracle.fence().await?;
        self.oracle.change_policy(policy);
        self.setting = setting.clone();
        self.policy = file;
        self.renew().await
    }

    /// One more replica.
    pub(crate) async fn join(&mut self) -> anyhow::Result<()> {
        let order = Order {
            logs: &self.plane.logs(),
            kubeconfig: &self.kubeconfig,
            namespace: NAMESPACE,
            policy: self.policy.path(),
            setting: &self.setting,
            arguments: &self.arguments,
        };
        let replica = Replica::start(&order, self.replicas.len() as u64).await?;
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

/// What replicas keep, for the oracle, and in a file for them.
fn policy(setting: &Setting) -> anyhow::Result<(Policy, NamedTempFile)> {
    let text = if setting.keeps_all { EVERYTHING } else { LABELS };
    let policy = Policy::parse(text)?;
    let pairs = |keys: &[&str]| keys.iter().map(|key| ((*key).to_owned(), String::new())).collect();
    let taint =
        |(key, effect): (&str, &str)| Taint { key: key.into(), effect: effect.into(), value: String::new() };
    let mut kept = Kept { labels: pairs(&KEYS), ..Kept::default() };
    if setting.keeps_all {
        kept.annotations = pairs(&NOTES);
        kept.taints = TAINTS.map(taint).into();
        kept.unschedulable = true;
    }
    let judge = Judge::new(policy.clone(), NAMESPACE);
    ensure!(judge.keeps(&kept), "the oracle would not judge what becomes of {kept:?}");
    let mut file = NamedTempFile::with_prefix("perennial-policy-")?;
    file.write_all(text.as_bytes())?;
    Ok((policy, file))
}
