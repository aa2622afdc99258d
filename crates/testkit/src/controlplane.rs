//! A real etcd and kube-apiserver.
//!
//! Both run on loopback ports of their own, with certificates of their own authority and verified TLS on every
//! connection; RBAC, the Node authorizer and `NodeRestriction` are on, as in any cluster. Several control planes
//! may run at once, in one process or in many.
//!
//! | file | what |
//! | --- | --- |
//! | `builder` | options, and the start |
//! | `etcd`, `apiserver` | the flags of each |
//! | `identity` | clients and kubeconfigs for administrators, service accounts and kubelets |
//! | `faults` | stop, start, pause, kill |
//! | `history` | revisions, compaction, snapshots |
//! | `audit` | who asked for what |

use std::{
    path::{Path, PathBuf},
    sync::Mutex,
};

use crate::{assets::Assets, pki::Authority, server::Server, workdir::Workdir};

mod account;
mod apiserver;
mod audit;
mod builder;
mod etcd;
mod faults;
mod history;
mod identity;

use audit::Audit;
pub use audit::AuditEntry;
pub use builder::ControlPlaneBuilder;
pub use faults::Pids;
pub use history::Snapshot;

/// A running control plane. Stopped and removed on drop.
pub struct ControlPlane {
    // Dropped in this order: the processes first, then the folder that they write to.
    apiserver: Server,
    etcd: Server,
    etcd_identity: kube::config::AuthInfo,
    admin: kube::config::AuthInfo,
    authority: Authority,
    assets: Assets,
    workdir: Workdir,
    audit: Mutex<Audit>,
}

impl ControlPlane {
    /// Starts one as it comes.
    pub async fn start() -> anyhow::Result<Self> {
        Self::builder().start().await
    }

    /// Starts one with options.
    #[must_use]
    pub fn builder() -> ControlPlaneBuilder {
        ControlPlaneBuilder::default()
    }

    /// The API server's address, `https://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        self.apiserver.endpoint().url()
    }

    /// Where the logs are. They are kept when the thread panics that drops the control plane, so a test may add
    /// its own.
    pub fn logs(&self) -> PathBuf {
        self.workdir.logs()
    }

    /// Keeps the logs on drop, whatever happens, and says where they are.
    pub fn keep_logs(&mut self) {
        self.workdir.keep_logs();
    }

    /// A folder that goes away with the control plane.
    pub fn folder(&self) -> &Path {
        self.workdir.path()
    }

    /// The binaries that it runs.
    pub fn assets(&self) -> &Assets {
        &self.assets
    }
}
