//! `make e2e`: installs what users install on a real cluster, and does with it what they do.
//!
//! ```text
//! args ─> run ─> stage: a cluster of ours, or one by its kubeconfig; the image, the charts, kubectl and helm
//!           └──> scenario … scenario ─> a line for each step │ a bundle in target/e2e, if one fails
//! ```
//! Scenarios run one after another on one cluster. Each begins by installing what it needs, so any of them can be run alone.

mod args;
mod nodes;
mod run;
mod scenario;
mod stage;
mod web;

#[tokio::main]
async fn main() -> std::process::ExitCode {
    run::run(<args::Args as clap::Parser>::parse()).await
}
