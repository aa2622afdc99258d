//! A webhook that is away, slow or talks nonsense keeps nobody from registering, and costs nobody a label.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use perennial_testkit::eventually;
use rcgen::generate_simple_self_signed;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

use crate::hook::{NAME, kubelet, own};
use crate::world::{Labels, SOON, World, pairs};

/// What somebody who is asked instead of the webhook does with each connection.
#[derive(Clone)]
enum Imposter {
    /// Nothing, for ever.
    Silent,
    /// Says this, whatever is asked, without TLS.
    Plain(&'static str),
    /// Answers with this status and this body, with the question's own name for [`UID`].
    Answers(u16, String),
}

/// Stands for what a question is called.
const UID: &str = "the uid of the question";

impl Imposter {
    /// Answers with a review that says this.
    fn says(mut response: Value) -> Self {
        response["uid"] = json!(UID);
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
        });
        Self::Answers(200, review.to_string())
    }

    /// Lets it in, with this patch.
    fn patches(kind: &str, patch: &str) -> Self {
        let patch = BASE64_STANDARD.encode(patch);
        Self::says(json!({ "allowed": true, "patchType": kind, "patch": patch }))
    }
}

/// What the question is called that comes here.
async fn uid(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<String> {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request);
        let found = text.split_once("\"uid\":\"").and_then(|(_, rest)| rest.split_once('"'));
        if let Some((uid, _)) = found {
            return Ok(uid.to_owned());
        }
        if stream.read_buf(&mut request).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Somebody who is asked instead of the webhook.
struct Asked {
    _serving: AbortOnDropHandle<()>,
    /// Somebody asked.
    asked: Arc<AtomicBool>,
}

impl Asked {
    /// Has the API server ask them, and trust them.
    async fn instead(world: &World, imposter: Imposter) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let made = generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let asked = Arc::<AtomicBool>::default();
        let told = asked.clone();
        let serving = tokio::spawn(async move {
            let mut held = Vec::new();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                match imposter.clone() {
                    Imposter::Silent => held.push(stream),
                    Imposter::Plain(text) => stream.write_all(text.as_bytes()).await.unwrap_or_default(),
                    Imposter::Answers(status, body) => {
                        let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                        let Ok(uid) = uid(&mut stream).await else { continue };
                        let body = body.replace(UID, &uid);
                        let length = body.len();
                        let head = format!(
                            "HTTP/1.1 {status} x\r\ncontent-length: {length}\r\nconnection: close\r\n"
                        );
                        let answer = format!("{head}content-type: application/json\r\n\r\n{body}");
                        stream.write_all(answer.as_bytes()).await.unwrap_or_default();
                        stream.shutdown().await.unwrap_or_default();
                    }
                }
                told.store(true, Ordering::Relaxed);
            }
        });
        let hooks: Api<MutatingWebhookConfiguration> = Api::all(world.plane.admin());
        let bundle = BASE64_STANDARD.encode(made.cert.pem());
        let config = json!({ "url": format!("https://127.0.0.1:{port}/born"), "caBundle": bundle });
        let patch = json!({ "webhooks": [{ "name": "born.perennial.dev", "clientConfig": config }] });
        hooks.patch(NAME, &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
        Self { _serving: AbortOnDropHandle::new(serving), asked }
    }
}

fn all() -> Labels {
    pairs([("team", "blue")]).into_iter().chain(own("worker-1")).collect()
}

/// A node that is away, with a webhook that was asked until now.
async fn away() -> World {
    let mut world = World::without_keeper("").await;
    // From here on nobody puts the right certificate into the configuration.
    drop(world.start_with_hook().await);
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;
    world
}

#[tokio::test]
async fn one_that_is_away_is_not_missed() {
    let world = away().await;
    let born = world.join("worker-1").await;
    assert_eq!(born.metadata.labels.unwrap(), own("worker-1"));
    world.labels_become("worker-1", &all()).await;
}

#[tokio::test]
async fn one_that_never_answers_is_waited_for_but_not_long() {
    still_registers(Imposter::Silent).await;
}

#[tokio::test]
async fn one_that_talks_nonsense_is_not_heard() {
    let right = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": { "uid": "another question", "allowed": true },
    });
    for imposter in [
        Imposter::Plain("220 mail.example.com ESMTP\r\n"),
        Imposter::Answers(200, "nonsense".to_owned()),
        Imposter::Answers(200, String::new()),
        Imposter::Answers(200, right.to_string()),
        Imposter::Answers(500, "no".to_owned()),
        Imposter::says(json!({ "allowed": true, "patchType": "JSONPatch", "patch": "no base64!" })),
        Imposter::patches("JSONPatch", "no patch"),
        Imposter::patches("JSONPatch", "{}"),
        Imposter::patches("Poetry", LABELS),
    ] {
        still_registers(imposter).await;
    }
}

/// A patch that is one.
const LABELS: &str = r#"[{ "op": "add", "path": "/metadata/labels/team", "value": "red" }]"#;

/// What the API server believes once it trusts whoever answers: such a thing the webhook itself never says.
#[tokio::test]
async fn one_that_holds_the_key_and_says_no_is_heard() {
    for imposter in [
        Imposter::says(json!({ "allowed": false })),
        Imposter::patches("JSONPatch", r#"[{ "op": "remove", "path": "/metadata/nothing" }]"#),
        Imposter::patches("JSONPatch", &LABELS.replace("team", "node-role.kubernetes.io~1db")),
        Imposter::patches("JSONPatch", &LABELS.replace("red", "no value")),
    ] {
        let world = away().await;
        let _instead = Asked::instead(&world, imposter).await;
        eventually(SOON, "a registration is refused", || async {
            let name = format!("worker-{}", rand::random::<u32>());
            let node = json!({ "metadata": { "name": name, "labels": own(&name) } });
            let node = serde_json::from_value(node)?;
            let created = kubelet(&world, &name).create(&PostParams::default(), &node).await;
            Ok(matches!(created, Err(kube::Error::Api(_))).then_some(()))
        })
        .await
        .unwrap();
    }
}

async fn still_registers(imposter: Imposter) {
    let world = away().await;
    let instead = Asked::instead(&world, imposter).await;
    // Others come first, until the API server has learned whom to ask.
    eventually(SOON, "somebody else is asked", || async {
        let name = format!("worker-{}", rand::random::<u32>());
        world.join(&name).await;
        Ok(instead.asked.load(Ordering::Relaxed).then_some(()))
    })
    .await
    .unwrap();
    let born = world.join("worker-1").await;
    assert_eq!(born.metadata.labels.unwrap(), own("worker-1"));
    world.labels_become("worker-1", &all()).await;
}
