//! The wire between the keeper and the real API server, which a test can bend.
//!
//! Everything the keeper asks goes through here. Unbent, a call reaches the API server and its answer comes back
//! as it is. A test bends the next calls of one kind: they are refused, their replies are lost, their lists and
//! streams edited. [`Wire::unplug`] cuts the keeper off altogether.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::BoxError;
use axum::body::{Body, Bytes};
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use http::header::ACCEPT;
use http::{HeaderValue, Method, Request, Response};
use kube::Client;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// What the keeper asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// All nodes: a streamed list (and the watch that follows in the same stream), or one page.
    NodeList,
    /// A watch of the nodes from a version on.
    NodeWatch,
    /// One node, as it is.
    NodeRead,
    /// One node, as it was.
    NodePast,
    /// A node's patch.
    NodePatch,
    /// Where history stands.
    Head,
    /// All records, as [`Call::NodeList`].
    RecordList,
    /// A watch of the records from a version on.
    RecordWatch,
    /// One record.
    RecordRead,
    /// A record's creation or replacement.
    RecordWrite,
    /// The contents of the closed records.
    ClosedRecords,
    /// Anything else: Events, the brake.
    Other,
}

/// What an edit makes of one event of a stream, or one item of a list; `None` ends the stream.
type Edit = Arc<dyn Fn(Value) -> Option<Vec<Value>> + Send + Sync>;

/// What happens to a call.
#[derive(Clone)]
pub(crate) enum Bend {
    /// The API server is not asked: this is the answer.
    Refuse(u16),
    /// The same, with a `Retry-After` of so many seconds.
    Throttle(u16, u64),
    /// The API server is not asked: a proxy answers, in its own words.
    Proxy(u16),
    /// The API server does it, and the connection breaks before its reply.
    LoseReply,
    /// The API server does it, and no reply ever comes.
    Hang,
    /// What it sends is edited.
    Edit(Edit),
}

impl Bend {
    pub(crate) fn edit(edit: impl Fn(Value) -> Option<Vec<Value>> + Send + Sync + 'static) -> Self {
        Self::Edit(Arc::new(edit))
    }
}

/// A call that was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub(crate) call: Call,
    pub(crate) at: Instant,
}

#[derive(Default)]
struct State {
    bends: Vec<(Call, usize, Bend)>,
    made: Vec<Made>,
    unplugged: bool,
    streams: CancellationToken,
}

/// One end of the wire, in the test's hand.
#[derive(Clone)]
pub(crate) struct Wire {
    client: Client,
    state: Arc<Mutex<State>>,
}

impl Wire {
    /// Lays a wire before this client: the keeper's client, and the hand on it.
    pub(crate) fn before(client: Client) -> (Client, Self) {
        let wire = Self { client, state: Arc::default() };
        (Client::new(wire.clone(), "default"), wire)
    }

    /// Bends the next calls of one kind.
    pub(crate) fn bend(&self, call: Call, times: usize, bend: Bend) {
        self.state.lock().unwrap().bends.push((call, times, bend));
    }

    /// The bends that no call has met yet.
    pub(crate) fn unmet(&self) -> Vec<Call> {
        self.state.lock().unwrap().bends.iter().map(|(call, ..)| *call).collect()
    }

    /// Every call so far.
    pub(crate) fn made(&self) -> Vec<Made> {
        self.state.lock().unwrap().made.clone()
    }

    /// Ends every stream that is open now, as a proxy in the middle does.
    pub(crate) fn cut(&self) {
        std::mem::take(&mut self.state.lock().unwrap().streams).cancel();
    }

    /// Cuts the keeper off: nothing reaches the API server until [`Wire::plug_in`].
    pub(crate) fn unplug(&self) {
        self.state.lock().unwrap().unplugged = true;
        self.cut();
    }

    pub(crate) fn plug_in(&self) {
        self.state.lock().unwrap().unplugged = false;
    }

    fn met(&self, call: Call) -> Result<Option<Bend>, BoxError> {
        let mut state = self.state.lock().unwrap();
        state.made.push(Made { call, at: Instant::now() });
        if state.unplugged {
            return Err("unplugged".into());
        }
        let Some(at) = state.bends.iter().position(|(bent, ..)| *bent == call) else { return Ok(None) };
        state.bends[at].1 -= 1;
        Ok(Some(if state.bends[at].1 == 0 { state.bends.remove(at).2 } else { state.bends[at].2.clone() }))
    }

    async fn carry(self, mut request: Request<kube::client::Body>) -> Result<Response<Body>, BoxError> {
        let call = Call::of(&request);
        let bend = self.met(call)?;
        match &bend {
            Some(Bend::Refuse(code)) => return Ok(refusal(*code, None)),
            Some(Bend::Throttle(code, seconds)) => return Ok(refusal(*code, Some(*seconds))),
            Some(Bend::Proxy(code)) => {
                return Ok(Response::builder().status(*code).body("no such page".into())?);
            }
            Some(Bend::LoseReply | Bend::Hang | Bend::Edit(_)) | None => {}
        }
        let streams = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        if streams && matches!(bend, Some(Bend::Edit(_))) {
            // As a server answers that has no protobuf.
            let json = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
            let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
            if accept.is_some_and(|accept| accept.contains("protobuf")) {
                request.headers_mut().insert(ACCEPT, HeaderValue::from_static(json));
            }
        }
        let response = self.client.send(request).await?;
        match bend {
            Some(Bend::LoseReply) => Err("the connection broke".into()),
            Some(Bend::Hang) => std::future::pending().await,
            Some(Bend::Edit(edit)) if streams => Ok(self.stream(response, edit)),
            Some(Bend::Edit(edit)) => edited(response, &edit).await,
            _ if streams => Ok(self.until_cut(response)),
            _ => Ok(response.map(Body::new)),
        }
    }

    /// A stream as it is, until the wire is cut, in the midst of an event if need be.
    fn until_cut(&self, response: Response<kube::client::Body>) -> Response<Body> {
        let until_cut = self.state.lock().unwrap().streams.clone().cancelled_owned();
        response.map(|body| Body::from_stream(Body::new(body).into_data_stream().take_until(until_cut)))
    }

    /// A stream of events, line by line, that ends when the wire is cut.
    fn stream(&self, response: Response<kube::client::Body>, edit: Edit) -> Response<Body> {
        if !response.status().is_success() {
            return response.map(Body::new);
        }
        let until_cut = self.state.lock().unwrap().streams.clone().cancelled_owned();
        response.map(|body| {
            let mut rest = Vec::new();
            let lines = Body::new(body).into_data_stream().map_ok(move |bytes: Bytes| {
                rest.extend_from_slice(&bytes);
                let whole = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
                let lines: Vec<u8> = rest.drain(..whole).collect();
                let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
                let events: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
                events
            });
            let events = lines.map_ok(|events: Vec<Value>| {
                futures::stream::iter(events.into_iter().map(Ok::<_, axum::Error>))
            });
            let events = events.try_flatten();
            let edited = events
                .map_ok(move |event: Value| edit(event))
                .take_while(|edited| std::future::ready(!matches!(edited, Ok(None))))
                .map_ok(|events| {
                    events
                        .into_iter()
                        .flatten()
                        .fold(String::new(), |lines, event| lines + &event.to_string() + "\n")
                });
            Body::from_stream(edited.take_until(until_cut))
        })
    }
}

impl tower::Service<Request<kube::client::Body>> for Wire {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        self.clone().carry(request).boxed()
    }
}

impl Call {
    fn of(request: &Request<kube::client::Body>) -> Self {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let has = |text: &str| query.contains(text);
        let (nodes, one) = match path.strip_prefix("/api/v1/") {
            Some("nodes") => (true, false),
            Some(path) if path.starts_with("nodes/") => (true, true),
            Some(path) if path.ends_with("/configmaps") => (false, false),
            Some(path) if path.contains("/configmaps/node-record.") => (false, true),
            _ => return Self::Other,
        };
        match (request.method(), nodes, one) {
            (&Method::PATCH, true, true) => Self::NodePatch,
            (&Method::POST | &Method::PUT, false, _) => Self::RecordWrite,
            (&Method::GET, true, true) => Self::NodeRead,
            (&Method::GET, false, true) => Self::RecordRead,
            (&Method::GET, _, false) if has("limit=1&") || query.ends_with("limit=1") => Self::Head,
            (&Method::GET, true, false) if has("resourceVersionMatch=Exact") => Self::NodePast,
            (&Method::GET, true, false) if has("fieldSelector=") => Self::NodeRead,
            (&Method::GET, false, false) if has("fieldSelector=") => Self::RecordRead,
            (&Method::GET, false, false) if has("labelSelector=") => Self::ClosedRecords,
            (&Method::GET, nodes, false) if has("watch=true") && !has("sendInitialEvents=true") => {
                if nodes {
                    Self::NodeWatch
                } else {
                    Self::RecordWatch
                }
            }
            (&Method::GET, true, false) => Self::NodeList,
            (&Method::GET, false, false) => Self::RecordList,
            _ => Self::Other,
        }
    }
}

/// The API server's way to say no.
fn refusal(code: u16, retry_after: Option<u64>) -> Response<Body> {
    let reason = match code {
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        _ => "ByTheTest",
    };
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": "refused by the test",
    });
    let response = Response::builder().status(code);
    match retry_after {
        None => response.body(status.to_string().into()),
        // The API server's own throttling answers in plain text, and the wait is in the header.
        Some(seconds) => response.header("Retry-After", seconds).body("Too many requests".into()),
    }
    .unwrap()
}

/// A list, its items edited.
async fn edited(response: Response<kube::client::Body>, edit: &Edit) -> Result<Response<Body>, BoxError> {
    let (mut parts, body) = response.into_parts();
    let mut list: Value = serde_json::from_slice(&body.collect_bytes().await?)?;
    if let Some(items) = list["items"].as_array_mut() {
        *items = std::mem::take(items).into_iter().map_while(|item| edit(item)).flatten().collect();
    }
    parts.headers.remove(http::header::CONTENT_LENGTH);
    Ok(Response::from_parts(parts, list.to_string().into()))
}
