//! A node is deleted and registers again, bare: how long until it has its labels?

use std::time::Instant;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use perennial_testkit::{company_labels, node_name, registration};

use super::{Bout, SINGLES};
use crate::report::{Times, milliseconds};
use crate::results::Case;
use crate::sight::{Seen, Sight};

pub(super) async fn measure(bout: &mut Bout<'_>) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(bout.plane.admin());
    let mut sight = Sight::of_nodes(&bout.plane).await?;
    let mut times = Vec::new();
    for number in 0..SINGLES {
        let index = number * bout.plan.nodes / SINGLES;
        nodes.delete(&node_name(index), &DeleteParams::default()).await?;
        nodes.create(&PostParams::default(), &registration(index)).await?;
        let answered = Instant::now();
        let mut born = false;
        let whole = sight.until(|seen| {
            if seen.name() != node_name(index) {
                return false;
            }
            born |= seen.is_new();
            born && is_whole(seen, index)
        });
        times.push(whole.await?.saturating_duration_since(answered));
    }
    let times = Times::new(times);
    bout.add(Case::ReturnP50, milliseconds(times.percentile(50)));
    bout.add(Case::ReturnP99, milliseconds(times.percentile(99)));
    Ok(())
}

/// The number that every node's name ends with.
pub(super) fn index(seen: &Seen) -> Option<usize> {
    seen.name().rsplit('-').next()?.parse().ok()
}

/// It is there, and has all that it was given.
pub(crate) fn is_whole(seen: &Seen, index: usize) -> bool {
    let labels = seen.labels();
    seen.is_there() && company_labels(index).iter().all(|(key, value)| labels.get(key) == Some(value))
}
