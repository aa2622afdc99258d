//! Kubeconfigs: an address, whom to trust there, and who asks.

use std::{fs, path::Path};

use anyhow::Context as _;
use kube::config::{AuthInfo, Cluster, Context, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext};

/// Writes one with a single user, for a cluster of this name.
pub(crate) fn write(
    path: &Path,
    name: &str,
    cluster: Cluster,
    user: &str,
    identity: AuthInfo,
) -> anyhow::Result<()> {
    let context = Context { cluster: name.to_owned(), user: Some(user.to_owned()), ..Context::default() };
    let kubeconfig = Kubeconfig {
        api_version: Some("v1".to_owned()),
        kind: Some("Config".to_owned()),
        clusters: vec![NamedCluster {
            name: name.to_owned(),
            cluster: Some(cluster),
            ..NamedCluster::default()
        }],
        auth_infos: vec![NamedAuthInfo {
            name: user.to_owned(),
            auth_info: Some(identity),
            ..NamedAuthInfo::default()
        }],
        contexts: vec![NamedContext {
            name: name.to_owned(),
            context: Some(context),
            ..NamedContext::default()
        }],
        current_context: Some(name.to_owned()),
        ..Kubeconfig::default()
    };
    // Replaced as a whole: somebody may be reading the one that is there.
    let whole = path.with_extension(format!("{:016x}", rand::random::<u64>()));
    // JSON is YAML, and needs no further library.
    fs::write(&whole, serde_json::to_vec_pretty(&kubeconfig)?)
        .and_then(|()| fs::rename(&whole, path))
        .with_context(|| format!("writing {}", path.display()))
}
