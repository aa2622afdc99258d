//! A webhook that is away, slow or talks nonsense keeps nobody from registering, and costs nobody a label.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::Api;
use kube::api::{Patch, PatchParams};
use perennial_testkit::eventually;
use rcgen::generate_simple_self_signed;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

use crate::hook::{NAME, own};
use crate::world::{Labels, SOON, World, pairs};

/// What somebody who is asked instead of the webhook does with each connection.
#[derive(Clone)]
enum Imposter {
    /// Nothing, for ever.
    Silent,
    /// Says this, whatever is asked, without TLS.
    Plain(&'static str),
    /// Answers with this status and this body.
    Answers(u16, String),
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
                        let mut request = vec![0; 64 * 1024];
                        // The first part of it is enough to answer.
                        stream.read(&mut request).await.unwrap_or_default();
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
    ] {
        still_registers(imposter).await;
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
