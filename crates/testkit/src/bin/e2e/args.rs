//! What may be asked for.

use std::path::PathBuf;

use clap::Parser;

use crate::scenario::Scenario;

/// Install Perennial on a real cluster, and do with it what users do
#[derive(Debug, Parser)]
#[command(name = "e2e", max_term_width = 100)]
pub(crate) struct Args {
    /// Run these scenarios alone
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<Scenario>,

    /// Leave the cluster up when a scenario fails; `make down` ends it
    #[arg(long)]
    pub(crate) keep: bool,

    /// Use this cluster, and bring none up. Its nodes have the image already (`kind load image-archive`)
    #[arg(long)]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// How the kubelet of a node of that cluster is restarted, e.g. "docker exec {} systemctl restart kubelet"
    #[arg(long, requires = "kubeconfig")]
    pub(crate) restart_kubelet: Option<String>,

    /// The image of nginx to use, if not the chart's own
    #[arg(long)]
    pub(crate) nginx: Option<String>,

    /// The archive that `make image` made, if it is not where that puts it
    #[arg(long)]
    pub(crate) image: Option<PathBuf>,

    /// The package that `make deb` made, if it is not where that puts it
    #[arg(long)]
    pub(crate) deb: Option<PathBuf>,
}
