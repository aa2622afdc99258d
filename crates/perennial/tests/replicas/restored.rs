//! etcd is restored under two running replicas so that versions do not run backwards: its revision is raised, as etcd
//! recommends for Kubernetes, or others write so much that it outruns what was lost before the replicas are back.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use perennial_core::record::State;
use perennial_testkit::Backup;
use perennial_testkit::proxy::{Fault, Injection, Matcher, Proxy};

use crate::through::first_for;
use crate::world::{World, pairs};

const MEMBERS: [&str; 2] = ["a", "b"];
/// As much as etcd's documentation suggests.
const RAISED_BY: u64 = 1_000_000_000;
/// More revisions than a starting API server writes by itself.
const MANY: usize = 400;

/// Lets history go on by so many revisions.
async fn time_passes(world: &World, revisions: usize) {
    let maps: Api<ConfigMap> = Api::namespaced(world.plane.admin(), "default");
    let metadata = ObjectMeta { generate_name: Some("tick-".to_owned()), ..ObjectMeta::default() };
    let (tick, params) = (ConfigMap { metadata, ..ConfigMap::default() }, PostParams::default());
    let ticks = stream::iter(0..revisions).map(|_| maps.create(&params, &tick));
    ticks.buffer_unordered(16).try_for_each(|_| std::future::ready(Ok(()))).await.unwrap();
}

/// Two replicas and their ways to the API server, nodes that are recorded, and a backup after which all of them changed:
/// labels, a deletion, a return, and a node that was not there before.
struct Disaster {
    world: World,
    proxies: [Proxy; 2],
    backup: Backup,
    changes: String,
    leaves: String,
    returns: String,
    away: String,
}

impl Disaster {
    async fn strikes() -> Self {
        let mut world = World::alone("").await;
        let proxies = world.two_members(|_| {}).await;
        let [of_a, of_b] = MEMBERS.map(|member| first_for(member, &MEMBERS, 2));
        let nodes = [of_a, of_b].concat();
        world.begin_with(&nodes, "blue").await;
        let [changes, away, leaves, returns] = nodes.try_into().unwrap();
        world.delete(&away).await;
        world.closed(&away, &pairs([("team", "blue")])).await;
        world.silence().await;
        let backup = world.plane.back_up_etcd().await.unwrap();
        for node in [&changes, &leaves, &returns] {
            world.label(node, "team", Some("green")).await;
            world.recorded(node, &pairs([("team", "green")])).await;
        }
        world.begin_with(&["lost".to_owned()], "green").await;
        world.delete(&leaves).await;
        world.closed(&leaves, &pairs([("team", "green")])).await;
        world.return_with(&returns, "green").await;
        world.all_are_back(std::slice::from_ref(&returns), "green").await;
        world.register(&away, &pairs([])).await;
        world.all_are_back(std::slice::from_ref(&away), "blue").await;
        time_passes(&world, MANY).await;
        world.silence().await;
        Self { world, proxies, backup, changes, leaves, returns, away }
    }

    fn cut_off(&self) -> Vec<Injection> {
        self.proxies.iter().map(|proxy| proxy.partition(&Matcher::any())).collect()
    }

    /// Everybody sees that this is another history, once, and goes on from what is there.
    async fn work_goes_on(self) {
        let Self { world, proxies: _proxies, backup: _, changes, leaves, returns, away } = self;
        for member in MEMBERS {
            world.metric_of_reaches(member, "histories_total", 1.0).await;
            world.member_is_ready(member).await;
            world.sees(member, 2).await;
        }
        world.label(&changes, "team", Some("red")).await;
        world.recorded(&changes, &pairs([("team", "red")])).await;
        world.label(&leaves, "team", Some("red")).await;
        world.delete(&leaves).await;
        world.closed(&leaves, &pairs([("team", "red")])).await;
        world.return_with(&returns, "red").await;
        world.register(&away, &pairs([])).await;
        world.all_are_back(std::slice::from_ref(&returns), "red").await;
        world.all_are_back(std::slice::from_ref(&away), "blue").await;
        world.silence().await;
        assert!(world.record("lost").await.is_none_or(|record| record.state == State::Closed));
        world.nothing_is_in_doubt(&[changes, leaves, returns, away]).await;
        for member in MEMBERS {
            assert_eq!(world.metric_of(member, "histories_total"), 1.0, "{member}");
        }
    }
}

#[tokio::test]
async fn etcd_is_restored_with_its_revision_raised_and_two_replicas_work_on() {
    let disaster = Disaster::strikes().await;
    disaster.world.plane.restore_backup(&disaster.backup, Some(RAISED_BY)).await.unwrap();
    assert!(disaster.world.plane.revision().await.unwrap() > RAISED_BY);
    disaster.work_goes_on().await;
}

#[tokio::test]
async fn etcd_is_restored_and_outrun_before_two_replicas_are_back_and_they_work_on() {
    let disaster = Disaster::strikes().await;
    let lost = disaster.world.plane.revision().await.unwrap() - disaster.backup.revision;
    let cut_off = disaster.cut_off();
    disaster.world.plane.restore_backup(&disaster.backup, None).await.unwrap();
    // Before versions that were seen already: a watch that goes on from there does not tell it.
    disaster.world.label(&disaster.changes, "team", Some("yellow")).await;
    time_passes(&disaster.world, usize::try_from(lost).unwrap()).await;
    drop(cut_off);
    disaster.world.recorded(&disaster.changes, &pairs([("team", "yellow")])).await;
    disaster.work_goes_on().await;
}

/// A server that lags, or a proxy that is wrong, must not have a replica forget what it alone may have seen.
#[tokio::test]
async fn a_list_that_is_older_than_what_was_told_before_is_not_another_history() {
    let mut world = World::without_keeper("").await;
    let [proxy, _other] = world.two_members(|_| {}).await;
    let nodes = first_for("a", &MEMBERS, 2);
    world.begin_with(&nodes, "blue").await;
    let before = world.plane.revision().await.unwrap();
    for node in &nodes {
        world.label(node, "team", Some("green")).await;
        world.recorded(node, &pairs([("team", "green")])).await;
    }
    world.silence().await;
    let stale = proxy.inject(Matcher::lists("nodes").query("sendInitialEvents"), Fault::Stale(before));
    world.expire(&proxy, "a").await;
    world.silence().await;
    assert!(stale.met() > 0, "the list was an old one");
    for node in &nodes {
        world.delete(node).await;
        world.register(node, &pairs([])).await;
    }
    world.all_are_back(&nodes, "green").await;
    assert_eq!(world.metric_of_all("histories_total"), 0.0);
    world.nothing_is_in_doubt(&nodes).await;
}
