//! How replicas learn of each other: a Lease each, that comes, stays and goes with its replica.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::rbac::v1::Role;
use kube::Api;
use kube::api::{ListParams, PostParams};
use perennial::MembersConfig;
use perennial_testkit::{eventually, eventually_eq};

use crate::world::{SOON, World, pairs};

/// Longer than any test.
pub(crate) const NEVER: Duration = Duration::from_mins(5);

/// A member whose Lease does not run out, and that leaves everything to the one before it.
pub(crate) fn patient(config: &mut MembersConfig) {
    (config.takeover, config.lease) = (NEVER, NEVER);
}

impl World {
    async fn leases(&self) -> BTreeSet<String> {
        let leases: Api<Lease> = Api::namespaced(self.plane.admin(), self.namespace());
        let found = leases.list(&ListParams::default()).await.unwrap();
        found.into_iter().map(|lease| lease.metadata.name.unwrap().replace("perennial-member.", "")).collect()
    }

    async fn leases_become(&self, expected: &[&str]) {
        let expected: BTreeSet<String> = expected.iter().map(|name| (*name).to_owned()).collect();
        eventually_eq(SOON, "the Leases", expected, || async { Ok(self.leases().await) }).await.unwrap();
    }

    /// Waits until this member sees so many, itself among them.
    pub(crate) async fn sees(&self, member: &str, live: u32) {
        eventually(SOON, &format!("{member} sees {live} members"), || async {
            let seen = self.metric_of(member, "member_live");
            if seen == f64::from(live) { Ok(Some(())) } else { Err(anyhow::anyhow!("{seen}")) }
        })
        .await
        .unwrap();
    }

    /// Starts these members, and waits until they know each other.
    pub(crate) async fn start_members(&mut self, names: &[&str], change: impl Fn(&mut MembersConfig)) {
        for name in names {
            self.spawn_member(name, self.account.clone(), |_, members| change(members));
        }
        for name in names {
            self.member_is_ready(name).await;
            self.sees(name, u32::try_from(names.len()).unwrap()).await;
        }
    }
}

#[tokio::test]
async fn a_lease_comes_with_its_replica_and_goes_when_it_drains() {
    let mut world = World::without_keeper("").await;
    world.start_members(&["a", "b", "c"], patient).await;
    world.leases_become(&["a", "b", "c"]).await;
    world.stop_member("b").await;
    assert_eq!(
        world.leases().await,
        BTreeSet::from(["a", "c"].map(str::to_owned)),
        "removed before it ended"
    );
    world.sees("a", 2).await;
    world.sees("c", 2).await;
}

#[tokio::test]
async fn a_replica_that_dies_is_missed_when_its_lease_runs_out_and_the_lease_is_cleaned_up() {
    let mut world = World::without_keeper("").await;
    world.start_members(&["a", "b"], |members| members.lease = Duration::from_secs(1)).await;
    world.crash_member("b").await;
    world.sees("a", 1).await;
    world.leases_become(&["a"]).await;
}

#[tokio::test]
async fn a_replica_that_comes_back_by_its_name_takes_its_lease_up_again() {
    let mut world = World::without_keeper("").await;
    world.start_members(&["a", "b"], patient).await;
    world.crash_member("b").await;
    world.start_member_with("b", |_, members| patient(members)).await;
    world.sees("b", 2).await;
    world.sees("a", 2).await;
    world.leases_become(&["a", "b"]).await;
    world.stop_member("b").await;
    world.leases_become(&["a"]).await;
}

#[tokio::test]
async fn a_lease_that_somebody_removes_is_written_anew() {
    let mut world = World::without_keeper("").await;
    world.start_members(&["a", "b"], |_| {}).await;
    let leases: Api<Lease> = Api::namespaced(world.plane.admin(), world.namespace());
    leases.delete("perennial-member.b", &kube::api::DeleteParams::default()).await.unwrap();
    world.leases_become(&["a", "b"]).await;
    world.sees("a", 2).await;
}

#[tokio::test]
async fn a_replica_that_may_not_have_a_lease_goes_on_all_the_same() {
    let mut world = World::alone("").await;
    let roles: Api<Role> = Api::namespaced(world.plane.admin(), world.namespace());
    let mut role = roles.get("perennial-keeper").await.unwrap();
    role.rules.as_mut().unwrap().retain(|rule| rule.resources != Some(vec!["leases".to_owned()]));
    roles.replace("perennial-keeper", &PostParams::default(), &role).await.unwrap();
    world.start_member("a").await;
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;
    world.closed("worker-1", &labels).await;
    world.register("worker-1", &pairs([])).await;
    world.labels_become("worker-1", &labels).await;
    assert!(world.metric_of("a", "errors_total{kind=\"forbidden\"}") > 0.0, "it was refused, and says so");
}
