//! The API server's side.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, Uri, header, request, response};
use serde_json::Value;

use super::{
    Call, Verb,
    answer::{Body, Broken},
    call::{altered, value},
    list,
    plan::Plan,
    shared::InFlight,
    source::Source,
};

const PROTOBUF: &[u8] = b"application/vnd.kubernetes.protobuf";

/// What came back.
pub(super) enum Reply {
    /// We gave it ourselves.
    Ours(Response<Body>),
    /// All of it.
    Whole(response::Parts, Bytes),
    /// A stream of events.
    Stream(response::Parts, Source),
    /// A stream of events that nobody bends.
    Untouched(response::Parts, kube::client::Body),
}

impl Reply {
    pub(super) fn status(&self) -> u16 {
        match self {
            Self::Ours(response) => response.status().as_u16(),
            Self::Whole(head, _) | Self::Stream(head, _) | Self::Untouched(head, _) => head.status.as_u16(),
        }
    }
}

/// Asks the API server.
pub(super) async fn ask(
    in_flight: &InFlight,
    plan: &Plan,
    mut parts: request::Parts,
    body: Bytes,
) -> Result<Reply, Broken> {
    let call = &in_flight.call;
    for name in [header::HOST, header::CONNECTION, header::CONTENT_LENGTH, header::TRANSFER_ENCODING] {
        parts.headers.remove(name);
    }
    // What we edit must be readable.
    let edits = !plan.items.untouched() || plan.stale.is_some();
    let protobuf = in_flight.shared.protobuf.load(Ordering::Relaxed);
    if edits || call.verb.streams() && !protobuf {
        parts.headers.remove(header::ACCEPT_ENCODING);
        prefer_json(&mut parts.headers)?;
    }
    let reply = match (plan.stale, call.verb) {
        (Some(version), Verb::List) if is_free(&call.query) => {
            parts.uri = at(call, &[], version)?;
            send(in_flight, parts, body).await
        }
        (Some(version), Verb::ListWatch) => stale_stream(in_flight, parts, version).await,
        _ => send(in_flight, parts, body).await,
    }?;
    in_flight.server_said(reply.status());
    Ok(reply)
}

/// Of what is accepted, leaves what is text.
fn prefer_json(headers: &mut HeaderMap) -> Result<(), Broken> {
    if let Some(accept) = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()) {
        let text: Vec<&str> =
            accept.split(',').map(str::trim).filter(|kind| !kind.contains("protobuf")).collect();
        let text = HeaderValue::from_str(&text.join(",")).map_err(|_| Broken)?;
        headers.insert(header::ACCEPT, text);
    }
    Ok(())
}

/// Whether a list may be of any version: it neither continues another one nor asks for one exactly.
fn is_free(query: &str) -> bool {
    value(query, "continue").is_none() && value(query, "resourceVersionMatch") != Some("Exact")
}

/// The address of a list as it was.
fn at(call: &Call, without: &[&str], version: u64) -> Result<Uri, Broken> {
    let version = version.to_string();
    let exactly = [("resourceVersion", version.as_str()), ("resourceVersionMatch", "Exact")];
    format!("{}?{}", call.path, altered(&call.query, without, &exactly)).parse().map_err(|_| Broken)
}

async fn send(in_flight: &InFlight, parts: request::Parts, body: Bytes) -> Result<Reply, Broken> {
    let streams = in_flight.call.verb.streams() && value(parts.uri.query().unwrap_or(""), "watch").is_some();
    let request = Request::from_parts(parts, kube::client::Body::from(body));
    let (head, body) = in_flight.shared.client.send(request).await.map_err(|_| Broken)?.into_parts();
    if streams && head.status.is_success() {
        let kind = head.headers.get(header::CONTENT_TYPE);
        if kind.is_some_and(|kind| kind.as_bytes().starts_with(PROTOBUF)) {
            return Ok(Reply::Untouched(head, body));
        }
        return Ok(Reply::Stream(head, Source::new(body)));
    }
    Ok(Reply::Whole(head, body.collect_bytes().await.map_err(|_| Broken)?))
}

/// A streamed list as it was, and the watch that goes on from there: a list in one answer, turned into events.
async fn stale_stream(in_flight: &InFlight, parts: request::Parts, version: u64) -> Result<Reply, Broken> {
    let call = &in_flight.call;
    let of_the_watch = ["watch", "sendInitialEvents", "allowWatchBookmarks", "timeoutSeconds"];
    let mut list = parts.clone();
    list.uri = at(call, &of_the_watch, version)?;
    if let Some(accept) = parts.headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()) {
        let accept = accept.replace("as=PartialObjectMetadata;", "as=PartialObjectMetadataList;");
        list.headers.insert(header::ACCEPT, HeaderValue::from_str(&accept).map_err(|_| Broken)?);
    }
    let Reply::Whole(head, bytes) = send(in_flight, list, Bytes::new()).await? else { return Err(Broken) };
    if !head.status.is_success() {
        return Ok(Reply::Whole(head, bytes));
    }
    let list: Value = serde_json::from_slice(&bytes).map_err(|_| Broken)?;
    let of_the_list = ["sendInitialEvents", "resourceVersionMatch"];
    let version = version.to_string();
    let query = altered(&call.query, &of_the_list, &[("resourceVersion", &version)]);
    let mut watch = parts;
    watch.uri = format!("{}?{query}", call.path).parse().map_err(|_| Broken)?;
    match send(in_flight, watch, Bytes::new()).await? {
        Reply::Stream(head, source) => Ok(Reply::Stream(head, source.after(list::events(list)))),
        other => Ok(other),
    }
}
