//! A peer, a fleet and an API server, and what has to happen between them.

use std::{collections::BTreeMap, path::Path, time::Duration};

use anyhow::{Context, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use perennial_testkit::{ControlPlane, Fleet, eventually, eventually_eq, node_name, registration};
use serde_json::{Value, json};

use crate::{
    peer::Peer,
    policy::{Labels, every_kind, kept},
};

const NAMESPACE: &str = "peer";
const ACCOUNT: &str = "system:serviceaccount:peer:perennial";
/// A node that bears labels of every kind, besides those of the fleet.
const ODD: &str = "odd";
/// Long enough for a machine on which much else runs.
const SOON: Duration = Duration::from_mins(1);
const CAPTURE: Duration = Duration::from_mins(10);
const AT_ONCE: usize = 32;
/// In a second.
const HEARTBEATS: u32 = 100;

/// What the peer has written, or has to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Writes {
    created: usize,
    updated: usize,
    patched: usize,
}

/// The control plane goes last, so that nobody misses it.
pub(crate) struct Scene {
    pub(crate) peer: Peer,
    fleet: Fleet,
    count: usize,
    nodes: Api<Node>,
    records: Api<ConfigMap>,
    expected: Writes,
    plane: ControlPlane,
}

impl Scene {
    /// Nodes with their labels, and a peer that does not run yet.
    pub(crate) async fn set(program: &Path, count: usize, audited: bool) -> anyhow::Result<Self> {
        let builder = ControlPlane::builder();
        let plane = if audited { builder } else { builder.without_audit() }.start().await?;
        let kubeconfig = plane.kubeconfig_for_keeper(NAMESPACE).await?;
        let peer = Peer::new(program, &kubeconfig, NAMESPACE, &plane.logs())?;
        let fleet = Fleet::new(plane.admin());
        fleet.create(0..count).await?;
        Ok(Self {
            peer,
            fleet,
            count,
            nodes: Api::all(plane.admin()),
            records: Api::namespaced(plane.admin(), NAMESPACE),
            expected: Writes::default(),
            plane,
        })
    }

    pub(crate) async fn captures_what_is_there(&mut self) -> anyhow::Result<&'static str> {
        self.peer.start()?;
        self.expected.created += self.count;
        self.agree().await?;
        Ok("what is there at the start is recorded")
    }

    pub(crate) async fn keeps_what_the_policy_keeps(&mut self) -> anyhow::Result<&'static str> {
        let mut node = Node::default();
        node.metadata.name = Some(ODD.to_owned());
        node.metadata.labels = Some(every_kind());
        self.nodes.create(&PostParams::default(), &node).await?;
        self.expected.created += 1;
        self.agree().await?;
        Ok("labels of every kind are kept or left out as Perennial does")
    }

    pub(crate) async fn records_a_changed_label(&mut self) -> anyhow::Result<&'static str> {
        self.label(&node_name(0), json!({"team": "another", "new": ""})).await?;
        self.expected.updated += 1;
        self.agree().await?;
        Ok("a changed label is recorded")
    }

    pub(crate) async fn records_a_removed_label(&mut self) -> anyhow::Result<&'static str> {
        self.label(&node_name(1), json!({"team": null})).await?;
        self.expected.updated += 1;
        self.agree().await?;
        Ok("a removed label leaves the record")
    }

    pub(crate) async fn rests_at_heartbeats(&mut self) -> anyhow::Result<&'static str> {
        let before = self.versions().await?;
        let each_second = u32::try_from(self.count)?;
        self.fleet.heartbeats(0..self.count, each_second, Duration::from_secs(2)).await?;
        // Every node has one event behind its heartbeats that must be seen; the odd one has neither.
        self.label_all("after", "heartbeats").await?;
        let after = self.versions().await?;
        ensure!(before[&record_name(ODD)] == after[&record_name(ODD)], "the record of {ODD} was written");
        Ok("heartbeats write nothing")
    }

    pub(crate) async fn keeps_records_of_the_deleted(&mut self) -> anyhow::Result<&'static str> {
        let before = self.versions().await?;
        self.fleet.delete(0..self.count).await?;
        self.label(ODD, json!({"after": "deletion"})).await?;
        self.expected.updated += 1;
        self.agree().await?;
        let mut after = self.versions().await?;
        after.insert(record_name(ODD), before[&record_name(ODD)].clone());
        ensure!(before == after, "records of deleted nodes were touched: {before:?}, {after:?}");
        Ok("records of deleted nodes stay as they are")
    }

    pub(crate) async fn gives_back_and_overwrites_nothing(&mut self) -> anyhow::Result<&'static str> {
        let recorded = self.recorded().await?;
        let mut first = registration(0);
        first.labels_mut().insert("team".to_owned(), "mine".to_owned());
        self.nodes.create(&PostParams::default(), &first).await?;
        self.fleet.register(1..self.count).await?;
        self.given(0..self.count, &recorded).await?;
        let first = self.nodes.get(&node_name(0)).await?;
        ensure!(first.labels()["team"] == "mine", "a value was overwritten: {:?}", first.labels());
        ensure!(first.labels().contains_key("new"), "a value was lost: {:?}", first.labels());
        Ok("a node that returns gets its labels back, and keeps those it brings")
    }

    pub(crate) async fn rests_after_a_restart(&mut self) -> anyhow::Result<&'static str> {
        self.peer.stop().await?;
        self.peer.start()?;
        self.label_all("after", "restart").await?;
        Ok("a restart writes nothing")
    }

    pub(crate) async fn gives_back_after_a_restart(&mut self) -> anyhow::Result<&'static str> {
        let recorded = self.recorded().await?;
        self.peer.stop().await?;
        self.fleet.recreate(0..10).await?;
        self.peer.start()?;
        self.given(0..10, &recorded).await?;
        let said = self.peer.said();
        ensure!(said.is_empty(), "nothing went wrong, and yet it said: {said}");
        Ok("a node that returned meanwhile gets its labels back")
    }

    pub(crate) async fn goes_on_after_the_api_server(&mut self) -> anyhow::Result<&'static str> {
        self.plane.restart_apiserver().await?;
        self.label_all("after", "the API server").await?;
        Ok("it goes on after the API server was away")
    }

    /// Waits until there are so many records.
    pub(crate) async fn wait_for_records(&mut self, wanted: usize) -> anyhow::Result<()> {
        let one = ListParams::default().limit(1);
        let records = &self.records;
        eventually(CAPTURE, "all nodes are recorded", || async {
            let list = records.list(&one).await?;
            let others = list.metadata.remaining_item_count.unwrap_or_default();
            Ok((list.items.len() + usize::try_from(others)? == wanted).then_some(()))
        })
        .await?;
        self.peer.check()
    }

    /// Some seconds of heartbeats. Returns how many there were.
    pub(crate) async fn heartbeats(&self) -> anyhow::Result<usize> {
        self.fleet.heartbeats(0..self.count, HEARTBEATS, Duration::from_secs(5)).await
    }

    /// Waits until every record says what its node does, then until all was written that should be, and no more.
    async fn agree(&mut self) -> anyhow::Result<()> {
        let (nodes, records) = (&self.nodes, &self.records);
        let agreed = eventually(SOON, "the records agree with the nodes", || async {
            for node in nodes.list(&ListParams::default()).await? {
                let name = node.name_any();
                let record =
                    records.get(&record_name(&name)).await.with_context(|| format!("record of {name}"))?;
                let expected = Labels::from([
                    ("uid".to_owned(), node.uid().unwrap_or_default()),
                    ("labels".to_owned(), serde_json::to_string(&kept(node.labels()))?),
                ]);
                let found = record.data.clone().unwrap_or_default();
                ensure!(found == expected, "{name}: {found:?}, not {expected:?}");
                let owner = record.labels().get("app.kubernetes.io/managed-by").map(String::as_str);
                ensure!(owner == Some("peer"), "{name}: managed by {owner:?}");
            }
            Ok(Some(()))
        });
        let agreed = match agreed.await {
            Ok(()) => {
                eventually_eq(SOON, "what was written", self.expected, || async { self.written() }).await
            }
            error => error,
        };
        self.peer.check()?;
        agreed.with_context(|| format!("{} said: {}", self.peer.name(), self.peer.said()))
    }

    /// Waits until the nodes have what was recorded of them, besides what they bring, and the records know it.
    async fn given(
        &mut self,
        indices: std::ops::Range<usize>,
        recorded: &BTreeMap<String, Labels>,
    ) -> anyhow::Result<()> {
        self.expected.patched += indices.len();
        self.expected.updated += indices.len();
        let nodes = &self.nodes;
        for index in indices {
            let name = node_name(index);
            let mut whole = recorded[&record_name(&name)].clone();
            whole.extend(registration(index).labels().clone());
            eventually(SOON, "labels are given back", || async {
                let mut expected = whole.clone();
                let node = nodes.get(&name).await?;
                // What a node brings along stays.
                if index == 0 && node.labels().get("team").is_some_and(|team| team == "mine") {
                    expected.insert("team".to_owned(), "mine".to_owned());
                }
                ensure!(*node.labels() == expected, "{name}: {:?}, not {expected:?}", node.labels());
                Ok(Some(()))
            })
            .await?;
        }
        self.agree().await
    }

    /// What the peer has written by the word of the API server, refusals left out.
    fn written(&self) -> anyhow::Result<Writes> {
        let mut writes = Writes::default();
        let theirs = |entry: &perennial_testkit::AuditEntry| {
            entry.user == ACCOUNT && entry.stage == "ResponseComplete" && (200..300).contains(&entry.code)
        };
        for entry in self.plane.audit_of(theirs)? {
            match (entry.verb.as_str(), entry.resource.as_str()) {
                ("get" | "list" | "watch", _) | ("create", "selfsubjectaccessreviews") => {}
                ("create", "configmaps") => writes.created += 1,
                ("update", "configmaps") => writes.updated += 1,
                ("patch", "nodes") => writes.patched += 1,
                _ => anyhow::bail!("it is not to {} {}", entry.verb, entry.uri),
            }
        }
        Ok(writes)
    }

    async fn label(&self, node: &str, labels: Value) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        self.nodes.patch(node, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Labels all nodes of the fleet, and waits until that is recorded.
    async fn label_all(&mut self, key: &str, value: &str) -> anyhow::Result<()> {
        let value = value.replace(' ', "-");
        stream::iter(0..self.count)
            .map(|index| {
                let labels = json!({key: value});
                let scene = &*self;
                async move { scene.label(&node_name(index), labels).await }
            })
            .buffer_unordered(AT_ONCE)
            .try_collect::<()>()
            .await?;
        self.expected.updated += self.count;
        self.agree().await
    }

    /// The versions of all records.
    async fn versions(&self) -> anyhow::Result<BTreeMap<String, Option<String>>> {
        let records = self.records.list(&ListParams::default()).await?;
        Ok(records.iter().map(|record| (record.name_any(), record.resource_version())).collect())
    }

    /// The labels in all records.
    async fn recorded(&self) -> anyhow::Result<BTreeMap<String, Labels>> {
        let records = self.records.list(&ListParams::default()).await?;
        let labels = |record: &ConfigMap| {
            let data = record.data.as_ref().context("a record without data")?;
            Ok((record.name_any(), serde_json::from_str(&data["labels"])?))
        };
        records.iter().map(labels).collect()
    }
}

fn record_name(node: &str) -> String {
    format!("node-{node}")
}
