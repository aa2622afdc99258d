//! The package on a host: installed, looked at, and run against the cluster with a kubeconfig.

use std::{fs, path::Path, process::Command, time::Duration};

use anyhow::{Context as _, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, geteuid},
};
use perennial_testkit::{Launch, Port, Process};

use crate::{
    stage::{NAMESPACE, PATIENCE, Stage, folder, path, step},
    web,
};

const SCRIPT: &str = "crates/testkit/src/bin/e2e/scenario/host.sh";
/// As its unit says.
const STOP: Duration = Duration::from_secs(30);

/// Why it cannot be played on this machine, if it cannot.
pub(super) fn impossible() -> Option<String> {
    if !geteuid().is_root() {
        return Some("only root can install a package".to_owned());
    }
    let dpkg = Command::new("dpkg").arg("--version").output();
    dpkg.err().map(|_| "there is no dpkg on this machine".to_owned())
}

pub(super) async fn play(stage: &Stage) -> anyhow::Result<()> {
    ensure!(stage.deb.is_file(), "no package in {}: make deb", stage.deb.display());
    let node = &stage.nodes().await?[0];
    stage.install("").await?;
    stage.label(node, "example.com/kept-by=pods").await?;
    stage.helm(&format!("uninstall perennial --namespace {NAMESPACE} --wait --timeout 3m")).await?;
    let rbac = path("deploy/rbac.yaml");
    stage.kubectl(&format!("apply --filename {}", rbac.display())).await?;
    let kubeconfig = stage.console_of(NAMESPACE, "perennial").await?;

    let port = Port::claim()?;
    let mut service = start(stage, kubeconfig.kubeconfig(), &port)?;
    let log = folder().join("host.log");
    let ready = service
        .until(PATIENCE, "the service is ready", || async {
            web::get(&port.address(), "/readyz").await.map(Some)
        })
        .await;
    for line in fs::read_to_string(&log)?.lines().filter_map(|line| line.strip_prefix("host: ")) {
        step(line);
    }
    ready?;
    step("it is ready; a node with a label of before and one of now is deleted and returns");
    stage.label(node, "example.com/and-by=a-host").await?;
    let given = stage.given(node).await?;
    stage.delete_and_return(std::slice::from_ref(node)).await?;
    stage.has(node, &given).await?;
    step(&format!("{node} has its {} labels again", given.labels.len()));
    stop(&mut service).await?;
    step("asked to stop, it did");
    stage.take_all(node).await?;
    stage.kubectl(&format!("delete --filename {}", rbac.display())).await.map(drop)
}

fn start(stage: &Stage, kubeconfig: &Path, port: &Port) -> anyhow::Result<Process> {
    let copy = stage.private().join("host");
    fs::create_dir_all(&copy)?;
    let settings = [
        format!("PERENNIAL_ADMIN_ADDRESS={}", port.address()),
        "PERENNIAL_DRY_RUN=false".to_owned(),
        format!("PERENNIAL_NAMESPACE={NAMESPACE}"),
    ];
    Launch::new("the service", "unshare", folder().join("host.log"))
        .args(["--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"])
        .arg(path(SCRIPT))
        .arg(copy)
        .arg(&stage.deb)
        .arg(kubeconfig)
        .args(settings)
        .start()
}

/// Asks the innermost process to end, as systemd would; the others end with it.
async fn stop(service: &mut Process) -> anyhow::Result<()> {
    let mut innermost = service.pid();
    while let Some(child) = child(innermost) {
        innermost = child;
    }
    ensure!(innermost != service.pid(), "nothing runs in it");
    kill(Pid::from_raw(i32::try_from(innermost)?), Signal::SIGTERM).context("asking the service to stop")?;
    let status = service.wait(STOP).await?;
    ensure!(status.success(), "the service ended badly: {status}");
    Ok(())
}

fn child(pid: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}
