//! Where things are: addresses on the cluster's network, files in its state folder.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};

/// How many workers there are, `worker-1` and so on.
pub(super) const WORKERS: u8 = 3;
/// The machine with etcd, the API server and the controllers. It holds the switch, too.
pub(super) const CONTROL_PLANE: &str = "control-plane";
/// The one link on the host. It goes away with the control plane, so while it is there a cluster is up.
pub(super) const HOST_LINK: &str = "perennial0";
/// The host as machines and pods see it.
pub const HOST: &str = "10.99.0.1";
/// The control plane as everybody sees it.
pub(super) const CONTROL_PLANE_ADDRESS: &str = "10.99.0.10";
/// All machines.
pub(super) const MACHINES: &str = "10.99.0.0/24";
/// All pods.
pub(super) const PODS: &str = "10.244.0.0/16";
/// All Services.
pub(super) const SERVICES: &str = "10.96.0.0/16";
/// The Service `kubernetes`.
pub(super) const KUBERNETES: &str = "10.96.0.1";
/// The Service of the cluster's names.
pub(super) const DNS: &str = "10.96.0.10";
/// The API server.
pub(super) const SERVER: &str = "https://10.99.0.10:6443";

/// The address of a worker.
pub(super) fn address(worker: u8) -> String {
    format!("10.99.0.{}", 10 + worker)
}

/// The addresses of a worker's pods.
pub(super) fn pods(worker: u8) -> String {
    format!("10.244.{worker}.0/24")
}

/// Machines have folders of their own in these places, so what is there is hidden from them.
const HIDDEN: [&str; 3] = ["/run", "/var/lib", "/var/log"];

/// The state folder of the cluster.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    folder: PathBuf,
}

impl Layout {
    /// `$XDG_STATE_HOME/perennial/cluster`, by default below `~/.local/state`.
    pub(super) fn find() -> anyhow::Result<Self> {
        let state = std::env::var_os("XDG_STATE_HOME").filter(|path| !path.is_empty());
        let state = match state {
            Some(path) => PathBuf::from(path),
            None => {
                PathBuf::from(std::env::var_os("HOME").context("neither HOME nor XDG_STATE_HOME is set")?)
                    .join(".local/state")
            }
        };
        ensure!(state.is_absolute(), "XDG_STATE_HOME is not an absolute path: {}", state.display());
        Ok(Self { folder: state.join("perennial/cluster") })
    }

    /// The folder itself. It is there while a cluster is up.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What keeps two who start or stop the cluster from doing so at the same time.
    pub(super) fn lock(&self) -> PathBuf {
        self.folder.with_extension("lock")
    }

    /// Whom the cluster goes with, if it goes with anybody.
    pub(super) fn owner(&self) -> PathBuf {
        self.folder.join("owner")
    }

    /// Where the reasons are when a start fails.
    pub(super) fn bundle(&self) -> PathBuf {
        self.folder.with_extension("failed")
    }

    /// The logs of all programs: a folder for each machine.
    pub(super) fn logs(&self) -> PathBuf {
        self.folder.join("logs")
    }

    /// All that a machine has.
    pub(super) fn machine(&self, name: &str) -> PathBuf {
        self.folder.join("machines").join(name)
    }

    /// Certificates and keys.
    pub(super) fn pki(&self) -> PathBuf {
        self.folder.join("pki")
    }

    /// For an administrator.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// For one of the programs.
    pub(super) fn kubeconfig_of(&self, user: &str) -> PathBuf {
        self.folder.join("kubeconfigs").join(user)
    }

    /// Links to kubectl and helm.
    pub(super) fn tools(&self) -> PathBuf {
        self.folder.join("bin")
    }

    /// Makes the folder and those in it.
    pub(super) fn create(&self) -> anyhow::Result<()> {
        visible(&self.folder, "XDG_STATE_HOME")?;
        for folder in
            [self.logs(), self.pki().join("front-proxy"), self.folder.join("kubeconfigs"), self.tools()]
        {
            fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        }
        Ok(())
    }
}

/// Fails if a machine would not see this path.
pub(super) fn visible(path: &Path, variable: &str) -> anyhow::Result<()> {
    let hidden = HIDDEN.iter().find(|hidden| path.starts_with(hidden));
    ensure!(
        hidden.is_none(),
        "{} is hidden from the machines of a cluster, which have a {} of their own: set {variable} to another folder",
        path.display(),
        hidden.unwrap_or(&""),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_machines_cannot_see_is_refused_with_the_way_out() {
        assert!(visible(Path::new("/home/me/.local/state"), "XDG_STATE_HOME").is_ok());
        let error = visible(Path::new("/var/lib/ci/state"), "XDG_STATE_HOME").unwrap_err().to_string();
        assert!(error.contains("/var/lib") && error.contains("set XDG_STATE_HOME"), "{error}");
    }
}
