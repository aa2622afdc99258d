//! What a client may do to a connection, on a clock that stands still unless somebody waits for it.

use axum::body::Body;
use axum::routing::get;
use rcgen::generate_simple_self_signed;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::task::AbortOnDropHandle;

use super::*;

const QUESTION: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";

/// A connection that is served, by one end of a pipe.
struct Served {
    pipe: DuplexStream,
    roots: RootCertStore,
    closing: CancellationToken,
    serving: AbortOnDropHandle<()>,
}

fn served() -> Served {
    let made = generate_simple_self_signed(["a".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let chain = vec![made.cert.der().clone()];
    let key = CertifiedKey::from_der(chain, key, &ring::default_provider()).unwrap();
    let serving = Arc::<Serving>::default();
    serving.with(Arc::new(key));
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let endless = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b'x'; 65536]));
    let routes = Router::new()
        .route("/", get(async || "yes"))
        .route("/endless", get(async || Body::from_stream(endless)));
    let (pipe, other) = tokio::io::duplex(64 * 1024);
    let closing = CancellationToken::new();
    let serving = serve_one(other, acceptor(serving).unwrap(), routes, "a test", closing.clone());
    Served { pipe, roots, closing, serving: AbortOnDropHandle::new(tokio::spawn(serving)) }
}

impl Served {
    /// Shakes hands as somebody does who speaks this alone.
    async fn shake(
        self,
        version: &'static SupportedProtocolVersion,
        speaks: &[&str],
    ) -> std::io::Result<(TlsStream<DuplexStream>, CancellationToken, AbortOnDropHandle<()>)> {
        let Self { pipe, roots, closing, serving } = self;
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = speaks.iter().map(|name| name.as_bytes().to_vec()).collect();
        let name = ServerName::try_from("a").unwrap();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, pipe).await?;
        Ok((stream, closing, serving))
    }

    async fn ready(self) -> (TlsStream<DuplexStream>, CancellationToken, AbortOnDropHandle<()>) {
        self.shake(&rustls::version::TLS13, &[]).await.unwrap()
    }
}

/// Asks, and reads the answer as far as it comes at once.
async fn ask(stream: &mut TlsStream<DuplexStream>) -> String {
    stream.write_all(QUESTION).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"yes") {
        assert!(stream.read_buf(&mut answer).await.unwrap() > 0, "{answer:?}");
    }
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn who_speaks_neither_tls_1_3_nor_http_1_1_is_refused() {
    let refused = served().shake(&rustls::version::TLS12, &[]).await.err().unwrap();
    assert!(refused.to_string().contains("ProtocolVersion"), "{refused}");
    let refused = served().shake(&rustls::version::TLS13, &["h2"]).await.err().unwrap();
    assert!(refused.to_string().contains("NoApplicationProtocol"), "{refused}");
    let (mut stream, _closing, _serving) =
        served().shake(&rustls::version::TLS13, &["h2", "http/1.1"]).await.unwrap();
    ask(&mut stream).await;
}

#[tokio::test(start_paused = true)]
async fn who_never_shakes_hands_is_let_go() {
    let since = Instant::now();
    let served = served();
    served.serving.await.unwrap();
    assert_eq!(since.elapsed().as_secs(), HANDSHAKE.as_secs());
}

#[tokio::test(start_paused = true)]
async fn who_is_silent_or_never_ends_a_head_is_let_go() {
    for head in ["", "GET / HTTP/1.1\r\nhost:"] {
        let (mut stream, _, serving) = served().ready().await;
        ask(&mut stream).await;
        let since = Instant::now();
        stream.write_all(head.as_bytes()).await.unwrap();
        serving.await.unwrap();
        assert_eq!(since.elapsed().as_secs(), SILENT.as_secs(), "{head}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_on_and_on_is_told_that_the_connection_ends() {
    let (mut stream, _, serving) = served().ready().await;
    let since = Instant::now();
    while since.elapsed() < LASTS {
        assert!(!ask(&mut stream).await.contains("connection: close"));
        tokio::time::sleep(SILENT / 2).await;
    }
    assert!(ask(&mut stream).await.contains("connection: close"));
    serving.await.unwrap();
    assert_eq!(since.elapsed().as_secs(), LASTS.as_secs());
}

#[tokio::test(start_paused = true)]
async fn who_does_not_read_its_answer_is_let_go() {
    let (mut stream, _, serving) = served().ready().await;
    let since = Instant::now();
    stream.write_all(b"GET /endless HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    serving.await.unwrap();
    assert_eq!(since.elapsed().as_secs(), (LASTS + SILENT + ENDS).as_secs());
}

#[tokio::test(start_paused = true)]
async fn one_that_closes_ends_what_is_silent_at_once_and_what_is_not_read_soon() {
    for (path, takes) in [("/", Duration::ZERO), ("/endless", ENDS)] {
        let (mut stream, closing, serving) = served().ready().await;
        stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes()).await.unwrap();
        stream.read_u8().await.unwrap();
        let since = Instant::now();
        closing.cancel();
        serving.await.unwrap();
        assert_eq!(since.elapsed().as_secs(), takes.as_secs(), "{path}");
    }
}
