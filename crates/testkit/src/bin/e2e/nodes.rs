//! Nodes: what people give them, and how they go and return.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, ensure};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use perennial_testkit::{cluster, eventually_eq};

use crate::stage::{Ground, PATIENCE, Stage};

/// What is ours of all that a node bears.
const OURS: &str = "example.com/";

/// What people gave to a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Given {
    pub(crate) labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    taints: BTreeSet<String>,
    cordoned: bool,
}

impl Given {
    fn of(node: &Node) -> Self {
        let ours = |all: &Option<BTreeMap<String, String>>| {
            let all = all.iter().flatten().filter(|(key, _)| key.starts_with(OURS));
            all.map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        let spec = node.spec.as_ref();
        let taints = spec.and_then(|spec| spec.taints.as_ref()).into_iter().flatten();
        Self {
            labels: ours(&node.metadata.labels),
            annotations: ours(&node.metadata.annotations),
            taints: taints
                .filter(|taint| taint.key.starts_with(OURS))
                .map(|taint| {
                    format!("{}={}:{}", taint.key, taint.value.as_deref().unwrap_or_default(), taint.effect)
                })
                .collect(),
            cordoned: spec.and_then(|spec| spec.unschedulable).unwrap_or_default(),
        }
    }
}

impl Stage {
    /// The nodes that may go: all workers.
    pub(crate) async fn nodes(&self) -> anyhow::Result<Vec<String>> {
        let workers = "get nodes --selector !node-role.kubernetes.io/control-plane --output name";
        let names = self.kubectl(workers).await?;
        let names: Vec<String> =
            names.lines().filter_map(|line| line.strip_prefix("node/")).map(str::to_owned).collect();
        ensure!(!names.is_empty(), "the cluster has no workers");
        Ok(names)
    }

    /// The node as it is.
    pub(crate) async fn node(&self, name: &str) -> anyhow::Result<Node> {
        Ok(Api::<Node>::all(self.client.clone()).get(name).await?)
    }

    /// What people gave it.
    pub(crate) async fn given(&self, name: &str) -> anyhow::Result<Given> {
        Ok(Given::of(&self.node(name).await?))
    }

    /// Labels a node: `key=value`, or `key-` to take it away.
    pub(crate) async fn label(&self, node: &str, label: &str) -> anyhow::Result<()> {
        self.kubectl(&format!("label node {node} --overwrite {label}")).await.map(drop)
    }

    /// Deletes nodes, and has them return by a restart of their kubelets.
    pub(crate) async fn delete_and_return(&self, names: &[String]) -> anyhow::Result<()> {
        self.kubectl(&format!("delete node {}", names.join(" "))).await?;
        self.return_nodes(names).await
    }

    /// Restarts the kubelets of deleted nodes, and waits until they are ready.
    pub(crate) async fn return_nodes(&self, names: &[String]) -> anyhow::Result<()> {
        try_join_all(names.iter().map(async |name| {
            self.restart_kubelet(name).await?;
            self.ready(name).await
        }))
        .await
        .map(drop)
    }

    /// Waits until a node has this again, and nothing else of ours.
    pub(crate) async fn has(&self, node: &str, given: &Given) -> anyhow::Result<()> {
        let what = format!("{node} has what it was given");
        eventually_eq(PATIENCE, &what, given.clone(), || self.given(node)).await
    }

    /// Takes from a node whatever we gave it.
    pub(crate) async fn take_all(&self, name: &str) -> anyhow::Result<()> {
        let Given { labels, annotations, taints, cordoned } = self.given(name).await?;
        for (what, keys) in [("label", labels), ("annotate", annotations)] {
            for key in keys.keys() {
                self.kubectl(&format!("{what} node {name} {key}-")).await?;
            }
        }
        for taint in taints {
            self.kubectl(&format!("taint node {name} {taint}-")).await?;
        }
        if cordoned {
            self.kubectl(&format!("uncordon {name}")).await?;
        }
        self.label(name, "lifecycle-").await
    }

    /// Waits until the node is there and ready.
    pub(crate) async fn ready(&self, name: &str) -> anyhow::Result<Node> {
        cluster::ready(&Api::all(self.client.clone()), name).await
    }

    async fn restart_kubelet(&self, name: &str) -> anyhow::Result<()> {
        match &self.ground {
            Ground::Ours(cluster) => cluster.worker(name)?.restart_kubelet().await,
            Ground::Theirs { restart_kubelet } => {
                let command = restart_kubelet.as_ref().context("nobody said how a kubelet is restarted")?;
                let command = command.replace("{}", name);
                let mut shell = tokio::process::Command::new("sh");
                let status = shell.args(["-c", &command]).kill_on_drop(true).status().await?;
                ensure!(status.success(), "{command} failed ({status})");
                Ok(())
            }
        }
    }
}
