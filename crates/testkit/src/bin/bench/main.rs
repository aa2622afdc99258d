//! `make bench`: what keeper and lister take under load, beside what the servers take for the same alone.
//!
//! Machines are shared and noisy: every number stands beside one that was measured in the same run.

mod cluster;
mod listing;
mod proofs;
mod report;
mod storm;

use std::process::ExitCode;

use clap::{Parser, ValueEnum};

/// Measures keeper and lister against a real etcd, kube-apiserver and S3 server
#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Args {
    /// What to measure; everything by default
    #[arg(value_enum)]
    what: Vec<What>,
    /// How many nodes there are
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u32).range(10..=100_000))]
    nodes: u32,
    /// How many replicas share the work
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=50))]
    replicas: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Single restores while all nodes are deleted and return at once
    Storm,
    /// Ends proved from history after all replicas were away
    Proofs,
    /// From a change of endpoints to the page in a bucket
    Listing,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Args { what, nodes, replicas } = Args::parse();
    let what = if what.is_empty() { What::value_variants().to_vec() } else { what };
    for what in what {
        let (nodes, replicas) = (nodes as usize, replicas as usize);
        let measured = match what {
            What::Storm => storm::run(nodes, replicas).await,
            What::Proofs => proofs::run(nodes, replicas).await,
            What::Listing => listing::run(replicas).await,
        };
        if let Err(error) = measured {
            eprintln!("bench: {error:#}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
