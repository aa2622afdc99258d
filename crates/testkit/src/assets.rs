//! Where the control plane's binaries are.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, bail, ensure};

/// The script that builds them is also the one place that knows where they are.
const BUILD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dev/controlplane/build");

/// A folder with `etcd`, `kube-apiserver` and `kubectl`.
#[derive(Clone, Debug)]
pub struct Assets {
    folder: PathBuf,
}

impl Assets {
    /// The folder that `KUBEBUILDER_ASSETS` names, or else the cache that `make controlplane` fills.
    pub fn find() -> anyhow::Result<Self> {
        let output = Command::new(BUILD)
            .args(["--print-dir", "--no-build"])
            .output()
            .with_context(|| format!("running {BUILD}"))?;
        if !output.status.success() {
            bail!(
                "no control plane to run: {} (run `make controlplane`, or set KUBEBUILDER_ASSETS)",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Self::in_folder(String::from_utf8(output.stdout)?.trim_end())
    }

    /// This folder, if it has what a control plane needs.
    pub fn in_folder(folder: impl Into<PathBuf>) -> anyhow::Result<Self> {
        let folder = folder.into();
        for name in ["etcd", "kube-apiserver"] {
            ensure!(folder.join(name).is_file(), "no {name} in {}", folder.display());
        }
        Ok(Self { folder })
    }

    /// The folder itself.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The `kubectl` that belongs to this control plane.
    #[must_use]
    pub fn kubectl(&self) -> PathBuf {
        self.folder.join("kubectl")
    }

    pub(crate) fn etcd(&self) -> PathBuf {
        self.folder.join("etcd")
    }

    pub(crate) fn kube_apiserver(&self) -> PathBuf {
        self.folder.join("kube-apiserver")
    }
}
