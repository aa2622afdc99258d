//! What holds when the policy says nothing, and what no policy can change.

use jiff::SignedDuration;

use super::{pairs, policy, rule};
use crate::kept::{Content, Kept, Pairs, Taint};
use crate::policy::{Brake, Identity, Narrow, Policy, defaults, patterns};

#[test]
fn an_empty_document_is_the_default_policy() {
    for yaml in [
        "",
        "\n",
        "# only a comment\n",
        "---\n",
        "{}",
        "~",
        "rules:",
        "rules: ~",
        "brake: {}",
        "rules: [{name: x}]",
    ] {
        let policy = policy(yaml);
        assert_eq!(policy.digest(), Policy::default().digest(), "{yaml:?}");
        assert_eq!(policy.brake(), Policy::default().brake(), "{yaml:?}");
    }
    assert_eq!(policy(""), Policy::default());
}

#[test]
fn the_defaults_are_the_documented_ones() {
    let policy = Policy::default();
    assert_eq!(policy.retention(), SignedDuration::from_hours(720));
    assert_eq!(policy.empty_retention(), SignedDuration::from_hours(1));
    assert_eq!(policy.max_absent(), 20_000);
    assert_eq!(policy.brake(), Brake { at_least: 100, share: 0.1 });
    assert_eq!(policy.narrow(), Narrow::AtNextChange);
    assert!(!policy.needs_spec());
    assert!(!policy.keeps_annotations());
    let rule = policy.rule_for(&Pairs::new(), None).unwrap();
    assert_eq!(rule.name(), "default");
    assert_eq!(rule.identity(), Identity::Name);
    assert!(!rule.keeps_cordon());
    assert!(!rule.overwrites_label("team"));
    assert!(!rule.privileged_without_provider());
}

#[test]
fn labels_set_by_hand_are_kept_by_default() {
    let rule = rule("");
    for key in [
        "team",
        "example.com/team",
        "node-role.kubernetes.io/worker",
        "node-role.kubernetes.io/control-plane",
        "node-restriction.kubernetes.io/pci",
        "kubernetes.io/role",
        "topology.kubernetes.io/rack",
        "topology.rook.io/rack",
        "topology.example.com/row",
        "nvidia.com/mig.config",
        "nvidia.com/vgpu.config",
        "nvidia.com/gpu.workload.config",
        "nvidia.com/device-plugin.config",
        "node.longhorn.io/create-default-disk",
        "svccontroller.k3s.cattle.io/enablelb",
        "k8s.amazonaws.com/accelerator",
        "cloud.google.com/team",
    ] {
        assert!(rule.keeps_label(key), "{key}");
    }
}

#[test]
fn labels_that_others_assert_again_are_left_out_by_default_and_kept_when_asked_for() {
    let (default, every) = (rule(""), rule("rules: [{labels: {excludeDefaults: false}}]"));
    for key in [
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "kubelet.kubernetes.io/anything",
        "feature.node.kubernetes.io/cpu-cpuid.AVX",
        "intel.feature.node.kubernetes.io/sgx",
        "nvidia.com/gpu.product",
        "nvidia.com/gpu.compute.major",
        "nvidia.com/gpu.deploy.driver",
        "nvidia.com/cuda.driver.major",
        "nvidia.com/mig-1g.5gb.count",
        "nvidia.com/mig.config.state",
        "karpenter.sh/nodepool",
        "karpenter.k8s.aws/instance-family",
        "eks.amazonaws.com/nodegroup",
        "alpha.eksctl.io/cluster-name",
        "cloud.google.com/gke-nodepool",
        "kubernetes.azure.com/agentpool",
        "node.cluster.x-k8s.io/pool",
        "topology.ebs.csi.aws.com/zone",
        "topology.csi.vmware.com/k8s-zone",
        "topology.hostpath.csi/node",
        "topology.gke.io/zone",
        "csi.hetzner.cloud/location",
        "host-model-cpu.node.kubevirt.io/Skylake",
        "k3s.io/hostname",
    ] {
        assert!(!default.keeps_label(key), "{key}");
        assert!(every.keeps_label(key), "{key}");
        let named = rule(&format!("rules: [{{labels: {{include: ['*', '{key}']}}}}]"));
        assert!(named.keeps_label(key) && named.keeps_label("team"), "{key}");
    }
}

#[test]
fn what_is_never_kept_is_not_kept_whatever_the_policy_says() {
    let rule = rule(
        "rules: [{labels: {include: ['*', '*/*'], excludeDefaults: false}, \
         annotations: {include: ['*', '*/*'], excludeDefaults: false}, taints: {include: ['*', '*/*']}}]",
    );
    for key in ["perennial.dev/x", "a.perennial.dev/x", "kubernetes.io/hostname"] {
        assert!(!rule.keeps_label(key), "label {key}");
    }
    for key in [
        "restored.perennial.dev/main",
        "perennial.dev/pause",
        "perennial.dev/forget",
        "kubectl.kubernetes.io/last-applied-configuration",
        "volumes.kubernetes.io/controller-managed-attach-detach",
        "node.alpha.kubernetes.io/ttl",
        "csi.volume.kubernetes.io/nodeid",
    ] {
        assert!(!rule.keeps_annotation(key), "annotation {key}");
    }
    for key in [
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/unschedulable",
        "node.cloudprovider.kubernetes.io/shutdown",
        "node.cluster.x-k8s.io/uninitialized",
        "vendor.example/uninitialized",
        "node.cilium.io/agent-not-ready",
        "perennial.dev/restoring",
        "ToBeDeletedByClusterAutoscaler",
        "karpenter.sh/disrupted",
    ] {
        assert!(!rule.keeps_taint(key), "taint {key}");
    }
    assert!(rule.keeps_label("team") && rule.keeps_annotation("note") && rule.keeps_taint("dedicated"));
}

#[test]
fn network_annotations_are_left_out_under_a_star() {
    let star = rule("rules: [{annotations: {include: ['*']}}]");
    let named = rule("rules: [{annotations: {include: ['projectcalico.org/*']}}]");
    for key in
        ["projectcalico.org/IPv4Address", "flannel.alpha.coreos.com/public-ip", "k8s.ovn.org/node-subnets"]
    {
        assert!(!star.keeps_annotation(key), "{key}");
    }
    assert!(star.keeps_annotation("example.com/note"));
    assert!(named.keeps_annotation("projectcalico.org/IPv4Address"));
}

#[test]
fn the_default_rule_keeps_labels_and_nothing_else() {
    let content = Content {
        labels: pairs([("team", "blue"), ("kubernetes.io/os", "linux"), ("empty", "")]),
        annotations: pairs([("note", "x")]),
        taints: vec![Taint { key: "dedicated".into(), effect: "NoSchedule".into(), value: "gpu".into() }],
        unschedulable: true,
        ..Content::default()
    };
    let expected = Kept { labels: pairs([("team", "blue"), ("empty", "")]), ..Kept::default() };
    assert_eq!(rule("").keep(&content), expected);
}

#[test]
fn every_entry_of_the_tables_is_a_glob_with_a_reason() {
    for (glob, reason) in [
        defaults::NEVER_LABELS,
        defaults::USUAL_LABELS,
        defaults::NEVER_ANNOTATIONS,
        defaults::USUAL_ANNOTATIONS,
        defaults::NEVER_TAINTS,
    ]
    .concat()
    {
        assert_eq!(patterns::check(glob), Ok(()), "{glob}");
        assert!(!reason.is_empty(), "{glob}");
    }
}
