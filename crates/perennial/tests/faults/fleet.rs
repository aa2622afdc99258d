//! A fleet that a test can ask about as a whole.
#![allow(dead_code, reason = "each suite asks its own questions")]

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::ListParams;
use perennial_testkit::{ControlPlane, company_labels, eventually, kubelet_labels, node_name};

use crate::world::{Labels, World};

/// How long a whole fleet may take on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(5);

/// Waits until the keeper says that every node's record is current.
pub(crate) async fn all_recorded(world: &World, nodes: usize) {
    eventually(PATIENCE, "every node is recorded", || async {
        let [there, current] = ["nodes", "nodes_current"].map(|name| world.metric(name));
        #[expect(clippy::cast_precision_loss, reason = "some thousand")]
        let wanted = nodes as f64;
        let all = there >= wanted && current >= there;
        if all { Ok(Some(())) } else { Err(anyhow::anyhow!("{current} of {there}")) }
    })
    .await
    .unwrap();
}

/// Waits until every node of the fleet bears exactly what its kubelet and its company gave it. Each look lists them
/// all, which keeps the servers from their work: wait for what the keeper says first.
pub(crate) async fn all_restored(plane: &ControlPlane, nodes: usize) {
    let expected: BTreeMap<String, Labels> = (0..nodes)
        .map(|index| {
            let labels = kubelet_labels(index).into_iter().chain(company_labels(index));
            (node_name(index), labels.collect())
        })
        .collect();
    let api: Api<Node> = Api::all(plane.admin());
    eventually(PATIENCE, "every node bears its labels", || async {
        let mut wrong = 0;
        let mut next = None;
        let mut seen = 0;
        loop {
            let params = ListParams { limit: Some(1000), continue_token: next, ..ListParams::default() };
            let page = api.list_metadata(&params).await?;
            for node in page.items {
                let name = node.metadata.name.unwrap_or_default();
                let Some(labels) = expected.get(&name) else { continue };
                seen += 1;
                wrong += usize::from(node.metadata.labels.as_ref() != Some(labels));
            }
            next = page.metadata.continue_.filter(|token| !token.is_empty());
            if next.is_none() {
                break;
            }
        }
        if seen == nodes && wrong == 0 {
            Ok(Some(()))
        } else {
            Err(anyhow::anyhow!("{wrong} of {seen} nodes lack something"))
        }
    })
    .await
    .unwrap();
}
