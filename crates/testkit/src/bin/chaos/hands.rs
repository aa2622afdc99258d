//! What people and kubelets do. They go on while the control plane is being restarted, and never give up.

use std::{
    collections::BTreeSet,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{anyhow, bail};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::{Request, header};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Taint};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions},
};
use perennial_core::{
    keeper::mark::{FORGET, PAUSE},
    record::record_name,
};
use perennial_testkit::{
    eventually,
    oracle::{HAND, Oracle, Told},
    registration,
};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    bytes::{PROTOBUF, with_bytes},
    plan::{Deed, Labels, Plan, Thing, Word},
};

/// How long the API server may be away.
const PATIENCE: Duration = Duration::from_mins(2);
/// How long one answer may take, while the API server is frozen or etcd is.
const ANSWER: Duration = Duration::from_secs(15);
/// So many do something at a time.
const CONCURRENCY: usize = 24;
/// Of a kubelet's long list of images a few are enough here.
const IMAGES: usize = 2;

pub(crate) struct Hands {
    client: Client,
    nodes: Api<Node>,
    records: Api<ConfigMap>,
    oracle: Arc<Oracle>,
    round: u64,
    writes: AtomicU64,
}

impl Hands {
    pub(crate) fn new(client: &Client, namespace: &str, oracle: Arc<Oracle>, round: u64) -> Self {
        let (nodes, records) = (Api::all(client.clone()), Api::namespaced(client.clone(), namespace));
        Self { client: client.clone(), nodes, records, oracle, round, writes: AtomicU64::new(0) }
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
            Deed::CreateTwice(labels) => {
                self.create(node, labels).await?;
                self.delete(&name).await?;
                self.create(node, &Labels::new()).await
            }
            Deed::Delete => self.delete(&name).await,
            Deed::Recreate(lives) => {
                for labels in lives {
                    self.delete(&name).await?;
                    self.create(node, labels).await?;
                }
                Ok(())
            }
            Deed::RecreatePaused(key, value) => {
                self.set(&name, Thing::Label(key), Some(value)).await?;
                self.delete(&name).await?;
                self.create_with(node, &Labels::new(), Some((PAUSE, "true"))).await
            }
            Deed::Set(thing, value) => self.set(&name, *thing, Some(value)).await,
            Deed::Remove(thing) => self.set(&name, *thing, None).await,
            Deed::SetAndDelete(thing, value) => {
                self.set(&name, *thing, Some(value)).await?;
                self.delete(&name).await
            }
            Deed::Terminate => {
                self.patch(&name, json!({"finalizers": ["example.com/hold"]})).await?;
                self.delete(&name).await
            }
            Deed::Release => self.release(&name).await,
            Deed::Say(word) => self.say(&name, *word).await,
            Deed::SayAndDelete(word) => {
                self.say(&name, *word).await?;
                self.delete(&name).await
            }
            Deed::RemoveRecord => self.remove_record(&name).await,
            Deed::DeleteAndRemoveRecord => {
                self.delete(&name).await?;
                self.remove_record(&name).await
            }
            Deed::WriteBytes => self.write_bytes(&name).await,
        }
    }

    /// A node registers. That it is there already is fine: etcd may have been turned back.
    pub(crate) async fn create(&self, node: usize, labels: &Labels) -> anyhow::Result<()> {
        self.create_with(node, labels, None).await
    }

    async fn create_with(
        &self,
        node: usize,
        labels: &Labels,
        annotation: Option<(&str, &str)>,
    ) -> anyhow::Result<()> {
        let name = self.name(node);
        let mut object = registration(node);
        object.metadata.name = Some(name.clone());
        object.metadata.labels.get_or_insert_default().extend(labels.clone());
        let annotations = object.metadata.annotations.get_or_insert_default();
        annotations.insert(HAND.to_owned(), self.hand());
        annotations.extend(annotation.map(|(key, value)| (key.to_owned(), value.to_owned())));
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

    /// Sets something on a node, or removes it.
    async fn set(&self, name: &str, thing: Thing, value: Option<&String>) -> anyhow::Result<()> {
        match thing {
            Thing::Label(key) => self.patch(name, json!({"labels": {key: value}})).await,
            Thing::Annotation(key) => self.patch(name, json!({"annotations": {key: value}})).await,
            Thing::Taint(key, effect) => self.taint(name, key, effect, value).await,
            Thing::Cordon => {
                let spec = json!({"unschedulable": value.map(|_| true)});
                self.patch_with(name, json!({}), &json!({ "spec": spec })).await
            }
        }
    }

    async fn patch(&self, name: &str, metadata: Value) -> anyhow::Result<()> {
        self.patch_with(name, metadata, &json!({})).await
    }

    /// As the API server's own tools do it, strategically: a merge patch would go by JSON, and mend what is no text.
    async fn patch_with(&self, name: &str, mut metadata: Value, rest: &Value) -> anyhow::Result<()> {
        metadata["annotations"][HAND] = self.hand().into();
        let mut object = rest.clone();
        object["metadata"] = metadata;
        let (params, patch) = (PatchParams::default(), Patch::Strategic(object));
        persist(name, &[404], || self.nodes.patch(name, &params, &patch)).await
    }

    /// Taints are one list: who changes it has read it, and nobody else may have changed the Node meanwhile.
    async fn taint(&self, name: &str, key: &str, effect: &str, value: Option<&String>) -> anyhow::Result<()> {
        let hand = self.hand();
        persist(name, &[404], || async {
            let node = self.nodes.get(name).await?;
            let mut taints = node.spec.clone().unwrap_or_default().taints.unwrap_or_default();
            taints.retain(|taint| taint.key != key || taint.effect != effect);
            taints.extend(value.map(|value| Taint {
                key: key.to_owned(),
                effect: effect.to_owned(),
                value: Some(value.clone()),
                ..Taint::default()
            }));
            let metadata =
                json!({"resourceVersion": node.metadata.resource_version, "annotations": {HAND: hand}});
            let patch = Patch::Strategic(json!({"metadata": metadata, "spec": {"taints": taints}}));
            self.nodes.patch(name, &PatchParams::default(), &patch).await
        })
        .await
    }

    /// A person tells the keeper something about a node.
    async fn say(&self, name: &str, word: Word) -> anyhow::Result<()> {
        let (key, value) = match word {
            Word::Pause => (PAUSE, Some("true")),
            Word::Resume => (PAUSE, Some("false")),
            Word::Forget => (FORGET, Some("true")),
            Word::Remember => (FORGET, None),
        };
        self.patch(name, json!({"annotations": {key: value}})).await
    }

    /// A person removes a record, this one and no other. Whoever asks twice must not remove one that was made since.
    async fn remove_record(&self, node: &str) -> anyhow::Result<()> {
        let name = record_name(node);
        let known = eventually(PATIENCE, "a record is read", || async {
            Ok(Some(timeout(ANSWER, self.records.get_metadata_opt(&name)).await??))
        });
        let Some(uid) = known.await?.and_then(|record| record.metadata.uid) else { return Ok(()) };
        let preconditions = Some(Preconditions { uid: Some(uid), resource_version: None });
        let params = DeleteParams { preconditions, ..DeleteParams::default() };
        self.oracle.tell(Told::Removing(node.to_owned()));
        persist(&name, &[404, 409], || self.records.delete(&name, &params)).await?;
        self.oracle.fence().await?;
        self.oracle.tell(Told::Removed(node.to_owned()));
        Ok(())
    }

    /// A kubelet writes its Node in protobuf, with an annotation that is no text. The API server takes it.
    async fn write_bytes(&self, name: &str) -> anyhow::Result<()> {
        let (path, hand) = (format!("/api/v1/nodes/{name}"), self.hand());
        persist(name, &[404], || async {
            let get = Request::get(&path).header(header::ACCEPT, PROTOBUF).body(kube::client::Body::empty());
            let answer = self.client.send(get.map_err(kube::Error::HttpError)?).await?;
            let (head, body) = answer.into_parts();
            let read = body.collect_bytes().await?;
            if !head.status.is_success() {
                return Err(refusal(head.status));
            }
            let Some(written) = with_bytes(&read, HAND, &hand) else { return Err(refusal(head.status)) };
            let put = Request::put(&path).header(header::CONTENT_TYPE, PROTOBUF);
            let put = put.body(kube::client::Body::from(written)).map_err(kube::Error::HttpError)?;
            let status = self.client.send(put).await?.status();
            if status.is_success() { Ok(()) } else { Err(refusal(status)) }
        })
        .await
    }

    /// Every node that somebody may have paused is so no more.
    pub(crate) async fn resume_all(&self, plan: &Plan) -> anyhow::Result<()> {
        let deeds = plan.ticks.iter().flat_map(|tick| &tick.deeds);
        let paused: BTreeSet<usize> =
            deeds.filter(|(_, deed)| deed.pauses()).map(|(node, _)| *node).collect();
        for node in paused {
            self.say(&self.name(node), Word::Resume).await?;
        }
        Ok(())
    }

    async fn release(&self, name: &str) -> anyhow::Result<()> {
        self.patch(name, json!({"finalizers": null})).await
    }

    /// A kubelet says that it is alive.
    pub(crate) async fn heartbeat(&self, node: usize) -> anyhow::Result<()> {
        let (name, hand) = (self.name(node), self.hand());
        let status = json!({"nodeInfo": {"bootID": hand}});
        let patch = Patch::Strategic(json!({"metadata": {"annotations": {HAND: hand}}, "status": status}));
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
            self.release(&node.name_any()).await?;
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

/// An answer that was not read any further.
fn refusal(code: http::StatusCode) -> kube::Error {
    let status = kube::core::Status { code: code.as_u16(), ..kube::core::Status::default() };
    kube::Error::Api(Box::new(status))
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
