//! Everything that holds when the policy says nothing, in one place, with the reason beside it.
//!
//! Two kinds of tables. *Never*: no policy can keep these, for giving them back would be wrong. *Usual*: left
//! out under `include: ["*"]`, because somebody else asserts them anew on every new Node, so that the old value
//! is at best the same and at worst a lie; who names such a key in `include` gets it. A key that people set by
//! hand must not stand here: leaving it out would lose it. docs/policy.md repeats the tables and a test
//! compares.

use std::sync::LazyLock;

use jiff::SignedDuration;

use super::patterns::Patterns;

/// Globs, each with the reason why it stands in its table.
pub(super) type Table = &'static [(&'static str, &'static str)];

/// How long a record outlives its node.
///
/// Repairs of bare metal take weeks; a node that is away for longer has most often been taken out of service.
pub(super) const RETENTION: SignedDuration = SignedDuration::from_hours(30 * 24);

/// How long a record with nothing in it stays: long enough to be seen, and for a slip to be undone.
pub(super) const EMPTY_RETENTION: SignedDuration = SignedDuration::from_hours(1);

/// How many absent nodes are remembered.
///
/// Four times the largest cluster that Kubernetes supports (5,000 nodes), so that a whole fleet can be away
/// several times over; at about 2 KB a record it costs etcd 40 MB, 2 % of its default quota of 2 GiB.
pub(super) const MAX_ABSENT: usize = 20_000;

/// Below this many a day the brake lets everything pass: small clusters must be able to tidy up.
pub(super) const BRAKE_AT_LEAST: u32 = 100;

/// The share of all records that may shrink or vanish in a day; more than a tenth looks like a mistake.
pub(super) const BRAKE_SHARE: f64 = 0.1;

/// Labels that no policy keeps.
pub(super) const NEVER_LABELS: Table = &[
    ("perennial.dev/*", "Perennial's own: they tell of one incarnation"),
    ("*.perennial.dev/*", "Perennial's own: they tell of one incarnation"),
    ("kubernetes.io/hostname", "the kubelet's; with `identity: machine` it would be another node's name"),
];

/// Labels left out by default.
pub(super) const USUAL_LABELS: Table = &[
    // The kubelet and the cloud controller.
    ("kubernetes.io/arch", "set by the kubelet at registration"),
    ("kubernetes.io/os", "set by the kubelet at registration"),
    ("beta.kubernetes.io/arch", "set by the kubelet at registration"),
    ("beta.kubernetes.io/os", "set by the kubelet at registration"),
    ("beta.kubernetes.io/instance-type", "set by the cloud controller or the kubelet"),
    ("node.kubernetes.io/*", "instance type, windows build and the like: kubelet, cloud and drain tools"),
    ("kubelet.kubernetes.io/*", "reserved for the kubelet's own configuration"),
    ("topology.kubernetes.io/region", "set by the cloud controller; a moved disk or machine makes it a lie"),
    ("topology.kubernetes.io/zone", "set by the cloud controller; a moved disk or machine makes it a lie"),
    ("failure-domain.beta.kubernetes.io/*", "the older names of region and zone"),
    // Storage: the kubelet writes what the driver reports and refuses the driver if another value is there
    // ("detected topology value collision", kubernetes pkg/volume/csi/nodeinfomanager).
    ("topology.*csi*/*", "reported by a CSI driver, which fails to register beside an old value"),
    ("csi.*/*", "reported by a CSI driver, which fails to register beside an old value"),
    ("topology.topolvm.io/*", "reported by the TopoLVM CSI driver"),
    ("openebs.io/node{id,name}", "reported by the OpenEBS CSI drivers"),
    // What hardware is in the machine: found out anew by agents.
    ("feature.node.kubernetes.io/*", "found by Node Feature Discovery"),
    ("*.feature.node.kubernetes.io/*", "found by Node Feature Discovery, for a vendor"),
    // Not `nvidia.com/gpu.*`: gpu.workload.config, mig.config, vgpu.config and device-plugin.config are set by hand.
    (
        "nvidia.com/gpu.{clique,compute.*,count,engines.*,family,imex-domain,machine,memory,mode,multiprocessors,\
         present,product,replicas,sharing-strategy,slices.*}",
        "found by NVIDIA GPU Feature Discovery",
    ),
    (
        "nvidia.com/gpu.deploy.*",
        "set by the NVIDIA GPU operator; may say `paused` in the middle of an upgrade",
    ),
    ("nvidia.com/gpu-driver-upgrade-state", "the NVIDIA GPU operator's progress on the machine that was"),
    ("nvidia.com/{cuda,gfd}.*", "found by NVIDIA GPU Feature Discovery"),
    ("nvidia.com/{mig.capable,mig.strategy,mps.capable}", "found by NVIDIA GPU Feature Discovery"),
    ("nvidia.com/mig-*.*", "found by NVIDIA GPU Feature Discovery"),
    ("nvidia.com/{mig,vgpu}.config.state", "the NVIDIA managers' progress on the machine that was"),
    ("nvidia.com/vgpu.{host-driver-*,present}", "found by NVIDIA GPU Feature Discovery"),
    ("amd.com/gpu.*", "found by the AMD node labeller"),
    ("beta.amd.com/gpu.*", "found by the AMD node labeller"),
    ("*.node.kubevirt.io/*", "CPU models and features found by KubeVirt"),
    ("kubevirt.io/schedulable", "KubeVirt's heartbeat"),
    // Provisioners and managed clusters.
    ("karpenter.sh/*", "set by Karpenter from its NodeClaim"),
    ("karpenter.k8s.aws/*", "set by Karpenter from its NodeClaim"),
    ("karpenter.azure.com/*", "set by Karpenter from its NodeClaim"),
    ("cluster.x-k8s.io/*", "set by Cluster API from its Machine"),
    ("*.cluster.x-k8s.io/*", "set by Cluster API from its Machine"),
    ("eks.amazonaws.com/*", "set by EKS when the machine boots"),
    ("alpha.eksctl.io/*", "set by eksctl's boot script"),
    ("k8s.io/cloud-provider-aws", "set by the AWS cloud controller"),
    ("topology.k8s.aws/*", "set by the AWS cloud controller"),
    ("vpc.amazonaws.com/has-trunk-attached", "set by the AWS network plugin"),
    ("aws-node-termination-handler/*", "tells of the drain that ended the last life"),
    ("cloud.google.com/gke-*", "set by GKE from the node pool"),
    ("cloud.google.com/{machine-family,private-node}", "set by GKE from the node pool"),
    ("*.gke.io/*", "set by GKE and its add-ons"),
    ("kubernetes.azure.com/*", "reserved for and set by AKS"),
    ("doks.digitalocean.com/*", "set by DigitalOcean from the node pool"),
    ("instance.hetzner.cloud/*", "set by the Hetzner cloud controller"),
    ("lke.linode.com/*", "set by Linode from the node pool"),
    ("oci.oraclecloud.com/*", "set by the Oracle cloud controller"),
    ("kops.k8s.io/*", "set by kops-controller from the instance group"),
    ("worker.gardener.cloud/*", "set by Gardener from the worker pool"),
    ("node.openshift.io/os_id", "set by OpenShift's kubelet configuration"),
    ("k3s.io/{hostname,internal-ip}", "set by k3s when it starts"),
    ("rke.cattle.io/machine", "set by Rancher; names one machine object"),
    ("microk8s.io/cluster", "set by MicroK8s when it starts"),
];

/// Annotations that no policy keeps.
pub(super) const NEVER_ANNOTATIONS: Table = &[
    ("perennial.dev/*", "Perennial's own: pause, forget, stamps; a restore must not repeat an order"),
    ("*.perennial.dev/*", "Perennial's own: the mark of one incarnation, restored.perennial.dev/…"),
    (
        "kubectl.kubernetes.io/last-applied-configuration",
        "kubectl would take the old file for the new one's base",
    ),
    (
        "volumes.kubernetes.io/controller-managed-attach-detach",
        "set by the kubelet; an old value misleads attaching",
    ),
    ("volumes.kubernetes.io/keep-terminated-pod-volumes", "set by the kubelet from its flags"),
    ("node.alpha.kubernetes.io/ttl", "set by the node controller from the cluster's size"),
    ("csi.volume.kubernetes.io/nodeid", "set by the kubelet; an old id attaches volumes to another machine"),
    (
        "alpha.kubernetes.io/provided-node-ip",
        "set by the kubelet; an old address misleads the cloud controller",
    ),
];

/// Annotations left out by default: mostly network state, which has broken clusters when it was given back
/// (medik8s/self-node-remediation).
pub(super) const USUAL_ANNOTATIONS: Table = &[
    ("flannel.alpha.coreos.com/*", "Flannel's network state: addresses of the machine that was"),
    ("projectcalico.org/*", "Calico's network state"),
    ("*cilium.io/*", "Cilium's network state"),
    ("io.cilium.*", "Cilium's network state, older names"),
    ("k8s.ovn.org/*", "OVN-Kubernetes' network state"),
    ("ovn.kubernetes.io/*", "Kube-OVN's network state"),
    ("node.antrea.io/*", "Antrea's network state"),
    ("kube-router.io/pod-cidr*", "kube-router's network state"),
    ("cluster.x-k8s.io/*", "links the Node to one Machine of Cluster API"),
    ("*.cluster.x-k8s.io/*", "links the Node to one Machine of Cluster API"),
    ("machine.openshift.io/*", "links the Node to one Machine of OpenShift"),
    ("machineconfiguration.openshift.io/*", "what OpenShift has installed on the machine that was"),
    ("kubeadm.alpha.kubernetes.io/cri-socket", "set by kubeadm when the node joins"),
    (
        "nfd.node.kubernetes.io/*",
        "Node Feature Discovery's list of what it set: it would remove what is ours",
    ),
    ("karpenter.sh/nodepool-hash*", "set by Karpenter from its NodeClaim"),
    ("karpenter.k8s.aws/*", "set by Karpenter from its NodeClaim"),
    ("k3s.io/*", "set by k3s when it starts"),
    ("rke2.io/*", "set by RKE2 when it starts"),
    (
        "etcd.{k3s,rke2}.cattle.io/*",
        "membership in etcd: another member's, once the machine was installed again",
    ),
    ("rke.cattle.io/*", "set by Rancher"),
    ("kubevirt.io/heartbeat", "KubeVirt's heartbeat"),
    ("nvidia.com/gpu-driver-upgrade-*", "the NVIDIA GPU operator's progress on the machine that was"),
    ("container.googleapis.com/instance_id", "set by GKE; names one machine"),
];

/// Taints that no policy keeps: conditions and gates of one life, which others remove when their time has come.
pub(super) const NEVER_TAINTS: Table = &[
    (
        "node.kubernetes.io/*",
        "conditions of the moment (not-ready, unschedulable, …), kept by the node controller",
    ),
    ("node.cloudprovider.kubernetes.io/*", "uninitialized, shutdown: kept by the cloud controller"),
    ("*/uninitialized", "a startup gate; its owner might not come to remove it a second time"),
    ("*agent-not-ready", "a startup gate of a network or storage agent"),
    ("perennial.dev/*", "Perennial's own gate"),
    ("*.perennial.dev/*", "Perennial's own gate"),
    ("node.cluster.x-k8s.io/*", "Cluster API: uninitialized, outdated-revision"),
    ("karpenter.sh/*", "Karpenter: unregistered, disrupted"),
    ("readiness.k8s.io/*", "a startup gate of node-readiness-controller"),
    (
        "{startup,status}-taint.cluster-autoscaler.kubernetes.io/*",
        "a startup gate for the cluster autoscaler",
    ),
    (
        "ToBeDeletedByClusterAutoscaler",
        "the sentence on the last life; the autoscaler would delete the new one",
    ),
    ("DeletionCandidateOfClusterAutoscaler", "the sentence on the last life"),
    ("aws-node-termination-handler/*", "tells of the drain that ended the last life"),
    ("cloud.google.com/impending-node-termination", "tells of the end of the last life"),
    ("medik8s.io/*", "a remediation in progress"),
    ("remediation.medik8s.io/*", "a remediation in progress"),
];

/// The tables of one kind, compiled.
pub(super) struct Builtin {
    /// No policy keeps these.
    pub(super) never: Patterns,
    /// Left out under `*`, unless the policy says `excludeDefaults: false`.
    pub(super) usual: Patterns,
}

pub(super) static LABELS: LazyLock<Builtin> = LazyLock::new(|| Builtin::of(NEVER_LABELS, USUAL_LABELS));
pub(super) static ANNOTATIONS: LazyLock<Builtin> =
    LazyLock::new(|| Builtin::of(NEVER_ANNOTATIONS, USUAL_ANNOTATIONS));
pub(super) static TAINTS: LazyLock<Builtin> = LazyLock::new(|| Builtin::of(NEVER_TAINTS, &[]));

impl Builtin {
    fn of(never: Table, usual: Table) -> Self {
        let compile = |table: Table| {
            Patterns::compile(table.iter().map(|(glob, _)| *glob))
                .expect("constant globs, compiled by every test")
        };
        Self { never: compile(never), usual: compile(usual) }
    }
}
