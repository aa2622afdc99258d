//! Certificates: shared by replicas, renewed without a gap, given by others.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use perennial::config::TlsConfig;
use perennial::keeper::Door;
use perennial::tls::Lives;
use perennial_testkit::eventually;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use serde_json::json;

use crate::hook::{Caller, Hook, NAME, PROBE, config, lives, trusting};
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

/// A certificate by somebody else, and its key. We would renew one that ends tomorrow.
fn given() -> (String, String) {
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let tomorrow = SystemTime::now() + Duration::from_hours(24);
    params.not_after = date_time_ymd(1970, 1, 1) + tomorrow.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

#[tokio::test]
async fn those_that_are_given_are_served_and_nothing_is_written() {
    let mut world = World::without_keeper("").await;
    let door = Door::default();
    world.configure(|config| config.door = Some(door.clone()));
    world.start_keeper().await;
    let config = TlsConfig { own: false, ..config(&world) };
    let hook = Hook::serve_with(world.account.clone(), door, config).await;
    let address = hook.address.to_string();
    world.plane.install_webhook(world.namespace(), &format!("https://{address}"), false).await.unwrap();
    world.register(PROBE, &pairs([("probe", "1")])).await;
    let (secrets, hooks) = (secrets(&world), Api::<MutatingWebhookConfiguration>::all(world.plane.admin()));
    for _ in 0..2 {
        let (certificate, key) = given();
        let [pem, key] = [&certificate, &key].map(|text| BASE64_STANDARD.encode(text));
        let hook = json!({ "name": "born.perennial.dev", "clientConfig": { "caBundle": pem } });
        let patch = Patch::Strategic(json!({ "webhooks": [hook] }));
        let told = hooks.patch(NAME, &PatchParams::default(), &patch).await.unwrap();
        let patch = Patch::Merge(json!({ "data": { "ca.crt": pem, "tls.crt": pem, "tls.key": key } }));
        let held = secrets.patch(NAME, &PatchParams::default(), &patch).await.unwrap();
        eventually(SOON, "what is given is served", || async {
            let caller = Caller::connect(trusting(certificate.as_bytes()), "127.0.0.1", &address).await;
            Ok(caller.ok().map(drop))
        })
        .await
        .unwrap();
        world.is_asked().await;
        let (held_now, told_now) = (secrets.get(NAME).await.unwrap(), hooks.get(NAME).await.unwrap());
        assert_eq!(held_now.metadata.resource_version, held.metadata.resource_version);
        assert_eq!(told_now.metadata.resource_version, told.metadata.resource_version);
    }
}
