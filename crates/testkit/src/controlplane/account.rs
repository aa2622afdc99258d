//! The keeper's own account: exactly what `deploy/rbac.yaml` grants, and nothing else.

use std::{fs, path::PathBuf, process::Stdio, time::Duration};

use anyhow::{Context, ensure};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::{Api, Client, api::PostParams};
use tokio::process::Command;

use super::ControlPlane;
use crate::eventually;

/// The service account of the file, and the namespace it is for.
const ACCOUNT: &str = "perennial";
const RBAC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/rbac.yaml");
const SOON: Duration = Duration::from_mins(1);

impl ControlPlane {
    /// A kubeconfig for the service account `perennial` of this namespace, with what `deploy/rbac.yaml` grants it
    /// there. Returns once the API server honours that.
    pub async fn kubeconfig_for_keeper(&self, namespace: &str) -> anyhow::Result<PathBuf> {
        let kubeconfig = self.kubeconfig_for_service_account(namespace, ACCOUNT).await?;
        let granted = self.folder().join(format!("rbac-{namespace}.yaml"));
        let text = fs::read_to_string(RBAC).context("reading deploy/rbac.yaml")?;
        fs::write(&granted, text.replace("namespace: perennial", &format!("namespace: {namespace}")))?;
        let applied = Command::new(self.assets().kubectl())
            .arg("--kubeconfig")
            .arg(self.kubeconfig_for_admin()?)
            .args(["apply", "--validate=false", "-f"])
            .arg(granted)
            .stdin(Stdio::null())
            // Ctrl-C is for us alone.
            .process_group(0)
            .kill_on_drop(true)
            .output()
            .await
            .context("starting kubectl")?;
        let told = String::from_utf8_lossy(&applied.stderr);
        ensure!(applied.status.success(), "granting deploy/rbac.yaml: {}", told.trim());
        self.honours(self.service_account(namespace, ACCOUNT).await?, namespace).await?;
        Ok(kubeconfig)
    }

    /// Waits until the authorizer has learned of it: one permission of each rule.
    async fn honours(&self, account: Client, namespace: &str) -> anyhow::Result<()> {
        let asked = [
            review("patch", "", "nodes", None),
            review("delete", "", "configmaps", Some(namespace)),
            review("delete", "coordination.k8s.io", "leases", Some(namespace)),
            review("create", "", "events", Some("default")),
        ];
        let reviews: Api<SelfSubjectAccessReview> = Api::all(account);
        eventually(SOON, "the permissions count", || async {
            for ask in &asked {
                let answer = reviews.create(&PostParams::default(), ask).await?;
                if !answer.status.is_some_and(|status| status.allowed) {
                    return Ok(None);
                }
            }
            Ok(Some(()))
        })
        .await
    }
}

fn review(verb: &str, group: &str, resource: &str, namespace: Option<&str>) -> SelfSubjectAccessReview {
    let attributes = ResourceAttributes {
        verb: Some(verb.to_owned()),
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        namespace: namespace.map(str::to_owned),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec {
        resource_attributes: Some(attributes),
        ..SelfSubjectAccessReviewSpec::default()
    };
    SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() }
}
