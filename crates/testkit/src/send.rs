//! Everything here may be used from any task: a compile-time fact.

use std::time::Duration;

use crate::{ControlPlane, Fleet, KeeperBuilder, KeeperProcess, S3Server, Snapshot};

fn sendable<T: Send>(_: T) {}

#[allow(dead_code, reason = "that it compiles is the test")]
fn futures_are_send(
    controlplane: &ControlPlane,
    snapshot: &Snapshot,
    fleet: &Fleet,
    keeper: &KeeperProcess,
    builder: &KeeperBuilder,
    s3: &S3Server,
) {
    sendable(ControlPlane::start());
    sendable(controlplane.service_account("namespace", "name"));
    sendable(controlplane.kubeconfig_for_service_account("namespace", "name"));
    sendable(controlplane.kubeconfig_for_keeper("namespace"));
    sendable(controlplane.restart_apiserver());
    sendable(controlplane.restart_etcd());
    sendable(controlplane.pause_apiserver());
    sendable(controlplane.snapshot_etcd());
    sendable(controlplane.restore_etcd(snapshot));
    sendable(controlplane.compact(1));
    sendable(controlplane.pids());
    sendable(fleet.create(0..1));
    sendable(fleet.register(0..1));
    sendable(fleet.delete(0..1));
    sendable(fleet.recreate(0..1));
    sendable(fleet.heartbeats(0..1, 1, Duration::ZERO));
    sendable(builder.clone().start());
    sendable(keeper.ready(Duration::ZERO));
    sendable(keeper.start_again());
    sendable(keeper.stop());
    sendable(keeper.kill9());
    sendable(keeper.pause());
    sendable(keeper.metrics());
    sendable(S3Server::start());
    sendable(s3.create_bucket("bucket"));
    sendable(s3.start_again());
    sendable(s3.fill());
}
