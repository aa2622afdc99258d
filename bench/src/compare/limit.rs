//! The same writes, by somebody who needs to know nothing.

use std::time::{Duration, Instant};

use perennial_testkit::{company_labels, registration};
use serde_json::json;

use super::{MANY, Plan, REST, SINGLES};
use crate::contender::NAMESPACE;
use crate::prepared;
use crate::raw::{Call, MANNERS, Manner, Raw};
use crate::report::{Times, milliseconds, rate};
use crate::results::{Case, Results, Who};
use crate::shapes::{node_path, record, record_path, records_path};
use crate::sight::Sight;

/// So many records are written to find out what suits the API server best.
const PROBE: usize = 1500;

/// The way to write that is fastest here.
pub(super) async fn best_manner(nodes: usize) -> anyhow::Result<Manner> {
    let plane = prepared::start(nodes).await?;
    plane.service_account(NAMESPACE, "limit").await?;
    let mut best = (Duration::MAX, MANNERS[0]);
    // The first one pays for what the server does once; it is asked again at the end.
    for (number, manner) in MANNERS.into_iter().chain([MANNERS[0]]).enumerate() {
        let raw = Raw::new(&plane, manner).await?;
        let took = raw
            .each(0..PROBE, async |index| raw.send(made(index, &format!("probe-{number}"))?).await)
            .await?;
        println!("bench:   {PROBE} records by {manner}: {:.0}/s", rate(PROBE, took)?);
        if number > 0 && took < best.0 {
            best = (took, manner);
        }
    }
    Ok(best.1)
}

pub(super) async fn measure(plan: &Plan, manner: Manner, results: &mut Results) -> anyhow::Result<()> {
    let plane = prepared::start(plan.nodes).await?;
    plane.service_account(NAMESPACE, "limit").await?;
    let raw = Raw::new(&plane, manner).await?;
    let mut add = |case, figure| results.add(case, Who::Limit, figure);

    // Whoever is measured is observed, and that costs the API server something, too.
    let (mut seen_records, mut seen_nodes) =
        (Sight::of_records(&plane, NAMESPACE).await?, Sight::of_nodes(&plane).await?);
    // As many as there are nodes: the more there are, the more each costs etcd and the API server.
    let records = plan.nodes;
    let took = raw.each(0..records, async |index| raw.send(made(index, "node")?).await).await?;
    add(Case::Capture, rate(records, took)?);

    let (mut writes, mut patches) = (Vec::new(), Vec::new());
    for number in 0..SINGLES {
        let (index, sequence) = (number * records / SINGLES, 1000 + number);
        let write = written(index, sequence)?;
        let began = Instant::now();
        raw.send(write).await?;
        let said = format!("sequence={sequence} ");
        writes.push(seen_records.until(|seen| seen.says(&said)).await? - began);
        let value = format!("limit-{number}-x");
        let began = Instant::now();
        let patch = json!({ "metadata": { "labels": { "limit": value } } });
        raw.send(Call::strategic(node_path(index), &patch)).await?;
        patches.push(seen_nodes.until(|seen| seen.says(&value)).await? - began);
    }
    let (writes, patches) = (Times::new(writes), Times::new(patches));
    add(Case::ChangeP50, milliseconds(writes.percentile(50)));
    add(Case::ChangeP99, milliseconds(writes.percentile(99)));
    add(Case::ReturnP50, milliseconds(patches.percentile(50)));
    add(Case::ReturnP99, milliseconds(patches.percentile(99)));

    let many = MANY.min(plan.nodes);
    raw.each(0..many, |index| raw.send(Call::delete(node_path(index)))).await?;
    seen_nodes.quiet(REST).await?;
    let took = raw.each(0..many, |index| comes_back(&raw, index)).await?;
    add(Case::Mass, rate(many, took)?);
    shown(results);
    Ok(())
}

/// A node registers, is given its labels, and that is recorded.
async fn comes_back(raw: &Raw, index: usize) -> anyhow::Result<()> {
    raw.send(Call::create("/api/v1/nodes", &registration(index))?).await?;
    let labels = json!({ "metadata": { "labels": company_labels(index) } });
    raw.send(Call::strategic(node_path(index), &labels)).await?;
    raw.send(written(index, 2000)?).await
}

fn shown(results: &Results) {
    for (case, all) in &results.samples {
        if let Some(crate::results::Sample::Figure(figure)) = all.get(&Who::Limit).and_then(|all| all.last())
        {
            println!("bench:   {:<38} {figure:>10.2} {}", case.title(), case.unit());
        }
    }
}

// Both in the cheapest way (see `bench writes`).

fn made(index: usize, prefix: &str) -> anyhow::Result<Call> {
    Ok(Call::create_in_protobuf(records_path(), &record(index, 1, prefix)?))
}

/// The record is written again.
fn written(index: usize, sequence: usize) -> anyhow::Result<Call> {
    let record = record(index, sequence, "node")?.without_books();
    Ok(Call::replace_in_protobuf(record_path("node", index), &record))
}
