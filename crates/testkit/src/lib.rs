//! Real parts for tests, benchmarks and the demo: a control plane, a fleet, the keeper as a process, S3 servers.
//!
//! [`ControlPlane::start`] finds the binaries ([`Assets`]), makes a working folder and a certificate authority in
//! it, and runs etcd and kube-apiserver as child processes until it is dropped. A test takes clients or
//! kubeconfigs from it, runs the keeper against it as a [`KeeperProcess`], and waits for what must become true
//! with [`eventually()`]. A [`proxy`] between a keeper and the API server goes wrong on purpose, and an [`oracle`]
//! judges by etcd's own history whether the keepers kept their promises. [`S3Server`] and [`MotoServer`] take
//! the pages that a lister publishes, and a [`Prometheus`] collects what all of them measure.
//!
//! Nothing outlives its owner: children are killed and folders removed on drop, on panic, and when this process
//! dies of whatever cause, SIGKILL included. Logs stay, and are named, when a test panics or a start fails.
//! Linux only, since that is where the kernel makes this promise.

mod assets;
mod clock;
pub mod cluster;
mod controlplane;
mod endpoint;
mod eventually;
mod fleet;
mod interrupt;
mod keeper_process;
mod kubeconfig;
mod log;
pub mod oracle;
mod pki;
mod port;
mod process;
mod prometheus;
pub mod proxy;
mod relay;
mod s3;
mod script;
#[cfg(test)]
mod send;
mod server;
mod workdir;

pub use assets::{Assets, helm, prometheus_operator};
pub use controlplane::{
    ApiServer, AuditEntry, Backup, ControlPlane, ControlPlaneBuilder, EtcdMember, Pids, Snapshot,
    left_out_on_kine,
};
pub use eventually::{eventually, eventually_eq};
pub use fleet::{Fleet, company_labels, kubelet_labels, node_name, registration};
pub use interrupt::{Interrupt, interrupted};
pub use keeper_process::{KeeperBuilder, KeeperProcess};
pub use port::Port;
pub use process::{Died, Launch, Process};
pub use prometheus::{Prometheus, Sample};
pub use relay::Link;
pub use s3::{Credentials, MotoServer, S3Builder, S3Reply, S3Server};
pub use script::run_script;
