//! Whether a peer keeps the contract of `bench/peers/README.md`, on a real API server: what is compared must do the same work.
//!
//! Each of the programs named on the command line gets a control plane of its own. What it must write is counted in the audit
//! log, over all steps: a write too many in one of them is found at the latest in the next.

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use clap::Parser;

mod peer;
mod policy;
mod scene;

use scene::Scene;

/// Checks that peers keep their contract, or measures them for orientation.
#[derive(Parser)]
struct Args {
    /// The peers' programs
    #[arg(required = true)]
    programs: Vec<PathBuf>,
    /// Check nothing, and measure the capture of so many nodes and their heartbeats
    #[arg(long, value_name = "NODES")]
    measure: Option<usize>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    for program in &args.programs {
        match args.measure {
            Some(nodes) => measure(program, nodes).await?,
            None => check(program).await?,
        }
    }
    Ok(())
}

/// The whole contract, step by step. Each of them builds on those before.
async fn check(program: &Path) -> anyhow::Result<()> {
    let mut scene = Scene::set(program, 50, true).await?;
    let name = scene.peer.name().to_owned();
    for step in 0.. {
        let done = match step {
            0 => scene.captures_what_is_there().await?,
            1 => scene.keeps_what_the_policy_keeps().await?,
            2 => scene.records_a_changed_label().await?,
            3 => scene.records_a_removed_label().await?,
            4 => scene.rests_at_heartbeats().await?,
            5 => scene.keeps_records_of_the_deleted().await?,
            6 => scene.gives_back_and_overwrites_nothing().await?,
            7 => scene.rests_after_a_restart().await?,
            8 => scene.gives_back_after_a_restart().await?,
            9 => scene.goes_on_after_the_api_server().await?,
            _ => break,
        };
        println!("{name}: {done}");
    }
    scene.peer.stop().await
}

/// A cold capture, then heartbeats. `make bench` is where figures come from that count.
async fn measure(program: &Path, nodes: usize) -> anyhow::Result<()> {
    let mut scene = Scene::set(program, nodes, false).await?;
    let started = Instant::now();
    scene.peer.start()?;
    scene.wait_for_records(nodes).await?;
    let seconds = started.elapsed().as_secs_f64();
    let captured = scene.peer.cpu()?;
    let rate = f64::from(u32::try_from(nodes)?) / seconds;
    let name = scene.peer.name().to_owned();
    println!("{name}: {nodes} nodes in {seconds:.2} s, {rate:.0}/s, start included; CPU {captured:.2} s");
    let heartbeats = scene.heartbeats().await?;
    let each = (scene.peer.cpu()? - captured) / f64::from(u32::try_from(heartbeats)?) * 1e3;
    println!("{name}: CPU for each of {heartbeats} heartbeats {each:.3} ms; memory {}", scene.peer.memory()?);
    scene.peer.stop().await
}
