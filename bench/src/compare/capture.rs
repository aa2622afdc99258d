//! A whole fleet is recorded for the first time.

use super::{Bout, is_new_record};
use crate::report::rate;
use crate::results::Case;

pub(super) async fn measure(bout: &mut Bout<'_>) -> anyhow::Result<()> {
    let began = bout.start()?;
    let (nodes, contender) = (bout.plan.nodes, bout.contender);
    let mut left = nodes;
    let last = bout.records.until(|seen| {
        left -= usize::from(is_new_record(seen, contender));
        left == 0
    });
    let took = last.await? - began;
    bout.add(Case::Capture, rate(nodes, took)?);
    Ok(())
}
