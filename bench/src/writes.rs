//! What each kind of write costs the API server and etcd, so that the cheapest can be chosen that says what is meant.
//!
//! The time they compute is what counts: on a machine that others use, it is steadier than a rate.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use perennial_testkit::{ControlPlane, company_labels};
use serde_json::{Value, json};

use crate::contender::NAMESPACE;
use crate::prepared;
use crate::raw::{Call, JSON, Manner, Raw, TABLE};
use crate::report::ratio;
use crate::shapes::{bare, node_path, record, record_path, records_path};
use crate::usage;

const MANNER: Manner = Manner { connections: 4, at_once: 64 };
/// All kinds, one after the other, so often.
const ROUNDS: usize = 5;

/// A kind of write: its name, and that of one node in a round. No two rounds of all that is done have the same number, so
/// that none writes what is there already.
type Kind = (&'static str, fn(usize, usize) -> anyhow::Result<Call>);

/// What they are for. The first is what the others are measured beside.
const PURPOSES: [(&str, &[Kind]); 3] = [
    (
        "a record is made",
        &[
            ("with its labels and a uid, in JSON", |index, round| {
                Call::create(records_path(), &bare(index, &format!("bare-{round}")))
            }),
            ("with a summary, in JSON", |index, round| {
                Call::create(records_path(), &record(index, round, &format!("json-{round}"))?)
            }),
            ("as Perennial writes it: in protobuf", |index, round| {
                Ok(Call::create_in_protobuf(records_path(), &record(index, round, &format!("full-{round}"))?))
            }),
        ],
    ),
    // Those that the third kind above made in its first four rounds, one for each kind.
    (
        "a record is written again",
        &[
            ("merge patch", |index, round| {
                let record = json!(record(index, round, "full-3")?);
                Ok(Call::merge(record_path("full-3", index), &record))
            }),
            ("replaced", |index, round| {
                let record = json!(record(index, round, "full-6")?);
                Ok(Call::replace(record_path("full-6", index), &record))
            }),
            ("replaced, no books kept of its fields", |index, round| {
                let record = json!(record(index, round, "full-9")?.without_books());
                Ok(Call::replace(record_path("full-9", index), &record))
            }),
            ("the same in protobuf", |index, round| {
                let record = record(index, round, "full-12")?.without_books();
                Ok(Call::replace_in_protobuf(record_path("full-12", index), &record))
            }),
        ],
    ),
    (
        "a node is given its labels",
        &[
            ("JSON patch, answered by its metadata", |index, round| {
                let body = json!(steps(index, round)).to_string().into_bytes();
                Ok(Call { content: "application/json-patch+json", body, ..given(index, round) })
            }),
            ("merge patch, by its metadata", |index, round| {
                Ok(Call::merge(node_path(index), &labels(index, round)))
            }),
            ("strategic merge patch, by its metadata", |index, round| Ok(given(index, round))),
            ("strategic, by a line of a table", |index, round| {
                Ok(Call { answer: TABLE, ..given(index, round) })
            }),
            ("strategic, by the whole node", |index, round| Ok(Call { answer: JSON, ..given(index, round) })),
        ],
    ),
];

pub(crate) async fn run(nodes: usize) -> anyhow::Result<()> {
    let plane = prepared::start(nodes).await?;
    plane.service_account(NAMESPACE, "limit").await?;
    let raw = Raw::new(&plane, MANNER).await?;
    println!(
        "bench: writes, {nodes} of each kind at a time, {ROUNDS} rounds: what API server and etcd compute for one"
    );
    let mut round = 0;
    for (purpose, kinds) in PURPOSES {
        let mut costs = vec![Vec::new(); kinds.len()];
        for _ in 0..ROUNDS {
            for ((_, call), costs) in kinds.iter().zip(&mut costs) {
                round += 1;
                let before = computed(&plane).await?;
                raw.each(0..nodes, async |index| raw.send(call(index, round)?).await).await?;
                costs.push(computed(&plane).await?.saturating_sub(before) / u32::try_from(nodes)?);
            }
        }
        println!("{purpose}");
        let mut first = None;
        for ((name, _), costs) in kinds.iter().zip(&mut costs) {
            costs.sort();
            let median = costs[ROUNDS / 2];
            let beside = ratio(median, *first.get_or_insert(median));
            println!(
                "  {name:<40} {:>6} µs ({beside:.2}x), {} to {}",
                median.as_micros(),
                costs[0].as_micros(),
                costs[ROUNDS - 1].as_micros()
            );
        }
    }
    Ok(())
}

/// What both servers have computed.
async fn computed(plane: &ControlPlane) -> anyhow::Result<Duration> {
    let pids = plane.pids().await;
    let (apiserver, etcd) = pids.apiserver.zip(pids.etcd).context("the control plane is down")?;
    Ok(usage::cpu(apiserver)? + usage::cpu(etcd)?)
}

/// A node's labels, with one that is another in every round.
fn labels_of(index: usize, round: usize) -> impl Iterator<Item = (String, String)> {
    company_labels(index).into_iter().chain([("round".to_owned(), round.to_string())])
}

fn labels(index: usize, round: usize) -> Value {
    json!({ "metadata": { "labels": labels_of(index, round).collect::<BTreeMap<_, _>>() } })
}

fn steps(index: usize, round: usize) -> Vec<Value> {
    let step = |(key, value): (String, String)| json!({ "op": "add", "path": format!("/metadata/labels/{}", key.replace('/', "~1")), "value": value });
    labels_of(index, round).map(step).collect()
}

fn given(index: usize, round: usize) -> Call {
    Call::strategic(node_path(index), &labels(index, round))
}
