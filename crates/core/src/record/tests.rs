//! Records as text and as annotations: what is written is read back, and whatever else is refused.

mod broken;
mod round_trip;
mod schema;

use jiff::Timestamp;
use uuid::Uuid;

use super::{Incarnation, Record, SCHEMA, State, WaitingKeys};
use crate::kept::{Digest, Kept};

/// A record with one label.
pub(super) fn record() -> Record {
    let mut kept = Kept::default();
    kept.labels.insert("a".to_owned(), "1".to_owned());
    Record {
        schema: SCHEMA,
        node: "worker-1".to_owned(),
        state: State::Open,
        incarnation: Incarnation { uid: Uuid::from_u128(1), provider_id: None },
        version: 10,
        kept,
        waiting: WaitingKeys::new(),
        previous: Vec::new(),
        captured_at: Timestamp::constant(1_800_000_000, 0),
        kept_since: None,
        deleted_at: None,
        sequence: 1,
        policy: Digest::of(b"policy"),
        unproved: None,
        given: false,
        paused: false,
    }
}
