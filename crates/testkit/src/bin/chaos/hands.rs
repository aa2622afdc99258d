//! What people and kubelets do. They go on while the control plane is being restarted, and never give up.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{anyhow, bail};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use perennial_testkit::{
    eventually,
    oracle::{HAND, Oracle, Told},
    registration,
};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::plan::{Deed, Labels};

/// How long the API server may be away.
const PATIENCE: Duration = Duration::from_mins(2);
/// How long one answer may take, while the API server is frozen or etcd is.
const ANSWER: Duration = Duration::from_secs(15);
/// So many do something at a time.
const CONCURRENCY: usize = 24;
/// Of a kubelet's long list of images a few are enough here.
const IMAGES: usize = 2;

pub(crate) struct Hands {
    nodes: Api<Node>,
    oracle: Arc<Oracle>,
    round: u64,
    writes: AtomicU64,
}

impl Hands {
    pub(crate) fn new(client: Client, oracle: Arc<Oracle>, round: u64) -> Self {
        Self { nodes: Api::all(client), oracle, round, writes: AtomicU64::new(0) }
    }

    /// Names are new in every round, so that a round knows nothing of those before it.
    pub(crate) fn name(&self, node: usize) -> String {
        format!("n{node:03}.r{}", self.round)
    }

    /// A value that was never there before.
    fn hand(&self) -> String {
        format!("{}-{}", self.round, self.writes.fetch_add(1, Ordering::Relaxed))
    }

    /// Does all of it, some at a time.
    pub(crate) async fn all(&self, deeds: &[(usize, Deed)]) -> anyhow::Result<()> {
        let all = stream::iter(deeds).map(|(node, deed)| self.deed(*node, deed));
        all.buffer_unordered(CONCURRENCY).try_collect().await
    }

    async fn deed(&self, node: usize, deed: &Deed) -> anyhow::Result<()> {
        let name = self.name(node);
        match deed {
            Deed::Create(labels) => self.create(node, labels).await,
            Deed::Delete => self.delete(&name).await,
            Deed::Recreate(lives) => {
                for labels in lives {
                    self.delete(&name).await?;
                    self.create(node, labels).await?;
                }
                Ok(())
            }
            Deed::Set(key, value) => self.patch(&name, json!({"labels": {*key: value}})).await,
            Deed::Remove(key) => self.patch(&name, json!({"labels": {*key: null}})).await,
            Deed::SetAndDelete(key, value) => {
                self.patch(&name, json!({"labels": {*key: value}})).await?;
                self.delete(&name).await
            }
            Deed::Terminate => {
                self.patch(&name, json!({"finalizers": ["example.com/hold"]})).await?;
                self.delete(&name).await
            }
            Deed::Release => self.patch(&name, json!({"finalizers": null})).await,
        }
    }

    /// A node registers. That it is there already is fine: etcd may have been turned back.
    pub(crate) async fn create(&self, node: usize, labels: &Labels) -> anyhow::Result<()> {
        let name = self.name(node);
        let mut object = registration(node);
        object.metadata.name = Some(name.clone());
        object.metadata.labels.get_or_insert_default().extend(labels.clone());
        object.metadata.annotations.get_or_insert_default().insert(HAND.to_owned(), self.hand());
        if let Some(images) = object.status.as_mut().and_then(|status| status.images.as_mut()) {
            images.truncate(IMAGES);
        }
        let params = PostParams::default();
        let created = persist(&name, &[409], || self.nodes.create(&params, &object)).await;
        if let Err(refused) = &created {
            self.oracle.tell(Told::Refused { node: name, why: format!("{refused:#}") });
        }
        created
    }

    async fn delete(&self, name: &str) -> anyhow::Result<()> {
        let params = DeleteParams::default();
        persist(name, &[404], || self.nodes.delete(name, &params)).await
    }

    async fn patch(&self, name: &str, mut metadata: Value) -> anyhow::Result<()> {
        metadata["annotations"] = json!({HAND: self.hand()});
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        let params = PatchParams::default();
        persist(name, &[404], || self.nodes.patch(name, &params, &patch)).await
    }

    /// A kubelet says that it is alive.
    pub(crate) async fn heartbeat(&self, node: usize) -> anyhow::Result<()> {
        let (name, hand) = (self.name(node), self.hand());
        let status = json!({"nodeInfo": {"bootID": hand}});
        let patch = Patch::Merge(json!({"metadata": {"annotations": {HAND: hand}}, "status": status}));
        let params = PatchParams::default();
        persist(&name, &[404], || self.nodes.patch_status(&name, &params, &patch)).await
    }

    /// Whatever finalizer still holds a node lets go.
    pub(crate) async fn release_all(&self) -> anyhow::Result<()> {
        let all = ListParams::default();
        let list = eventually(PATIENCE, "nodes are listed", || async {
            Ok(Some(self.nodes.list_metadata(&all).await?.items))
        });
        for node in list.await?.iter().filter(|node| !node.finalizers().is_empty()) {
            self.patch(&node.name_any(), json!({"finalizers": null})).await?;
        }
        Ok(())
    }

    /// All nodes are deleted.
    pub(crate) async fn delete_all(&self, nodes: usize) -> anyhow::Result<()> {
        let names: Vec<String> = (0..nodes).map(|node| self.name(node)).collect();
        let all = stream::iter(&names).map(|name| self.delete(name));
        all.buffer_unordered(CONCURRENCY).try_collect().await
    }
}

/// Asks until it is done, or the answer is one of those accepted. Any other refusal is an error.
async fn persist<T, F, Fut>(name: &str, accept: &[u16], mut ask: F) -> anyhow::Result<()>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = kube::Result<T>>,
{
    let what = format!("the API server answers about {name}");
    let answered = eventually(PATIENCE, &what, || {
        let asking = timeout(ANSWER, ask());
        async move {
            match asking.await? {
                Ok(_) => Ok(Some(Ok(()))),
                Err(kube::Error::Api(status)) if accept.contains(&status.code) => Ok(Some(Ok(()))),
                // Somebody else changed it meanwhile, a merge patch is made again.
                Err(kube::Error::Api(status)) if status.code < 500 && ![409, 429].contains(&status.code) => {
                    Ok(Some(Err(anyhow!("{name}: {status}"))))
                }
                Err(error) => Err(error.into()),
            }
        }
    });
    match answered.await? {
        Ok(()) => Ok(()),
        Err(refused) => bail!(refused),
    }
}
