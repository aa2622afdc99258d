//! Somebody changes a label: how long until that is safe?

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use perennial_testkit::{ControlPlane, node_name};
use serde_json::json;

use super::{BEATS, Bout, SINGLES};
use crate::report::{Times, milliseconds};
use crate::results::Case;

/// Heartbeats that go on for as long as anything takes.
pub(crate) const ENDLESS: Duration = Duration::from_hours(4);

pub(super) async fn measure(bout: &mut Bout<'_>) -> anyhow::Result<()> {
    let times = singles(bout, "quiet").await?;
    bout.add(Case::ChangeP50, milliseconds(times.percentile(50)));
    bout.add(Case::ChangeP99, milliseconds(times.percentile(99)));
    Ok(())
}

pub(super) async fn measure_busy(bout: &mut Bout<'_>) -> anyhow::Result<()> {
    let (fleet, nodes) = (bout.fleet(), bout.plan.nodes);
    let times = tokio::select! {
        times = singles(bout, "busy") => times?,
        beats = fleet.heartbeats(0..nodes, BEATS, ENDLESS) => anyhow::bail!("{} heartbeats, and no end", beats?),
    };
    bout.add(Case::BusyChangeP50, milliseconds(times.percentile(50)));
    bout.add(Case::BusyChangeP99, milliseconds(times.percentile(99)));
    Ok(())
}

/// One after the other, each of another node, far apart.
async fn singles(bout: &mut Bout<'_>, what: &str) -> anyhow::Result<Times> {
    let mut times = Vec::new();
    for number in 0..SINGLES {
        let value = format!("{what}-{number}-x");
        change(&bout.plane, number * bout.plan.nodes / SINGLES, &value).await?;
        let answered = Instant::now();
        let recorded = bout.records.until(|seen| seen.says(&value)).await?;
        times.push(recorded.saturating_duration_since(answered));
    }
    Ok(Times::new(times))
}

/// Sets a label of a node that is kept.
pub(super) async fn change(plane: &ControlPlane, index: usize, value: &str) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(plane.admin());
    let patch = json!({ "metadata": { "labels": { "example.com/changes": value } } });
    nodes.patch_metadata(&node_name(index), &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}
