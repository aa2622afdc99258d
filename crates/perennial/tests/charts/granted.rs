//! The accounts of a chart that is installed: they may do what their Deployments need, as these themselves find out, and
//! not what they do not.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use perennial_testkit::{ControlPlane, KeeperProcess, eventually};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::accepted::{apply, prepared};
use crate::rendered::{PERENNIAL, chart, is, objects, render_example};

const SOON: Duration = Duration::from_mins(1);
const PROGRAM: &str = env!("CARGO_BIN_EXE_perennial");
pub(crate) const NAMESPACE: &str = "perennial";

/// A chart that is installed, as far as a control plane alone can have it.
pub(crate) struct Installed {
    pub(crate) plane: ControlPlane,
    objects: Vec<Value>,
    folder: tempfile::TempDir,
}

impl Installed {
    pub(crate) async fn with(example: Option<&str>) -> Self {
        let plane = prepared().await;
        let example = example.map(|name| chart(PERENNIAL).join("examples").join(name));
        let objects = objects(&render_example(PERENNIAL, NAMESPACE, example.as_deref()));
        let kept: Vec<Value> = objects.iter().filter(|object| !is(object, "Pod")).cloned().collect();
        apply(&plane, &kept).await;
        let installed = Self { plane, objects, folder: tempfile::tempdir().unwrap() };
        installed.set_policy(installed.policy());
        std::fs::write(installed.folder.path().join("key"), "k".repeat(64)).unwrap();
        installed
    }

    /// The policy that the chart made.
    pub(crate) fn policy(&self) -> &str {
        self.objects.iter().find_map(|object| object["data"]["policy.yaml"].as_str()).unwrap()
    }

    /// The policy that is mounted.
    pub(crate) fn set_policy(&self, policy: &str) {
        std::fs::write(self.folder.path().join("policy.yaml"), policy).unwrap();
    }

    /// The specs of pods that are made by objects of a kind, by the account that they run under.
    pub(crate) fn pods(&self, kind: &str) -> BTreeMap<String, &Value> {
        let pods = self.objects.iter().filter(|object| is(object, kind)).map(|object| {
            let spec = &object["spec"];
            let spec = if spec["template"].is_null() { spec } else { &spec["template"]["spec"] };
            (spec["serviceAccountName"].as_str().unwrap().to_owned(), spec)
        });
        pods.collect()
    }

    /// The arguments of a pod, with what is here in place of what is there.
    fn arguments(&self, pod: &Value) -> Vec<String> {
        let arguments = pod["containers"][0]["args"].as_array().unwrap().iter();
        let [policy, key] = ["policy.yaml", "key"].map(|file| self.folder.path().join(file));
        arguments
            .map(|argument| argument.as_str().unwrap())
            .filter(|argument| !argument.starts_with("--url") && !argument.starts_with("--admin-address"))
            .map(|argument| match argument.split_once('=') {
                Some(("--policy", _)) => format!("--policy={}", policy.display()),
                Some(("--record-key", _)) => format!("--record-key={}", key.display()),
                _ => argument.to_owned(),
            })
            .collect()
    }

    /// What `perennial check` says under an account with the arguments of its test.
    async fn check(&self, account: &str, arguments: &[String]) -> (bool, String) {
        let kubeconfig = self.plane.kubeconfig_for_service_account(NAMESPACE, account).await.unwrap();
        let output = Command::new(PROGRAM)
            .args(arguments)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .env("PERENNIAL_NAMESPACE", NAMESPACE)
            .output()
            .await
            .unwrap();
        let told = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        (output.status.success(), told)
    }

    /// Every account may do what its pods need.
    async fn all_is_well(&self) -> Vec<String> {
        let tests = self.pods("Pod");
        for (account, pod) in &tests {
            let arguments = self.arguments(pod);
            eventually(SOON, &format!("{account} finds all well"), || async {
                let (well, told) = self.check(account, &arguments).await;
                if well { Ok(Some(())) } else { Err(anyhow::anyhow!(told)) }
            })
            .await
            .unwrap();
        }
        tests.into_keys().collect()
    }

    async fn may(&self, account: &str, asked: &str) -> bool {
        may(self.plane.service_account(NAMESPACE, account).await.unwrap(), asked).await
    }

    fn nothing_was_refused(&self) {
        let ours = format!("system:serviceaccount:{NAMESPACE}:");
        let refused =
            self.plane.audit_of(|entry| entry.code == 403 && entry.user.starts_with(&ours)).unwrap();
        assert!(refused.is_empty(), "{refused:#?}");
    }

    async fn may_not(&self, account: &str, asked: &[&str]) {
        for asked in asked {
            assert!(!self.may(account, asked).await, "{account} may {asked}");
        }
    }
}

/// Whether an account may do something, said as `verb resource[/part][.group] [namespace] [name]`.
pub(crate) async fn may(account: Client, asked: &str) -> bool {
    let mut words = asked.split(' ').map(str::to_owned);
    let (verb, resource) = (words.next(), words.next().unwrap());
    let (resource, group) = resource.split_once('.').unwrap_or((&resource, ""));
    let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
    let attributes = ResourceAttributes {
        verb,
        resource: Some(resource.to_owned()),
        subresource: Some(part.to_owned()),
        group: Some(group.to_owned()),
        namespace: words.next(),
        name: words.next(),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec {
        resource_attributes: Some(attributes),
        ..SelfSubjectAccessReviewSpec::default()
    };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let answer = Api::all(account).create(&PostParams::default(), &review).await.unwrap();
    answer.status.is_some_and(|status| status.allowed)
}

fn node(name: &str, labels: &Value) -> Node {
    serde_json::from_value(json!({ "metadata": { "name": name, "labels": labels } })).unwrap()
}

#[tokio::test]
async fn the_account_of_a_default_installation_may_do_what_is_needed_and_no_more() {
    let installed = Installed::with(None).await;
    assert_eq!(installed.all_is_well().await, ["perennial"]);
    let denied = [
        "get secrets perennial",
        "list secrets",
        "delete nodes",
        "update nodes",
        "create nodes",
        "patch nodes/status",
        "list configmaps",
        "get configmaps kube-system",
        "delete configmaps default",
        "create pods perennial",
        "create pods/exec perennial",
        "list listings.perennial.dev",
        "create events kube-system",
        "create clusterrolebindings.rbac.authorization.k8s.io",
        "impersonate users",
        "create serviceaccounts/token perennial",
    ];
    installed.may_not("perennial", &denied).await;
}

#[tokio::test]
async fn what_is_taken_away_is_told_by_the_check_with_what_to_do() {
    let installed = Installed::with(None).await;
    installed.all_is_well().await;
    let roles: Api<k8s_openapi::api::rbac::v1::ClusterRoleBinding> = Api::all(installed.plane.admin());
    roles.delete("perennial-keeper", &DeleteParams::default()).await.unwrap();
    let arguments = installed.arguments(installed.pods("Pod")["perennial"]);
    eventually(SOON, "the check misses it", || async {
        let (well, told) = installed.check("perennial", &arguments).await;
        let missed = ["list nodes", "watch nodes", "patch nodes"].map(|one| format!("may not {one}"));
        Ok((!well && missed.iter().all(|one| told.contains(one)) && told.contains("rbac")).then_some(()))
    })
    .await
    .unwrap();
    // The lister's side.
    let lister = ["check".to_owned(), "--roles=lister".to_owned()];
    let (well, told) = installed.check("perennial", &lister).await;
    assert!(!well && told.contains("may not patch listings/status.perennial.dev"), "{told}");
}

#[tokio::test]
async fn a_first_look_is_allowed_to_write_nothing() {
    let installed = Installed::with(Some("first-look.yaml")).await;
    assert_eq!(installed.all_is_well().await, ["perennial"]);
    let denied = [
        "patch nodes",
        "create configmaps perennial",
        "update configmaps perennial",
        "delete configmaps perennial",
        "create leases.coordination.k8s.io perennial",
        "create events default",
    ];
    installed.may_not("perennial", &denied).await;
    // And it does not try to: it looks at a node, is ready, and nothing is refused.
    let nodes: Api<Node> = Api::all(installed.plane.admin());
    nodes.create(&PostParams::default(), &node("worker", &json!({ "team": "blue" }))).await.unwrap();
    let kubeconfig = installed.plane.kubeconfig_for_service_account(NAMESPACE, "perennial").await.unwrap();
    let keeper =
        keeper(&installed, "perennial", installed.pods("Deployment")["perennial"], &kubeconfig).await;
    eventually(SOON, "what would be done is told", || async {
        let mut logs = std::fs::read_dir(installed.plane.logs())?.map(|log| log.unwrap().path());
        let told = logs.any(|log| {
            let text = std::fs::read_to_string(log).unwrap_or_default();
            text.lines().any(|line| line.contains("dry run: this would be done") && line.contains("worker"))
        });
        Ok(told.then_some(()))
    })
    .await
    .unwrap();
    keeper.stop().await.unwrap();
    installed.nothing_was_refused();
}

#[tokio::test]
async fn a_webhook_needs_its_own_secret_and_configurations_and_no_more() {
    let installed = Installed::with(Some("born.yaml")).await;
    assert_eq!(installed.all_is_well().await, ["perennial"]);
    let hooks = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
    let own = format!("patch {}.admissionregistration.k8s.io  perennial-webhook", hooks[0]);
    assert!(installed.may("perennial", &own).await);
    for hooks in hooks {
        for denied in [
            "get NAME  other",
            "patch NAME  other",
            "update NAME  perennial-webhook",
            "list NAME",
            "watch NAME",
            "create NAME",
            "delete NAME  perennial-webhook",
            "deletecollection NAME",
        ] {
            let denied = denied.replace("NAME", &format!("{hooks}.admissionregistration.k8s.io"));
            installed.may_not("perennial", &[&denied]).await;
        }
    }
    let denied = [
        "get secrets perennial",
        "get secrets perennial perennial-metrics",
        "patch secrets perennial perennial-key",
        "list secrets perennial",
        "create secrets perennial",
        "delete secrets perennial perennial-webhook",
        "get secrets kube-system perennial-webhook",
        "create configmaps kube-system",
        "patch validatingadmissionpolicies.admissionregistration.k8s.io  perennial-webhooks",
        "delete validatingadmissionpolicybindings.admissionregistration.k8s.io  perennial-webhooks",
    ];
    installed.may_not("perennial", &denied).await;
}

#[tokio::test]
async fn guarded_metrics_need_to_ask_who_somebody_is_and_no_more() {
    let installed = Installed::with(Some("hardened.yaml")).await;
    assert_eq!(installed.all_is_well().await, ["perennial"]);
    let denied = [
        "get secrets perennial perennial-webhook",
        "list secrets perennial",
        "delete secrets perennial perennial-metrics",
        "impersonate users",
        "create serviceaccounts/token perennial",
    ];
    installed.may_not("perennial", &denied).await;
}

#[tokio::test]
async fn apart_each_may_do_its_own_part_alone_and_together_they_give_back() {
    let installed = Installed::with(Some("gpu-pool.yaml")).await;
    let accounts = ["perennial-capture", "perennial-lister", "perennial-restore"];
    assert_eq!(installed.all_is_well().await, accounts);
    installed.may_not("perennial-capture", &["patch nodes", "get secrets shop listing-bucket"]).await;
    installed
        .may_not("perennial-restore", &["delete configmaps perennial", "list listings.perennial.dev"])
        .await;
    let denied = ["list nodes", "get configmaps perennial", "get secrets shop other", "list secrets shop"];
    installed.may_not("perennial-lister", &denied).await;
    assert!(installed.may("perennial-lister", "get secrets shop listing-bucket").await);

    let deployments = installed.pods("Deployment");
    let mut keepers = Vec::new();
    for account in ["perennial-capture", "perennial-restore"] {
        let kubeconfig = installed.plane.kubeconfig_for_service_account(NAMESPACE, account).await.unwrap();
        keepers.push(keeper(&installed, account, deployments[account], &kubeconfig).await);
    }
    let nodes: Api<Node> = Api::all(installed.plane.admin());
    let labels = json!({ "pool": "gpu", "team": "blue" });
    nodes.create(&PostParams::default(), &node("worker", &labels)).await.unwrap();
    let record = "node-record.worker";
    let records: Api<k8s_openapi::api::core::v1::ConfigMap> =
        Api::namespaced(installed.plane.admin(), NAMESPACE);
    eventually(SOON, "the node is recorded", || async { Ok(records.get_opt(record).await?.map(drop)) })
        .await
        .unwrap();
    nodes.delete("worker", &DeleteParams::default()).await.unwrap();
    nodes.create(&PostParams::default(), &node("worker", &json!({}))).await.unwrap();
    eventually(SOON, "it has its own back", || async {
        let now = nodes.get("worker").await?.metadata.labels.unwrap_or_default();
        Ok((json!(now) == labels).then_some(()))
    })
    .await
    .unwrap();
    installed.nothing_was_refused();
}

pub(crate) async fn keeper(
    installed: &Installed,
    account: &str,
    pod: &Value,
    kubeconfig: &Path,
) -> KeeperProcess {
    let builder =
        KeeperProcess::builder(PROGRAM, installed.plane.logs()).kubeconfig(kubeconfig).namespace(NAMESPACE);
    let arguments = installed.arguments(pod).into_iter().skip(1);
    let builder =
        arguments.fold(builder.env("PERENNIAL_MEMBER", account), perennial_testkit::KeeperBuilder::arg);
    builder.start().await.unwrap()
}
