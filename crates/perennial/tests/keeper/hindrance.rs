//! Keeps the keeper from writing, as a strict admission policy of the cluster would.

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use perennial_testkit::eventually;
use serde_json::json;

use crate::world::{SOON, World};

const NAME: &str = "hold-the-keepers-arm";

impl World {
    /// From now on the API server refuses whatever the keeper writes to Nodes. `node` is one that is there.
    pub(crate) async fn refuse_node_patches(&self, node: &str) {
        self.refuse("nodes").await;
        self.eventually_may(false, || self.tries_to_patch(node)).await;
    }

    /// The keeper may write to Nodes again.
    pub(crate) async fn allow_node_patches(&self, node: &str) {
        self.allow().await;
        self.eventually_may(true, || self.tries_to_patch(node)).await;
    }

    /// From now on the API server refuses whatever the keeper writes to records.
    pub(crate) async fn refuse_record_writes(&self) {
        self.refuse("configmaps").await;
        self.eventually_may(false, || self.tries_to_create()).await;
    }

    /// The keeper may write records again.
    pub(crate) async fn allow_record_writes(&self) {
        self.allow().await;
        self.eventually_may(true, || self.tries_to_create()).await;
    }

    async fn refuse(&self, resource: &str) {
        let keeper = format!("request.userInfo.username == '{}'", self.keepers_name());
        let policy = json!({
            "metadata": { "name": NAME },
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": { "resourceRules": [{
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE", "DELETE"],
                    "resources": [resource],
                }]},
                "matchConditions": [{ "name": "the-keeper", "expression": keeper }],
                "validations": [{ "expression": "false", "message": "not now" }],
            },
        });
        let binding = json!({
            "metadata": { "name": NAME },
            "spec": { "policyName": NAME, "validationActions": ["Deny"] },
        });
        let params = PostParams::default();
        let policies: Api<ValidatingAdmissionPolicy> = Api::all(self.plane.admin());
        policies.create(&params, &serde_json::from_value(policy).unwrap()).await.unwrap();
        let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(self.plane.admin());
        bindings.create(&params, &serde_json::from_value(binding).unwrap()).await.unwrap();
    }

    async fn allow(&self) {
        let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(self.plane.admin());
        bindings.delete(NAME, &DeleteParams::default()).await.unwrap();
        let policies: Api<ValidatingAdmissionPolicy> = Api::all(self.plane.admin());
        policies.delete(NAME, &DeleteParams::default()).await.unwrap();
    }

    async fn keepers_identity(&self) -> Client {
        self.plane.service_account(self.namespace(), "perennial").await.unwrap()
    }

    /// As the keeper, without effect.
    async fn tries_to_patch(&self, node: &str) -> kube::Result<()> {
        let nodes: Api<Node> = Api::all(self.keepers_identity().await);
        let params = PatchParams { dry_run: true, ..PatchParams::default() };
        let patch = Patch::Merge(json!({ "metadata": { "labels": { "tried": "yes" } } }));
        nodes.patch(node, &params, &patch).await.map(drop)
    }

    /// As the keeper, without effect.
    async fn tries_to_create(&self) -> kube::Result<()> {
        let maps: Api<ConfigMap> = Api::namespaced(self.keepers_identity().await, self.namespace());
        let params = PostParams { dry_run: true, ..PostParams::default() };
        let map = serde_json::from_value(json!({ "metadata": { "name": "tried" } })).unwrap();
        maps.create(&params, &map).await.map(drop)
    }

    async fn eventually_may<F>(&self, may: bool, mut tries: impl FnMut() -> F)
    where
        F: Future<Output = kube::Result<()>>,
    {
        eventually(SOON, &format!("the keeper may write: {may}"), || {
            let trying = tries();
            async move {
                match trying.await {
                    Ok(()) => Ok(may.then_some(())),
                    Err(kube::Error::Api(status)) if status.message.contains("not now") => {
                        Ok((!may).then_some(()))
                    }
                    Err(other) => Err(other.into()),
                }
            }
        })
        .await
        .unwrap();
    }
}
