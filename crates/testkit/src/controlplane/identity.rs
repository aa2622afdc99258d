//! Clients and kubeconfigs for those who talk to the API server.
//!
//! A client lives on the runtime that it was made on, and every `#[tokio::test]` has its own: so none is kept,
//! and each call makes a new one.

use std::path::PathBuf;

use anyhow::Context;
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::{Namespace, ServiceAccount},
};
use kube::{
    Api, Client, Resource,
    api::{ObjectMeta, PostParams},
    config::{AuthInfo, Cluster},
};
use serde::{Serialize, de::DeserializeOwned};

use super::ControlPlane;
use crate::{
    endpoint::{bearer, certified},
    kubeconfig,
};

/// Longer than any test runs.
const TOKEN_SECONDS: i64 = 8 * 60 * 60;

impl ControlPlane {
    /// A client that may do everything (`system:masters`).
    pub fn admin(&self) -> Client {
        self.endpoint.client(&self.admin).expect("the same credentials served at the start")
    }

    /// A client with the identity of a kubelet: `system:node:NAME` in `system:nodes`.
    pub fn kubelet(&self, node: &str) -> anyhow::Result<Client> {
        let credential = self.authority.client(&format!("system:node:{node}"), Some("system:nodes"))?;
        self.endpoint.client(&certified(&credential))
    }

    /// A client with the identity of a service account, which is made if it is missing, as is its namespace.
    pub async fn service_account(&self, namespace: &str, name: &str) -> anyhow::Result<Client> {
        let token = self.token(namespace, name).await?;
        self.endpoint.client(&bearer(token))
    }

    /// A kubeconfig for an administrator.
    pub fn kubeconfig_for_admin(&self) -> anyhow::Result<PathBuf> {
        self.kubeconfig("admin", self.admin.clone())
    }

    /// A kubeconfig for a service account, which is made if it is missing, as is its namespace.
    pub async fn kubeconfig_for_service_account(
        &self,
        namespace: &str,
        name: &str,
    ) -> anyhow::Result<PathBuf> {
        let token = self.token(namespace, name).await?;
        self.kubeconfig(&format!("{namespace}.{name}"), bearer(token))
    }

    pub(super) async fn token(&self, namespace: &str, name: &str) -> anyhow::Result<String> {
        let client = self.admin();
        create(&Api::all(client.clone()), &Namespace { metadata: named(namespace), ..Namespace::default() })
            .await?;
        let accounts: Api<ServiceAccount> = Api::namespaced(client, namespace);
        create(&accounts, &ServiceAccount { metadata: named(name), ..ServiceAccount::default() }).await?;
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                expiration_seconds: Some(TOKEN_SECONDS),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let granted = accounts.create_token_request(name, &PostParams::default(), &request).await?;
        granted.status.and_then(|status| status.token).context("a token request was granted without a token")
    }

    fn kubeconfig(&self, user: &str, identity: AuthInfo) -> anyhow::Result<PathBuf> {
        let cluster = Cluster {
            server: Some(self.url().to_owned()),
            certificate_authority: Some(self.authority.certificate().display().to_string()),
            ..Cluster::default()
        };
        let path = self.workdir.path().join("kubeconfigs").join(user);
        kubeconfig::write(&path, "testkit", cluster, user, identity)?;
        Ok(path)
    }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

/// Creates an object, or finds it there.
async fn create<K>(api: &Api<K>, object: &K) -> anyhow::Result<()>
where
    K: Resource + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    match api.create(&PostParams::default(), object).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(refusal)) if refusal.code == 409 => Ok(()),
        Err(error) => Err(error).with_context(|| format!("creating {:?}", object.meta().name)),
    }
}
