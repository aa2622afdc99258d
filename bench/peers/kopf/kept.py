"""Which labels are kept: Perennial's default policy (docs/policy.md)."""
import fnmatch
import functools
import re

import orjson

# Somebody else sets these again on every new Node.
LEFT_OUT = '''
perennial.dev/* *.perennial.dev/* kubernetes.io/hostname kubernetes.io/arch kubernetes.io/os beta.kubernetes.io/arch
beta.kubernetes.io/os beta.kubernetes.io/instance-type node.kubernetes.io/* kubelet.kubernetes.io/*
topology.kubernetes.io/region topology.kubernetes.io/zone failure-domain.beta.kubernetes.io/* topology.*csi*/* csi.*/*
topology.topolvm.io/* openebs.io/nodeid openebs.io/nodename feature.node.kubernetes.io/*
*.feature.node.kubernetes.io/* nvidia.com/gpu.clique nvidia.com/gpu.compute.* nvidia.com/gpu.count
nvidia.com/gpu.engines.* nvidia.com/gpu.family nvidia.com/gpu.imex-domain nvidia.com/gpu.machine nvidia.com/gpu.memory
nvidia.com/gpu.mode nvidia.com/gpu.multiprocessors nvidia.com/gpu.present nvidia.com/gpu.product
nvidia.com/gpu.replicas nvidia.com/gpu.sharing-strategy nvidia.com/gpu.slices.* nvidia.com/gpu.deploy.*
nvidia.com/gpu-driver-upgrade-state nvidia.com/cuda.* nvidia.com/gfd.* nvidia.com/mig.capable nvidia.com/mig.strategy
nvidia.com/mps.capable nvidia.com/mig-*.* nvidia.com/mig.config.state nvidia.com/vgpu.config.state
nvidia.com/vgpu.host-driver-* nvidia.com/vgpu.present amd.com/gpu.* beta.amd.com/gpu.* *.node.kubevirt.io/*
kubevirt.io/schedulable karpenter.sh/* karpenter.k8s.aws/* karpenter.azure.com/* cluster.x-k8s.io/*
*.cluster.x-k8s.io/* eks.amazonaws.com/* alpha.eksctl.io/* k8s.io/cloud-provider-aws topology.k8s.aws/*
vpc.amazonaws.com/has-trunk-attached aws-node-termination-handler/* cloud.google.com/gke-*
cloud.google.com/machine-family cloud.google.com/private-node *.gke.io/* kubernetes.azure.com/*
doks.digitalocean.com/* instance.hetzner.cloud/* lke.linode.com/* oci.oraclecloud.com/* kops.k8s.io/*
worker.gardener.cloud/* node.openshift.io/os_id k3s.io/hostname k3s.io/internal-ip rke.cattle.io/machine
microk8s.io/cluster
'''.split()
PATTERN = re.compile('|'.join(map(fnmatch.translate, LEFT_OUT)))


# A whole fleet has few keys.
@functools.lru_cache(maxsize=10_000)
def is_kept(key):
    return PATTERN.match(key) is None


def text(labels):
    """The kept ones of a node's labels, as they are recorded."""
    found = {key: value for key, value in labels.items() if is_kept(key)}
    return orjson.dumps(found, option=orjson.OPT_SORT_KEYS).decode()
