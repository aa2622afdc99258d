package main

import "strings"

// isKept says whether a label is kept: all but those that somebody else sets again on every new Node. It is Perennial's default
// policy (docs/policy.md), written the way that is quick in Go.
func isKept(label string) bool {
	prefix, name, found := strings.Cut(label, "/")
	if !found {
		return true
	}
	switch prefix {
	case "node.kubernetes.io", "kubelet.kubernetes.io", "failure-domain.beta.kubernetes.io", "topology.topolvm.io",
		"feature.node.kubernetes.io", "karpenter.sh", "karpenter.k8s.aws", "karpenter.azure.com", "cluster.x-k8s.io",
		"eks.amazonaws.com", "alpha.eksctl.io", "topology.k8s.aws", "aws-node-termination-handler", "kubernetes.azure.com",
		"doks.digitalocean.com", "instance.hetzner.cloud", "lke.linode.com", "oci.oraclecloud.com", "kops.k8s.io",
		"worker.gardener.cloud", "perennial.dev":
		return false
	case "kubernetes.io":
		return name != "hostname" && name != "arch" && name != "os"
	case "beta.kubernetes.io":
		return name != "arch" && name != "os" && name != "instance-type"
	case "topology.kubernetes.io":
		return name != "region" && name != "zone"
	case "openebs.io":
		return name != "nodeid" && name != "nodename"
	case "nvidia.com":
		return !foundByNvidia(name)
	case "amd.com", "beta.amd.com":
		return !strings.HasPrefix(name, "gpu.")
	case "kubevirt.io":
		return name != "schedulable"
	case "k8s.io":
		return name != "cloud-provider-aws"
	case "vpc.amazonaws.com":
		return name != "has-trunk-attached"
	case "cloud.google.com":
		return !strings.HasPrefix(name, "gke-") && name != "machine-family" && name != "private-node"
	case "node.openshift.io":
		return name != "os_id"
	case "k3s.io":
		return name != "hostname" && name != "internal-ip"
	case "rke.cattle.io":
		return name != "machine"
	case "microk8s.io":
		return name != "cluster"
	}
	if driver, ok := strings.CutPrefix(prefix, "topology."); ok && strings.Contains(driver, "csi") {
		return false
	}
	return !strings.HasPrefix(prefix, "csi.") && !hasAnySuffix(prefix,
		".feature.node.kubernetes.io", ".node.kubevirt.io", ".cluster.x-k8s.io", ".gke.io", ".perennial.dev")
}

func foundByNvidia(name string) bool {
	switch name {
	case "gpu.clique", "gpu.count", "gpu.family", "gpu.imex-domain", "gpu.machine", "gpu.memory", "gpu.mode",
		"gpu.multiprocessors", "gpu.present", "gpu.product", "gpu.replicas", "gpu.sharing-strategy",
		"gpu-driver-upgrade-state", "mig.capable", "mig.strategy", "mps.capable", "mig.config.state", "vgpu.config.state",
		"vgpu.present":
		return true
	}
	if profile, ok := strings.CutPrefix(name, "mig-"); ok {
		return strings.Contains(profile, ".")
	}
	return hasAnyPrefix(name, "gpu.compute.", "gpu.engines.", "gpu.slices.", "gpu.deploy.", "cuda.", "gfd.", "vgpu.host-driver-")
}

func hasAnyPrefix(text string, prefixes ...string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

func hasAnySuffix(text string, suffixes ...string) bool {
	for _, suffix := range suffixes {
		if strings.HasSuffix(text, suffix) {
			return true
		}
	}
	return false
}
