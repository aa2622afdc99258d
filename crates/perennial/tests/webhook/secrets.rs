//! Nothing secret is in the log, the metrics or the records, however much is logged and whatever goes wrong.

use std::fs;
use std::path::Path;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use perennial_testkit::{KeeperProcess, Port, eventually};
use serde_json::{Value, json};

use crate::hook::{Caller, NAME, authorities};
use crate::world::{SOON, World, pairs};

const METRICS: &str = "perennial-metrics";
/// What somebody shows who is nobody.
const STRANGE: &str = "a-token-that-nobody-must-see-0123456789abcdef";
const KEY: &str = "a-key-that-nobody-must-see-0123456789abcdef";

/// Whatever identifies the account, as it is in its kubeconfig.
fn token(kubeconfig: &Path) -> String {
    let kubeconfig: Value = serde_json::from_slice(&fs::read(kubeconfig).unwrap()).unwrap();
    kubeconfig["users"][0]["user"]["token"].as_str().unwrap().to_owned()
}

/// Has an account that may read metrics: its token.
async fn reader(world: &World) -> String {
    let kubeconfig = world.plane.kubeconfig_for_service_account("monitoring", "prometheus").await.unwrap();
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "reader" },
        "rules": [{ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }],
    });
    let bound = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": "reader" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader" },
        "subjects": [{ "kind": "ServiceAccount", "name": "prometheus", "namespace": "monitoring" }],
    });
    for object in [role, bound] {
        world.plane.kubectl_apply(&object.to_string()).await.unwrap();
    }
    token(&kubeconfig)
}

/// What somebody who shows this token is answered.
async fn scrape(world: &World, port: &Port, token: &str) -> (u16, String) {
    let (roots, host) = (authorities(world, METRICS).await, format!("{METRICS}.{}.svc", world.namespace()));
    let mut caller = Caller::connect(roots, &host, &port.address()).await.unwrap();
    let head = "GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n";
    caller.say(&format!("{head}authorization: Bearer {token}\r\n\r\n")).await;
    caller.hear().await
}

#[tokio::test]
async fn nothing_of_keys_and_tokens_is_told_at_the_finest_level() {
    let world = World::alone("").await;
    let (kubeconfig, folder) = (world.kubeconfig().to_owned(), world.plane.folder().to_owned());
    let key = folder.join("record-key");
    fs::write(&key, KEY).unwrap();
    let port = Port::claim().unwrap();
    world
        .plane
        .install_webhook(world.namespace(), &format!("https://{}", port.address()), false)
        .await
        .unwrap();
    let guarded = Port::claim().unwrap();
    world.plane.install_metrics(world.namespace()).await.unwrap();
    let reader = reader(&world).await;
    let keeper = KeeperProcess::builder(env!("CARGO_BIN_EXE_perennial"), &folder)
        .kubeconfig(&kubeconfig)
        .namespace(world.namespace())
        .arg(format!("--record-key={}", key.display()))
        .arg(format!("--webhook-address={}", port.address()))
        .arg("--webhook-hosts=127.0.0.1")
        .arg(format!("--metrics-address={}", guarded.address()))
        .arg("--log-level=trace,perennial=trace,kube=trace,hyper=trace,rustls=trace,h2=debug")
        .start()
        .await
        .unwrap();

    // A life, with a webhook, an edit and a broken Secret on the way.
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.edit_record("worker-1", "nonsense").await;
    world.recorded("worker-1", &labels).await;
    let secrets: Api<Secret> = Api::namespaced(world.plane.admin(), world.namespace());
    let made = || async {
        let data = secrets.get(NAME).await?.data.unwrap_or_default();
        Ok(data.get("tls.key").map(|key| String::from_utf8(key.0.clone()).unwrap()))
    };
    let first = eventually(SOON, "a certificate is made", made).await.unwrap();
    let broken = Patch::Merge(json!({ "data": { "tls.crt": "bm9uc2Vuc2U=" } }));
    secrets.patch(NAME, &PatchParams::default(), &broken).await.unwrap();
    let second = eventually(SOON, "another one is made", || async {
        Ok(made().await?.filter(|now: &String| *now != first))
    })
    .await
    .unwrap();
    world.delete("worker-1").await;
    world.register("worker-1", &pairs([])).await;
    world.labels_become("worker-1", &labels).await;
    assert_eq!(scrape(&world, &guarded, STRANGE).await.0, 401);
    let metrics = eventually(SOON, "metrics are read", || async {
        let (status, metrics) = scrape(&world, &guarded, &reader).await;
        Ok((status == 200).then_some(metrics))
    })
    .await
    .unwrap();
    keeper.stop().await.unwrap();

    let log = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let log = log.filter(|path| path.extension().is_some_and(|end| end == "log"));
    let log: String = log.map(|path| fs::read_to_string(path).unwrap()).collect();
    assert!(log.contains("\"TRACE\"") && log.contains("worker-1"), "it says a lot");
    let record = world.config_map("worker-1").await.unwrap();
    let told = format!("{log}{metrics}{record:?}");
    let tokens = [token(&kubeconfig), reader, STRANGE.to_owned()];
    let mut secret = vec![KEY.to_owned(), "PRIVATE KEY".to_owned()];
    secret.extend(tokens);
    // Each line of a key's text is a good part of it.
    secret.extend(
        [first, second].iter().flat_map(|key| key.lines()).filter(|line| line.len() > 20).map(str::to_owned),
    );
    for secret in secret {
        assert!(!told.contains(&secret), "{}… is told", &secret[..12.min(secret.len())]);
    }
}
