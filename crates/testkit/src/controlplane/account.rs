//! The accounts that Perennial runs under: exactly what the files of `deploy` grant, and nothing else.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, ensure};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionCondition,
};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
    core::Request,
};
use serde_json::json;
use tokio::process::Command;

use super::ControlPlane;
use crate::{endpoint::bearer, eventually};

/// The service account of the file, and the namespace it is for.
const ACCOUNT: &str = "perennial";
/// The names of everything that belongs to the webhook, and to metrics by HTTPS.
const WEBHOOK: &str = "perennial-webhook";
const METRICS: &str = "perennial-metrics";
const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");
const SOON: Duration = Duration::from_mins(1);

impl ControlPlane {
    /// A kubeconfig for the service account `perennial` of this namespace, with what `deploy/rbac.yaml` grants it
    /// there. Returns once the API server honours that.
    pub async fn kubeconfig_for_keeper(&self, namespace: &str) -> anyhow::Result<PathBuf> {
        let kubeconfig = self.kubeconfig_for_service_account(namespace, ACCOUNT).await?;
        self.grant(namespace, "rbac.yaml").await?;
        let asked = [
            review("patch", "", "nodes", None),
            review("delete", "", "configmaps", Some(namespace)),
            review("delete", "coordination.k8s.io", "leases", Some(namespace)),
            review("create", "", "events", Some("default")),
        ];
        self.honours(namespace, &asked).await?;
        Ok(kubeconfig)
    }

    /// A kubeconfig of an account that may do what `deploy/rbac-lister.yaml` grants, and in this namespace also what
    /// `deploy/rbac-listings.yaml` does.
    pub async fn kubeconfig_for_lister(&self, namespace: &str) -> anyhow::Result<PathBuf> {
        let kubeconfig = self.kubeconfig_for_service_account(namespace, ACCOUNT).await?;
        self.grant(namespace, "rbac-lister.yaml").await?;
        self.grant(namespace, "rbac-listings.yaml").await?;
        let asked = [
            review("watch", "perennial.dev", "listings", None),
            review("watch", "discovery.k8s.io", "endpointslices", None),
            review("get", "", "services", None),
            review("create", "", "events", None),
            review("delete", "coordination.k8s.io", "leases", Some(namespace)),
            review("patch", "", "configmaps", Some(namespace)),
        ];
        self.honours(namespace, &asked).await?;
        Ok(kubeconfig)
    }

    /// Has the API server ask this webhook about nodes, as `deploy/webhook.yaml` has it, or also `deploy/webhook-strict.yaml`;
    /// only that it is asked here and not through a Service. Returns once the keeper's account may do what it needs for it.
    pub async fn install_webhook(&self, namespace: &str, url: &str, strict: bool) -> anyhow::Result<()> {
        self.grant(namespace, "webhook.yaml").await?;
        let mut kinds = vec!["mutatingwebhookconfigurations"];
        if strict {
            self.grant(namespace, "webhook-strict.yaml").await?;
            kinds.push("validatingwebhookconfigurations");
        }
        for (kind, path) in kinds.into_iter().zip(["born", "gone"]) {
            let resource = Request::new(format!("/apis/admissionregistration.k8s.io/v1/{kind}"));
            let asked = json!({ "service": null, "url": format!("{url}/{path}") });
            let hook = json!({ "name": format!("{path}.perennial.dev"), "clientConfig": asked });
            let patch = Patch::Strategic(json!({ "webhooks": [hook] }));
            let request = resource.patch(WEBHOOK, &PatchParams::default(), &patch)?;
            self.admin().request::<serde::de::IgnoredAny>(request).await.context(kind)?;
        }
        let mut asked = [
            review("patch", "", "secrets", Some(namespace)),
            review("patch", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", None),
        ];
        for ask in asked.iter_mut().filter_map(|ask| ask.spec.resource_attributes.as_mut()) {
            ask.name = Some(WEBHOOK.to_owned());
        }
        self.honours(namespace, &asked).await
    }

    /// Has the keeper's account serve metrics by HTTPS, as `deploy/metrics.yaml` has it. Returns once it may do what it needs for
    /// that.
    pub async fn install_metrics(&self, namespace: &str) -> anyhow::Result<()> {
        self.grant(namespace, "metrics.yaml").await?;
        let mut secret = review("patch", "", "secrets", Some(namespace));
        if let Some(asked) = &mut secret.spec.resource_attributes {
            asked.name = Some(METRICS.to_owned());
        }
        let asked = [
            secret,
            review("create", "authentication.k8s.io", "tokenreviews", None),
            review("create", "authorization.k8s.io", "subjectaccessreviews", None),
        ];
        self.honours(namespace, &asked).await
    }

    /// Applies a file of `deploy` as the admin does, for an installation in this namespace.
    async fn grant(&self, namespace: &str, file: &str) -> anyhow::Result<()> {
        let granted = self.folder().join(format!("{namespace}-{file}"));
        let text =
            fs::read_to_string(Path::new(DEPLOY).join(file)).with_context(|| format!("reading {file}"))?;
        let text = text.replace("namespace: perennial", &format!("namespace: {namespace}"));
        // Fences name accounts, with their namespaces.
        let text =
            text.replace("system:serviceaccount:perennial:", &format!("system:serviceaccount:{namespace}:"));
        // What a team grants in its own namespace names none.
        fs::write(
            &granted,
            text.replace(
                "\nmetadata:\n  name: perennial-listings\n",
                &format!("\nmetadata:\n  name: perennial-listings\n  namespace: {namespace}\n"),
            ),
        )?;
        self.apply(&granted).await.with_context(|| format!("granting deploy/{file}"))
    }

    /// Installs what `Listing` objects are, as `deploy/crds` has it. Returns once the API server knows them.
    pub async fn install_listings(&self) -> anyhow::Result<()> {
        self.apply(&Path::new(DEPLOY).join("crds")).await.context("installing deploy/crds")?;
        let crds: Api<CustomResourceDefinition> = Api::all(self.admin());
        eventually(SOON, "Listings are known", || async {
            let crd = crds.get("listings.perennial.dev").await?;
            let conditions = crd.status.and_then(|status| status.conditions).unwrap_or_default();
            let known =
                |one: &CustomResourceDefinitionCondition| one.type_ == "Established" && one.status == "True";
            Ok(conditions.iter().any(known).then_some(()))
        })
        .await
    }

    /// Applies an object as the admin does.
    pub async fn kubectl_apply(&self, object: &str) -> anyhow::Result<()> {
        let file = self.folder().join("applied.yaml");
        fs::write(&file, object)?;
        self.apply(&file).await
    }

    async fn apply(&self, file: &Path) -> anyhow::Result<()> {
        let applied = Command::new(self.assets().kubectl())
            .arg("--kubeconfig")
            .arg(self.kubeconfig_for_admin()?)
            .args(["apply", "--validate=false", "-f"])
            .arg(file)
            .stdin(Stdio::null())
            // Ctrl-C is for us alone.
            .process_group(0)
            .kill_on_drop(true)
            .output()
            .await
            .context("starting kubectl")?;
        let told = String::from_utf8_lossy(&applied.stderr);
        ensure!(applied.status.success(), "kubectl apply: {}", told.trim());
        Ok(())
    }

    /// Waits until the authorizer of every API server has learned of it: one permission of each rule.
    async fn honours(&self, namespace: &str, asked: &[SelfSubjectAccessReview]) -> anyhow::Result<()> {
        let account = bearer(self.token(namespace, ACCOUNT).await?);
        for server in &self.apiservers {
            let reviews: Api<SelfSubjectAccessReview> = Api::all(server.client(&account)?);
            eventually(SOON, "the permissions count", || async {
                for ask in asked {
                    let answer = reviews.create(&PostParams::default(), ask).await?;
                    if !answer.status.is_some_and(|status| status.allowed) {
                        return Ok(None);
                    }
                }
                Ok(Some(()))
            })
            .await?;
        }
        Ok(())
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
