//! A node is deleted and registers again, bare: how long until it has its labels?

use std::time::Instant;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use perennial_testkit::{company_labels, node_name, registration};

use super::{Bout, SINGLES};
use crate::report::{Times, milliseconds};
use crate::results::Case;
use crate::sight::Sight;

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
        let whole = sight.until(|line| {
            let Some(seen) = Seen::of(line).filter(|seen| seen.is(index)) else { return false };
            born |= seen.born;
            born && seen.is_whole(index)
        });
        times.push(whole.await?.saturating_duration_since(answered));
    }
    let times = Times::new(times);
    bout.add(Case::ReturnP50, milliseconds(times.percentile(50)));
    bout.add(Case::ReturnP99, milliseconds(times.percentile(99)));
    Ok(())
}

/// What a line of the watch says of a node.
pub(super) struct Seen {
    /// It was registered.
    pub(super) born: bool,
    /// It is there.
    pub(super) alive: bool,
    object: kube::core::PartialObjectMeta<Node>,
}

impl Seen {
    pub(super) fn of(line: &str) -> Option<Self> {
        #[derive(serde::Deserialize)]
        struct Line {
            #[serde(rename = "type")]
            kind: String,
            object: kube::core::PartialObjectMeta<Node>,
        }
        let Line { kind, object } = serde_json::from_str(line).ok()?;
        Some(Self { born: kind == "ADDED", alive: kind == "ADDED" || kind == "MODIFIED", object })
    }

    pub(super) fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    /// The number that every name ends with.
    pub(super) fn index(&self) -> Option<usize> {
        self.name().rsplit('-').next()?.parse().ok()
    }

    fn is(&self, index: usize) -> bool {
        self.name() == node_name(index)
    }

    /// It is there, and has all that it was given.
    pub(super) fn is_whole(&self, index: usize) -> bool {
        let labels = self.object.metadata.labels.as_ref();
        self.alive
            && labels.is_some_and(|labels| {
                company_labels(index).iter().all(|(key, value)| labels.get(key) == Some(value))
            })
    }
}
