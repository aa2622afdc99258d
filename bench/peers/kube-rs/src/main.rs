//! The keeper as a plain kube-rs `Controller`, as most people would write it.
//!
//! Why it is fair: it is the framework of Perennial's own client, used the way its documentation shows: a controller for nodes, a
//! store of records, a reconcile function. Tuned: nodes are watched by their metadata alone and stripped of what is not needed,
//! records by namespace and label; lists are streamed; a heartbeat ends in the predicate; 64 reconciles at once.
//! Without `reconcile_all_on` it would lose what changed while it was not connected.

use std::{collections::BTreeMap, env, future::ready, sync::Arc, time::Duration};

use anyhow::Context;
use futures::{StreamExt, channel::mpsc};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::{
    Api, Client, ResourceExt,
    api::{ObjectMeta, PartialObjectMeta, Patch, PatchParams, PostParams},
    runtime::{
        Controller, PredicateConfig, WatchStreamExt,
        controller::{self, Action},
        predicates,
        reflector::{self, ObjectRef, Store},
        watcher::{self, watcher},
    },
};
use serde_json::json;
use tracing::{Level, warn};

mod kept;

const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "peer");
const CONCURRENCY: u16 = 64;
/// The store is a moment behind.
const SOON: Duration = Duration::from_millis(5);
/// Other errors may last.
const LATER: Duration = Duration::from_secs(1);

type BareNode = PartialObjectMeta<Node>;
type Labels = BTreeMap<String, String>;

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Kube(#[from] kube::Error),
    #[error("the record cannot be read: {0}")]
    Record(#[from] serde_json::Error),
}

impl Error {
    /// Whether somebody wrote in between, or what the store has is not there any more.
    fn is_behind(&self) -> bool {
        matches!(self, Self::Kube(kube::Error::Api(refusal)) if matches!(refusal.code, 404 | 409))
    }
}

struct Keeper {
    namespace: String,
    nodes: Api<BareNode>,
    records: Api<ConfigMap>,
    recorded: Store<ConfigMap>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(Level::WARN).init();
    let namespace = env::var("NAMESPACE").context("NAMESPACE is not set")?;
    let client = Client::try_default().await?;
    let nodes: Api<BareNode> = Api::all(client.clone());
    let records: Api<ConfigMap> = Api::namespaced(client, &namespace);

    let (recorded, writer) = reflector::store();
    let ours =
        watcher::Config::default().labels(&format!("{}={}", MANAGED_BY.0, MANAGED_BY.1)).streaming_lists();
    let follow = watcher(records.clone(), ours).default_backoff().modify(strip).reflect(writer);
    tokio::spawn(follow.for_each(|_| ready(())));

    // While nodes are listed anew, those that changed are reconciled as they were: the store changes at the end of the list.
    let (mut listed, all) = mpsc::channel(1);
    let (known, writer) = reflector::store();
    let changes = watcher(nodes.clone(), watcher::Config::default().streaming_lists())
        .default_backoff()
        .modify(strip)
        .reflect(writer)
        .inspect(move |event| {
            if matches!(event, Ok(watcher::Event::InitDone)) {
                // One that waits already is as good.
                let _ = listed.try_send(());
            }
        })
        .applied_objects()
        .predicate_filter(predicates::labels, PredicateConfig::default());

    recorded.wait_until_ready().await?;
    let keeper = Arc::new(Keeper { namespace, nodes, records, recorded });
    Controller::for_stream(changes, known)
        .with_config(controller::Config::default().concurrency(CONCURRENCY))
        .reconcile_all_on(all)
        .shutdown_on_signal()
        .run(reconcile, error_policy, keeper)
        .for_each(|outcome| {
            match outcome {
                // The node is gone, or the store is behind.
                Ok(_) | Err(controller::Error::ObjectNotFound(_)) => {}
                Err(controller::Error::ReconcilerFailed(error, _)) if error.is_behind() => {}
                Err(error) => warn!("{error}"),
            }
            ready(())
        })
        .await;
    Ok(())
}

/// Compares a node with its record.
async fn reconcile(node: Arc<BareNode>, keeper: Arc<Keeper>) -> Result<Action, Error> {
    let name = format!("node-{}", node.name_any());
    let record = keeper.recorded.get(&ObjectRef::new(&name).within(&keeper.namespace));
    let mut labels = node.labels().clone();
    if let Some(record) = &record
        && data(record, "uid") != node.uid().as_deref()
    {
        labels.extend(keeper.give(&node, record).await?);
    }
    labels.retain(|key, _| kept::is_kept(key));
    keeper.save(name, &node, &labels, record.as_deref()).await?;
    Ok(Action::await_change())
}

#[allow(clippy::needless_pass_by_value)]
fn error_policy(_: Arc<BareNode>, error: &Error, _: Arc<Keeper>) -> Action {
    Action::requeue(if error.is_behind() { SOON } else { LATER })
}

impl Keeper {
    /// Adds the recorded labels that the node lacks, unless it has changed since it was seen. Returns what it added.
    async fn give(&self, node: &BareNode, record: &ConfigMap) -> Result<Labels, Error> {
        let mut missing: Labels = serde_json::from_str(data(record, "labels").unwrap_or("{}"))?;
        missing.retain(|key, _| !node.labels().contains_key(key));
        if !missing.is_empty() {
            let metadata = json!({"resourceVersion": node.resource_version(), "labels": missing});
            let patch = Patch::Merge(json!({"metadata": metadata}));
            self.nodes.patch(&node.name_any(), &PatchParams::default(), &patch).await?;
        }
        Ok(missing)
    }

    /// Writes the record where it says something else.
    async fn save(
        &self,
        name: String,
        node: &BareNode,
        kept: &Labels,
        old: Option<&ConfigMap>,
    ) -> Result<(), Error> {
        if old.is_none() && kept.is_empty() {
            return Ok(());
        }
        let labels = serde_json::to_string(kept)?;
        let fresh = Labels::from([("uid".into(), node.uid().unwrap_or_default()), ("labels".into(), labels)]);
        if old.is_some_and(|old| old.data.as_ref() == Some(&fresh)) {
            return Ok(());
        }
        let metadata = ObjectMeta {
            name: Some(name.clone()),
            labels: Some(Labels::from([(MANAGED_BY.0.into(), MANAGED_BY.1.into())])),
            resource_version: old.and_then(ResourceExt::resource_version),
            ..ObjectMeta::default()
        };
        let record = ConfigMap { metadata, data: Some(fresh), ..ConfigMap::default() };
        let params = PostParams::default();
        match old {
            None => self.records.create(&params, &record).await?,
            Some(_) => self.records.replace(&name, &params, &record).await?,
        };
        Ok(())
    }
}

fn data<'a>(record: &'a ConfigMap, key: &str) -> Option<&'a str> {
    record.data.as_ref()?.get(key).map(String::as_str)
}

/// Removes from an object in a store what is never looked at.
fn strip(object: &mut impl ResourceExt) {
    object.managed_fields_mut().clear();
    object.annotations_mut().clear();
}
