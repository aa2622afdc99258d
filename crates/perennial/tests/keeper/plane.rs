//! Control planes that tests share, one after the other: starting one costs more than most tests do.
#![allow(dead_code, reason = "each suite uses its own part of it")]

use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::core::v1::{Event, Node};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use perennial_testkit::ControlPlane;
use serde_json::json;

/// Those that nobody uses now. They end with this process.
static IDLE: Mutex<Vec<ControlPlane>> = Mutex::new(Vec::new());

/// A control plane, one's own or one that others used before and will use again.
pub(crate) struct Plane {
    plane: Option<ControlPlane>,
    shared: bool,
}

impl Plane {
    /// One that nobody else uses, ever.
    pub(crate) fn own(plane: ControlPlane) -> Self {
        Self { plane: Some(plane), shared: false }
    }

    /// One that others used before, without their nodes, and a namespace that nobody used before: whatever a
    /// keeper of an earlier test still has under way cannot reach this one.
    pub(crate) async fn shared() -> (Self, String) {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let plane = match idle {
            Some(plane) => {
                clean(&plane).await;
                plane
            }
            None => ControlPlane::start().await.unwrap(),
        };
        let namespace = format!("perennial-{:08x}", rand::random::<u32>());
        (Self { plane: Some(plane), shared: true }, namespace)
    }
}

impl Deref for Plane {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        self.plane.as_ref().unwrap()
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        // After a failure it goes, and its logs stay.
        if self.shared && !std::thread::panicking() {
            IDLE.lock().unwrap_or_else(PoisonError::into_inner).extend(self.plane.take());
        }
    }
}

/// Removes what the test before left: nodes, Events, admission policies, webhooks.
async fn clean(plane: &ControlPlane) {
    let (all, delete) = (ListParams::default(), DeleteParams::default());
    let hooks: Api<MutatingWebhookConfiguration> = Api::all(plane.admin());
    hooks.delete_collection(&delete, &all).await.unwrap();
    let nodes: Api<Node> = Api::all(plane.admin());
    for node in nodes.list(&all).await.unwrap() {
        if node.metadata.finalizers.is_some_and(|finalizers| !finalizers.is_empty()) {
            let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
            nodes.patch(&node.metadata.name.unwrap(), &PatchParams::default(), &free).await.unwrap();
        }
    }
    nodes.delete_collection(&delete, &all).await.unwrap();
    Api::<Event>::namespaced(plane.admin(), "default").delete_collection(&delete, &all).await.unwrap();
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(plane.admin());
    bindings.delete_collection(&delete, &all).await.unwrap();
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(plane.admin());
    policies.delete_collection(&delete, &all).await.unwrap();
}
