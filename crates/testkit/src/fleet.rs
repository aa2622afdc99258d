//! Nodes by the thousand, as a cluster has them.
//!
//! Everything follows from an index: the name, the labels, the machine. [`registration`] is the node as its
//! kubelet registers it, bare; [`company_labels`] is what people put on it later. A [`Fleet`] writes such nodes to
//! an API server with bounded concurrency, and goes on while that is restarted.

use std::{future::Future, ops::Range};

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client,
    api::{DeleteParams, PostParams},
};

mod heartbeats;
mod labels;
mod node;
mod persist;

pub use labels::{company_labels, kubelet_labels, node_name};
pub use node::registration;

use persist::{Outcome, persist};

/// Enough to keep an API server busy.
const CONCURRENCY: usize = 64;

/// Writes many nodes at once.
#[derive(Clone)]
pub struct Fleet {
    nodes: Api<Node>,
    concurrency: usize,
}

impl Fleet {
    /// A fleet on the other side of this client, who must be an administrator.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { nodes: Api::all(client), concurrency: CONCURRENCY }
    }

    /// Has so many requests under way at most.
    #[must_use]
    pub fn concurrency(mut self, requests: usize) -> Self {
        self.concurrency = requests;
        self
    }

    /// Creates nodes that have been labelled.
    pub async fn create(&self, nodes: Range<usize>) -> anyhow::Result<()> {
        self.for_each(nodes, |index| async move {
            let mut node = registration(index);
            node.metadata.labels.get_or_insert_default().extend(company_labels(index));
            self.create_one(&node).await
        })
        .await
    }

    /// Creates nodes as kubelets do: bare.
    pub async fn register(&self, nodes: Range<usize>) -> anyhow::Result<()> {
        self.for_each(nodes, |index| async move { self.create_one(&registration(index)).await }).await
    }

    /// Deletes nodes; those that are away already are passed over.
    pub async fn delete(&self, nodes: Range<usize>) -> anyhow::Result<()> {
        self.for_each(nodes, |index| self.delete_one(index)).await
    }

    /// Deletes each node and registers it again at once: the same machine, bare, with a new uid.
    pub async fn recreate(&self, nodes: Range<usize>) -> anyhow::Result<()> {
        self.for_each(nodes, |index| async move {
            self.delete_one(index).await?;
            self.create_one(&registration(index)).await
        })
        .await
    }

    async fn create_one(&self, node: &Node) -> anyhow::Result<()> {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let params = PostParams::default();
        match persist(name, || self.nodes.create(&params, node), &[409]).await? {
            Outcome::Done(_) | Outcome::Accepted { after_doubt: true } => Ok(()),
            Outcome::Accepted { after_doubt: false } => anyhow::bail!("node {name} is there already"),
        }
    }

    async fn delete_one(&self, index: usize) -> anyhow::Result<()> {
        let name = node_name(index);
        let params = DeleteParams::default();
        persist(&name, || self.nodes.delete(&name, &params), &[404]).await?;
        Ok(())
    }

    async fn for_each<F, Fut>(&self, nodes: Range<usize>, act: F) -> anyhow::Result<()>
    where
        F: FnMut(usize) -> Fut,
        Fut: Future<Output = anyhow::Result<()>>,
    {
        stream::iter(nodes).map(act).buffer_unordered(self.concurrency).try_collect().await
    }
}
