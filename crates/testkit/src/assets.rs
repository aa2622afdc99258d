//! Where the binaries are that tests run: the control plane's, the S3 servers', Helm, and the rest of a cluster.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, bail, ensure};

/// The scripts that build them are also the one place that knows where they are.
const DEV: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dev");

/// The folder that such a script names.
fn built(script: &str, arguments: &[&str], otherwise: &str) -> anyhow::Result<PathBuf> {
    let script = format!("{DEV}/{script}");
    let output =
        Command::new(&script).args(arguments).output().with_context(|| format!("running {script}"))?;
    if !output.status.success() {
        bail!("{} ({otherwise})", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?.trim_end().into())
}

/// `versitygw`, in the folder that `PERENNIAL_S3_ASSETS` names or the cache that `make s3` fills.
pub(crate) fn versitygw() -> anyhow::Result<PathBuf> {
    let otherwise = "no S3 server to run: run `make s3`";
    Ok(built("s3/build", &["--print-dir", "--no-build"], otherwise)?.join("versitygw"))
}

/// `kine`, in the folder that `PERENNIAL_KINE_ASSETS` names or the cache that `make kine` fills.
pub(crate) fn kine() -> anyhow::Result<PathBuf> {
    let otherwise = "no kine to run: run `make kine`";
    Ok(built("controlplane/kine/build", &["--print-dir", "--no-build"], otherwise)?.join("kine"))
}

/// `moto_server`, which is installed when it is not there.
pub(crate) fn moto() -> anyhow::Result<PathBuf> {
    let otherwise = "no moto to run: run `make moto`";
    Ok(built("s3/moto", &["--print-dir"], otherwise)?.join("moto_server"))
}

/// `etcdutl`, in the folder that `PERENNIAL_ETCDUTL_ASSETS` names or the cache that `make etcdutl` fills.
pub(crate) fn etcdutl() -> anyhow::Result<PathBuf> {
    let otherwise = "no etcdutl to run: run `make etcdutl`";
    Ok(built("etcdutl/build", &["--print-dir", "--no-build"], otherwise)?.join("etcdutl"))
}

/// `helm`, in the folder that `PERENNIAL_HELM_ASSETS` names or the cache that `make helm` fills.
pub fn helm() -> anyhow::Result<PathBuf> {
    Ok(built("helm/build", &["--print-dir", "--no-build"], "no Helm to run: run `make helm`")?.join("helm"))
}

/// The folder with the Prometheus operator's own definitions, which are downloaded when they are not there.
pub fn prometheus_operator() -> anyhow::Result<PathBuf> {
    built("prometheus-operator/definitions", &[], "no definitions of the Prometheus operator")
}

/// What a whole cluster has besides its control plane: programs, and images.
#[derive(Clone, Debug)]
pub(crate) struct ClusterAssets {
    binaries: PathBuf,
    images: PathBuf,
}

impl ClusterAssets {
    /// The caches that `make cluster` fills.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let otherwise = "no cluster to run: run `make cluster`";
        let arguments = ["--print-dir", "--no-build"];
        Ok(Self {
            binaries: built("cluster/build", &arguments, otherwise)?,
            images: built("cluster/images", &arguments, otherwise)?,
        })
    }

    /// The folder with the programs.
    pub(crate) fn folder(&self) -> &Path {
        &self.binaries
    }

    /// One of the programs.
    pub(crate) fn binary(&self, name: &str) -> PathBuf {
        self.binaries.join(name)
    }

    /// The files with the images.
    pub(crate) fn images(&self) -> anyhow::Result<Vec<PathBuf>> {
        let entries =
            fs::read_dir(&self.images).with_context(|| format!("reading {}", self.images.display()))?;
        entries.map(|entry| Ok(entry?.path())).collect()
    }
}

/// A folder with `etcd`, `kube-apiserver` and `kubectl`.
#[derive(Clone, Debug)]
pub struct Assets {
    folder: PathBuf,
}

impl Assets {
    /// The folder that `KUBEBUILDER_ASSETS` names, or else the cache that `make controlplane` fills.
    pub fn find() -> anyhow::Result<Self> {
        let otherwise = "no control plane to run: run `make controlplane`, or set KUBEBUILDER_ASSETS";
        Self::in_folder(built("controlplane/build", &["--print-dir", "--no-build"], otherwise)?)
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The versions that a go.mod asks for, or puts in the place of what is asked for.
    fn versions(module: &str, replaced: bool) -> BTreeMap<String, String> {
        let text = fs::read_to_string(format!("{DEV}/{module}/go.mod")).unwrap();
        let line = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
            [name, "=>", other, version] if replaced && name == other => {
                Some((name.to_owned(), version.to_owned()))
            }
            [name, version, ..] if !replaced && version.starts_with('v') => {
                Some((name.to_owned(), version.to_owned()))
            }
            _ => None,
        };
        text.lines().filter_map(line).collect()
    }

    #[test]
    fn helm_and_the_cluster_are_built_from_the_control_planes_modules() {
        let mut wanted = versions("controlplane/1.36", false);
        wanted.retain(|name, _| !name.starts_with("k8s.io/"));
        for name in ["k8s.io/klog/v2", "k8s.io/kube-openapi", "k8s.io/utils"] {
            wanted.insert(name.to_owned(), versions("controlplane/1.36", false)[name].clone());
        }
        wanted.extend(versions("controlplane/1.36", true));
        for module in ["helm", "cluster"] {
            // Otherwise nearly every package is compiled twice.
            assert_eq!(versions(module, true), wanted, "the replace lines of dev/{module}/go.mod");
        }
        assert_eq!(
            versions("cluster", false)["k8s.io/kubernetes"],
            versions("controlplane/1.36", false)["k8s.io/kubernetes"]
        );
    }
}
