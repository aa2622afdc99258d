//! What an administrator has of a cluster: a kubeconfig, kubectl and helm. It need not be a cluster of ours.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::process::Command;

use super::command::{command, feed, run};
use crate::assets::{self, Assets};

/// Runs kubectl and helm against one cluster, and returns what they say.
#[derive(Clone, Debug)]
pub struct Console {
    kubeconfig: PathBuf,
    kubectl: PathBuf,
    helm: PathBuf,
}

impl Console {
    /// For the cluster of this kubeconfig, with the kubectl and the helm that `make controlplane` and `make helm` built.
    pub fn new(kubeconfig: impl Into<PathBuf>) -> anyhow::Result<Self> {
        Ok(Self { kubeconfig: kubeconfig.into(), kubectl: Assets::find()?.kubectl(), helm: assets::helm()? })
    }

    /// Its kubeconfig.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// A client with the kubeconfig's rights. It lives on the runtime that it is made on.
    pub async fn client(&self) -> anyhow::Result<Client> {
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig)
            .with_context(|| format!("reading {}", self.kubeconfig.display()))?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        Ok(Client::try_from(config)?)
    }

    /// A kubectl to run in any way that the methods below do not know: with pipes, in the background.
    #[must_use]
    pub fn kubectl_command(&self) -> Command {
        self.command(&self.kubectl)
    }

    /// A helm, likewise.
    #[must_use]
    pub fn helm_command(&self) -> Command {
        self.command(&self.helm)
    }

    /// Runs kubectl to its end, and returns what it said. A failure shows what it complained of.
    pub async fn kubectl<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> anyhow::Result<String> {
        run(self.kubectl_command().args(arguments)).await
    }

    /// Runs helm, likewise.
    pub async fn helm<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> anyhow::Result<String> {
        run(self.helm_command().args(arguments)).await
    }

    /// Applies manifests.
    pub async fn apply(&self, manifests: &str) -> anyhow::Result<String> {
        feed(self.kubectl_command().args(["apply", "-f", "-"]), manifests).await
    }

    /// Waits until all replicas of a workload (`deployment/NAME`, `daemonset/NAME`, `statefulset/NAME`) are new and available.
    pub async fn rolled_out(&self, namespace: &str, what: &str, within: Duration) -> anyhow::Result<()> {
        let patience = format!("--timeout={}s", within.as_secs());
        self.kubectl(["-n", namespace, "rollout", "status", what, &patience]).await?;
        Ok(())
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = command(program);
        command.env("KUBECONFIG", &self.kubeconfig);
        command
    }
}
