//! A Node as a kubelet registers it: about ten kilobytes, most of them images.

use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use super::labels::{kubelet_labels, node_name, zone};

/// How many images a kubelet reports unless told otherwise.
const IMAGES: usize = 50;
/// When every machine of this fleet booted. Times in a registration are fixed, so that the same index is always
/// the same object; heartbeats bring the present.
const BOOTED: &str = "2026-01-05T08:00:00Z";

const IMAGE_NAMES: [&str; 10] = [
    "checkout/api",
    "search/indexer",
    "payments/ledger",
    "platform/envoy-edge",
    "observability/otel-collector",
    "logistics/router",
    "recommendations/ranker",
    "platform/csi-driver",
    "data/kafka-connect",
    "web/storefront",
];

/// The node as it registers: the kubelet's own labels, the cloud's identity, a whole status.
#[must_use]
pub fn registration(index: usize) -> Node {
    let name = node_name(index);
    let node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": kubelet_labels(index),
            "annotations": {
                "alpha.kubernetes.io/provided-node-ip": address(index),
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
        },
        "spec": {
            "podCIDR": format!("10.{}.{}.0/24", 128 + index / 256 % 128, index % 256),
            "podCIDRs": [format!("10.{}.{}.0/24", 128 + index / 256 % 128, index % 256)],
            "providerID": format!("aws:///{}/i-{}", zone(index), &hex(index, "instance")[..17]),
        },
        "status": status(index, &name),
    });
    serde_json::from_value(node).expect("a Node by its own schema")
}

fn status(index: usize, name: &str) -> Value {
    json!({
        "addresses": [
            {"type": "InternalIP", "address": address(index)},
            {"type": "Hostname", "address": name},
            {"type": "InternalDNS", "address": format!("{name}.eu-central-1.compute.internal")},
        ],
        "capacity": resources("16", "65011712Ki"),
        "allocatable": resources("15890m", "62914560Ki"),
        "conditions": conditions(BOOTED),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "images": (0..IMAGES).map(|image| container_image(index, image)).collect::<Vec<_>>(),
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": uuid(index, "boot"),
            "containerRuntimeVersion": "containerd://2.1.4",
            "kernelVersion": "6.12.41-cloud-amd64",
            "kubeProxyVersion": "",
            "kubeletVersion": "v1.36.3",
            "machineID": hex(index, "machine"),
            "operatingSystem": "linux",
            "osImage": "Debian GNU/Linux 13 (trixie)",
            "systemUUID": uuid(index, "system"),
        },
        "runtimeHandlers": [
            {"name": "", "features": {"recursiveReadOnlyMounts": true, "userNamespaces": true}},
            {"name": "runc", "features": {"recursiveReadOnlyMounts": true, "userNamespaces": true}},
        ],
    })
}

/// The four conditions that a kubelet reports, as they are when all is well.
pub(super) fn conditions(heartbeat: &str) -> Value {
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": heartbeat,
            "lastTransitionTime": BOOTED,
        })
    };
    json!([
        condition(
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available"
        ),
        condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ])
}

fn resources(cpu: &str, memory: &str) -> Value {
    json!({
        "cpu": cpu,
        "memory": memory,
        "ephemeral-storage": "104779756Ki",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "pods": "110",
    })
}

fn container_image(index: usize, image: usize) -> Value {
    let name = format!("registry.example.com/{}", IMAGE_NAMES[image % IMAGE_NAMES.len()]);
    // Nodes of one fleet share most of their images.
    let digest = format!("{0}{0}", hex(image + index % 4, "image"));
    json!({
        "names": [format!("{name}@sha256:{digest}"), format!("{name}:v{}.{}", 1 + image / 10, index % 4)],
        "sizeBytes": 20_000_000 + 7_654_321 * image,
    })
}

fn address(index: usize) -> String {
    format!("10.{}.{}.{}", index / 65_536 % 64, index / 256 % 256, index % 256)
}

fn uuid(index: usize, kind: &str) -> String {
    let hex = hex(index, kind);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// 32 hexadecimal digits that look random and are always the same (FNV-1a).
fn hex(index: usize, kind: &str) -> String {
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    for byte in kind.bytes().chain(index.to_le_bytes()) {
        hash = (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    format!("{hash:032x}")
}
