//! Which labels are kept: Perennial's default policy (docs/policy.md).

use std::sync::LazyLock;

use globset::{Glob, GlobSet};

/// Somebody else sets these again on every new Node.
const LEFT_OUT: [&str; 56] = [
    "perennial.dev/*",
    "*.perennial.dev/*",
    "kubernetes.io/hostname",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/*",
    "kubelet.kubernetes.io/*",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/*",
    "topology.*csi*/*",
    "csi.*/*",
    "topology.topolvm.io/*",
    "openebs.io/node{id,name}",
    "feature.node.kubernetes.io/*",
    "*.feature.node.kubernetes.io/*",
    "nvidia.com/gpu.{clique,compute.*,count,engines.*,family,imex-domain,machine,memory,mode,multiprocessors,present,product,replicas,sharing-strategy,slices.*}",
    "nvidia.com/gpu.deploy.*",
    "nvidia.com/gpu-driver-upgrade-state",
    "nvidia.com/{cuda,gfd}.*",
    "nvidia.com/{mig.capable,mig.strategy,mps.capable}",
    "nvidia.com/mig-*.*",
    "nvidia.com/{mig,vgpu}.config.state",
    "nvidia.com/vgpu.{host-driver-*,present}",
    "amd.com/gpu.*",
    "beta.amd.com/gpu.*",
    "*.node.kubevirt.io/*",
    "kubevirt.io/schedulable",
    "karpenter.sh/*",
    "karpenter.k8s.aws/*",
    "karpenter.azure.com/*",
    "cluster.x-k8s.io/*",
    "*.cluster.x-k8s.io/*",
    "eks.amazonaws.com/*",
    "alpha.eksctl.io/*",
    "k8s.io/cloud-provider-aws",
    "topology.k8s.aws/*",
    "vpc.amazonaws.com/has-trunk-attached",
    "aws-node-termination-handler/*",
    "cloud.google.com/gke-*",
    "cloud.google.com/{machine-family,private-node}",
    "*.gke.io/*",
    "kubernetes.azure.com/*",
    "doks.digitalocean.com/*",
    "instance.hetzner.cloud/*",
    "lke.linode.com/*",
    "oci.oraclecloud.com/*",
    "kops.k8s.io/*",
    "worker.gardener.cloud/*",
    "node.openshift.io/os_id",
    "k3s.io/{hostname,internal-ip}",
    "rke.cattle.io/machine",
    "microk8s.io/cluster",
];

static SET: LazyLock<GlobSet> = LazyLock::new(|| {
    let globs = LEFT_OUT.iter().map(|glob| Glob::new(glob).expect("globs that never change"));
    GlobSet::new(globs).expect("few of them")
});

/// Whether a label is kept.
pub(crate) fn is_kept(key: &str) -> bool {
    !SET.is_match(key)
}
