//! A whole fleet is recorded: how fast, and what that makes whom compute, beside bare requests that write the same.
//!
//! Where two cores are all there is, whatever anybody computes for a record is time that all wait for.

use std::time::{Duration, Instant};

use anyhow::Context;

use crate::compare::is_new_record;
use crate::contender::{Contender, NAMESPACE};
use crate::prepared;
use crate::raw::{Call, Manner, Raw};
use crate::report::rate;
use crate::shapes::{record, records_path};
use crate::sight::Sight;
use crate::usage;

const ROUNDS: usize = 5;
/// As Perennial writes.
const MANNER: Manner = Manner { connections: 0, at_once: 64 };

/// Who writes.
#[derive(Clone, Copy)]
enum Writer {
    Bare,
    Perennial,
}

/// How long it took, and what API server, etcd and the writer computed meanwhile.
type Taken = [Duration; 4];

pub(crate) async fn run(nodes: usize) -> anyhow::Result<()> {
    println!(
        "bench: a fleet of {nodes} is recorded, {ROUNDS} rounds: medians, and what is computed for a record"
    );
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare.push(turn(nodes, Writer::Bare).await?);
        ours.push(turn(nodes, Writer::Perennial).await?);
    }
    for (name, all) in [("bare requests, and who looks on", bare), ("Perennial", ours)] {
        let [took, apiserver, etcd, writer] = medians(&all);
        let each = |time: Duration| anyhow::Ok((time / u32::try_from(nodes)?).as_micros());
        println!(
            "  {name:<32} {:>6.0}/s: API server {:>4} µs, etcd {:>4} µs, itself {:>4} µs",
            rate(nodes, took)?,
            each(apiserver)?,
            each(etcd)?,
            each(writer)?
        );
    }
    Ok(())
}

fn medians(all: &[Taken]) -> Taken {
    std::array::from_fn(|which| {
        let mut times: Vec<Duration> = all.iter().map(|taken| taken[which]).collect();
        times.sort();
        times[times.len() / 2]
    })
}

async fn turn(nodes: usize, writer: Writer) -> anyhow::Result<Taken> {
    let plane = prepared::start(nodes).await?;
    let kubeconfig = plane.kubeconfig_for_keeper(NAMESPACE).await?;
    let mut records = Sight::of_records(&plane, NAMESPACE).await?;
    let pids = plane.pids().await;
    let (apiserver, etcd) = pids.apiserver.zip(pids.etcd).context("the control plane is down")?;
    let computed = || anyhow::Ok([usage::cpu(apiserver)?, usage::cpu(etcd)?]);
    let before = computed()?;
    let (took, after, own) = match writer {
        Writer::Bare => {
            let raw = Raw::new(&plane, MANNER).await?;
            let before = usage::cpu(std::process::id())?;
            let made = async |index| {
                let record = record(index, 1, "node")?;
                raw.send(Call::create_in_protobuf(records_path(), &record)).await
            };
            let took = raw.each(0..nodes, made).await?;
            (took, computed()?, usage::cpu(std::process::id())?.saturating_sub(before))
        }
        Writer::Perennial => {
            let began = Instant::now();
            let running = Contender::Perennial.start(&plane, &kubeconfig)?;
            let mut left = nodes;
            let last = records.until(|seen| {
                left -= usize::from(is_new_record(seen, Contender::Perennial));
                left == 0
            });
            let took = last.await? - began;
            let (after, own) = (computed()?, usage::cpu(running.pid())?);
            running.stop().await?;
            (took, after, own)
        }
    };
    let [apiserver, etcd] = std::array::from_fn(|which| after[which].saturating_sub(before[which]));
    Ok([took, apiserver, etcd, own])
}
