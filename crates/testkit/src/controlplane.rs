//! A real etcd and kube-apiserver, or several of both.
//!
//! They run on loopback ports of their own, with certificates of their own authority and verified TLS on every
//! connection; RBAC, the Node authorizer and `NodeRestriction` are on, as in any cluster. Several control planes
//! may run at once, in one process or in many.
//!
//! Where there are several API servers or etcd members, relays in this process stand between them:
//! ```text
//! clients ── balancer ──┬─> API server 0 ── relay ──> etcd member 0 ─┐
//!                       ├─> API server 1 ── relay ──> etcd member 1 ─┼─ relays
//!                       └─> API server 2 ── relay ──> etcd member 2 ─┘
//! ```
//! The balancer spreads connections over the API servers in turn and passes over one that refuses; a frozen one
//! accepts, so connections to it hang. Each API server is connected to the member of its own number, as in a cluster
//! of kubeadm's, and to the next one that does not refuse where that one does. The relays end with the runtime
//! that the control plane was started on.
//!
//! | file | what |
//! | --- | --- |
//! | `builder` | options, and the start |
//! | `etcd`, `apiserver` | the flags of each |
//! | `store` | kine in the place of etcd, where `K8S_STORE=kine` asks for it |
//! | `identity` | clients and kubeconfigs for administrators, service accounts and kubelets |
//! | `servers` | each API server and etcd member by itself |
//! | `faults` | stop, start, pause, kill |
//! | `history` | revisions, compaction, snapshots |
//! | `audit` | who asked for what |

use std::{
    path::{Path, PathBuf},
    sync::Mutex,
};

use crate::{assets::Assets, endpoint::Endpoint, pki::Authority, relay::Relay, workdir::Workdir};

mod account;
mod apiserver;
mod audit;
mod builder;
mod etcd;
mod faults;
mod history;
mod identity;
mod servers;
mod store;

use audit::Audit;
pub use audit::AuditEntry;
pub use builder::ControlPlaneBuilder;
pub use faults::Pids;
pub use history::{Backup, Snapshot};
pub use servers::{ApiServer, EtcdMember};
use store::Store;
pub use store::left_out_on_kine;

/// A running control plane. Stopped and removed on drop.
pub struct ControlPlane {
    // Dropped in this order: the processes first, then the folder that they write to.
    apiservers: Vec<ApiServer>,
    members: Vec<EtcdMember>,
    store: Store,
    /// Between clients and API servers, if there are several.
    _balancer: Option<Relay>,
    /// The balancer, or the only API server.
    endpoint: Endpoint,
    etcd_identity: kube::config::AuthInfo,
    admin: kube::config::AuthInfo,
    authority: Authority,
    assets: Assets,
    workdir: Workdir,
    /// One for each API server.
    audits: Mutex<Vec<Audit>>,
}

/// The name of one of several; the first one's is that of an only one.
fn numbered(name: &str, index: usize) -> String {
    if index == 0 { name.to_owned() } else { format!("{name}-{index}") }
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

    /// The API server's address, `https://127.0.0.1:PORT`; that of the balancer if there are several.
    pub fn url(&self) -> &str {
        self.endpoint.url()
    }

    /// One of the API servers, numbered from 0.
    pub fn api_server(&self, index: usize) -> &ApiServer {
        &self.apiservers[index]
    }

    /// One of the etcd members, numbered from 0.
    pub fn etcd_member(&self, index: usize) -> &EtcdMember {
        &self.members[index]
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
