//! A stream that is carried as it is, in whatever encoding, and only looked at: it may be cut, and nothing else.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body_util::BodyExt;

use super::{
    Call, Verb,
    answer::{Broken, Pieces},
    event::INITIAL_EVENTS_END,
    shared::{InFlight, Shared},
};

/// Knows when a stream is past its list, until the stream is dropped.
struct Following {
    shared: Arc<Shared>,
    call: Call,
    /// The last bytes of a list; nothing once it is over.
    list: Option<Vec<u8>>,
}

impl Following {
    fn new(in_flight: &InFlight) -> Self {
        let (shared, call) = (Arc::clone(&in_flight.shared), in_flight.call.clone());
        let list = (call.verb == Verb::ListWatch).then(Vec::new);
        if list.is_none() {
            shared.state().begin_following(&call);
        }
        Self { shared, call, list }
    }

    /// The annotation that ends a list reads the same in every encoding.
    fn look(&mut self, bytes: &Bytes) {
        let Some(list) = &mut self.list else { return };
        let end = INITIAL_EVENTS_END.as_bytes();
        list.extend_from_slice(bytes);
        if list.windows(end.len()).any(|window| window == end) {
            self.list = None;
            self.shared.state().begin_following(&self.call);
        } else {
            list.drain(..list.len().saturating_sub(end.len() - 1));
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.shared.state().end_following(&self.call);
    }
}

/// The bytes of a stream, as they come.
pub(super) fn carry(in_flight: &InFlight, body: kube::client::Body) -> Pieces {
    let state = (body.into_data_stream(), Following::new(in_flight));
    stream::unfold(state, |(mut body, mut following)| async {
        let piece = body.next().await?.map_err(|_| Broken);
        if let Ok(bytes) = &piece {
            following.look(bytes);
        }
        Some((piece, (body, following)))
    })
    .boxed()
}
