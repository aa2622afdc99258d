//! The way of one call: in, to the API server, and back.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, header, request::Parts};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::{
    answer::{Body, Broken, breaking, dribbled, pieces, whole},
    list,
    plan::Plan,
    shared::{Admitted, InFlight, Shared},
    stop::Moment,
    stream::Pump,
    untouched,
    upstream::{Reply, ask},
};

/// Carries a call.
pub(super) async fn carry(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Body>, Broken> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Broken)?.to_bytes();
    let admitted = shared.admit(&parts.method, &parts.uri).await?;
    if admitted.plan.before.is_empty() {
        return exchange(admitted, parts, body).await;
    }
    // On its own, since a request that is late arrives whether or not its sender still waits.
    tokio::spawn(exchange(admitted, parts, body)).await.unwrap_or(Err(Broken))
}

async fn exchange(admitted: Admitted, parts: Parts, body: Bytes) -> Result<Response<Body>, Broken> {
    let Admitted { in_flight, mut plan, point } = admitted;
    let reply = async {
        let (before, after) = match point {
            Some(point) if point.moment == Moment::BeforeRequest => (Some(point), None),
            point => (None, point),
        };
        if let Some(point) = before {
            point.stop(in_flight.call.clone()).await?;
        }
        for wait in &plan.before {
            wait.over().await;
        }
        if plan.cut {
            return Err(Broken);
        }
        let reply = match plan.refusal {
            Some(refusal) => Reply::Ours(refusal.answer()),
            None => ask(&in_flight, &plan, parts, body).await?,
        };
        if let Some(point) = after {
            point.stop(in_flight.call.clone()).await?;
        }
        for wait in &plan.after {
            wait.over().await;
        }
        if plan.lose { Err(Broken) } else { Ok(reply) }
    };
    let reply = tokio::select! {
        biased;
        () = in_flight.cut() => return Err(Broken),
        reply = reply => reply?,
    };
    Ok(answer(in_flight, &mut plan, reply))
}

/// The answer, as its sender gets it.
fn answer(in_flight: InFlight, plan: &mut Plan, reply: Reply) -> Response<Body> {
    in_flight.sender_is_told(reply.status());
    let (mut head, body) = match reply {
        Reply::Ours(response) => return response,
        Reply::Whole(head, bytes) => {
            let bytes = list::bend(bytes, &mut plan.items);
            if !plan.breaks && plan.dribble.is_none() {
                (head, whole(bytes))
            } else {
                let half = bytes.slice(..bytes.len() / 2);
                let sent = if plan.breaks { breaking(half) } else { one(bytes) };
                (head, slowly(sent, plan, in_flight))
            }
        }
        Reply::Stream(head, source) => {
            let sent = Pump::start(&in_flight, source, std::mem::take(&mut plan.items), plan.breaks);
            (head, slowly(sent, plan, in_flight))
        }
        Reply::Untouched(head, body) => {
            let sent = untouched::carry(&in_flight, body);
            (head, slowly(sent, plan, in_flight))
        }
    };
    for name in [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONNECTION] {
        head.headers.remove(name);
    }
    Response::from_parts(head, body)
}

fn one(bytes: Bytes) -> super::answer::Pieces {
    Box::pin(futures::stream::iter([Ok(bytes)]))
}

fn slowly(sent: super::answer::Pieces, plan: &mut Plan, in_flight: InFlight) -> Body {
    let sent = match plan.dribble.take() {
        Some((size, pause)) => dribbled(sent, size, pause),
        None => sent,
    };
    pieces(sent, in_flight)
}
