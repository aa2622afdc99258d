//! Heartbeats: what a kubelet writes into its node's status when nothing has happened.

use std::{future::ready, ops::Range, time::Duration};

use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::time::interval;

use super::{
    Fleet,
    labels::node_name,
    node::conditions,
    persist::{Outcome, persist},
};

impl Fleet {
    /// Writes heartbeats for these nodes in turn, so many in a second, for so long; drop it to end it before.
    ///
    /// Returns how many were written. Nodes that are away are passed over. A second heartbeat of the same node
    /// within a second changes nothing, since a time in Kubernetes has no fractions.
    pub async fn heartbeats(
        &self,
        nodes: Range<usize>,
        per_second: u32,
        lasting: Duration,
    ) -> anyhow::Result<usize> {
        // Ticks that come late are caught up with, so the rate holds on average.
        let ticks = stream::unfold(interval(Duration::from_secs(1) / per_second), |mut ticks| async {
            ticks.tick().await;
            Some(((), ticks))
        });
        let seconds = usize::try_from(lasting.as_secs())?;
        stream::iter(nodes.cycle().take(seconds * per_second as usize))
            .zip(ticks)
            .map(|(index, ())| self.heartbeat(index))
            .buffer_unordered(self.concurrency)
            .try_fold(0, |written, one| ready(Ok(written + usize::from(one))))
            .await
    }

    async fn heartbeat(&self, index: usize) -> anyhow::Result<bool> {
        let name = node_name(index);
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let patch = Patch::Strategic(json!({"status": {"conditions": conditions(&now)}}));
        let params = PatchParams::default();
        let outcome = persist(&name, || self.nodes.patch_status(&name, &params, &patch), &[404]).await?;
        Ok(matches!(outcome, Outcome::Done(_)))
    }
}
