//! Permissions: `deploy/rbac.yaml` is enough, nothing in it is unused, and one that is missing harms nothing else.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Once;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, Subject};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use perennial_testkit::eventually;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::world::{Labels, NAMESPACE, SOON, World, pairs};

const NODE: &str = "worker-1";

/// Verb, group, resource, namespace (empty: none).
type Grant = (String, String, String, String);

fn labels() -> Labels {
    pairs([("team", "blue")])
}

fn grants(rules: Option<Vec<PolicyRule>>, namespace: &str) -> Vec<Grant> {
    let mut grants = Vec::new();
    for rule in rules.unwrap_or_default() {
        for group in rule.api_groups.unwrap() {
            for resource in rule.resources.iter().flatten() {
                let grant =
                    |verb: &String| (verb.clone(), group.clone(), resource.clone(), namespace.to_owned());
                grants.extend(rule.verbs.iter().map(grant));
            }
        }
    }
    grants
}

fn is_keeper(subjects: Option<&Vec<Subject>>) -> bool {
    subjects
        .into_iter()
        .flatten()
        .any(|subject| subject.kind == "ServiceAccount" && subject.name == "perennial")
}

impl World {
    /// Everything that is granted to the keeper's account, by whatever binding.
    async fn granted(&self) -> BTreeSet<Grant> {
        let client = self.plane.admin();
        let mut granted = BTreeSet::new();
        let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
        for binding in bindings.list(&ListParams::default()).await.unwrap() {
            if is_keeper(binding.subjects.as_ref()) {
                let role = self.cluster_roles().get(&binding.role_ref.name).await.unwrap();
                granted.extend(grants(role.rules, ""));
            }
        }
        let bindings: Api<RoleBinding> = Api::all(client.clone());
        for binding in bindings.list(&ListParams::default()).await.unwrap() {
            if is_keeper(binding.subjects.as_ref()) {
                assert_eq!(binding.role_ref.kind, "Role");
                let namespace = binding.metadata.namespace.unwrap();
                let roles: Api<Role> = Api::namespaced(client.clone(), &namespace);
                granted.extend(grants(roles.get(&binding.role_ref.name).await.unwrap().rules, &namespace));
            }
        }
        granted
    }

    fn cluster_roles(&self) -> Api<ClusterRole> {
        Api::all(self.plane.admin())
    }

    /// Waits until the API server lets the keeper's account do this, or does not.
    async fn allows(&self, verb: &str, resource: &str, namespace: Option<&str>, allowed: bool) {
        let account = self.plane.service_account(NAMESPACE, "perennial").await.unwrap();
        let reviews: Api<SelfSubjectAccessReview> = Api::all(account);
        let attributes = ResourceAttributes {
            verb: Some(verb.to_owned()),
            resource: Some(resource.to_owned()),
            namespace: namespace.map(str::to_owned),
            ..ResourceAttributes::default()
        };
        let spec =
            SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
        let review = SelfSubjectAccessReview { spec, ..Default::default() };
        eventually(SOON, &format!("{verb} {resource} is allowed: {allowed}"), || async {
            let answer = reviews.create(&PostParams::default(), &review).await?;
            Ok((answer.status.is_some_and(|status| status.allowed) == allowed).then_some(()))
        })
        .await
        .unwrap();
    }

    /// Waits until the keeper did this.
    async fn asked_for(&self, verb: &str, resource: &str) {
        eventually(SOON, &format!("{verb} {resource}"), || async {
            let asked = self.asked_by_keeper().await;
            Ok(asked.iter().any(|entry| entry.verb == verb && entry.resource == resource).then_some(()))
        })
        .await
        .unwrap();
    }

    /// Nodes that are recorded and away.
    async fn two_away(&self) {
        for name in ["worker-1", "worker-2"] {
            self.register(name, &labels()).await;
            self.recorded(name, &labels()).await;
            self.delete(name).await;
            self.closed(name, &labels()).await;
        }
    }
}

thread_local! {
    /// What is logged on this thread, which a test shares with its runtime and its keeper, and with no other.
    static LOG: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Writes to the log of whatever thread it is used on.
struct ToThread;

impl std::io::Write for ToThread {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.with_borrow_mut(|log| log.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Begins to log. One subscriber serves all threads: with one for each, a test that has none could switch a
/// line off for the others (tracing asks the first thread that comes along who is interested).
fn log() {
    static BEGUN: Once = Once::new();
    LOG.with_borrow_mut(Vec::clear);
    BEGUN.call_once(|| {
        tracing_subscriber::fmt().with_writer(|| ToThread).with_ansi(false).finish().init();
    });
}

/// The lines of this test's log that tell of a missing permission.
fn missing_permissions() -> Vec<String> {
    let text = LOG.with_borrow(|log| String::from_utf8(log.clone()).unwrap());
    text.lines().filter(|line| line.contains("a permission is missing")).map(str::to_owned).collect()
}

#[tokio::test]
async fn the_permissions_in_the_file_are_enough_and_every_one_of_them_is_used() {
    let mut world = World::alone("").await;
    // Ready means that the Lease is announced; its renewal comes a moment later.
    world.start_member_with("replica", |_, members| members.lease = Duration::from_secs(1)).await;
    world.register(NODE, &labels()).await;
    world.recorded(NODE, &labels()).await;
    world.label(NODE, "team", Some("red")).await;
    let labels = pairs([("team", "red")]);
    let record = world.recorded(NODE, &labels).await;
    let mut edited = record.clone();
    edited.kept.labels = pairs([("team", "green")]);
    world.edit_record(NODE, &edited.to_json()).await;
    world.record_becomes(NODE, "follows the node", |now| now.kept == record.kept && now.sequence > 2).await;
    world.delete(NODE).await;
    world.closed(NODE, &labels).await;
    world.register(NODE, &pairs([])).await;
    world.labels_become(NODE, &labels).await;
    world.event(NODE, "MetadataRestored").await;
    world.annotate(NODE, "perennial.dev/forget", Some("true")).await;
    world.record_goes(NODE).await;

    world.asked_for("update", "leases").await;
    let refused: Vec<_> =
        world.asked_by_keeper().await.into_iter().filter(|entry| entry.code == 403).collect();
    assert!(refused.is_empty(), "{refused:?}");
    // Whatever watch breaks, histories are compared before it goes on. (A server that is just starting refuses
    // what it grants a moment later.)
    world.plane.restart_apiserver().await.unwrap();
    world.asked_for("list", "leases").await;
    world.stop_member("replica").await;

    let asked = world.asked_by_keeper().await;
    let used: BTreeSet<Grant> = asked
        .into_iter()
        .map(|entry| {
            assert_eq!(entry.subresource, "");
            (entry.verb, entry.group, entry.resource, entry.namespace)
        })
        .collect();
    assert_eq!(used, world.granted().await);
}

#[tokio::test]
async fn a_missing_permission_is_told_once_while_all_else_goes_on_and_heals_when_it_is_granted() {
    log();
    let world = World::started_alone().await;
    world.two_away().await;
    let granted = world.cluster_roles().get("perennial-keeper").await.unwrap();
    let mut lesser = granted.clone();
    lesser.rules.as_mut().unwrap()[0].verbs.retain(|verb| verb != "patch");
    let lesser =
        world.cluster_roles().replace("perennial-keeper", &PostParams::default(), &lesser).await.unwrap();
    world.allows("patch", "nodes", None, false).await;

    for name in ["worker-1", "worker-2"] {
        world.register(name, &pairs([])).await;
    }
    world.metric_reaches("errors_total{kind=\"forbidden\"}", 4.0).await;
    world.caught_up_but(2).await;
    for name in ["worker-1", "worker-2"] {
        assert_eq!(world.labels(name).await, pairs([]));
    }
    let told = missing_permissions();
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].contains(r#"cannot patch resource \"nodes\""#), "{told:?}");

    let again = ClusterRole { metadata: lesser.metadata, ..granted };
    world.cluster_roles().replace("perennial-keeper", &PostParams::default(), &again).await.unwrap();
    for name in ["worker-1", "worker-2"] {
        world.labels_become(name, &labels()).await;
    }
    world.caught_up().await;
    assert_eq!(missing_permissions().len(), 1);
}

#[tokio::test]
async fn without_the_permission_to_post_events_nodes_are_restored_all_the_same() {
    log();
    let world = World::started_alone().await;
    world.two_away().await;
    let bindings: Api<RoleBinding> = Api::namespaced(world.plane.admin(), "default");
    let mut binding = bindings.get("perennial-keeper-events").await.unwrap();
    bindings.delete("perennial-keeper-events", &DeleteParams::default()).await.unwrap();
    world.allows("create", "events", Some("default"), false).await;

    for name in ["worker-1", "worker-2"] {
        world.register(name, &pairs([])).await;
        world.labels_become(name, &labels()).await;
    }
    world.metric_reaches("events_dropped_total", 2.0).await;
    let told = missing_permissions();
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].contains(r#"cannot create resource \"events\""#), "{told:?}");

    binding.metadata.resource_version = None;
    binding.metadata.uid = None;
    bindings.create(&PostParams::default(), &binding).await.unwrap();
    world.allows("create", "events", Some("default"), true).await;
    world.delete(NODE).await;
    world.register(NODE, &pairs([])).await;
    world.event(NODE, "MetadataRestored").await;
}

#[tokio::test]
async fn a_keeper_that_may_not_write_records_yet_loses_nothing_until_it_may() {
    let world = World::started_alone().await;
    let roles: Api<Role> = Api::namespaced(world.plane.admin(), NAMESPACE);
    let granted = roles.get("perennial-keeper").await.unwrap();
    let mut lesser = granted.clone();
    lesser.rules.as_mut().unwrap()[0].verbs.retain(|verb| verb != "create");
    let lesser = roles.replace("perennial-keeper", &PostParams::default(), &lesser).await.unwrap();
    world.allows("create", "configmaps", Some(NAMESPACE), false).await;

    // A whole life that no record could hold.
    world.register(NODE, &labels()).await;
    world.metric_reaches("errors_total{kind=\"forbidden\"}", 1.0).await;
    world.delete(NODE).await;
    world.metric_reaches("errors_total{kind=\"forbidden\"}", 2.0).await;

    let again = Role { metadata: lesser.metadata, ..granted };
    roles.replace("perennial-keeper", &PostParams::default(), &again).await.unwrap();
    world.closed(NODE, &labels()).await;
    world.register(NODE, &pairs([])).await;
    world.labels_become(NODE, &labels()).await;
}
