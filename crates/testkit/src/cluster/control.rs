//! How the programs of the control plane are run.
//!
//! The controllers exit when the API server does not let them in for half a minute, which happens on a loaded machine:
//! they are started after it is ready, and supervised.

use std::path::Path;

use super::{
    certificates::Certificates,
    layout::{CONTROL_PLANE_ADDRESS, Layout, PODS, SERVICES},
    machine::Service,
};
use crate::assets::{Assets, ClusterAssets};

/// All four, in the order in which they are started.
pub(super) fn services(
    layout: &Layout,
    control_plane: &Assets,
    assets: &ClusterAssets,
    certificates: &Certificates,
) -> [Service; 4] {
    let path = control_plane.folder().to_owned();
    let service = |name, program, arguments| Service { name, program, arguments, path: path.clone() };
    [
        service("etcd", control_plane.etcd(), etcd(certificates)),
        service("kube-apiserver", control_plane.kube_apiserver(), apiserver(certificates)),
        service(
            "kube-controller-manager",
            assets.binary("kube-controller-manager"),
            controller_manager(layout, certificates),
        ),
        service("kube-scheduler", assets.binary("kube-scheduler"), scheduler(layout)),
    ]
}

fn etcd(certificates: &Certificates) -> Vec<String> {
    vec![
        "--data-dir=/var/lib/etcd".into(),
        "--listen-client-urls=https://127.0.0.1:2379".into(),
        "--advertise-client-urls=https://127.0.0.1:2379".into(),
        // A single member never talks to a peer.
        "--listen-peer-urls=http://127.0.0.1:0".into(),
        flag("--cert-file", &certificates.etcd.certificate),
        flag("--key-file", &certificates.etcd.key),
        flag("--trusted-ca-file", &certificates.ca.certificate),
        "--client-cert-auth=true".into(),
        // What is lost when the machine dies was a test's.
        "--unsafe-no-fsync=true".into(),
        "--log-level=warn".into(),
    ]
}

fn apiserver(certificates: &Certificates) -> Vec<String> {
    vec![
        "--etcd-servers=https://127.0.0.1:2379".into(),
        flag("--etcd-cafile", &certificates.ca.certificate),
        flag("--etcd-certfile", &certificates.etcd_client.certificate),
        flag("--etcd-keyfile", &certificates.etcd_client.key),
        format!("--advertise-address={CONTROL_PLANE_ADDRESS}"),
        "--secure-port=6443".into(),
        flag("--tls-cert-file", &certificates.apiserver.certificate),
        flag("--tls-private-key-file", &certificates.apiserver.key),
        flag("--client-ca-file", &certificates.ca.certificate),
        "--authorization-mode=Node,RBAC".into(),
        "--enable-admission-plugins=NodeRestriction".into(),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".into(),
        flag("--service-account-key-file", &certificates.accounts_public),
        flag("--service-account-signing-key-file", &certificates.accounts_private),
        format!("--service-cluster-ip-range={SERVICES}"),
        flag("--kubelet-client-certificate", &certificates.kubelet_client.certificate),
        flag("--kubelet-client-key", &certificates.kubelet_client.key),
        flag("--kubelet-certificate-authority", &certificates.ca.certificate),
        "--kubelet-preferred-address-types=InternalIP".into(),
        // For metrics-server, which is reached by its pod's address: no kube-proxy runs here.
        flag("--requestheader-client-ca-file", &certificates.front_proxy_ca),
        "--requestheader-allowed-names=front-proxy-client".into(),
        "--requestheader-username-headers=X-Remote-User".into(),
        "--requestheader-group-headers=X-Remote-Group".into(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".into(),
        flag("--proxy-client-cert-file", &certificates.front_proxy.certificate),
        flag("--proxy-client-key-file", &certificates.front_proxy.key),
        "--enable-aggregator-routing=true".into(),
        "--allow-privileged=true".into(),
    ]
}

fn controller_manager(layout: &Layout, certificates: &Certificates) -> Vec<String> {
    let kubeconfig = layout.kubeconfig_of("kube-controller-manager");
    let mut arguments = vec![
        flag("--kubeconfig", &kubeconfig),
        "--leader-elect=false".into(),
        "--use-service-account-credentials=true".into(),
        flag("--root-ca-file", &certificates.ca.certificate),
        flag("--service-account-private-key-file", &certificates.accounts_private),
        flag("--cluster-signing-cert-file", &certificates.ca.certificate),
        flag("--cluster-signing-key-file", &certificates.ca.key),
        format!("--cluster-cidr={PODS}"),
    ];
    // Sooner than in a cluster that has to spare its API server. Not so soon that a slow machine looks like a dead one.
    let pace = [
        "--node-monitor-period=2s",
        "--node-monitor-grace-period=30s",
        "--horizontal-pod-autoscaler-sync-period=5s",
        "--horizontal-pod-autoscaler-initial-readiness-delay=5s",
        "--horizontal-pod-autoscaler-cpu-initialization-period=15s",
        "--horizontal-pod-autoscaler-downscale-stabilization=20s",
    ];
    arguments.extend(pace.map(str::to_owned));
    arguments
}

fn scheduler(layout: &Layout) -> Vec<String> {
    vec![flag("--kubeconfig", &layout.kubeconfig_of("kube-scheduler")), "--leader-elect=false".into()]
}

fn flag(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}
