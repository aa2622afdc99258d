//! Records that are to be sealed, and are not yet.

use super::dsl::*;
use crate::keeper::{Why, Write};
use crate::record::Record;

/// The same record, written again.
fn again(record: &Record) -> Write {
    let record = Record { sequence: record.sequence + 1, ..record.clone() };
    Write { record: Box::new(record), notice: None, braked: false }
}

#[test]
fn a_record_at_rest_is_sealed_as_it_is() {
    let record = open(U1, 10).label("a", "1");
    let agreed = || node(live(U1, 10).label("a", "1"));
    agreed().with(record.clone()).unsealed().saves(again(&record));
    agreed().with_summary(&record).unsealed().reads_record();
    agreed().with(record.clone()).unsealed().no_capture().rests(Why::Agreed);
    let record = closed(U1, 15).label("a", "1");
    looked(15).with(record.clone()).unsealed().closes(again(&record));
}

#[test]
fn one_that_may_wait_for_ever_is_sealed_too() {
    // Nothing is given here.
    let record = closed(U1, 15).label("a", "1");
    node(live(U2, 20)).with(record.clone()).no_restore().unsealed().closes(again(&record));
    let record = giving(U2, 20).label("a", "1");
    node(live(U2, 25)).with(record.clone()).no_restore().unsealed().saves(again(&record));
    // The machine does not tell which one it is.
    let record = closed(U1, 15).label("a", "1").machine("m1");
    let provider = policy("rules: [{identity: provider}]");
    node(live(U2, 20).no_machine()).with(record.clone()).policy(provider).unsealed().closes(again(&record));
}

#[test]
fn one_of_which_this_replica_is_behind_is_left_to_others() {
    node(live(U1, 10)).with(closed(U1, 15).label("a", "1")).unsealed().rests(Why::Lagging);
}
