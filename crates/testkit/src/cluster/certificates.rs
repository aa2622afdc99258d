//! Who is who: the certificates and kubeconfigs of a cluster.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use kube::config::{AuthInfo, Cluster};

use super::layout::{self, CONTROL_PLANE_ADDRESS, KUBERNETES, Layout, SERVER, WORKERS};
use crate::{
    endpoint::certified,
    kubeconfig,
    pki::{Authority, Credential},
};

/// What the control plane's programs are told.
pub(super) struct Certificates {
    pub(super) ca: Credential,
    pub(super) etcd: Credential,
    pub(super) etcd_client: Credential,
    pub(super) apiserver: Credential,
    pub(super) kubelet_client: Credential,
    pub(super) front_proxy_ca: PathBuf,
    pub(super) front_proxy: Credential,
    /// What tokens of service accounts are signed with, and checked by.
    pub(super) accounts_private: PathBuf,
    pub(super) accounts_public: PathBuf,
}

/// The names and addresses by which the API server is asked.
const APISERVER: [&str; 8] = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "localhost",
    "127.0.0.1",
    KUBERNETES,
    CONTROL_PLANE_ADDRESS,
];

/// Makes them all, and a kubeconfig for everybody who needs one.
pub(super) fn create(layout: &Layout) -> anyhow::Result<Certificates> {
    let authority = Authority::create(layout.pki())?;
    let front_proxy = Authority::create(layout.pki().join("front-proxy"))?;
    let ca = authority.hand_out_key()?;
    for user in ["kube-controller-manager", "kube-scheduler", "kube-proxy"] {
        let credential = authority.client(&format!("system:{user}"), None)?;
        write_kubeconfig(layout, &layout.kubeconfig_of(user), user, &credential)?;
    }
    for worker in 1..=WORKERS {
        let name = format!("worker-{worker}");
        let address = layout::address(worker);
        let user = format!("system:node:{name}");
        // A kubelet is asked for logs and metrics under its address.
        let credential = authority.host(&user, Some("system:nodes"), &[&name, &address])?;
        write_kubeconfig(layout, &layout.kubeconfig_of(&name), &user, &credential)?;
        let serving = serving_certificate(layout, &name);
        fs::copy(&credential.certificate, &serving.certificate)?;
        fs::copy(&credential.key, &serving.key)?;
    }
    let admin = authority.client("admin", Some("system:masters"))?;
    write_kubeconfig(layout, &layout.kubeconfig(), "admin", &admin)?;
    let (accounts_public, accounts_private) = authority.signing_key("service-accounts")?;
    Ok(Certificates {
        ca,
        etcd: authority.server("etcd")?,
        etcd_client: authority.client("kube-apiserver-etcd-client", None)?,
        apiserver: authority.host("kube-apiserver", None, &APISERVER)?,
        kubelet_client: authority.client("kube-apiserver-kubelet-client", Some("system:masters"))?,
        front_proxy_ca: front_proxy.certificate(),
        front_proxy: front_proxy.client("front-proxy-client", None)?,
        accounts_private,
        accounts_public,
    })
}

/// The authority that everybody trusts.
pub(super) fn ca(layout: &Layout) -> PathBuf {
    layout.pki().join("ca.crt")
}

/// What a kubelet serves with.
pub(super) fn serving_certificate(layout: &Layout, worker: &str) -> Credential {
    let file = |ending: &str| layout.pki().join(format!("{worker}.{ending}"));
    Credential { certificate: file("crt"), key: file("key") }
}

/// All in one file, so that it may be copied to wherever it is needed.
fn write_kubeconfig(layout: &Layout, path: &Path, user: &str, credential: &Credential) -> anyhow::Result<()> {
    let read = |path: &PathBuf| -> anyhow::Result<String> {
        Ok(BASE64_STANDARD.encode(fs::read(path).with_context(|| format!("reading {}", path.display()))?))
    };
    let cluster = Cluster {
        server: Some(SERVER.to_owned()),
        certificate_authority_data: Some(read(&ca(layout))?),
        ..Cluster::default()
    };
    let identity = AuthInfo {
        client_certificate: None,
        client_certificate_data: Some(read(&credential.certificate)?),
        client_key: None,
        client_key_data: Some(read(&credential.key)?.into()),
        ..certified(credential)
    };
    kubeconfig::write(path, "perennial", cluster, user, identity)
}
