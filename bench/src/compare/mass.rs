//! Many nodes are gone, and come back at once.

use std::time::{Duration, Instant};

use perennial_testkit::{ControlPlane, Fleet};

use super::returns::{index, is_whole};
use super::{Bout, MANY, REST};
use crate::report::{mebibytes, rate};
use crate::results::Case;
use crate::sight::Sight;

pub(super) async fn measure(bout: &mut Bout<'_>) -> anyhow::Result<()> {
    let many = MANY.min(bout.plan.nodes);
    bout.fleet().delete(0..many).await?;
    bout.records.quiet(REST).await?;
    let took = returned(&bout.plane, many).await?;
    bout.add(Case::Mass, rate(many, took)?);
    Ok(())
}

/// Registers the first nodes, bare, as fast as that goes, and says how long it took until the last one had its labels.
pub(crate) async fn returned(plane: &ControlPlane, many: usize) -> anyhow::Result<Duration> {
    let fleet = Fleet::new(plane.admin());
    let mut sight = Sight::of_nodes(plane).await?;
    let began = Instant::now();
    let all_whole = async {
        let (mut whole, mut left) = (vec![false; many], many);
        sight
            .until(|seen| {
                let Some(index) = index(seen).filter(|index| *index < many) else { return false };
                if !whole[index] && is_whole(seen, index) {
                    whole[index] = true;
                    left -= 1;
                }
                left == 0
            })
            .await
    };
    let ((), last) = tokio::try_join!(fleet.register(0..many), all_whole)?;
    Ok(last - began)
}

/// What is left in memory of nodes that are all gone.
pub(super) async fn measure_absent(bout: &mut Bout<'_>) -> anyhow::Result<()> {
    bout.fleet().delete(0..bout.plan.nodes).await?;
    bout.records.quiet(REST).await?;
    let memory = bout.running()?.memory()?;
    bout.add(Case::MemoryAbsent, mebibytes(memory.now));
    Ok(())
}
