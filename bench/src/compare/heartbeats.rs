//! What it costs to be told of things that do not matter.

use std::time::{Duration, Instant};

use super::{BEATS, Bout};
use crate::results::Case;

/// How long it is watched at rest, to take away what it computes anyway.
const IDLE: Duration = Duration::from_secs(5);
const LASTING: Duration = Duration::from_secs(20);

pub(super) async fn measure(bout: &mut Bout<'_>) -> anyhow::Result<()> {
    let idle = {
        let (before, began) = (computed(bout)?, Instant::now());
        tokio::time::sleep(IDLE).await;
        (computed(bout)? - before) / began.elapsed().as_secs_f64()
    };
    let (before, began) = (computed(bout)?, Instant::now());
    let beats = bout.fleet().heartbeats(0..bout.plan.nodes, BEATS, LASTING).await?;
    let own = computed(bout)? - before - idle * began.elapsed().as_secs_f64();
    bout.add(Case::Heartbeat, 1e6 * own.max(0.0) / f64::from(u32::try_from(beats)?));
    Ok(())
}

/// The seconds that it has computed.
fn computed(bout: &Bout<'_>) -> anyhow::Result<f64> {
    Ok(bout.running()?.cpu()?.as_secs_f64())
}
