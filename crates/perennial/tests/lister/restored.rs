//! etcd is restored under a running lister, whose pages in a bucket are not.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use perennial_testkit::proxy::{Matcher, Proxy};
use perennial_testkit::{Backup, S3Server};

use crate::buckets::{anybody_reads, into_bucket, with_secret};
use crate::world::{World, lines};

/// As much as etcd's documentation suggests.
const RAISED_BY: u64 = 1_000_000_000;
/// More revisions than a starting API server writes by itself.
const MANY: usize = 400;

async fn time_passes(world: &World, revisions: usize) {
    let maps: Api<ConfigMap> = Api::namespaced(world.client(), "default");
    let metadata = ObjectMeta { generate_name: Some("tick-".to_owned()), ..ObjectMeta::default() };
    let (tick, params) = (ConfigMap { metadata, ..ConfigMap::default() }, PostParams::default());
    let ticks = stream::iter(0..revisions).map(|_| maps.create(&params, &tick));
    ticks.buffer_unordered(16).try_for_each(|_| std::future::ready(Ok(()))).await.unwrap();
}

/// A lister with a way of its own, its page, and a backup after which the page changed.
async fn published_since_a_backup() -> (World, Proxy, S3Server, Backup) {
    let (mut world, server) = (World::alone().await, S3Server::start().await.unwrap());
    let proxy = Proxy::start(world.kubeconfig()).await.unwrap();
    let kubeconfig = proxy.kubeconfig().to_owned();
    world.start_lister_through("a", &kubeconfig).await;
    server.create_bucket("pages").await.unwrap();
    server.publish_bucket("pages").await.unwrap();
    with_secret(&world, &server).await;
    world.endpoints("web", &["10.0.0.1"]).await;
    world.listing("web", into_bucket(&server, false)).await;
    anybody_reads(&server, "index.txt", &lines(&["10.0.0.1"])).await;
    let backup = world.plane.back_up_etcd().await.unwrap();
    time_passes(&world, MANY).await;
    world.endpoints("web", &["10.0.0.2"]).await;
    anybody_reads(&server, "index.txt", &lines(&["10.0.0.2"])).await;
    (world, proxy, server, backup)
}

#[tokio::test]
async fn pages_are_published_on_after_etcd_was_restored_with_its_revision_raised() {
    let (world, _proxy, server, backup) = published_since_a_backup().await;
    world.plane.restore_backup(&backup, Some(RAISED_BY)).await.unwrap();
    anybody_reads(&server, "index.txt", &lines(&["10.0.0.1"])).await;
    world.endpoints("web", &["10.0.0.3"]).await;
    anybody_reads(&server, "index.txt", &lines(&["10.0.0.3"])).await;
    world.is("web", "True", "Published").await;
}

#[tokio::test]
async fn pages_are_published_on_after_etcd_was_restored_and_outrun() {
    let (world, proxy, server, backup) = published_since_a_backup().await;
    let lost = world.plane.revision().await.unwrap() - backup.revision;
    let cut_off = proxy.partition(&Matcher::any());
    world.plane.restore_backup(&backup, None).await.unwrap();
    // Before versions that were seen already: a watch that goes on from there does not tell it.
    world.endpoints("web", &["10.0.0.3"]).await;
    time_passes(&world, usize::try_from(lost).unwrap()).await;
    drop(cut_off);
    anybody_reads(&server, "index.txt", &lines(&["10.0.0.3"])).await;
    world.endpoints("web", &["10.0.0.4"]).await;
    anybody_reads(&server, "index.txt", &lines(&["10.0.0.4"])).await;
    world.is("web", "True", "Published").await;
}
