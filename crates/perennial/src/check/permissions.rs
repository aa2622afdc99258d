//! What an account has to be allowed for the roles it is to play: the same as `deploy/rbac*.yaml` grant.

use crate::config::{Config, KeeperConfig, ListerConfig, TlsConfig};

/// One thing that has to be allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Permission {
    pub(super) verb: &'static str,
    pub(super) group: &'static str,
    pub(super) resource: &'static str,
    pub(super) subresource: Option<&'static str>,
    /// In this namespace; in all of them where there is none.
    pub(super) namespace: Option<String>,
    /// Of this name; of all where there is none.
    pub(super) name: Option<String>,
}

/// Where Events about nodes live.
const EVENTS: &str = "default";
const WATCH: &[&str] = &["list", "watch"];

/// Everything that this configuration needs.
pub(super) fn needed(config: &Config) -> Vec<Permission> {
    let mut needed = Vec::new();
    if config.keeps {
        needed.extend(keeper(&config.keeper));
    }
    if let Some(lister) = &config.lister {
        needed.extend(self::lister(lister));
    }
    if let Some(webhook) = &config.webhook {
        needed.extend(self::webhook(webhook));
    }
    if let Some(metrics) = &config.metrics {
        needed.extend(self::metrics(metrics));
    }
    // One that writes nothing does not announce itself.
    if !config.keeper.dry_run {
        let verbs = &["list", "watch", "create", "update", "delete"];
        needed.extend(all(verbs, "coordination.k8s.io", "leases", Some(&config.namespace)));
    }
    needed
}

fn keeper(config: &KeeperConfig) -> Vec<Permission> {
    let KeeperConfig { namespace, capture, restore, dry_run, condition, .. } = config;
    let mut needed = all(&["get", "list", "watch"], "", "nodes", None);
    needed.extend(all(&["get", "list", "watch"], "", "configmaps", Some(namespace)));
    if *dry_run {
        return needed;
    }
    if *restore {
        needed.extend(all(&["patch"], "", "nodes", None));
    }
    if *condition {
        let status = all(&["patch"], "", "nodes", None);
        needed.extend(status.into_iter().map(|one| Permission { subresource: Some("status"), ..one }));
    }
    needed.extend(all(&["create", "update"], "", "configmaps", Some(namespace)));
    // Only one that records may erase.
    if *capture {
        needed.extend(all(&["delete"], "", "configmaps", Some(namespace)));
    }
    needed.extend(all(&["create"], "", "events", Some(EVENTS)));
    needed
}

fn webhook(config: &TlsConfig) -> Vec<Permission> {
    let mut needed = certificates(config);
    if config.own {
        for kind in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
            let both = all(&["get", "patch"], "admissionregistration.k8s.io", kind, None);
            needed.extend(both.into_iter().map(|one| Permission { name: Some(config.name.clone()), ..one }));
        }
    }
    needed
}

fn metrics(config: &TlsConfig) -> Vec<Permission> {
    let mut needed = certificates(config);
    needed.extend(all(&["create"], "authentication.k8s.io", "tokenreviews", None));
    needed.extend(all(&["create"], "authorization.k8s.io", "subjectaccessreviews", None));
    needed
}

/// What is served with.
fn certificates(config: &TlsConfig) -> Vec<Permission> {
    let verbs: &[&str] = if config.own { &["get", "patch"] } else { &["get"] };
    let secret = all(verbs, "", "secrets", Some(&config.namespace));
    secret.into_iter().map(|one| Permission { name: Some(config.name.clone()), ..one }).collect()
}

fn lister(config: &ListerConfig) -> Vec<Permission> {
    let namespace = config.namespace.as_deref();
    let mut needed = all(WATCH, "perennial.dev", "listings", namespace);
    let status = all(&["patch"], "perennial.dev", "listings", namespace);
    needed.extend(status.into_iter().map(|one| Permission { subresource: Some("status"), ..one }));
    needed.extend(all(WATCH, "discovery.k8s.io", "endpointslices", namespace));
    needed.extend(all(&["get"], "", "services", namespace));
    needed.extend(all(&["create"], "", "events", namespace));
    needed
}

fn all(
    verbs: &[&'static str],
    group: &'static str,
    resource: &'static str,
    namespace: Option<&str>,
) -> Vec<Permission> {
    let namespace = namespace.map(str::to_owned);
    let one = |verb: &&'static str| Permission {
        verb,
        group,
        resource,
        subresource: None,
        namespace: namespace.clone(),
        name: None,
    };
    verbs.iter().map(one).collect()
}
