//! Labels as nodes have them: those that a kubelet and its cloud set, and those of a believable company.

use std::collections::BTreeMap;

const POOLS: [&str; 8] = ["web", "web", "batch", "web", "stateful", "batch", "web", "gpu"];
const TEAMS: [&str; 6] = ["search", "payments", "checkout", "recommendations", "logistics", "platform"];
const TIERS: [&str; 3] = ["gold", "silver", "bronze"];
const ZONES: [&str; 3] = ["eu-central-1a", "eu-central-1b", "eu-central-1c"];

/// The pool that a node was bought for.
fn pool(index: usize) -> &'static str {
    POOLS[index % POOLS.len()]
}

/// The zone that a node stands in.
pub(super) fn zone(index: usize) -> &'static str {
    ZONES[index % ZONES.len()]
}

/// The name of a node.
#[must_use]
pub fn node_name(index: usize) -> String {
    format!("{}-{index:05}", pool(index))
}

/// What the kubelet and the cloud set at every registration.
#[must_use]
pub fn kubelet_labels(index: usize) -> BTreeMap<String, String> {
    let instance = match pool(index) {
        "gpu" => "g6.12xlarge",
        "stateful" => "i4i.4xlarge",
        "batch" => "c7i.8xlarge",
        _ => "m7i.4xlarge",
    };
    owned(&[
        ("kubernetes.io/hostname", node_name(index).as_str()),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
        ("node.kubernetes.io/instance-type", instance),
        ("topology.kubernetes.io/region", "eu-central-1"),
        ("topology.kubernetes.io/zone", zone(index)),
    ])
}

/// What the company's people and tools put on a node afterwards: what is lost with it.
///
/// Between six and ten of them; those of the `gpu` pool have a role, which a kubelet may not set on itself.
#[must_use]
pub fn company_labels(index: usize) -> BTreeMap<String, String> {
    let rack = format!("r{:02}-{}", index / 16 % 40, ["left", "right"][index / 8 % 2]);
    let center = format!("cc-{}", 4_000 + index % 17);
    let mut labels = owned(&[
        ("team", TEAMS[index % TEAMS.len()]),
        ("pool", pool(index)),
        ("example.com/tier", TIERS[index % TIERS.len()]),
        ("example.com/rack", rack.as_str()),
        ("example.com/cost-center", center.as_str()),
        ("example.com/maintenance-window", ["sun-03h", "tue-04h"][index % 2]),
    ]);
    match pool(index) {
        "gpu" => labels.extend(owned(&[
            ("example.com/gpu", "l4"),
            ("example.com/gpu-count", "4"),
            ("node-role.kubernetes.io/gpu", ""),
        ])),
        "stateful" => labels.extend(owned(&[("storage", "nvme"), ("example.com/backup", "true")])),
        _ => {}
    }
    if index.is_multiple_of(50) {
        labels.extend(owned(&[("canary", "")]));
    }
    labels
}

fn owned(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_kinds_of_labels_do_not_overlap() {
        for index in 0..200 {
            let (kubelets, company) = (kubelet_labels(index), company_labels(index));
            assert!(company.keys().all(|key| !kubelets.contains_key(key)), "{index}");
            assert!((6..=10).contains(&company.len()), "{index}: {company:?}");
        }
    }

    #[test]
    fn the_same_index_is_always_the_same_node() {
        assert_eq!(node_name(7), "gpu-00007");
        assert_eq!(company_labels(7), company_labels(7));
        assert_ne!(company_labels(7), company_labels(15));
    }
}
