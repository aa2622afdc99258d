//! The gate: a taint that keeps workloads away until a node has all its own; and the condition that says so.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use perennial_core::record::State;
use perennial_testkit::eventually;
use perennial_testkit::proxy::{Fault, Matcher, Moment, Proxy, Verb};
use serde_json::json;

use crate::born::versions_until_marked;
use crate::hook::{Hook, kubelet, own};
use crate::world::{SOON, World, connect, pairs};

const GATE: &str = "perennial.dev/unrestored";
/// Its own machine or none, it gets its role back.
const BARE_METAL: &str = "rules: [{privileged: {withoutProviderID: true}}]";
const ROLE: &str = "node-role.kubernetes.io/db";

fn is_gated(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.is_some_and(|taints| taints.iter().any(|taint| taint.key == GATE && taint.effect == "NoSchedule"))
}

/// Behind a proxy, so that it can be kept from giving.
async fn gates(gate: Duration) -> (World, Proxy, Hook) {
    let mut world = World::without_keeper(BARE_METAL).await;
    let proxy = Proxy::start(world.kubeconfig()).await.unwrap();
    let through = connect(proxy.kubeconfig()).await;
    world.interpose(|_| (through, ()));
    world.configure(|config| config.gate = Some(gate));
    let hook = world.start_with_hook().await;
    (world, proxy, hook)
}

/// It was there with these labels, and is gone.
async fn left(world: &World, name: &str, labels: &crate::world::Labels) {
    world.register(name, labels).await;
    world.recorded(name, labels).await;
    world.delete(name).await;
}

#[tokio::test]
async fn it_is_there_from_birth_until_the_node_has_all_its_own() {
    let (world, proxy, _hook) = gates(Duration::from_mins(10)).await;
    let all = pairs([("team", "blue"), (ROLE, "")]);
    left(&world, "worker-1", &all).await;
    let held = proxy.inject(Matcher::on("nodes").verbs([Verb::Patch]), Fault::Hang);
    let born = world.join("worker-1").await;
    assert!(is_gated(&born) && born.metadata.labels.unwrap().contains_key("team"));
    drop(held);
    let node = world.is_marked("worker-1").await;
    assert!(!is_gated(&node), "it is opened with what is given, and not after it");
    assert!(node.metadata.labels.unwrap().contains_key(ROLE));
}

#[tokio::test]
async fn others_taints_stay_as_they_are() {
    let (world, _proxy, _hook) = gates(Duration::from_mins(10)).await;
    left(&world, "worker-1", &pairs([(ROLE, "")])).await;
    let taint = json!({ "key": "example.com/boot", "value": "x", "effect": "NoExecute" });
    let node = json!({ "metadata": { "name": "worker-1" }, "spec": { "taints": [taint] } });
    assert!(is_gated(&world.create(node).await));
    let node = world.is_marked("worker-1").await;
    let taints = node.spec.unwrap().taints.unwrap();
    assert!(
        taints.iter().any(|taint| taint.key == "example.com/boot" && taint.value.as_deref() == Some("x"))
    );
    assert!(!taints.iter().any(|taint| taint.key == GATE));
}

#[tokio::test]
async fn where_nothing_more_is_owed_there_is_none() {
    let (world, _proxy, _hook) = gates(Duration::from_mins(10)).await;
    assert!(!is_gated(&world.join("worker-9").await), "nobody remembers it");
    left(&world, "worker-1", &pairs([("team", "blue")])).await;
    assert!(!is_gated(&world.join("worker-1").await), "it is born with all its own");
}

#[tokio::test]
async fn there_is_none_before_the_control_plane() {
    let (world, _proxy, _hook) = gates(Duration::from_mins(10)).await;
    let role = "node-role.kubernetes.io/control-plane";
    left(&world, "control-1", &pairs([(role, ""), (ROLE, "")])).await;
    assert!(!is_gated(&world.join("control-1").await), "its record says what it is");
    left(&world, "control-2", &pairs([(ROLE, "")])).await;
    let taint = json!({ "key": role, "effect": "NoSchedule" });
    let node = json!({ "metadata": { "name": "control-2", "labels": own("control-2") }, "spec": { "taints": [taint] } });
    let node = serde_json::from_value(node).unwrap();
    let born = kubelet(&world, "control-2").create(&PostParams::default(), &node).await.unwrap();
    assert!(!is_gated(&born), "it says itself what it is");
}

#[tokio::test]
async fn one_whose_record_is_gone_by_then_is_let_through_at_once() {
    let (world, _proxy, _hook) = gates(Duration::from_mins(10)).await;
    // As an answer would leave it that was given from what nobody remembers any more.
    let node = json!({
        "metadata": { "name": "worker-1", "annotations": { "born.perennial.dev/perennial": "gated" } },
        "spec": { "taints": [{ "key": GATE, "effect": "NoSchedule" }] },
    });
    world.create(node).await;
    opens(&world, "worker-1").await;
}

async fn opens(world: &World, name: &str) {
    eventually(SOON, "the gate is open", || async {
        let node = world.nodes().get(name).await?;
        let stamped = |all: &std::collections::BTreeMap<String, String>| {
            all.values().any(|value| value.split(' ').any(|word| word == "gated"))
        };
        let told = node.metadata.annotations.as_ref().is_some_and(stamped);
        Ok((!is_gated(&node) && !told).then_some(()))
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn after_its_time_it_is_opened_whatever_is_owed_and_what_is_owed_still_comes() {
    let (mut world, proxy, _hook) = gates(Duration::from_secs(2)).await;
    let all = pairs([("team", "blue"), (ROLE, "")]);
    left(&world, "worker-1", &all).await;
    world.closed("worker-1", &all).await;
    // The record cannot be written, so that nothing may be given.
    let held =
        proxy.inject(Matcher::on("configmaps").verbs([Verb::Create, Verb::Update]), Fault::Refuse(500));
    assert!(is_gated(&world.join("worker-1").await));
    opens(&world, "worker-1").await;
    assert!(!world.labels("worker-1").await.contains_key(ROLE));
    drop(held);
    let all = all.into_iter().chain(own("worker-1")).collect();
    world.labels_become("worker-1", &all).await;
    world.is_marked("worker-1").await;
    // Nothing of what it was born with was taken for its own on the way, or lost.
    world.stop_keeper().await;
}

#[tokio::test]
async fn a_keeper_that_is_back_after_its_time_opens_it_with_what_is_given_all_the_same() {
    let (mut world, proxy, hook) = gates(Duration::from_secs(2)).await;
    left(&world, "worker-1", &pairs([("team", "blue"), (ROLE, "")])).await;
    let held = proxy.inject(Matcher::on("nodes").verbs([Verb::Patch]), Fault::Hang);
    let born = world.join("worker-1").await;
    assert!(is_gated(&born));
    world.record_becomes("worker-1", "is about to be given", |record| record.state == State::Giving).await;
    world.crash_keeper().await;
    drop((held, hook));
    let created = born.metadata.creation_timestamp.unwrap().0;
    eventually(SOON, "its time is over", || async {
        Ok((jiff::Timestamp::now().duration_since(created).as_secs() > 2).then_some(()))
    })
    .await
    .unwrap();
    world.configure(|config| config.door = None);
    let versions = tokio::spawn(versions_until_marked(&world, "worker-1").await);
    world.start_keeper().await;
    let versions = versions.await.unwrap();
    for node in &versions {
        let has_its_role = node.metadata.labels.as_ref().unwrap().contains_key(ROLE);
        assert_ne!(is_gated(node), has_its_role, "{versions:#?}");
    }
}

#[tokio::test]
async fn where_what_is_owed_is_refused_it_is_opened_alone_after_its_time() {
    let (world, _proxy, _hook) = gates(Duration::from_secs(2)).await;
    left(&world, "worker-1", &pairs([("team", "blue"), (ROLE, "")])).await;
    let refused = refuse_the_role(&world).await;
    assert!(is_gated(&world.join("worker-1").await));
    opens(&world, "worker-1").await;
    assert!(!world.labels("worker-1").await.contains_key(ROLE));
    refused.delete("roles", &DeleteParams::default()).await.unwrap();
    assert!(world.is_marked("worker-1").await.metadata.labels.unwrap().contains_key(ROLE));
}

/// Has the API server refuse that anybody gives a node its role, until this binding goes.
async fn refuse_the_role(world: &World) -> Api<ValidatingAdmissionPolicyBinding> {
    let client = world.plane.admin();
    let policy = json!({
        "metadata": { "name": "roles" },
        "spec": {
            "matchConstraints": { "resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"],
            }]},
            "validations": [{ "expression": format!("!('{ROLE}' in object.metadata.?labels.orValue({{}}))") }],
        },
    });
    let binding = json!({
        "metadata": { "name": "roles" },
        "spec": { "policyName": "roles", "validationActions": ["Deny"] },
    });
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    policies.create(&PostParams::default(), &serde_json::from_value(policy).unwrap()).await.unwrap();
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(client);
    bindings.create(&PostParams::default(), &serde_json::from_value(binding).unwrap()).await.unwrap();
    world.register("probe", &pairs([])).await;
    let role = Patch::Merge(json!({ "metadata": { "labels": { ROLE: "" } } }));
    eventually(SOON, "the role is refused", || async {
        let params = PatchParams { dry_run: true, ..PatchParams::default() };
        Ok(world.nodes().patch("probe", &params, &role).await.is_err().then_some(()))
    })
    .await
    .unwrap();
    bindings
}

#[tokio::test]
async fn one_that_is_left_behind_is_opened_by_a_keeper_that_puts_up_none() {
    let (mut world, proxy, hook) = gates(Duration::from_mins(10)).await;
    let all = pairs([("team", "blue"), (ROLE, "")]);
    left(&world, "worker-1", &all).await;
    let held = proxy.inject(Matcher::on("nodes").verbs([Verb::Patch]), Fault::Hang);
    assert!(is_gated(&world.join("worker-1").await));
    world.crash_keeper().await;
    drop((held, hook));
    world.configure(|config| (config.gate, config.door) = (None, None));
    world.start_keeper().await;
    assert!(!is_gated(&world.is_marked("worker-1").await));
}

// ── The condition ──

/// Lets the keeper's account say it, as the chart does with `keeper.condition`.
async fn may_tell(world: &World) {
    let client = world.plane.admin();
    let role = json!({
        "metadata": { "name": "condition" },
        "rules": [{ "apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"] }],
    });
    let binding = json!({
        "metadata": { "name": "condition" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "condition" },
        "subjects": [{ "kind": "ServiceAccount", "name": "perennial", "namespace": world.namespace() }],
    });
    let roles: Api<ClusterRole> = Api::all(client.clone());
    roles.create(&PostParams::default(), &serde_json::from_value(role).unwrap()).await.unwrap();
    let bindings: Api<ClusterRoleBinding> = Api::all(client);
    bindings.create(&PostParams::default(), &serde_json::from_value(binding).unwrap()).await.unwrap();
}

fn has_its_own(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let told = |all: &Vec<_>| all.iter().any(is_ours);
    conditions.is_some_and(told)
}

fn is_ours(one: &k8s_openapi::api::core::v1::NodeCondition) -> bool {
    one.type_ == "perennial.dev/MetadataRestored" && one.status == "True"
}

async fn is_told(world: &World, name: &str) {
    eventually(SOON, "the condition is set", || async {
        Ok(has_its_own(&world.nodes().get(name).await?).then_some(()))
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_condition_says_when_a_node_has_its_own() {
    let mut world = World::alone("").await;
    may_tell(&world).await;
    let proxy = Proxy::start(world.kubeconfig()).await.unwrap();
    let through = connect(proxy.kubeconfig()).await;
    world.interpose(|_| (through, ()));
    world.configure(|config| config.condition = true);
    world.start_keeper().await;
    let labels = pairs([("team", "blue")]);
    // One that is new, one of which nothing is kept, one that comes back.
    world.register("worker-1", &labels).await;
    is_told(&world, "worker-1").await;
    world.register("worker-2", &pairs([])).await;
    is_told(&world, "worker-2").await;
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;
    let held = proxy.inject(Matcher::on("nodes").verbs([Verb::Patch]), Fault::Hang);
    world.register("worker-1", &pairs([])).await;
    world.record_becomes("worker-1", "is about to be given", |record| record.state == State::Giving).await;
    assert!(!has_its_own(&world.node("worker-1").await));
    drop(held);
    is_told(&world, "worker-1").await;
    assert!(world.labels("worker-1").await.contains_key("team"));
}

#[tokio::test]
async fn a_condition_that_could_not_be_set_at_once_is_set_before_the_record_is_open() {
    let mut world = World::alone("").await;
    may_tell(&world).await;
    let proxy = Proxy::start(world.kubeconfig()).await.unwrap();
    let through = connect(proxy.kubeconfig()).await;
    world.interpose(|_| (through, ()));
    world.configure(|config| config.condition = true);
    world.start_keeper().await;
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;
    let status = Matcher::on("nodes").when(|call| call.subresource.as_deref() == Some("status"));
    let refused = proxy.inject(status, Fault::Refuse(500));
    world.register("worker-1", &pairs([])).await;
    world.is_marked("worker-1").await;
    world.crash_keeper().await;
    drop(refused);
    assert!(!has_its_own(&world.node("worker-1").await));
    world.start_keeper().await;
    is_told(&world, "worker-1").await;
}

#[tokio::test]
async fn a_condition_of_a_life_that_is_over_reaches_no_other() {
    let mut world = World::alone("").await;
    may_tell(&world).await;
    let proxy = Proxy::start(world.kubeconfig()).await.unwrap();
    let through = connect(proxy.kubeconfig()).await;
    world.interpose(|_| (through, ()));
    world.configure(|config| config.condition = true);
    world.start_keeper().await;
    let status = Matcher::on("nodes").when(|call| call.subresource.as_deref() == Some("status"));
    let stop = proxy.stop(status, 0, Moment::BeforeRequest);
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    let stopped = stop.reached().await.unwrap();
    world.delete("worker-1").await;
    world.register("worker-1", &pairs([])).await;
    stopped.go_on();
    world.labels_become("worker-1", &labels).await;
    is_told(&world, "worker-1").await;
    assert_eq!(world.metric("errors_total{kind=\"invalid\"}"), 0.0, "that is no mistake of anybody");
}

#[tokio::test]
async fn whoever_refuses_the_condition_keeps_nothing_from_being_recorded() {
    // The account may not write a status.
    let mut world = World::alone("").await;
    world.configure(|config| config.condition = true);
    world.start_keeper().await;
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;
    world.register("worker-1", &pairs([])).await;
    world.labels_become("worker-1", &labels).await;
    world.record_becomes("worker-1", "is open again", |record| record.state == State::Open).await;
}

#[tokio::test]
async fn a_condition_that_was_refused_is_set_once_it_is_allowed() {
    // As while what an upgrade grants is not known everywhere yet.
    let mut world = World::alone("").await;
    world.configure(|config| config.condition = true);
    world.start_keeper().await;
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.metric_reaches("errors_total{kind=\"forbidden\"}", 1.0).await;
    assert!(!has_its_own(&world.node("worker-1").await));
    // Nothing waits for it meanwhile.
    world.label("worker-1", "team", Some("red")).await;
    let labels = pairs([("team", "red")]);
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;
    world.closed("worker-1", &labels).await;
    world.register("worker-1", &pairs([])).await;
    world.record_becomes("worker-1", "is open again", |record| record.state == State::Open).await;
    may_tell(&world).await;
    is_told(&world, "worker-1").await;
}
