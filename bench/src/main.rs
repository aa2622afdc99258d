//! `make bench`: what keeper and lister take, beside their peers, and beside what the servers take for the same alone.
//!
//! Machines are shared and noisy: every number stands beside one that was measured in the same run.

mod births;
mod capture;
mod cluster;
mod compare;
mod contender;
mod listing;
mod page;
mod prepared;
mod proofs;
mod raw;
mod replicas;
mod report;
mod results;
mod shapes;
mod sight;
mod soak;
mod storm;
mod usage;
mod writes;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use perennial_testkit::{Fleet, interrupted};

use contender::Contender;
use results::{Results, Setting, save};

/// Measures keeper and lister against a real etcd, kube-apiserver and S3 server
#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Perennial, its peers and the API server's limit, all cases side by side
    Compare(Compare),
    /// Churn for a long time: memory stays flat, nothing is left to do, no promise is broken
    Soak(SoakArgs),
    /// A control plane with that fleet, until Ctrl-C: for whoever wants to look closer
    Serve(ServeArgs),
    /// One replica, three, five: what each does, and how fast all of them are
    Replicas(Sharing),
    /// Single restores while all nodes are deleted and return at once
    Storm(Size),
    /// What each kind of write costs the API server
    Writes(Size),
    /// A whole fleet recorded: what that makes whom compute, beside bare requests
    Capture(Size),
    /// Ends proved from history after all replicas were away
    Proofs(Size),
    /// What a webhook adds to a registration, and what it saves
    Births(Size),
    /// From a change of endpoints to the page in a bucket
    Listing(Size),
    /// Reads what is said of nodes, and does nothing with it: for `compare`, to see what that alone takes
    #[command(hide = true)]
    Watch,
}

#[derive(Debug, Args)]
struct Compare {
    /// How many nodes there are
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u32).range(100..=100_000))]
    nodes: u32,
    /// How often everything is done
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    rounds: u32,
    /// Who takes part; everyone by default
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Contender>,
    /// Seconds that one case may take; enough for a rate of 50 nodes a second by default
    #[arg(long)]
    patience: Option<u32>,
    /// Where the figures go
    #[arg(long, default_value = "target/bench/compare.json")]
    out: PathBuf,
    /// Add rounds to the figures that are there, of a fleet of the same size
    #[arg(long)]
    more: bool,
}

#[derive(Debug, Args)]
struct SoakArgs {
    #[command(flatten)]
    size: Size,
    /// How long the churn lasts
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1440))]
    minutes: u32,
    /// Chance follows it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the figures go
    #[arg(long, default_value = "target/bench/soak.json")]
    out: PathBuf,
}

#[derive(Debug, Args)]
struct Sharing {
    /// How many nodes there are
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u32).range(100..=100_000))]
    nodes: u32,
    /// How often everything is done
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    rounds: u32,
    /// Where the figures go
    #[arg(long, default_value = "target/bench/replicas.json")]
    out: PathBuf,
}

#[derive(Debug, Args)]
struct ServeArgs {
    #[command(flatten)]
    size: Size,
    /// So many of them a second write their status
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    beats: u32,
}

#[derive(Debug, Args)]
struct Size {
    /// How many nodes there are
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u32).range(10..=100_000))]
    nodes: u32,
    /// How many replicas share the work
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=50))]
    replicas: u32,
}

fn main() -> ExitCode {
    let what = Bench::parse().what;
    // One that is measured has one thread, as those have that it is measured beside.
    let mut runtime = match what {
        What::Watch => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    match runtime.enable_all().build() {
        Ok(runtime) => runtime.block_on(run(what)),
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(what: What) -> ExitCode {
    let measured = async {
        match what {
            What::Compare(compare) => side_by_side(compare).await,
            What::Soak(SoakArgs { size: Size { nodes, replicas }, minutes, seed, out }) => {
                let lasting = Duration::from_mins(minutes.into());
                let (nodes, replicas) = (nodes as usize, replicas as usize);
                soak::run(&soak::Soak { nodes, replicas, lasting, seed }, &out).await
            }
            What::Serve(ServeArgs { size, beats }) => serve(size.nodes as usize, beats).await,
            What::Replicas(Sharing { nodes, rounds, out }) => {
                replicas::run(nodes as usize, rounds as usize, &out).await
            }
            What::Writes(Size { nodes, .. }) => writes::run(nodes as usize).await,
            What::Capture(Size { nodes, .. }) => capture::run(nodes as usize).await,
            What::Storm(Size { nodes, replicas }) => storm::run(nodes as usize, replicas as usize).await,
            What::Proofs(Size { nodes, replicas }) => proofs::run(nodes as usize, replicas as usize).await,
            What::Births(Size { nodes, .. }) => births::run(nodes as usize).await,
            What::Listing(Size { replicas, .. }) => listing::run(replicas as usize).await,
            What::Watch => compare::watch().await,
        }
    };
    tokio::select! {
        measured = measured => match measured {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("bench: {error:#}");
                ExitCode::FAILURE
            }
        },
        // What runs is dropped with the future, and ends.
        interrupt = interrupted() => interrupt.into(),
    }
}

/// Keeps a prepared control plane running.
async fn serve(nodes: usize, beats: u32) -> anyhow::Result<()> {
    let plane = prepared::start(nodes).await?;
    let admin = plane.kubeconfig_for_admin()?;
    let keeper = plane.kubeconfig_for_keeper(contender::NAMESPACE).await?;
    println!("bench: {nodes} nodes at {}", plane.url());
    println!(
        "bench: KUBECONFIG={} for you, {} for a keeper; Ctrl-C ends it",
        admin.display(),
        keeper.display()
    );
    if beats > 0 {
        Fleet::new(plane.admin()).heartbeats(0..nodes, beats, compare::ENDLESS).await?;
    }
    std::future::pending().await
}

async fn side_by_side(compare: Compare) -> anyhow::Result<()> {
    let Compare { nodes, rounds, only, patience, out, more } = compare;
    let everyone = <Contender as clap::ValueEnum>::value_variants().to_vec();
    let plan = compare::Plan {
        nodes: nodes as usize,
        rounds: rounds as usize,
        contenders: if only.is_empty() { everyone } else { only },
        patience: Duration::from_secs(patience.unwrap_or(60 + nodes / 50).into()),
    };
    let mut results = Results {
        setting: Setting::here()?,
        nodes: plan.nodes,
        rounds: plan.rounds,
        manner: String::new(),
        samples: std::collections::BTreeMap::new(),
    };
    if more {
        let text = fs::read_to_string(&out).with_context(|| format!("reading {}", out.display()))?;
        let before: Results = serde_json::from_str(&text).with_context(|| out.display().to_string())?;
        results.follow(before).with_context(|| out.display().to_string())?;
    }
    let compared = compare::run(&plan, &mut results, |results| save(results, &out)).await;
    print!("{}", page::plain(&results));
    println!("bench: figures in {}", out.display());
    compared
}
