//! Many nodes are gone, and come back at once.

use std::time::Instant;

use super::returns::Seen;
use super::{Bout, MANY, REST};
use crate::report::mebibytes;
use crate::results::Case;
use crate::sight::Sight;

pub(super) async fn measure(bout: &mut Bout<'_>) -> anyhow::Result<()> {
    let many = MANY.min(bout.plan.nodes);
    let fleet = bout.fleet();
    fleet.delete(0..many).await?;
    bout.records.quiet(REST).await?;
    let mut sight = Sight::of_nodes(&bout.plane).await?;
    let began = Instant::now();
    let all_whole = async {
        let (mut whole, mut left) = (vec![false; many], many);
        loop {
            let seen = sight.next().await?;
            let Some(node) = Seen::of(&seen.line) else { continue };
            let Some(index) = node.index().filter(|index| *index < many) else { continue };
            if !whole[index] && node.is_whole(index) {
                whole[index] = true;
                left -= 1;
                if left == 0 {
                    return anyhow::Ok(seen.at);
                }
            }
        }
    };
    let ((), last) = tokio::try_join!(fleet.register(0..many), all_whole)?;
    bout.add(Case::Mass, f64::from(u32::try_from(many)?) / (last - began).as_secs_f64());
    Ok(())
}

/// What is left in memory of nodes that are all gone.
pub(super) async fn measure_absent(bout: &mut Bout<'_>) -> anyhow::Result<()> {
    bout.fleet().delete(0..bout.plan.nodes).await?;
    bout.records.quiet(REST).await?;
    let memory = bout.running()?.memory()?;
    bout.add(Case::MemoryAbsent, mebibytes(memory.now));
    Ok(())
}
