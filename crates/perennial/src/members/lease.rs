//! A member's Lease, as it is read and written.

use std::time::Duration;

use jiff::Timestamp;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::core::request::Request as Resource;
use perennial_core::kept::{Digest, Pairs};
use perennial_core::record::Version;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::roster::Role;
use crate::cluster::{ApiError, Cluster, Followed, Meta};
use crate::config::MembersConfig;

/// What the name of a member's Lease begins with.
const PREFIX: &str = "perennial-member.";
/// The annotation that lists what a member does.
const ROLES: &str = "perennial.dev/roles";
/// The annotation with the digest of the policy that a member runs under.
const POLICY: &str = "perennial.dev/policy";
/// What others may claim about themselves: a Lease that never runs out would be waited for for ever.
const LONGEST: Duration = Duration::from_mins(5);

/// A Lease, as the API server sends it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct LeaseObject {
    metadata: Meta,
    #[serde(default)]
    spec: Option<LeaseSpec>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LeaseSpec {
    #[serde(default)]
    holder_identity: Option<String>,
    #[serde(default)]
    lease_duration_seconds: Option<i64>,
    #[serde(default)]
    renew_time: Option<Timestamp>,
}

impl Followed for LeaseObject {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl LeaseObject {
    /// The member whose Lease this is; `None` for any other Lease.
    pub(crate) fn member(&self) -> Option<&str> {
        self.metadata.name.strip_prefix(PREFIX).filter(|member| !member.is_empty())
    }

    /// Which Lease this is, at which version.
    pub(crate) fn key(&self) -> LeaseKey {
        let Meta { name, uid, resource_version, .. } = &self.metadata;
        LeaseKey { name: name.clone(), uid: *uid, version: *resource_version }
    }

    /// The process that wrote it.
    pub(crate) fn holder(&self) -> &str {
        self.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
    }

    /// How long it counts without being renewed, where it says so within reason.
    pub(crate) fn duration(&self) -> Option<Duration> {
        let seconds = self.spec.as_ref()?.lease_duration_seconds?;
        u64::try_from(seconds)
            .ok()
            .filter(|seconds| *seconds > 0)
            .map(Duration::from_secs)
            .map(|d| d.min(LONGEST))
    }

    /// When it was last renewed, by the API server's clock. People are told; replicas do not go by it.
    pub(crate) fn renewed(&self) -> Option<Timestamp> {
        self.spec.as_ref()?.renew_time
    }

    /// What the member does. One that does not say, or says what this binary does not know, does nothing here.
    pub(crate) fn roles(&self) -> Vec<Role> {
        let text = self.metadata.annotations.as_ref().and_then(|pairs| pairs.get(ROLES));
        text.map(|text| text.split(',').filter_map(Role::parse).collect()).unwrap_or_default()
    }

    /// The policy the member runs under, where it says so.
    pub(crate) fn policy(&self) -> Option<Digest> {
        Digest::parse(self.metadata.annotations.as_ref()?.get(POLICY)?)
    }
}

/// A Lease as it was last seen: what a write to it is conditioned on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeaseKey {
    pub(crate) name: String,
    pub(crate) uid: Uuid,
    pub(crate) version: Version,
}

/// The Leases of one namespace, and our own among them.
#[derive(Clone)]
pub(crate) struct Leases {
    cluster: Cluster,
    resource: Resource,
    name: String,
    holder: String,
    roles: String,
    /// Nodes are kept here, so that others have to know under which policy.
    keeps: bool,
    duration: Duration,
    since: Timestamp,
}

impl Leases {
    pub(crate) fn new(cluster: Cluster, config: &MembersConfig) -> Self {
        let roles: Vec<_> = config.roles.iter().map(|role| role.as_str()).collect();
        Self {
            since: cluster.now(),
            cluster,
            resource: Resource::new(format!(
                "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
                config.namespace
            )),
            name: format!("{PREFIX}{}", config.name),
            holder: format!("{}_{:016x}", config.name, rand::random::<u64>()),
            roles: roles.join(","),
            keeps: config.roles.iter().any(|role| *role != Role::List),
            duration: config.lease,
        }
    }

    pub(crate) fn resource(&self) -> &Resource {
        &self.resource
    }

    /// The name of our own.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// This process, told apart from any other of the same name.
    pub(crate) fn holder(&self) -> &str {
        &self.holder
    }

    /// Writes our own, over the one that was seen or where there was none.
    pub(crate) async fn renew(
        &self,
        over: Option<LeaseKey>,
        policy: Digest,
    ) -> Result<LeaseObject, ApiError> {
        let mut annotations = Pairs::from([(ROLES.to_owned(), self.roles.clone())]);
        annotations.extend(self.keeps.then(|| (POLICY.to_owned(), policy.to_string())));
        let mut body = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": self.name,
                "labels": { "app.kubernetes.io/managed-by": "perennial" },
                "annotations": annotations,
            },
            "spec": {
                "holderIdentity": self.holder,
                // Whole seconds are all that a Lease can say.
                "leaseDurationSeconds": self.duration.as_secs() + u64::from(self.duration.subsec_nanos() > 0),
                "acquireTime": micro_time(self.since),
                "renewTime": micro_time(self.cluster.now()),
            },
        });
        let params = PostParams { field_manager: Some("perennial".to_owned()), ..PostParams::default() };
        let request = match over {
            None => self.resource.create(&params, body.to_string().into_bytes()),
            Some(over) => {
                body["metadata"]["uid"] = json!(over.uid);
                body["metadata"]["resourceVersion"] = json!(over.version.to_string());
                self.resource.replace(&self.name, &params, body.to_string().into_bytes())
            }
        };
        self.cluster.call(request).await
    }

    /// Removes one, if it is still as it was seen.
    pub(crate) async fn remove(&self, lease: LeaseKey) -> Result<(), ApiError> {
        let preconditions = Preconditions {
            uid: Some(lease.uid.to_string()),
            resource_version: Some(lease.version.to_string()),
        };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let _: serde::de::IgnoredAny = self.cluster.call(self.resource.delete(&lease.name, &params)).await?;
        Ok(())
    }
}

/// A time as Leases have it: with microseconds, always.
fn micro_time(time: Timestamp) -> String {
    format!("{time:.6}")
}
