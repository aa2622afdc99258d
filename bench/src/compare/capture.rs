//! A whole fleet is recorded for the first time.

use super::Bout;
use crate::results::Case;

pub(super) async fn measure(bout: &mut Bout<'_>) -> anyhow::Result<()> {
    let began = bout.start()?;
    let mut left = bout.plan.nodes;
    let last = loop {
        let seen = bout.records.next().await?;
        left -= usize::from(bout.is_new_record(&seen.line));
        if left == 0 {
            break seen.at;
        }
    };
    let nodes = u32::try_from(bout.plan.nodes)?;
    bout.add(Case::Capture, f64::from(nodes) / (last - began).as_secs_f64());
    Ok(())
}
