//! `deploy/rbac-people.yaml` is enough: viewers see everything and change nothing, operators can do all there is to do.

use std::path::Path;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;
use perennial_testkit::eventually;

use crate::person::Person;
use crate::world::{SOON, World, connect, pairs};

const PEOPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/rbac-people.yaml");

impl World {
    /// Somebody to whom a role of the file is bound, as its head says.
    async fn granted(&self, role: &str) -> Person {
        let namespace = self.namespace();
        let kubeconfig = self.plane.kubeconfig_for_service_account(namespace, role).await.unwrap();
        let text = std::fs::read_to_string(PEOPLE).unwrap();
        self.plane
            .kubectl_apply(&text.replace("namespace: perennial", &format!("namespace: {namespace}")))
            .await
            .unwrap();
        let subject = format!("subjects: [{{ kind: ServiceAccount, name: {role}, namespace: {namespace} }}]");
        let api = "apiVersion: rbac.authorization.k8s.io/v1";
        let role_ref = |kind: &str| {
            format!(
                "roleRef: {{ apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: perennial-{role} }}"
            )
        };
        let bindings = format!(
            "{api}\nkind: ClusterRoleBinding\nmetadata: {{ name: {namespace}-{role} }}\n{}\n{subject}\n---\n\
             {api}\nkind: RoleBinding\nmetadata: {{ name: {role}, namespace: {namespace} }}\n{own}\n{subject}\n---\n\
             {api}\nkind: RoleBinding\nmetadata: {{ name: {namespace}-{role}, namespace: default }}\n{own}\n{subject}\n",
            role_ref("ClusterRole"),
            own = role_ref("Role"),
        );
        self.plane.kubectl_apply(&bindings).await.unwrap();
        let person = Person::with(Path::new(&kubeconfig), namespace);
        eventually(SOON, &format!("the {role} is allowed to look"), || async {
            let heard = person.says("status").await;
            if heard.code == 0 && !heard.out.contains("Forbidden") {
                Ok(Some(()))
            } else {
                Err(anyhow::anyhow!("{heard:?}"))
            }
        })
        .await
        .unwrap();
        person
    }
}

#[tokio::test]
async fn viewers_see_everything_and_change_nothing() {
    let world = World::start().await;
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;
    world.closed("worker-1", &labels).await;
    world.register("worker-1", &pairs([])).await;
    world.labels_become("worker-1", &labels).await;
    world.event("worker-1", "MetadataRestored").await;
    world.delete("worker-1").await;
    let before = world.closed("worker-1", &labels).await;
    let viewer = world.granted("viewer").await;
    let shown = viewer.says("show worker-1").await.good();
    assert!(shown.contains("MetadataRestored"), "{shown}");
    let file = world.file("policy.yaml");
    std::fs::write(&file, "{}").unwrap();
    let check = format!("policy check {} --against-cluster", file.display());
    for line in ["nodes -o wide", "show worker-1", "status", "diff", "export", &check] {
        let heard = viewer.says(line).await;
        assert!(heard.code == 0 && !heard.out.contains("Forbidden"), "{line}: {heard:?}");
    }
    let events = connect(&viewer.kubeconfig).await;
    let events = Api::<Event>::all(events).list(&ListParams::default()).await;
    assert!(
        matches!(events, Err(kube::Error::Api(status)) if status.is_forbidden()),
        "Events of others are theirs"
    );
    for line in ["pause worker-1", "forget worker-1 --yes"] {
        let told = viewer.says(line).await.bad();
        assert!(told.starts_with("Error from server (Forbidden):"), "{line}: {told}");
    }
    assert_eq!(world.record("worker-1").await.unwrap(), before);
}

#[tokio::test]
async fn operators_can_do_all_there_is_to_do() {
    let mut world = World::start().await;
    let labels = pairs([("team", "blue")]);
    for name in ["worker-1", "worker-2"] {
        world.register(name, &labels).await;
        world.recorded(name, &labels).await;
    }
    let well = Timestamp::now();
    world.label("worker-1", "team", Some("red")).await;
    world.recorded("worker-1", &pairs([("team", "red")])).await;
    let operator = world.granted("operator").await.under(&world.default_policy());
    let file = world.file("records.jsonl");
    operator.says(&format!("rollback worker-1 --to {well} --yes")).await.good();
    world.recorded("worker-1", &labels).await;
    operator.says("pause worker-1").await.good();
    operator.says("resume worker-1").await.good();
    operator.says(&format!("export -f {}", file.display())).await.good();
    world.delete("worker-2").await;
    world.closed("worker-2", &labels).await;
    world.stop_keeper().await;
    operator.says("pause worker-2").await.good();
    operator.says("resume worker-2").await.good();
    operator.says("forget worker-2 --yes").await.good();
    assert!(world.config_map("worker-2").await.is_none());
    operator.says(&format!("import {}", file.display())).await.good();
    world.register("worker-2", &pairs([])).await;
    operator.says("restore worker-2").await.good();
    assert_eq!(world.labels("worker-2").await, labels);
}

#[tokio::test]
async fn whoever_may_not_see_the_replicas_has_to_say_what_they_keep() {
    let mut world = World::without_keeper("").await;
    world.start_member("keeper-1").await;
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    let operator = world.granted("operator").await;
    assert!(operator.says("restore worker-1").await.good().contains("lacks nothing"));
    let blind = std::fs::read_to_string(PEOPLE).unwrap().replace("\"leases\"", "\"nothing\"");
    let namespace = format!("namespace: {}", world.namespace());
    world.plane.kubectl_apply(&blind.replace("namespace: perennial", &namespace)).await.unwrap();
    eventually(SOON, "Leases are out of sight", || async {
        let heard = operator.says("status").await;
        Ok(heard.out.contains("Forbidden").then_some(()))
    })
    .await
    .unwrap();
    let told = operator.says("restore worker-1").await.bad();
    assert!(told.contains("replicas cannot be seen") && told.contains("--policy FILE"), "{told}");
    operator.under(&world.default_policy()).says("restore worker-1").await.good();
}
