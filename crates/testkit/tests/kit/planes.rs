//! Control planes of several API servers and etcd members: they work as one, and each can go wrong by itself.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{collections::BTreeSet, pin::Pin, time::Duration};

use futures::{Stream, StreamExt as _, future::select_all};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, PostParams, WatchEvent, WatchParams},
};
use perennial_core::policy::Policy;
use perennial_testkit::{
    ControlPlane, Link, eventually,
    oracle::{Judge, Oracle},
};
use tokio::time::timeout;

const SOON: Duration = Duration::from_mins(1);
/// How long something is waited for that must not come. On a quiet machine it would come within milliseconds.
const MOMENT: Duration = Duration::from_secs(1);

async fn start(api_servers: usize, etcd_members: usize) -> ControlPlane {
    let builder = ControlPlane::builder().api_servers(api_servers).etcd_members(etcd_members);
    builder.start().await.unwrap()
}

async fn create(client: Client, name: &str) -> kube::Result<Node> {
    let mut node = Node::default();
    node.metadata.name = Some(name.to_owned());
    Api::<Node>::all(client).create(&PostParams::default(), &node).await
}

/// Waits until a node can be created.
async fn create_soon(client: Client, name: &str) {
    eventually(SOON, &format!("{name} is created"), || async {
        match timeout(Duration::from_secs(5), create(client.clone(), name)).await? {
            // An earlier try may have come through without an answer.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Some(())),
            created => Ok(created.map(|_| Some(()))?),
        }
    })
    .await
    .unwrap();
}

async fn names(client: Client, params: &ListParams) -> kube::Result<BTreeSet<String>> {
    let nodes = Api::<Node>::all(client).list(params).await?;
    Ok(nodes.items.iter().map(ResourceExt::name_any).collect())
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

/// The names of nodes that this server tells of from now on.
struct Heard(Pin<Box<dyn Stream<Item = String>>>);

impl Heard {
    async fn from(client: Client) -> Self {
        let nodes = Api::<Node>::all(client);
        let version = nodes.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
        let events = nodes.watch(&WatchParams::default(), &version).await.unwrap();
        Self(Box::pin(events.filter_map(async |event| match event.unwrap() {
            WatchEvent::Added(node) => Some(node.name_any()),
            _ => None,
        })))
    }

    async fn next(&mut self) -> String {
        timeout(SOON, self.0.next()).await.expect("it is told in time").expect("the watch goes on")
    }

    async fn is_silent(&mut self) -> bool {
        timeout(MOMENT, self.0.next()).await.is_err()
    }
}

#[tokio::test]
async fn three_servers_and_three_members_work_as_one() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let plane = start(3, 3).await;
    for (server, name) in ["a", "b", "c"].into_iter().enumerate() {
        create(plane.api_server(server).admin(), name).await.unwrap();
    }
    for server in 0..3 {
        let listed = names(plane.api_server(server).admin(), &ListParams::default()).await.unwrap();
        assert_eq!(listed, set(["a", "b", "c"]), "server {server}");
        assert_ne!(plane.api_server(server).url(), plane.url());
    }
    // Each client connects anew: three in turn meet three servers.
    for name in ["d", "e", "f"] {
        Api::<Node>::all(plane.admin()).get_opt(name).await.unwrap();
    }
    // Every server accepts tokens that another one signed.
    let account = plane.service_account("perennial", "keeper").await.unwrap();
    for _ in 0..3 {
        let refused = names(account.clone(), &ListParams::default()).await.unwrap_err().to_string();
        assert!(refused.contains("system:serviceaccount:perennial:keeper"), "{refused}");
    }
    eventually(SOON, "every server's audit log says that it was asked", || async {
        let asked = plane.audit_of(|entry| entry.verb == "get" && entry.resource == "nodes")?;
        let asked: BTreeSet<String> = asked.into_iter().map(|entry| entry.name).collect();
        if asked == set(["d", "e", "f"]) { Ok(Some(())) } else { Err(anyhow::anyhow!("{asked:?}")) }
    })
    .await
    .unwrap();
    for server in 0..3 {
        let log = std::fs::read_to_string(plane.logs().join(match server {
            0 => "audit.log".to_owned(),
            other => format!("audit-{other}.log"),
        }));
        let log = log.unwrap();
        assert_eq!(["d", "e", "f"].iter().filter(|name| log.contains(&format!("/nodes/{name}"))).count(), 1);
    }
}

#[tokio::test]
async fn a_write_is_not_heard_on_a_server_whose_link_to_etcd_is_held() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let plane = start(2, 1).await;
    let (mut here, mut there) =
        (Heard::from(plane.api_server(0).admin()).await, Heard::from(plane.api_server(1).admin()).await);
    plane.api_server(1).link_to_etcd(Link::Held).unwrap();
    create(plane.api_server(0).admin(), "a").await.unwrap();
    assert_eq!(here.next().await, "a");
    assert!(there.is_silent().await);
    // It answers from its cache, and does not know what it missed.
    let cached = names(plane.api_server(1).admin(), &ListParams::default().match_any()).await.unwrap();
    assert_eq!(cached, set([]));

    plane.api_server(1).link_to_etcd(Link::Open).unwrap();
    assert_eq!(there.next().await, "a");
}

#[tokio::test]
async fn a_server_that_is_cut_from_etcd_answers_from_its_cache_and_nothing_else() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let plane = start(2, 1).await;
    create(plane.admin(), "a").await.unwrap();
    let there = plane.api_server(1);
    let mut heard = Heard::from(there.admin()).await;
    there.link_to_etcd(Link::Cut).unwrap();
    create(plane.api_server(0).admin(), "b").await.unwrap();
    assert_eq!(names(there.admin(), &ListParams::default().match_any()).await.unwrap(), set(["a"]));
    let written = timeout(MOMENT, create(there.admin(), "c")).await;
    assert!(!matches!(written, Ok(Ok(_))), "{written:?}");
    assert!(heard.is_silent().await);

    there.link_to_etcd(Link::Open).unwrap();
    there.ready().await.unwrap();
    create_soon(there.admin(), "d").await;
    assert!(names(there.admin(), &ListParams::default()).await.unwrap().is_superset(&set(["a", "b", "d"])));
}

#[tokio::test]
async fn connections_to_a_frozen_server_hang_and_a_killed_one_is_passed_over() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let plane = start(2, 1).await;
    plane.api_server(1).pause().await.unwrap();
    // Two clients in turn meet both servers.
    let all = ListParams::default();
    let asked = [plane.admin(), plane.admin()].map(|client| Box::pin(names(client, &all)));
    let (answer, _, mut others) = timeout(SOON, select_all(asked)).await.unwrap();
    assert_eq!(answer.unwrap(), set([]));
    assert!(timeout(MOMENT, &mut others[0]).await.is_err(), "the other one hangs");
    plane.api_server(1).resume().await.unwrap();
    assert_eq!(timeout(SOON, &mut others[0]).await.unwrap().unwrap(), set([]));

    plane.api_server(1).kill().await.unwrap();
    assert_eq!(plane.api_server(1).pid().await, None);
    for name in ["a", "b", "c"] {
        create(plane.admin(), name).await.unwrap();
    }
    plane.api_server(1).start().await.unwrap();
    let listed = names(plane.api_server(1).admin(), &ListParams::default()).await.unwrap();
    assert_eq!(listed, set(["a", "b", "c"]));
    plane.api_server(0).restart().await.unwrap();
    assert_eq!(names(plane.api_server(0).admin(), &ListParams::default()).await.unwrap(), listed);
}

#[tokio::test]
async fn a_follower_that_is_kept_from_its_peers_keeps_its_server_from_news() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let plane = start(2, 3).await;
    // Each of these servers is connected to the member of its own number; one of them does not lead.
    let behind = usize::from(plane.leader().await.unwrap() == 0);
    let (ahead, behind) = (1 - behind, behind);
    let mut heard_ahead = Heard::from(plane.api_server(ahead).admin()).await;
    let mut heard_behind = Heard::from(plane.api_server(behind).admin()).await;
    plane.etcd_member(behind).link_to_peers(Link::Held).unwrap();
    create_soon(plane.api_server(ahead).admin(), "a").await;
    assert_eq!(heard_ahead.next().await, "a");
    assert!(heard_behind.is_silent().await);

    plane.etcd_member(behind).link_to_peers(Link::Delayed(Duration::from_millis(50))).unwrap();
    assert_eq!(heard_behind.next().await, "a");
    plane.etcd_member(behind).link_to_peers(Link::Open).unwrap();
    plane.ready().await.unwrap();
    create_soon(plane.api_server(behind).admin(), "b").await;
    assert_eq!(heard_ahead.next().await, "b");
}

/// Waits until another member leads than this one.
async fn other_leader(plane: &ControlPlane, than: usize) -> usize {
    eventually(SOON, "another member leads", || async {
        let leader = plane.leader().await?;
        Ok((leader != than).then_some(leader))
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn etcd_outlives_its_leaders_and_the_oracle_misses_nothing() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let json = "--storage-media-type=application/json";
    let builder = ControlPlane::builder().api_servers(2).etcd_members(3).apiserver_flag(json);
    let plane = builder.start().await.unwrap();
    let oracle = Oracle::follow(&plane, Judge::new(Policy::default(), "perennial")).await.unwrap();
    let first = plane.leader().await.unwrap();
    plane.etcd_member(first).kill().await.unwrap();
    let second = other_leader(&plane, first).await;
    // A server whose own member is dead is connected to the next one.
    for (server, name) in ["a", "b"].into_iter().enumerate() {
        create_soon(plane.api_server(server).admin(), name).await;
    }
    oracle.fence().await.unwrap();
    plane.etcd_member(first).start().await.unwrap();

    plane.etcd_member(second).pause().await.unwrap();
    other_leader(&plane, second).await;
    // A server whose own member is frozen waits for it.
    create_soon(plane.api_server(usize::from(second == 0)).admin(), "c").await;
    oracle.fence().await.unwrap();
    plane.etcd_member(second).resume().await.unwrap();
    plane.ready().await.unwrap();
    assert_eq!(names(plane.admin(), &ListParams::default()).await.unwrap(), set(["a", "b", "c"]));
    oracle.fence().await.unwrap();
    assert_eq!(oracle.look(Judge::tally).lives, 3);
}

#[tokio::test]
async fn with_two_of_three_members_down_nothing_is_written() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let plane = start(1, 3).await;
    create(plane.admin(), "a").await.unwrap();
    for member in [1, 2] {
        plane.etcd_member(member).kill().await.unwrap();
    }
    let written = timeout(MOMENT, create(plane.admin(), "b")).await;
    assert!(!matches!(written, Ok(Ok(_))), "{written:?}");
    eventually(SOON, "no member leads", || async { Ok(plane.leader().await.is_err().then_some(())) })
        .await
        .unwrap();

    plane.etcd_member(1).start().await.unwrap();
    create_soon(plane.admin(), "b").await;
    assert_eq!(names(plane.admin(), &ListParams::default()).await.unwrap(), set(["a", "b"]));
    plane.etcd_member(2).start().await.unwrap();
}

#[tokio::test]
async fn a_snapshot_of_three_members_is_restored_on_all_of_them() {
    if perennial_testkit::left_out_on_kine() {
        return;
    }
    let plane = start(3, 3).await;
    create(plane.admin(), "a").await.unwrap();
    let snapshot = plane.snapshot_etcd().await.unwrap();
    create(plane.admin(), "b").await.unwrap();
    plane.restore_etcd(&snapshot).await.unwrap();
    for server in 0..3 {
        let listed = names(plane.api_server(server).admin(), &ListParams::default()).await.unwrap();
        assert_eq!(listed, set(["a"]), "server {server}");
    }
    create(plane.admin(), "c").await.unwrap();
}
