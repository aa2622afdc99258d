//! Records as text and as annotations: what is written is read back, and whatever else is refused.

mod broken;
mod round_trip;
mod schema;

use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use super::{Incarnation, MAX_BYTES, Record, SCHEMA, State, TooLarge, WaitingKeys};
use crate::kept::{Digest, Kept, Pairs};

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

#[test]
fn what_is_too_large_loses_its_earlier_states_first_and_is_refused_before_it_is_cut() {
    let of =
        |bytes: usize| Kept { labels: Pairs::from([("a".to_owned(), "x".repeat(bytes))]), ..Kept::default() };
    let before = |kept: Kept| {
        let state = json!({ "incarnation": { "uid": Uuid::nil() }, "kept": kept, "capturedAt": "2026-05-01T12:00:00Z" });
        serde_json::from_value(state).unwrap()
    };
    let mut fits = Record { previous: vec![before(of(1000))], ..record() };
    let whole = fits.clone();
    assert_eq!((fits.fit(), &fits), (Ok(()), &whole));
    let mut long = Record { previous: vec![before(of(MAX_BYTES))], ..record() };
    assert_eq!((long.fit(), long), (Ok(()), record()));
    let mut large = Record { kept: of(MAX_BYTES), previous: vec![before(of(1000))], ..record() };
    let Err(TooLarge(bytes)) = large.fit() else { panic!("it fits") };
    assert!(bytes > MAX_BYTES && large.kept == of(MAX_BYTES));
}
