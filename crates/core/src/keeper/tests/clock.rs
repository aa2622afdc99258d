//! Clocks that jump, and replicas whose clocks disagree: what was written down lies hours ahead, or years back.

use jiff::{SignedDuration, Timestamp};

use super::dsl::*;
use crate::keeper::{Erasure, Plan, Sight, Why};
use crate::record::Record;

const HOURS: SignedDuration = SignedDuration::from_hours(6);
const LONG: SignedDuration = SignedDuration::from_hours(40 * 24);

/// It acts, or waits no longer than an ordinary wait from now.
fn does_not_wait_for_hours(plan: &Plan, ordinary: SignedDuration) {
    if let Plan::Wait { until } = plan {
        assert!(*until <= NOW + ordinary, "waits until {until}, now is {NOW}");
    }
}

#[test]
fn an_end_that_was_seen_before_the_clock_was_set_back_is_not_held_for_hours() {
    let record = open(U1, 10).label("a", "1");
    let seen = crate::keeper::End { seen_at: NOW + HOURS, ..end(U1, 15).label("a", "2") };
    does_not_wait_for_hours(&gone(15).ends([seen]).with(record).plan(), CLOSE_AFTER);
}

#[test]
fn a_record_that_a_replica_with_a_fast_clock_gave_is_opened_in_time() {
    let record = Record { captured_at: NOW + HOURS, ..giving(U2, 20).label("a", "1") };
    does_not_wait_for_hours(&node(live(U2, 25).label("a", "1").marked()).with(record).plan(), OPEN_AFTER);
}

#[test]
fn a_look_from_before_the_clock_was_set_back_is_not_recent() {
    let record = closed(U1, 15).label("a", "1");
    let mut case = gone(15).with(record).at(NOW + LONG);
    case.line.sight = Sight::Absent { at: 15, looked: Some(NOW + LONG + HOURS) };
    case.reads_node();
}

#[test]
fn after_a_jump_forward_what_seems_expired_goes_under_the_brake_and_after_a_look() {
    let record = closed(U1, 15).label("a", "1");
    gone(15).with(record.clone()).at(NOW + LONG).reads_node();
    let mut case = gone(15).with(record).at(NOW + LONG);
    case.line.sight = Sight::Absent { at: 15, looked: Some(NOW + LONG) };
    case.erases(Erasure::Expired);
    assert!(Erasure::Expired.is_braked());
}

#[test]
fn a_record_from_the_future_is_kept_and_given() {
    let ahead = |record: Record| Record { captured_at: NOW + LONG, deleted_at: Some(NOW + LONG), ..record };
    let record = ahead(closed(U1, 15).label("a", "1"));
    gone(15).with(record.clone()).rests(Why::Away);
    let plan = node(live(U2, 20)).with(record).plan();
    assert!(matches!(plan, Plan::Give(_)), "{plan:?}");
}

#[test]
fn a_clock_at_the_beginning_of_time_loses_nothing() {
    let early = Timestamp::UNIX_EPOCH;
    let record = closed(U1, 15).label("a", "1");
    gone(15).with(record.clone()).at(early).rests(Why::Away);
    let plan = node(live(U2, 20)).with(record).at(early).plan();
    assert!(matches!(plan, Plan::Give(_)), "{plan:?}");
    let plan = node(live(U2, 25).label("a", "2")).with(open(U2, 20).label("a", "1")).at(early).plan();
    assert!(matches!(plan, Plan::Save(_)), "{plan:?}");
}
