//! The fences of the chart, on the real API server: with the keeper's token, and with every right to Nodes, nothing can be changed
//! but what the policy keeps, and of webhooks nothing but whom to trust; and a record is not written by whoever may write ConfigMaps.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{DeleteParams, GetParams, Patch, PatchParams, PostParams};
use kube::core::Request;
use kube::{Api, Client};
use perennial_core::policy::{Policy, builtin_globs};
use perennial_testkit::{ControlPlane, eventually};
use serde_json::{Value, json};

use crate::accepted::apply;
use crate::granted::{Installed, NAMESPACE, keeper};
use crate::rendered::{PERENNIAL, chart, is, objects, render, root};

const SOON: Duration = Duration::from_mins(1);
const NODE: &str = "worker";

/// What a write came to: nothing, or the words of its refusal.
async fn tried<T>(write: impl Future<Output = kube::Result<T>>) -> Result<(), String> {
    match write.await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 403 => Err(status.message),
        Err(error) => panic!("{error}"),
    }
}

/// Waits for the fence around nodes.
async fn stands(nodes: &Api<Node>) {
    eventually(SOON, "the fence stands", || async {
        let params = PatchParams { dry_run: true, ..PatchParams::default() };
        let refused = tried(nodes.patch(NODE, &params, &Patch::Merge(label("perennial.dev/x", "y")))).await;
        Ok(refused.err().filter(|words| words.contains("ValidatingAdmissionPolicy")).map(drop))
    })
    .await
    .unwrap();
}

/// An installation whose keeper's account was granted every right to Nodes, as nobody should.
struct Fenced {
    installed: Installed,
    nodes: Api<Node>,
    /// The same, for an administrator.
    as_admin: Api<Node>,
}

impl Fenced {
    async fn with(example: Option<&str>, account: &str) -> Self {
        let installed = Installed::with(example).await;
        let granted = [
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "too-much" },
                "rules": [{ "apiGroups": [""], "resources": ["nodes", "nodes/status"], "verbs": ["*"] }],
            }),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": "too-much" },
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "too-much" },
                "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": NAMESPACE }],
            }),
        ];
        apply(&installed.plane, &granted).await;
        let as_admin: Api<Node> = Api::all(installed.plane.admin());
        let node = json!({
            "metadata": {
                "name": NODE,
                "labels": { "team": "blue", "kubernetes.io/os": "linux" },
                "annotations": { "example.com/owner": "ops" },
            },
            "spec": {
                "taints": [{ "key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule" }],
                "unschedulable": true,
            },
        });
        as_admin.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
        let nodes = Api::all(installed.plane.service_account(NAMESPACE, account).await.unwrap());
        stands(&nodes).await;
        Self { installed, nodes, as_admin }
    }

    async fn patch(&self, patch: &Value) -> Result<(), String> {
        tried(self.nodes.patch(NODE, &PatchParams::default(), &Patch::Merge(patch))).await
    }

    async fn patch_status(&self, patch: &Value) -> Result<(), String> {
        tried(self.nodes.patch_status(NODE, &PatchParams::default(), &Patch::Merge(patch))).await
    }

    async fn refuses(&self, patch: Value, why: &str) {
        let before = self.as_admin.get(NODE).await.unwrap();
        let refused = self.patch(&patch).await.expect_err(&patch.to_string());
        assert!(refused.contains(why), "{patch}: {refused}");
        assert_eq!(self.as_admin.get(NODE).await.unwrap(), before);
    }

    async fn allows(&self, patch: Value) {
        self.patch(&patch).await.unwrap_or_else(|refused| panic!("{patch}: {refused}"));
    }

    /// Which of these keys it does not let the account set, of labels or annotations.
    async fn strays(&self, kind: &str, keys: &BTreeSet<String>) -> BTreeSet<String> {
        let mut strays = BTreeSet::new();
        // Not too many at once: words of a refusal are cut at 5 KB.
        for keys in Vec::from_iter(keys).chunks(50) {
            let pairs: BTreeMap<&str, &str> = keys.iter().map(|key| (key.as_str(), "value")).collect();
            let params = PatchParams { dry_run: true, ..PatchParams::default() };
            let patch = Patch::Merge(json!({ "metadata": { kind: pairs } }));
            if let Err(refused) = tried(self.nodes.patch(NODE, &params, &patch)).await {
                let named =
                    refused.split_once(&format!("does not keep these {kind}: ")).map(|(_, named)| named);
                strays.extend(named.expect(&refused).split(", ").map(str::to_owned));
            }
        }
        strays
    }

    /// What of these keys the policy of the installation keeps on no node.
    fn not_kept(&self, kind: &str, keys: &BTreeSet<String>) -> BTreeSet<String> {
        let policy = Policy::parse(self.installed.policy()).unwrap();
        let kept = |key: &&String| {
            policy.rules().iter().any(|rule| match kind {
                "labels" => rule.keeps_label(key),
                _ => rule.keeps_annotation(key),
            })
        };
        keys.iter().filter(|key| !kept(key)).cloned().collect()
    }
}

fn label(key: &str, value: impl Into<Value>) -> Value {
    json!({ "metadata": { "labels": { key: value.into() } } })
}

fn annotation(key: &str, value: impl Into<Value>) -> Value {
    json!({ "metadata": { "annotations": { key: value.into() } } })
}

/// Keys that match each of the built-in globs, and some that nearly do.
fn keys() -> BTreeSet<String> {
    let globs = builtin_globs().into_iter().flat_map(|(_, globs)| [globs.never, globs.usual].concat());
    let mut keys: BTreeSet<String> = globs
        .flat_map(|glob| {
            // The first of several, and any text for a star.
            let (before, rest) = glob.split_once('{').unwrap_or((glob, ""));
            let (one, after) = rest
                .split_once('}')
                .map_or(("", ""), |(either, after)| (either.split(',').next().unwrap_or_default(), after));
            let glob = format!("{before}{one}{after}");
            let filled = glob.replace('*', "x");
            [filled.clone(), format!("{filled}x"), filled.replace('.', "-")]
        })
        .collect();
    let others = [
        "team",
        "example.com/team",
        "example.com/scratch-1",
        "node-role.kubernetes.io/worker",
        "x.node-restriction.kubernetes.io/a",
        "topology.kubernetes.io/zone",
        "perennial.dev/state",
        "kubernetes.io/hostname",
        "nvidia.com/mig.config",
        "nvidia.com/gpu.count",
        "restored.perennial.dev/other",
    ];
    keys.extend(others.map(str::to_owned));
    // What is no key the API server refuses before any fence is asked.
    keys.retain(|key| perennial_core::policy::syntax::is_key(key));
    keys
}

#[test]
fn the_globs_of_the_fence_are_those_of_the_keeper() {
    use std::fmt::Write as _;

    let file = chart(PERENNIAL).join("files/kept.yaml");
    let mut made = String::from(
        "# What no policy keeps, and what `*` leaves out, for the fence around Nodes (templates/admission.yaml).\n\
         # Made from the keeper's own tables: UPDATE_DOCS=1 cargo test -p perennial --test charts fenced\n",
    );
    for (kind, globs) in builtin_globs() {
        writeln!(made, "{kind}:").unwrap();
        for (table, globs) in [("never", globs.never), ("usual", globs.usual)] {
            writeln!(made, "  {table}:{}", if globs.is_empty() { " []" } else { "" }).unwrap();
            for glob in globs {
                writeln!(made, "    - {glob:?}").unwrap();
            }
        }
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, &made).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap_or_default(), made, "{} is old", file.display());
}

#[tokio::test]
async fn a_stolen_token_changes_of_nodes_nothing_but_what_is_kept() {
    let fenced = Fenced::with(None, "perennial").await;
    fenced.allows(label("example.com/rack", "7")).await;
    fenced.allows(annotation("restored.perennial.dev/perennial", "a uid")).await;

    let not_kept = "does not keep these labels: ";
    fenced.refuses(label("kubernetes.io/os", "plan9"), not_kept).await;
    fenced.refuses(label("kubernetes.io/hostname", "other"), not_kept).await;
    fenced.refuses(label("perennial.dev/x", "y"), not_kept).await;
    fenced.refuses(label("team", Value::Null), "removes no labels").await;
    let not_kept = "does not keep these annotations: ";
    fenced.refuses(annotation("example.com/owner", "me"), not_kept).await;
    fenced.refuses(annotation("perennial.dev/pause", "true"), not_kept).await;
    fenced.refuses(annotation("restored.perennial.dev/other", "a uid"), not_kept).await;
    fenced.refuses(annotation("example.com/owner", Value::Null), "removes no annotations").await;
    let adds_nothing = "adds nothing to what a node was born with";
    fenced.refuses(annotation("born.perennial.dev/perennial", "team=blue"), adds_nothing).await;
    let metadata = |field: &str, value: Value| json!({ "metadata": { field: value } });
    fenced.refuses(metadata("finalizers", json!(["example.com/stay"])), "finalizers").await;
    let owner = json!([{ "apiVersion": "v1", "kind": "Node", "name": "other", "uid": "1" }]);
    fenced.refuses(metadata("ownerReferences", owner), "ownerReferences").await;
    let spec = |field: &str, value: Value| json!({ "spec": { field: value } });
    fenced.refuses(spec("unschedulable", json!(false)), "does not keep cordon").await;
    fenced.refuses(spec("taints", json!([])), "keeps no taints").await;
    let taints = json!(fenced.as_admin.get(NODE).await.unwrap().spec.unwrap().taints.unwrap());
    let one_more = json!({ "key": "example.com/mine", "effect": "NoExecute" });
    let more = [taints.as_array().unwrap().as_slice(), &[one_more]].concat();
    fenced.refuses(spec("taints", json!(more)), "keeps no taints").await;
    fenced.refuses(spec("providerID", json!("cloud://other")), "nothing of the spec but").await;
    fenced.refuses(spec("podCIDR", json!("10.0.0.0/24")), "nothing of the spec but").await;
    // By the back door, too.
    let ready = json!([{ "type": "Ready", "status": "True" }]);
    let refused = fenced.patch_status(&json!({ "status": { "conditions": ready } })).await.unwrap_err();
    assert!(refused.contains("does not change the status"), "{refused}");
    let refused = fenced.patch_status(&label("kubernetes.io/os", "plan9")).await.unwrap_err();
    assert!(refused.contains("does not keep these labels"), "{refused}");
    // What a node was born with can be taken back, and its stamp, but no more than the stamp says.
    let born = json!({ "metadata": {
        "labels": { "a": "1", "b": "2" }, "annotations": { "born.perennial.dev/perennial": "a=1 b=1" },
    } });
    fenced.as_admin.patch(NODE, &PatchParams::default(), &Patch::Merge(born)).await.unwrap();
    fenced.refuses(label("b", Value::Null), "removes no labels").await;
    fenced.refuses(annotation("born.perennial.dev/perennial", "a=1 b=1 b=2"), adds_nothing).await;
    fenced.allows(label("a", Value::Null)).await;
    fenced.allows(annotation("born.perennial.dev/perennial", "b=1")).await;
    fenced.allows(annotation("born.perennial.dev/perennial", Value::Null)).await;
    // And nobody else is held to any of it.
    let patch = Patch::Merge(json!({
        "metadata": { "labels": { "kubernetes.io/os": "plan9", "team": null } }, "spec": { "unschedulable": null },
    }));
    fenced.as_admin.patch(NODE, &PatchParams::default(), &patch).await.unwrap();
    fenced.refuses(spec("unschedulable", json!(true)), "does not keep cordon").await;
}

#[tokio::test]
async fn where_taints_and_cordon_are_kept_they_are_set_and_never_taken_away() {
    let fenced = Fenced::with(Some("bare-metal.yaml"), "perennial").await;
    // What it was made with, and what the API server adds to every node that is not ready.
    let of_others = fenced.as_admin.get(NODE).await.unwrap().spec.unwrap().taints.unwrap();
    let taints = |keys: &[&str]| {
        let ours = keys.iter().map(|key| json!({ "key": key, "value": "yes", "effect": "NoExecute" }));
        let all: Vec<Value> = of_others.iter().map(|taint| json!(taint)).chain(ours).collect();
        json!({ "spec": { "taints": all } })
    };
    fenced.allows(taints(&["dedicated"])).await;
    fenced.refuses(taints(&[]), "removes no taints").await;
    for key in ["node.kubernetes.io/out-of-service", "ToBeDeletedByClusterAutoscaler"] {
        fenced.refuses(taints(&["dedicated", key]), "does not keep such taints").await;
    }
    fenced.refuses(json!({ "spec": { "unschedulable": false } }), "makes no node schedulable").await;
    fenced.refuses(json!({ "spec": { "providerID": "cloud://other" } }), "nothing of the spec but").await;
    fenced.refuses(json!({ "spec": { "podCIDR": "10.0.0.0/24" } }), "nothing of the spec but").await;
    let schedulable = Patch::Merge(json!({ "spec": { "unschedulable": false } }));
    fenced.as_admin.patch(NODE, &PatchParams::default(), &schedulable).await.unwrap();
    fenced.allows(json!({ "spec": { "unschedulable": true } })).await;
}

#[tokio::test]
async fn a_gate_is_opened_and_a_condition_set_and_nothing_else_of_spec_and_status() {
    let fenced = Fenced::with(Some("born.yaml"), "perennial").await;
    let gate = json!({ "key": "perennial.dev/unrestored", "effect": "NoSchedule" });
    let of_others: Vec<Value> = {
        let taints = fenced.as_admin.get(NODE).await.unwrap().spec.unwrap().taints.unwrap();
        taints.iter().map(|taint| json!(taint)).collect()
    };
    let taints = |taints: &[Value]| json!({ "spec": { "taints": taints } });
    let with_gate = taints(&[of_others.as_slice(), &[gate]].concat());
    fenced.refuses(with_gate.clone(), "puts up none").await;
    fenced.as_admin.patch(NODE, &PatchParams::default(), &Patch::Merge(with_gate)).await.unwrap();
    fenced.refuses(taints(&[]), "keeps no taints").await;
    fenced.allows(label("example.com/rack", "7")).await;
    fenced.allows(taints(&of_others)).await;

    let condition = |kind: &str| json!({ "type": kind, "status": "True", "reason": "x", "message": "" });
    let conditions = |kinds: &[&str]| {
        let all: Vec<Value> = kinds.iter().map(|kind| condition(kind)).collect();
        json!({ "status": { "conditions": all } })
    };
    let ours = "perennial.dev/MetadataRestored";
    fenced.patch_status(&conditions(&[ours])).await.unwrap();
    for status in [
        conditions(&[ours, "Ready"]),
        json!({ "status": { "phase": "Terminated" } }),
        json!({ "status": { "capacity": { "cpu": "1" } } }),
        json!({ "status": { "addresses": [{ "type": "InternalIP", "address": "10.0.0.1" }] } }),
        json!({ "status": { "nodeInfo": { "kubeletVersion": "v1.0.0" } } }),
        json!({ "status": { "volumesInUse": ["x"] } }),
    ] {
        let refused = fenced.patch_status(&status).await.expect_err(&status.to_string());
        assert!(refused.contains("of the status but") || refused.contains("no condition but"), "{refused}");
    }
}

/// A configuration of webhooks in the hands of an account.
struct Webhooks<'a> {
    kind: Request,
    account: Client,
    installed: &'a Installed,
}

impl<'a> Webhooks<'a> {
    const NAME: &'static str = "perennial-webhook";

    /// Of this kind, with the keeper's token. Returns once the fence around them stands.
    async fn of(installed: &'a Installed, kind: &str) -> Self {
        let kind = Request::new(format!("/apis/admissionregistration.k8s.io/v1/{kind}"));
        let account = installed.plane.service_account(NAMESPACE, PERENNIAL).await.unwrap();
        let webhooks = Self { kind, account, installed };
        eventually(SOON, "the fence around webhooks stands", || async {
            let params = PatchParams { dry_run: true, ..PatchParams::default() };
            let refused = webhooks.patch(&params, &label("example.com/x", "y")).await.err();
            Ok(refused.filter(|words| words.contains("ValidatingAdmissionPolicy")).map(drop))
        })
        .await
        .unwrap();
        webhooks
    }

    async fn patch(&self, params: &PatchParams, patch: &Value) -> Result<(), String> {
        let request = self.kind.patch(Self::NAME, params, &Patch::Strategic(patch)).unwrap();
        tried(self.account.request::<Value>(request)).await
    }

    /// As it is.
    async fn now(&self) -> Value {
        let request = self.kind.get(Self::NAME, &GetParams::default()).unwrap();
        self.installed.plane.admin().request(request).await.unwrap()
    }

    async fn refuses(&self, patch: Value, why: &str) {
        let before = self.now().await;
        let refused = self.patch(&PatchParams::default(), &patch).await.expect_err(&patch.to_string());
        assert!(refused.contains(why), "{patch}: {refused}");
        assert_eq!(self.now().await, before);
    }

    async fn allows(&self, patch: Value) {
        let patched = self.patch(&PatchParams::default(), &patch).await;
        patched.unwrap_or_else(|refused| panic!("{patch}: {refused}"));
    }
}

#[tokio::test]
async fn a_stolen_token_changes_of_webhooks_nothing_but_whom_to_trust() {
    let installed = Installed::with(Some("born.yaml")).await;
    let strict = ["--set", "webhook.enabled=true,webhook.strict=true"];
    let strict = [&["--show-only", "templates/webhook-strict.yaml"], &strict[..]].concat();
    apply(&installed.plane, &objects(&render(PERENNIAL, NAMESPACE, &strict).unwrap())).await;
    for (kind, of_the_kind) in [
        (
            "mutatingwebhookconfigurations",
            json!({ "reinvocationPolicy": "IfNeeded", "failurePolicy": "Fail" }),
        ),
        ("validatingwebhookconfigurations", json!({ "failurePolicy": "Ignore", "matchConditions": null })),
    ] {
        let webhooks = Webhooks::of(&installed, kind).await;
        let there = webhooks.now().await["webhooks"][0].clone();
        let name = &there["name"];
        let hook = |field: &str, value: &Value| json!({ "webhooks": [{ "name": name, field: value }] });
        let client = |client: Value| hook("clientConfig", &client);
        webhooks.allows(client(json!({ "caBundle": "dHJ1c3QgbWU=" }))).await;
        webhooks.allows(client(json!({ "caBundle": "dHJ1c3QgbWUgYWdhaW4=" }))).await;
        webhooks.allows(client(json!({ "caBundle": null }))).await;

        let not_trust = "changes nothing of a webhook but whom to trust";
        let url = json!({ "service": null, "url": "https://thief.example.com", "caBundle": "dHJ1c3QgbWU=" });
        webhooks.refuses(client(url), not_trust).await;
        for service in [json!({ "namespace": "shop" }), json!({ "path": "/mine" }), json!({ "port": 8443 })] {
            webhooks.refuses(client(json!({ "service": service })), not_trust).await;
        }
        let everything = json!([{
            "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"],
        }]);
        let selector = json!({ "matchLabels": { "a": "1" } });
        let fields = json!({
            "rules": everything,
            "matchPolicy": "Exact",
            "namespaceSelector": selector,
            "objectSelector": selector,
            "matchConditions": [{ "name": "never", "expression": "false" }],
            "sideEffects": "NoneOnDryRun",
            "timeoutSeconds": 30,
            "admissionReviewVersions": ["v1", "v1beta1"],
        });
        for (field, value) in [&fields, &of_the_kind].into_iter().flat_map(|all| all.as_object().unwrap()) {
            webhooks.refuses(hook(field, value), not_trust).await;
        }
        let mut another = there.clone();
        another["name"] = json!("another.example.com");
        let adds_none = "adds and removes no webhooks";
        webhooks.refuses(json!({ "webhooks": [another] }), adds_none).await;
        webhooks.refuses(json!({ "webhooks": [{ "$patch": "delete", "name": name }] }), adds_none).await;
        webhooks.refuses(json!({ "webhooks": [{ "$patch": "replace" }, another] }), adds_none).await;
        let metadata = |field: &str, value: Value| json!({ "metadata": { field: value } });
        let owner = json!([{ "apiVersion": "v1", "kind": "Node", "name": "other", "uid": "1" }]);
        for patch in [
            label("app.kubernetes.io/name", Value::Null),
            label("example.com/x", "y"),
            annotation("cert-manager.io/inject-ca-from", "shop/mine"),
            metadata("finalizers", json!(["example.com/stay"])),
            metadata("ownerReferences", owner),
        ] {
            webhooks.refuses(patch, "does not change the metadata of webhooks").await;
        }
        // And nobody else is held to any of it.
        let as_admin = Webhooks { account: installed.plane.admin(), ..webhooks };
        as_admin.allows(hook("timeoutSeconds", &json!(2))).await;
    }
}

#[tokio::test]
async fn fence_and_keeper_agree_about_every_key() {
    let keys = keys();
    assert!(keys.len() > 200, "{}", keys.len());
    for (example, account) in [
        (None, "perennial"),
        (Some("bare-metal.yaml"), "perennial"),
        (Some("gpu-pool.yaml"), "perennial-restore"),
    ] {
        let fenced = Fenced::with(example, account).await;
        for kind in ["labels", "annotations"] {
            assert_eq!(
                fenced.strays(kind, &keys).await,
                fenced.not_kept(kind, &keys),
                "{kind} of {example:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_policy_that_the_fence_does_not_know_is_told_of() {
    let installed = Installed::with(None).await;
    // Edited by hand, or mounted from somewhere else: the chart knows nothing of it.
    let policy = "rules: [{ labels: { include: ['*', 'kubernetes.io/os'] } }]";
    installed.set_policy(policy);
    let nodes: Api<Node> = Api::all(installed.plane.admin());
    let named = |labels: Value| {
        serde_json::from_value(json!({ "metadata": { "name": NODE, "labels": labels } })).unwrap()
    };
    nodes
        .create(&PostParams::default(), &named(json!({ "team": "blue", "kubernetes.io/os": "linux" })))
        .await
        .unwrap();
    stands(&Api::all(installed.plane.service_account(NAMESPACE, PERENNIAL).await.unwrap())).await;
    let kubeconfig = installed.plane.kubeconfig_for_service_account(NAMESPACE, PERENNIAL).await.unwrap();
    let keeper = keeper(&installed, PERENNIAL, installed.pods("Deployment")[PERENNIAL], &kubeconfig).await;
    let records: Api<ConfigMap> = Api::namespaced(installed.plane.admin(), NAMESPACE);
    eventually(SOON, "the node is recorded", || async {
        Ok(records.get_opt("node-record.worker").await?.map(drop))
    })
    .await
    .unwrap();
    nodes.delete(NODE, &DeleteParams::default()).await.unwrap();
    nodes.create(&PostParams::default(), &named(json!({}))).await.unwrap();
    eventually(SOON, "it is told", || async {
        let mut logs = std::fs::read_dir(installed.plane.logs())?.map(|log| log.unwrap().path());
        let told = logs.any(|log| {
            let text = std::fs::read_to_string(log).unwrap_or_default();
            text.lines().any(|line| {
                line.contains("policy and admission disagree")
                    && line.contains("does not keep these labels: kubernetes.io/os")
            })
        });
        Ok(told.then_some(()))
    })
    .await
    .unwrap();
    keeper.stop().await.unwrap();
}

/// A Role of the namespace for the neighbour.
fn bound(name: &str, role: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": name, "namespace": NAMESPACE },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role },
        "subjects": [{ "kind": "ServiceAccount", "name": "neighbour", "namespace": NAMESPACE }],
    })
}

/// An account that may write ConfigMaps beside the records.
async fn neighbour(plane: &ControlPlane) -> Api<ConfigMap> {
    let metadata = json!({ "name": "neighbour", "namespace": NAMESPACE });
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata });
    let verbs = ["get", "create", "update", "patch", "delete"];
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata,
        "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": verbs }],
    });
    apply(plane, &[account, role, bound("neighbour", "neighbour")]).await;
    Api::namespaced(plane.service_account(NAMESPACE, "neighbour").await.unwrap(), NAMESPACE)
}

#[tokio::test]
async fn records_are_written_by_nobody_who_is_not_allowed_to_by_name() {
    let installed = Installed::with(None).await;
    let plane = &installed.plane;
    let neighbour = neighbour(plane).await;
    let own: Api<ConfigMap> =
        Api::namespaced(plane.service_account(NAMESPACE, PERENNIAL).await.unwrap(), NAMESPACE);
    let map = |name: &str, content: &str| -> ConfigMap {
        let map = json!({ "metadata": { "name": name }, "data": { "record.json": content } });
        serde_json::from_value(map).unwrap()
    };
    let create = async |name: &str| tried(neighbour.create(&PostParams::default(), &map(name, "{}"))).await;
    eventually(SOON, "the fence stands", || async {
        let refused = create("node-record.forged").await.err();
        let stands = refused.is_some_and(|words| words.contains("write-node-records"));
        neighbour.delete("node-record.forged", &DeleteParams::default()).await.ok();
        Ok(stands.then_some(()))
    })
    .await
    .unwrap();
    tried(own.create(&PostParams::default(), &map("node-record.real", "{}"))).await.unwrap();
    let patch = async |patch: Value| {
        tried(neighbour.patch("node-record.real", &PatchParams::default(), &Patch::Merge(patch))).await
    };
    for forged in [
        json!({ "data": { "record.json": "forged" } }),
        json!({ "binaryData": { "more": "" } }),
        annotation("perennial.dev/summary", "forged"),
        label("perennial.dev/state", "closed"),
    ] {
        let refused = patch(forged.clone()).await.expect_err(&forged.to_string());
        assert!(refused.contains("write-node-records"), "{refused}");
    }
    // What changes nothing is let through, and so is everything that is no record.
    patch(json!({ "data": { "record.json": "{}" } })).await.unwrap();
    create("something-else").await.unwrap();
    // Whoever is allowed to by name may, such as those who are to use the command line.
    let people = std::fs::read_to_string(root().join("deploy/rbac-people.yaml")).unwrap();
    apply(plane, &objects(&people)).await;
    apply(plane, &[bound("operators", "perennial-operator")]).await;
    eventually(SOON, "it may", || async {
        Ok(patch(json!({ "data": { "record.json": "imported" } })).await.ok())
    })
    .await
    .unwrap();
    // To remove one needs no more than before: a namespace can be deleted.
    tried(neighbour.delete("node-record.real", &DeleteParams::default())).await.unwrap();
}

#[test]
fn there_are_no_fences_where_none_are_wanted() {
    let fences = |arguments: &[&str]| {
        let rendered = render(PERENNIAL, NAMESPACE, arguments).unwrap();
        objects(&rendered).iter().filter(|object| is(object, "ValidatingAdmissionPolicy")).count()
    };
    assert_eq!(fences(&[]), 2);
    assert_eq!(fences(&["--set", "admission.enabled=false"]), 0);
    assert_eq!(fences(&["--set", "keeper.enabled=false,lister.enabled=true"]), 0);
    // One more where the account may write whom to trust.
    assert_eq!(fences(&["--set", "webhook.enabled=true"]), 3);
    assert_eq!(fences(&["--set", "webhook.enabled=true,webhook.certificates=given"]), 2);
    assert_eq!(fences(&["--set", "webhook.enabled=true,admission.enabled=false"]), 0);
}
