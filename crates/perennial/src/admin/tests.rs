//! The admin server through its real listener.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::*;

struct Running {
    address: SocketAddr,
    readiness: Readiness,
    _task: AbortOnDropHandle<()>,
}

async fn start() -> Running {
    start_with(Metrics::Open(Arc::new(crate::metrics::registry()))).await
}

async fn start_with(metrics: Metrics) -> Running {
    let readiness = Readiness::default();
    let server = Server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = server.address();
    let routes = routes(readiness.clone(), metrics);
    let task = tokio::spawn(server.serve(routes, CancellationToken::new()));
    Running { address, readiness, _task: AbortOnDropHandle::new(task) }
}

impl Running {
    /// Sends raw bytes and reads until the server closes, which it does after each answer.
    async fn send(&self, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        // A reset after the answer was read is how TCP says that the rest of the request was not.
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }

    async fn get(&self, path: &str) -> String {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: admin\r\n\r\n").as_bytes()).await
    }
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_else(|| panic!("no status in {answer:?}"))
}

#[tokio::test]
async fn a_process_is_live_whether_or_not_it_is_ready() {
    let admin = start().await;
    let _never_marked = admin.readiness.handle("keeper");
    for path in ["/livez", "/healthz"] {
        let answer = admin.get(path).await;
        assert!(status(&answer) == "200" && answer.ends_with("ok\n"), "{answer}");
    }
}

#[tokio::test]
async fn readyz_names_what_is_missing_until_all_are_ready() {
    let admin = start().await;
    let (keeper, lister) = (admin.readiness.handle("keeper"), admin.readiness.handle("lister"));
    let answer = admin.get("/readyz").await;
    assert!(status(&answer) == "503" && answer.ends_with("waiting for: keeper, lister\n"), "{answer}");
    keeper.mark();
    lister.mark();
    assert_eq!(status(&admin.get("/readyz").await), "200");
}

#[tokio::test]
async fn metrics_are_openmetrics_text() {
    let answer = start().await.get("/metrics").await;
    assert!(answer.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"));
    assert!(answer.contains("perennial_build_info{") && answer.ends_with("# EOF\n"), "{answer}");
}

#[tokio::test]
async fn the_index_lists_the_paths_and_others_are_not_found() {
    let admin = start().await;
    assert!(admin.get("/").await.contains("  /metrics  OpenMetrics text\n"));
    assert_eq!(status(&admin.get("/debug/pprof").await), "404");
    let guarded = start_with(Metrics::Guarded).await;
    assert!(guarded.get("/").await.contains("  /metrics  metrics are served by HTTPS, at --metrics-address"));
    assert_eq!(status(&guarded.get("/metrics").await), "403");
}

#[tokio::test]
async fn only_reading_is_allowed() {
    let admin = start().await;
    let answer =
        admin.send(b"POST /livez HTTP/1.1\r\nhost: admin\r\ncontent-length: 9\r\n\r\nsome body").await;
    assert_eq!(status(&answer), "405");
}

#[tokio::test]
async fn a_request_with_too_much_head_is_refused() {
    let admin = start().await;
    let long = format!("GET /livez HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(64 * 1024));
    assert_eq!(status(&admin.send(long.as_bytes()).await), "431");
    let many = format!("GET /livez HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(200));
    assert_eq!(status(&admin.send(many.as_bytes()).await), "431");
    assert_eq!(status(&admin.send(b"what is this\r\n\r\n").await), "400");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_finishes_its_request_is_let_go() {
    let admin = start().await;
    let started = tokio::time::Instant::now();
    admin.send(b"GET /livez HTTP/1.1\r\nhost:").await;
    let waited = started.elapsed().as_secs();
    assert!((5..30).contains(&waited), "{waited} s");
}

#[tokio::test(start_paused = true)]
async fn clients_that_hold_every_connection_cannot_keep_a_probe_out() {
    let admin = start().await;
    let mut idle = Vec::new();
    for _ in 0..80 {
        idle.push(TcpStream::connect(admin.address).await.unwrap());
    }
    assert_eq!(status(&admin.get("/livez").await), "200");
}

#[tokio::test(start_paused = true)]
async fn a_stream_lasts_until_its_holder_lets_go_whether_or_not_anybody_reads() {
    let (to, mut held) = tokio::sync::mpsc::channel(1);
    let endless =
        get(move |axum::extract::Extension(leash): axum::extract::Extension<server::Leash>| async move {
            let (alive, ended) = tokio::sync::oneshot::channel::<()>();
            to.send((leash.take(), ended)).await.unwrap();
            let chunks = futures::stream::unfold(alive, |alive| async move {
                Some((Ok::<_, std::io::Error>(vec![b'x'; 65536]), alive))
            });
            axum::body::Body::from_stream(chunks)
        });
    let server = Server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = server.address();
    let routes = Router::new().route("/", endless);
    let _task = AbortOnDropHandle::new(tokio::spawn(server.serve(routes, CancellationToken::new())));
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    let (leash, mut ended) = held.recv().await.unwrap();
    tokio::time::sleep(std::time::Duration::from_mins(5)).await;
    assert!(
        matches!(ended.try_recv(), Err(tokio::sync::oneshot::error::TryRecvError::Empty)),
        "it still goes on"
    );
    drop(leash);
    assert!(ended.await.is_err(), "it ended, though nobody read");
}

#[tokio::test]
async fn a_port_in_use_is_told_with_what_to_do() {
    let admin = start().await;
    let error = Server::bind(admin.address).await.unwrap_err().to_string();
    assert!(error.contains(&admin.address.to_string()) && error.contains("--admin-address"), "{error}");
}

#[tokio::test]
async fn listening_everywhere_includes_ipv4() {
    let server = Server::bind("[::]:0".parse().unwrap()).await.unwrap();
    let port = server.address().port();
    TcpStream::connect((std::net::Ipv4Addr::LOCALHOST, port)).await.unwrap();
}

#[tokio::test]
async fn an_address_of_another_host_is_refused_with_the_kernels_reason() {
    let error = Server::bind("192.0.2.1:0".parse().unwrap()).await.unwrap_err().to_string();
    assert!(error.contains("192.0.2.1:0") && error.contains("--admin-address"), "{error}");
}
