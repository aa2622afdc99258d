//! What a worker runs: containerd, a kubelet and kube-proxy, at their usual places on a machine of their own.

use std::fs;

use anyhow::Context as _;
use nix::sys::statfs::{OVERLAYFS_SUPER_MAGIC, statfs};
use serde_json::{Value, json};

use super::{
    certificates, cgroups,
    layout::{DNS, Layout, PODS, address, pods},
    machine::{Machine, Service},
};
use crate::assets::ClusterAssets;

/// Where containerd listens.
pub(super) const SOCKET: &str = "/run/containerd/containerd.sock";

/// Writes the configuration of all that a worker runs.
pub(super) fn configure(
    layout: &Layout,
    machine: &Machine,
    assets: &ClusterAssets,
    worker: u8,
    provider_id: &str,
) -> anyhow::Result<()> {
    let name = machine.name();
    fs::create_dir_all(machine.etc("cni"))?;
    fs::write(machine.etc("containerd.toml"), containerd(machine, assets, snapshotter(layout)?))?;
    write(machine, "cni/10-pods.conflist", &network(worker))?;
    // Pods that are to ask the machine's own server find the cluster's: there is nobody else to ask.
    fs::write(machine.etc("resolv.conf"), format!("nameserver {DNS}\n"))?;
    write(machine, "kubelet.json", &kubelet(layout, machine, provider_id))?;
    write(machine, "kube-proxy.json", &kube_proxy(layout, name))?;

    let etc = |file: &str| machine.etc(file).display().to_string();
    let service = |name, arguments| Service {
        name,
        program: assets.binary(name),
        arguments,
        path: assets.folder().to_owned(),
    };
    machine.install(&service("containerd", vec![format!("--config={}", etc("containerd.toml"))]))?;
    let arguments = vec![
        format!("--config={}", etc("kubelet.json")),
        format!("--kubeconfig={}", layout.kubeconfig_of(name).display()),
        format!("--hostname-override={name}"),
        format!("--node-ip={}", address(worker)),
    ];
    machine.install(&service("kubelet", arguments))?;
    machine.install(&service("kube-proxy", vec![format!("--config={}", etc("kube-proxy.json"))]))
}

fn write(machine: &Machine, file: &str, value: &Value) -> anyhow::Result<()> {
    let path = machine.etc(file);
    fs::write(&path, serde_json::to_vec_pretty(value)?).with_context(|| format!("writing {}", path.display()))
}

/// An overlay cannot lie on another one, as in a container; there layers are copied.
fn snapshotter(layout: &Layout) -> anyhow::Result<&'static str> {
    let overlay = statfs(layout.folder())?.filesystem_type() == OVERLAYFS_SUPER_MAGIC;
    Ok(if overlay { "native" } else { "overlayfs" })
}

fn containerd(machine: &Machine, assets: &ClusterAssets, snapshotter: &str) -> String {
    let images = r#"plugins."io.containerd.cri.v1.images""#;
    let runtime = r#"plugins."io.containerd.cri.v1.runtime""#;
    format!(
        r#"version = 3
[grpc]
address = "{SOCKET}"
[{images}]
snapshotter = "{snapshotter}"
[{images}.pinned_images]
sandbox = "localhost/pause:local"
[{runtime}]
# Root in a container may not have the right to spare a process from the kernel when memory is short.
restrict_oom_score_adj = true
[{runtime}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[{runtime}.containerd.runtimes.runc.options]
SystemdCgroup = false
[{runtime}.cni]
bin_dirs = [{:?}]
conf_dir = {:?}
"#,
        assets.folder().display().to_string(),
        machine.etc("cni").display().to_string(),
    )
}

/// A pod has a cable to its machine and no other; machines know the way to each other's pods.
fn network(worker: u8) -> Value {
    json!({
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": false,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": pods(worker)}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
}

fn kubelet(layout: &Layout, machine: &Machine, provider_id: &str) -> Value {
    let ca = certificates::ca(layout);
    let serving = certificates::serving_certificate(layout, machine.name());
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": format!("unix://{SOCKET}"),
        "providerID": provider_id,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroups::path(machine.name()),
        "failCgroupV1": false,
        "failSwapOn": false,
        "clusterDNS": [DNS],
        "clusterDomain": "cluster.local",
        "resolvConf": machine.etc("resolv.conf"),
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": ca},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": serving.certificate,
        "tlsPrivateKeyFile": serving.key,
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "nodeStatusUpdateFrequency": "4s",
        "nodeLeaseDurationSeconds": 20,
        // The disk is the host's: how full it is must not drive pods away, nor images that nobody can pull again.
        "evictionHard": {"memory.available": "50Mi"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
    })
}

fn kube_proxy(layout: &Layout, name: &str) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": layout.kubeconfig_of("kube-proxy")},
        "hostnameOverride": name,
        "mode": "nftables",
        "clusterCIDR": PODS,
        // These limits are the whole kernel's, and a machine in a namespace may not set them.
        "conntrack": {
            "maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s",
        },
    })
}
