//! What a person is told when there is no client to be made, and what one sends when there is.

use std::path::Path;

use tempfile::NamedTempFile;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tower::ServiceExt as _;

use super::*;

/// A kubeconfig with one context, `blue`, and whatever else its cluster and user say.
fn kubeconfig(current: &str, cluster: &str, user: &str) -> NamedTempFile {
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: {current}\n\
         contexts: [{{name: blue, context: {{cluster: c, user: u}}}}]\n\
         clusters: [{{name: c, cluster: {{{cluster}}}}}]\n\
         users: [{{name: u, user: {{{user}}}}}]\n"
    );
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

async fn told(path: &Path, context: Option<&str>) -> Error {
    let from = Connect { kubeconfig: Some(path.to_owned()), context: context.map(str::to_owned) };
    match connect(&from).await {
        Ok(_) => panic!("a broken kubeconfig made a client"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_missing_or_broken_kubeconfig_is_told_with_its_path() {
    let error = told(Path::new("/nonexistent/config"), None).await;
    assert!(matches!(error, Error::Unreadable { .. }) && error.to_string().contains("/nonexistent/config"));
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "clusters: [").unwrap();
    assert!(matches!(told(file.path(), None).await, Error::Unreadable { .. }));
}

#[tokio::test]
async fn a_context_that_is_not_there_is_told_with_those_that_are() {
    let file = kubeconfig("blue", "server: 'https://127.0.0.1:1'", "");
    let error = told(file.path(), Some("green")).await.to_string();
    assert!(error.contains("\"green\"") && error.contains("it has: blue"), "{error}");
    let file = kubeconfig("", "server: 'https://127.0.0.1:1'", "");
    let error = told(file.path(), None).await.to_string();
    assert!(error.contains("blue"), "{error}");
}

#[tokio::test]
async fn a_certificate_authority_that_cannot_be_used_is_told() {
    for authority in ["certificate-authority: /nonexistent/ca.crt", "certificate-authority-data: '%%%'"] {
        let file = kubeconfig("blue", &format!("server: 'https://127.0.0.1:1', {authority}"), "");
        let error = told(file.path(), None).await;
        assert!(matches!(error, Error::Authority(_)), "{authority}: {error}");
    }
}

#[tokio::test]
async fn a_client_key_that_cannot_be_used_is_told_with_the_server() {
    let user = "client-certificate: /nonexistent/tls.crt, client-key: /nonexistent/tls.key";
    let file = kubeconfig("blue", "server: 'https://127.0.0.1:1'", user);
    let error = told(file.path(), None).await.to_string();
    assert!(error.contains("https://127.0.0.1:1") && error.contains("tls.crt"), "{error}");
}

/// And not gone past: whoever names one may have no other way, or not want any.
#[tokio::test]
async fn a_proxy_is_told_to_be_none_of_ours() {
    let cluster = "server: 'https://127.0.0.1:1', proxy-url: 'http://127.0.0.1:2'";
    let file = kubeconfig("blue", cluster, "");
    let error = told(file.path(), None).await;
    assert!(matches!(error, Error::Build { .. }) && error.to_string().contains("127.0.0.1:2"), "{error}");
}

#[tokio::test]
async fn a_cluster_without_a_server_is_told() {
    let file = kubeconfig("blue", "tls-server-name: x", "");
    assert!(matches!(told(file.path(), None).await, Error::Kubeconfig(_)));
}

#[tokio::test]
async fn a_server_that_is_down_is_no_reason_not_to_have_a_client() {
    let file = kubeconfig("blue", "server: 'https://127.0.0.1:1'", "");
    let client = connect(&Connect { kubeconfig: Some(file.path().to_owned()), context: None }).await.unwrap();
    assert!(client.apiserver_version().await.is_err());
}

/// A server that reads one request, gives it back to the test, and answers 503 or not at all.
async fn ask_once(answer: bool) -> (Result<(), kube::Error>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("server: 'http://{}'", listener.local_addr().unwrap());
    let file = kubeconfig("blue", &server, "");
    let client = connect(&Connect { kubeconfig: Some(file.path().to_owned()), context: None }).await.unwrap();
    let answered = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 4096];
        let length = stream.read(&mut request).await.unwrap();
        if answer {
            stream.write_all(b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        }
        (stream, String::from_utf8_lossy(&request[..length]).into_owned())
    };
    let (result, (_stream, request)) = tokio::join!(client.apiserver_version(), answered);
    (result.map(drop), request)
}

#[tokio::test]
async fn requests_name_the_program_and_are_not_tried_again_behind_the_callers_back() {
    let (result, request) = ask_once(true).await;
    assert!(request.contains(concat!("user-agent: perennial/", env!("CARGO_PKG_VERSION"))), "{request}");
    assert!(matches!(result, Err(kube::Error::Api(ref status)) if status.code == 503), "{result:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_accepts_and_never_answers_is_given_up_on() {
    let started = tokio::time::Instant::now();
    let (result, _) = ask_once(false).await;
    assert!(matches!(result, Err(kube::Error::Service(_))), "{result:?}");
    assert!(started.elapsed() <= ANSWER + CONNECT, "{:?}", started.elapsed());
}

#[tokio::test]
async fn what_is_written_is_sent_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let stream = tcp().oneshot(server.parse().unwrap()).await.unwrap();
    assert!(stream.inner().nodelay().unwrap());
}
