//! The start of a cluster, step by step: each waits for what it needs, as long as it takes on a loaded machine.

use std::{
    fs,
    os::unix::fs::symlink,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use futures::future::try_join_all;

use super::{
    Cluster, certificates, clean,
    console::Console,
    control, layout,
    layout::{CONTROL_PLANE, Layout, WORKERS},
    life::Life,
    machine::{Bond, Machine},
    network, say,
    worker::Worker,
};
use crate::{
    assets::{self, Assets, ClusterAssets},
    eventually::eventually,
};

/// The programs that a cluster needs and Go modules do not have, and the Debian package of each.
const PROGRAMS: [(&str, &str); 9] = [
    ("runc", "runc"),
    ("iptables", "iptables"),
    ("nft", "nftables"),
    ("conntrack", "conntrack"),
    ("ip", "iproute2"),
    ("runsvdir", "runit"),
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("mount", "mount"),
];
/// For each step. Ten times what one takes on a machine of two cores that is busy already.
const PATIENCE: Duration = Duration::from_mins(5);
const COREDNS: &str = include_str!("manifests/coredns.yaml");
const METRICS_SERVER: &str = include_str!("manifests/metrics-server.yaml");

/// Starts one. What was begun is taken down again when this fails or is dropped.
pub(super) async fn start(bond: Bond) -> anyhow::Result<Cluster> {
    let began = Instant::now();
    let layout = Layout::find()?;
    let (control_plane, assets) = (Assets::find()?, ClusterAssets::find()?);
    possible(&[control_plane.folder(), assets.folder()])?;
    let lock = clean::lock(&layout)?;
    refuse_a_second(&layout)?;
    // What one left that was killed.
    clean::clean(&layout)?;
    network::addresses_are_free().await?;

    layout.create()?;
    if bond == Bond::Owned {
        Life::record_ours(&layout.owner())?;
    }
    symlink(control_plane.kubectl(), layout.tools().join("kubectl"))?;
    symlink(assets::helm()?, layout.tools().join("helm"))?;
    let console = Console::new(layout.kubeconfig())?;
    let workers = (1..=WORKERS).map(|number| Worker::new(number, &layout, &assets, bond)).collect();
    // From here on whatever is left when it is dropped is taken down.
    let cluster = Cluster { layout, console, workers, stopped: false };
    let result = bring_up(&cluster, &control_plane, &assets, bond).await;
    drop(lock);
    if let Err(error) = result {
        let bundle = cluster.layout.bundle();
        let _ = fs::remove_dir_all(&bundle);
        let told = match cluster.diagnostics(&bundle).await {
            Ok(()) => format!("logs are in {}", bundle.display()),
            Err(error) => format!("logs could not be kept: {error:#}"),
        };
        return Err(error.context(format!("the cluster did not start ({told})")));
    }
    say(&format!("up after {:.0?}", began.elapsed()));
    Ok(cluster)
}

/// Fails if this machine cannot have a cluster, and says what to do.
fn possible(folders: &[&std::path::Path]) -> anyhow::Result<()> {
    ensure!(
        nix::unistd::geteuid().is_root(),
        "a cluster without Docker needs root: sudo env HOME=\"$HOME\" PATH=\"$PATH\" make up"
    );
    let path = super::machine::search_path();
    let missing: Vec<&str> = PROGRAMS
        .iter()
        .filter(|(program, _)| {
            !path.split(':').any(|folder| std::path::Path::new(folder).join(program).is_file())
        })
        .map(|(_, package)| *package)
        .collect();
    ensure!(
        missing.is_empty(),
        "missing: {} (names of Debian packages): install them, or run dev/prerequisites cluster",
        missing.join(" ")
    );
    folders.iter().try_for_each(|folder| layout::visible(folder, "XDG_CACHE_HOME"))
}

fn refuse_a_second(layout: &Layout) -> anyhow::Result<()> {
    let Some(state) = network::cluster_up() else { return Ok(()) };
    if state == layout.folder() {
        bail!("a cluster is up already (KUBECONFIG={}): `make down` ends it", layout.kubeconfig().display());
    }
    bail!("another cluster is up on this machine; its state is in {}", state.display());
}

async fn bring_up(
    cluster: &Cluster,
    control_plane: &Assets,
    assets: &ClusterAssets,
    bond: Bond,
) -> anyhow::Result<()> {
    let layout = &cluster.layout;
    let certificates = certificates::create(layout).context("making certificates")?;
    let machine = Machine::new(CONTROL_PLANE, layout.machine(CONTROL_PLANE), &layout.logs());
    machine.create()?;
    for service in control::services(layout, control_plane, assets, &certificates) {
        machine.install(&service)?;
    }
    let mut step = Step::begin("machines");
    machine.boot(bond).await?;
    network::connect_control_plane(&machine, &layout.folder().display().to_string()).await?;
    for worker in &cluster.workers {
        worker.create()?;
    }
    try_join_all(cluster.workers.iter().map(Worker::boot)).await?;

    step.next("control plane, and images on the workers");
    let images = assets.images()?;
    tokio::try_join!(start_control_plane(&machine, &cluster.console), async {
        try_join_all(cluster.workers.iter().map(async |worker| {
            worker.start_runtime().await?;
            worker.import(&images).await
        }))
        .await
    })?;

    step.next("nodes");
    try_join_all(cluster.workers.iter().map(async |worker| {
        worker.start_node().await?;
        worker.ready(&cluster.console).await
    }))
    .await?;

    step.next("DNS and metrics");
    add_ons(&cluster.console).await?;
    step.end();
    Ok(())
}

async fn start_control_plane(machine: &Machine, console: &Console) -> anyhow::Result<()> {
    machine.up("etcd").await?;
    machine.up("kube-apiserver").await?;
    let client = console.client().await?;
    eventually(PATIENCE, "the API server is ready", || async {
        let request = http::Request::get("/readyz").body(Vec::new())?;
        Ok(Some(client.request_text(request).await?))
    })
    .await?;
    machine.up("kube-controller-manager").await?;
    machine.up("kube-scheduler").await
}

async fn add_ons(console: &Console) -> anyhow::Result<()> {
    console.apply(COREDNS).await?;
    console.apply(METRICS_SERVER).await?;
    tokio::try_join!(
        console.rolled_out("kube-system", "deployment/coredns", PATIENCE),
        console.rolled_out("kube-system", "deployment/metrics-server", PATIENCE),
    )?;
    let client = console.client().await?;
    eventually(PATIENCE, "metrics of every node are there", || async {
        let request = http::Request::get("/apis/metrics.k8s.io/v1beta1/nodes").body(Vec::new())?;
        let metrics: serde_json::Value = client.request(request).await?;
        let nodes = metrics["items"].as_array().map_or(0, Vec::len);
        ensure!(nodes == usize::from(WORKERS), "{nodes} nodes have metrics");
        Ok(Some(()))
    })
    .await
}

/// Tells what is done, and how long it took.
struct Step {
    what: &'static str,
    began: Instant,
}

impl Step {
    fn begin(what: &'static str) -> Self {
        say(&format!("{what} …"));
        Self { what, began: Instant::now() }
    }

    fn next(&mut self, what: &'static str) {
        self.end();
        *self = Self::begin(what);
    }

    fn end(&self) {
        say(&format!("{}: ready after {:.1?}", self.what, self.began.elapsed()));
    }
}
