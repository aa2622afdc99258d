//! The cluster of the demo: a control plane, its nodes as people and kubelets treat them, and the keepers.

use std::{
    ffi::OsString,
    time::{Duration, Instant},
};

use anyhow::anyhow;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use perennial_testkit::{ControlPlane, company_labels, eventually, node_name, registration};
use serde_json::json;

use crate::{board::Shared, edit::Edit, keepers::Keepers, web::Web};

/// Where the keepers' records are.
const NAMESPACE: &str = "perennial";
/// How long anything may take at the start, on a machine on which much else runs.
const SOON: Duration = Duration::from_mins(1);

/// Everything that runs. Stopped and removed on drop.
pub(crate) struct Cluster {
    // Dropped in this order: first those who talk, then whom they talk to.
    keepers: Keepers,
    plane: ControlPlane,
    nodes: Api<Node>,
    board: Shared,
}

impl Cluster {
    /// Starts a control plane, without nodes and without keepers.
    pub(crate) async fn start(board: Shared) -> anyhow::Result<Self> {
        let plane = ControlPlane::builder().without_audit().start().await?;
        let nodes = Api::all(plane.admin());
        Ok(Self { keepers: Keepers::none(board.clone()), plane, nodes, board })
    }

    /// The nodes, for an administrator.
    pub(crate) fn nodes(&self) -> Api<Node> {
        self.nodes.clone()
    }

    /// The keepers.
    pub(crate) fn keepers(&self) -> &Keepers {
        &self.keepers
    }

    /// Keeps the logs, and says where when all has ended.
    pub(crate) fn keep_logs(&mut self) {
        self.plane.keep_logs();
    }

    /// The Service whose endpoints are listed.
    pub(crate) async fn web(&self) -> anyhow::Result<Web> {
        Web::create(&self.plane, NAMESPACE, self.board.clone()).await
    }

    /// Grants what the files of `deploy` grant, and starts the keepers with no more than that.
    pub(crate) async fn start_keepers(&mut self, arguments: &[OsString]) -> anyhow::Result<()> {
        self.plane.install_listings().await?;
        self.plane.kubeconfig_for_lister(NAMESPACE).await?;
        let kubeconfig = self.plane.kubeconfig_for_keeper(NAMESPACE).await?;
        self.keepers.start(&kubeconfig, NAMESPACE, &self.plane.logs(), arguments).await
    }

    /// Waits until there is a record of every node.
    pub(crate) async fn recorded(&self) -> anyhow::Result<()> {
        let records: Api<ConfigMap> = Api::namespaced(self.plane.admin(), NAMESPACE);
        let wanted = self.board.lock().nodes();
        eventually(SOON, "there is a record of every node", || async {
            let all = records.list_metadata(&ListParams::default()).await?.items;
            let there = all.iter().filter(|map| map.name_any().starts_with("node-record.")).count();
            if there == wanted { Ok(Some(())) } else { Err(anyhow!("{there} of {wanted}")) }
        })
        .await
    }

    /// A node that people have labelled joins.
    pub(crate) async fn create(&self, index: usize) -> anyhow::Result<()> {
        let mut node = registration(index);
        node.metadata.labels.get_or_insert_default().extend(company_labels(index));
        let created = self.nodes.create(&PostParams::default(), &node).await?;
        self.board.lock().created(index, &created.uid().unwrap_or_default());
        Ok(())
    }

    /// A node returns, as its kubelet registers it: bare.
    pub(crate) async fn bring_back(&self, index: usize) -> anyhow::Result<()> {
        let created = self.nodes.create(&PostParams::default(), &registration(index)).await?;
        let answered = Instant::now();
        self.board.lock().returned(index, &created.uid().unwrap_or_default(), answered);
        Ok(())
    }

    /// A node is deleted.
    pub(crate) async fn delete(&self, index: usize) -> anyhow::Result<()> {
        self.nodes.delete(&node_name(index), &DeleteParams::default()).await?;
        self.board.lock().deleted(index);
        Ok(())
    }

    /// Somebody sets or removes a label.
    pub(crate) async fn edit(&self, index: usize, edit: &Edit) -> anyhow::Result<()> {
        let patch = json!({"metadata": {"labels": {edit.key: edit.value}}});
        let (name, how) = (node_name(index), PatchParams::default());
        let edited = self.nodes.patch_metadata(&name, &how, &Patch::Merge(patch)).await?;
        self.board.lock().edited(index, &edited.uid().unwrap_or_default(), edit);
        Ok(())
    }
}
