//! Answers, and the breaking of them.

use bytes::Bytes;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use serde_json::{Value, json};

use super::{plan::Wait, shared::InFlight};

/// The connection breaks, without another word.
#[derive(Debug)]
pub(super) struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "broken on purpose, or by the API server")
    }
}

impl std::error::Error for Broken {}

pub(super) type Body = UnsyncBoxBody<Bytes, Broken>;
pub(super) type Pieces = BoxStream<'static, Result<Bytes, Broken>>;

/// A body that is there already.
pub(super) fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// A body that comes in pieces, until its call is cut.
pub(super) fn pieces(pieces: Pieces, in_flight: InFlight) -> Body {
    let until_cut = stream::unfold(Some((pieces, in_flight)), |state| async {
        let (mut pieces, in_flight) = state?;
        tokio::select! {
            biased;
            () = in_flight.cut() => Some((Err(Broken), None)),
            piece = pieces.next() => Some((piece?, Some((pieces, in_flight)))),
        }
    });
    StreamBody::new(until_cut.map(|piece| piece.map(Frame::data))).boxed_unsync()
}

/// Pieces of so many bytes, with a pause before each.
pub(super) fn dribbled(pieces: Pieces, size: usize, pause: Wait) -> Pieces {
    let small = pieces.flat_map(move |piece| match piece {
        Ok(bytes) => {
            let parts: Vec<Bytes> = bytes.chunks(size.max(1)).map(|part| bytes.slice_ref(part)).collect();
            stream::iter(parts).map(Ok).boxed()
        }
        Err(broken) => stream::iter([Err(broken)]).boxed(),
    });
    small
        .then(move |piece| {
            let pause = pause.clone();
            async move {
                pause.over().await;
                piece
            }
        })
        .boxed()
}

/// These bytes, and then the connection breaks.
pub(super) fn breaking(bytes: Bytes) -> Pieces {
    let end = stream::once(async {
        // The bytes before are flushed when there is nothing more to send for a moment.
        tokio::task::yield_now().await;
        Err(Broken)
    });
    stream::iter([Ok(bytes)]).chain(end).boxed()
}

/// The API server's way to say no.
pub(super) fn status(code: u16) -> Value {
    let reason = match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    };
    json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": "refused by the fault proxy",
    })
}

/// An answer that the API server was not asked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Refusal {
    Status(u16),
    Throttle(u16, u64),
    Dumb(u16),
}

impl Refusal {
    pub(super) fn answer(self) -> Response<Body> {
        let (code, kind, text) = match self {
            Self::Status(code) => (code, "application/json", status(code).to_string()),
            Self::Throttle(code, _) => {
                (code, "text/plain", "Too many requests, please try again later.\n".into())
            }
            Self::Dumb(code) => (code, "text/html", "<html>no such page</html>".into()),
        };
        let mut response = Response::new(whole(text));
        *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        if let Self::Throttle(_, seconds) = self {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
