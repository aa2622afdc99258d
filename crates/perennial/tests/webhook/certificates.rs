//! Certificates: shared by replicas, renewed without a gap, given by others.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use perennial::keeper::Door;
use perennial::tls::Lives;
use perennial_testkit::eventually;
use serde_json::json;

use crate::hook::{Hook, NAME, lives};
use crate::world::{SOON, World, pairs};

/// Renewed every other second; but what is served is good for a while longer, in which a busy machine may stand still.
const OFTEN: Lives = Lives {
    whole: Duration::from_mins(2),
    renew: Duration::from_secs(118),
    known: Duration::from_secs(1),
    look: Duration::from_millis(100),
};

fn secrets(world: &World) -> Api<Secret> {
    Api::namespaced(world.plane.admin(), world.namespace())
}

async fn served(world: &World) -> Option<Vec<u8>> {
    secrets(world).get(NAME).await.unwrap().data?.remove("tls.crt").map(|bytes| bytes.0)
}

#[tokio::test]
async fn they_are_renewed_without_a_birth_that_goes_unanswered() {
    let mut world = World::without_keeper("").await;
    let door = Door::default();
    world.configure(|config| config.door = Some(door.clone()));
    world.start_keeper().await;
    // Two replicas, one of which is asked: both look after the certificates.
    let hook = Hook::serve(&world, world.account.clone(), door.clone(), OFTEN).await;
    let _other = Hook::serve(&world, world.account.clone(), door, OFTEN).await;
    world.ask(&hook, false).await;
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    let mut seen = BTreeSet::new();
    while seen.len() < 4 {
        world.delete("worker-1").await;
        let born = world.join("worker-1").await;
        assert_eq!(
            born.metadata.labels.unwrap().get("team").map(String::as_str),
            Some("blue"),
            "{}",
            seen.len()
        );
        world.is_marked("worker-1").await;
        seen.extend(served(&world).await);
    }
}

#[tokio::test]
async fn whoever_the_api_server_trusts_is_put_right_when_somebody_changes_it() {
    let mut world = World::without_keeper("").await;
    let _hook = world.start_with_hook().await;
    let hooks: Api<MutatingWebhookConfiguration> = Api::all(world.plane.admin());
    let bundle = async || hooks.get(NAME).await.unwrap().webhooks.unwrap()[0].client_config.ca_bundle.clone();
    let before = bundle().await;
    let hook = json!({ "name": "born.perennial.dev", "clientConfig": { "caBundle": null } });
    let patch = Patch::Strategic(json!({ "webhooks": [hook] }));
    hooks.patch(NAME, &PatchParams::default(), &patch).await.unwrap();
    eventually(SOON, "the bundle is back", || async { Ok((bundle().await == before).then_some(())) })
        .await
        .unwrap();
}

#[tokio::test]
async fn a_secret_that_somebody_breaks_or_empties_is_filled_again() {
    let mut world = World::without_keeper("").await;
    let _hook = world.start_with_hook().await;
    let broken = [
        json!({ "data": { "tls.key": "bm9uc2Vuc2U=" } }),
        json!({ "data": { "ca.crt": "/w==" } }),
        json!({ "data": null }),
    ];
    for broken in broken {
        let before = served(&world).await;
        secrets(&world).patch(NAME, &PatchParams::default(), &Patch::Merge(broken)).await.unwrap();
        eventually(SOON, "another certificate is there", || async {
            let now = served(&world).await;
            Ok((now.is_some() && now != before).then_some(()))
        })
        .await
        .unwrap();
        world.is_asked().await;
    }
}

#[tokio::test]
async fn a_secret_that_is_not_there_yet_is_waited_for() {
    let mut world = World::without_keeper("").await;
    let door = Door::default();
    world.configure(|config| config.door = Some(door.clone()));
    world.start_keeper().await;
    let hook = Hook::serve(&world, world.account.clone(), door, lives()).await;
    world.ask(&hook, false).await;
    assert_eq!(hook.metric("webhook_certificate"), 1.0);
}
