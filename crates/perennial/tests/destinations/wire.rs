//! A wire between us and a real S3 server, which goes wrong on purpose.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use http::{HeaderValue, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// What goes wrong.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// The server does what is asked, and its answer to a PUT gets lost.
    LoseAnswers,
    /// The server is one that knows no conditions.
    NoConditions,
    /// Somebody on the way changes a header of a PUT.
    Alter(&'static str, &'static str),
    /// Somebody else answers: this status, these headers, this body.
    Say(u16, Vec<(&'static str, String)>, String),
}

/// A running wire. It ends with the test.
pub(crate) struct Wire {
    /// Its address.
    pub(crate) url: String,
    shared: Arc<Shared>,
}

struct Shared {
    upstream: String,
    client: Client<HttpConnector, Full<Bytes>>,
    fault: Mutex<Option<Fault>>,
    conditional: Mutex<Vec<bool>>,
}

impl Wire {
    /// Leads to the server at this address.
    pub(crate) async fn to(upstream: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            upstream: upstream.to_owned(),
            client: Client::builder(TokioExecutor::new()).build_http(),
            fault: Mutex::default(),
            conditional: Mutex::default(),
        });
        let of_the_task = Arc::clone(&shared);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let shared = Arc::clone(&of_the_task);
                let service = service_fn(move |request| carry(Arc::clone(&shared), request));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { url, shared }
    }

    pub(crate) fn fault(&self, fault: Option<Fault>) {
        *self.shared.fault.lock().unwrap() = fault;
    }

    /// Of every PUT so far whether it bore a condition.
    pub(crate) fn puts(&self) -> Vec<bool> {
        self.shared.conditional.lock().unwrap().clone()
    }
}

/// An error ends the connection without an answer.
async fn carry(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Box<dyn std::error::Error + Send + Sync>> {
    let fault = shared.fault.lock().unwrap().clone();
    let (mut parts, body) = request.into_parts();
    let put = parts.method == Method::PUT;
    let conditional = parts.headers.contains_key(IF_MATCH) || parts.headers.contains_key(IF_NONE_MATCH);
    if put {
        shared.conditional.lock().unwrap().push(conditional);
    }
    match &fault {
        Some(Fault::NoConditions) if conditional => {
            return Ok(say(501, &[], "<Error><Code>NotImplemented</Code></Error>"));
        }
        Some(Fault::Alter(name, value)) if put => {
            assert!(
                parts.headers.insert(*name, HeaderValue::from_static(value)).is_some(),
                "there was no {name}"
            );
        }
        Some(Fault::Say(status, headers, body)) => return Ok(say(*status, headers, body)),
        _ => {}
    }
    parts.uri = format!("{}{}", shared.upstream, parts.uri.path_and_query().unwrap()).parse::<Uri>()?;
    let request = Request::from_parts(parts, Full::new(body.collect().await?.to_bytes()));
    let (parts, body) = shared.client.request(request).await?.into_parts();
    let body = body.collect().await?.to_bytes();
    if put && matches!(fault, Some(Fault::LoseAnswers)) {
        return Err("lost".into());
    }
    Ok(Response::from_parts(parts, Full::new(body)))
}

fn say(status: u16, headers: &[(&'static str, String)], body: &str) -> Response<Full<Bytes>> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, value);
    }
    response.body(Full::new(body.to_owned().into())).unwrap()
}

/// A server that answers whatever it is asked, and not in HTTP.
pub(crate) async fn babbler() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut asked = [0; 4096];
                while stream.read(&mut asked).await.is_ok_and(|bytes| bytes > 0) {
                    let _ = stream.write_all(b"-ERR secret-banner\r\n").await;
                }
            });
        }
    });
    address
}
