//! A fleet that is there at once: made once, kept in the cache as etcd's data, copied for every control plane.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::Context;
use kube::Api;
use kube::api::ListParams;
use perennial_testkit::{ControlPlane, Fleet, company_labels, registration};
use sha2::{Digest, Sha256};

/// How often those who wait are told.
const TELL: Duration = Duration::from_secs(10);
/// As the API servers of such fleets are run: what it takes shall be limited by the machine, not by its own fences.
const INFLIGHT: [&str; 2] = ["--max-requests-inflight=4000", "--max-mutating-requests-inflight=2000"];

/// Starts a control plane with so many labelled nodes.
pub(crate) async fn start(nodes: usize) -> anyhow::Result<ControlPlane> {
    let folder = folder(nodes)?;
    if !folder.exists() {
        make(nodes, &folder).await.with_context(|| format!("preparing {nodes} nodes"))?;
    }
    plane().data(folder).start().await
}

fn plane() -> perennial_testkit::ControlPlaneBuilder {
    INFLIGHT.iter().fold(ControlPlane::builder().without_audit(), |plane, flag| plane.apiserver_flag(*flag))
}

async fn make(nodes: usize, folder: &Path) -> anyhow::Result<()> {
    println!("bench: making a fleet of {nodes} nodes, once for all runs");
    let plane = plane().start().await?;
    let began = Instant::now();
    let told = async {
        let there: Api<k8s_openapi::api::core::v1::Node> = Api::all(plane.admin());
        let mut ticks = tokio::time::interval(TELL);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            let page = there.list_metadata(&ListParams::default().limit(1)).await;
            let count = page.map_or(0, |page| page.metadata.remaining_item_count.unwrap_or(0) + 1);
            println!("bench:   {count} of {nodes} nodes after {:.0?}", began.elapsed());
        }
    };
    let fleet = Fleet::new(plane.admin());
    tokio::select! {
        made = fleet.create(0..nodes) => made?,
        () = told => {}
    }
    // Beside its place first: what is there is whole.
    let unfinished = folder.with_extension("unfinished");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished)?;
    }
    fs::create_dir_all(folder.parent().unwrap_or(folder))?;
    plane.save(&unfinished).await?;
    fs::rename(&unfinished, folder)?;
    Ok(())
}

/// Where it is kept. Another kind of node, or another control plane, is another fleet.
fn folder(nodes: usize) -> anyhow::Result<PathBuf> {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")));
    let mut hash = Sha256::new();
    hash.update(perennial_testkit::Assets::find()?.kubectl().display().to_string());
    for index in [0, nodes - 1] {
        hash.update(serde_json::to_vec(&(registration(index), company_labels(index)))?);
    }
    let mut name = format!("{nodes}-");
    for byte in hash.finalize().iter().take(8) {
        write!(name, "{byte:02x}")?;
    }
    Ok(cache.context("neither XDG_CACHE_HOME nor HOME is set")?.join("perennial/bench").join(name))
}
