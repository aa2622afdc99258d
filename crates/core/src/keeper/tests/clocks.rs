//! Clocks that are wrong, or jump: nothing waits for hours, and nothing is erased on the word of a clock alone.

use jiff::SignedDuration;

use super::dsl::*;
use crate::keeper::{Erasure, Plan, Sight, Why};

const HOUR: SignedDuration = SignedDuration::from_hours(1);

#[test]
fn an_end_that_was_seen_in_the_future_is_recorded_at_once() {
    let record = open(U1, 10).label("a", "1");
    let end = || end(U1, 15).label("a", "1");
    let plan = gone(15).ends([end()]).with(record.clone()).at(THEN - HOUR).plan();
    assert!(matches!(plan, Plan::Close(_)), "the clock was set back by an hour: {plan:?}");
    let plan = gone(15).ends([end()]).with(record).at(THEN + HOUR).plan();
    assert!(matches!(plan, Plan::Close(_)), "or forward: {plan:?}");
}

#[test]
fn a_record_that_was_given_in_the_future_is_opened_at_once() {
    let given = giving(U2, 20).label("a", "1");
    let plan = node(live(U2, 21).label("a", "1").marked()).with(given).at(THEN - HOUR).plan();
    assert!(matches!(plan, Plan::Save(_)), "another replica's clock is an hour ahead: {plan:?}");
}

#[test]
fn a_look_in_the_future_does_not_count_before_an_erasure() {
    let record = closed(U1, 10).label("a", "1");
    let now = THEN + HOUR * 24 * 31;
    let plan = |looked| {
        let mut case = gone(15).with(record.clone()).at(now);
        case.line.sight = Sight::Absent { at: 15, looked: Some(looked), missing: false };
        case.plan()
    };
    assert_eq!(plan(now + HOUR), Plan::ReadNode);
    assert_eq!(plan(now), Plan::Erase(Erasure::Expired));
    assert!(
        Erasure::Expired.is_braked(),
        "a clock that jumps a year ahead erases no more than the brake allows"
    );
}

#[test]
fn a_record_of_the_future_is_not_erased_before_its_time() {
    let record = closed(U1, 10).label("a", "1");
    assert_eq!(looked(15).with(record).at(THEN - HOUR * 24 * 365).plan(), Plan::Rest(Why::Away));
}
