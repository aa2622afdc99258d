//! Folds of a line: late, doubled and reordered events, and what may be forgotten.

use super::dsl::*;
use crate::keeper::{Body, End, Line, Live, Mark, Provider, RecordSight, Seen, Sight};
use crate::record::{Record, State, Version};

fn line() -> Line {
    Line { sight: Sight::Missing, record: RecordSight::None, ..Line::default() }
}

fn sees(line: &mut Line, live: Live) -> bool {
    line.node_seen(live, &DEFAULT, NOW)
}

fn seen(version: Version, record: Record) -> Seen {
    Seen { uid: U4, version, foreign: false, sealed: true, body: Body::Whole(Box::new(record)) }
}

fn uids(line: &Line) -> Vec<u128> {
    line.ends.iter().map(|end| end.uid.as_u128()).collect()
}

#[test]
fn a_late_or_doubled_version_changes_nothing() {
    let mut line = line();
    assert!(sees(&mut line, live(U1, 20).label("a", "2")));
    let before = line.clone();
    assert!(!sees(&mut line, live(U1, 10).label("a", "1")));
    assert_eq!(line, before);
    assert!(!sees(&mut line, live(U2, 20)), "another uid at the same version");
    assert_eq!(line, before);
}

#[test]
fn a_direct_read_of_the_known_version_brings_back_what_was_dropped() {
    let mut line = line();
    sees(&mut line, live(U1, 20).label("a", "1"));
    line.settle();
    assert_eq!(line.live().unwrap().content, None);
    assert!(sees(&mut line, live(U1, 20).label("a", "1").machine("m1")));
    assert_eq!(line.live().unwrap().content.as_ref().unwrap().labels.len(), 1);
    assert_eq!(line.live().unwrap().provider.id(), Some("m1"));
}

#[test]
fn a_version_from_before_the_absence_changes_nothing() {
    let mut line = line();
    line.node_absent(20, NOW);
    assert!(!sees(&mut line, live(U1, 15)));
    assert!(!sees(&mut line, live(U1, 20)));
    assert_eq!(line.sight, Sight::Absent { at: 20, looked: Some(NOW), missing: false });
    line.node_absent(15, THEN);
    assert_eq!(line.sight, Sight::Absent { at: 20, looked: Some(NOW), missing: false });
}

#[test]
fn an_absence_from_before_what_is_known_changes_nothing() {
    let mut line = line();
    sees(&mut line, live(U1, 20));
    line.node_absent(15, NOW);
    assert!(line.live().is_some());
    line.node_absent(25, NOW);
    assert!(line.live().is_none());
}

#[test]
fn a_mark_that_was_seen_stays_seen_on_its_own_life() {
    let mut line = line();
    sees(&mut line, live(U1, 10).marked_full());
    sees(&mut line, live(U1, 20));
    assert_eq!(line.live().unwrap().mark, Mark::Full);
    line.node_ended(end(U1, 30));
    assert_eq!(line.ends[0].mark, Mark::Full);
    sees(&mut line, live(U2, 40));
    assert_eq!(line.live().unwrap().mark, Mark::None);
}

#[test]
fn a_machine_that_was_read_stays_read_but_a_young_node_without_one_is_asked_again() {
    let mut line = line();
    sees(&mut line, live(U1, 10).machine("m1"));
    sees(&mut line, live(U1, 20));
    assert_eq!(line.live().unwrap().provider.id(), Some("m1"));
    line.node_ended(end(U1, 30));
    assert_eq!(line.ends[0].provider.id(), Some("m1"));
    sees(&mut line, live(U2, 40).young().no_machine());
    sees(&mut line, live(U2, 50).young());
    assert_eq!(line.live().unwrap().provider, Provider::Unread);
    sees(&mut line, live(U3, 60).no_machine());
    sees(&mut line, live(U3, 70));
    assert_eq!(line.live().unwrap().provider, Provider::Read(None), "an old one will not get one any more");
}

#[test]
fn an_end_makes_the_node_absent_unless_something_newer_is_known() {
    let mut line = line();
    sees(&mut line, live(U1, 10));
    line.node_ended(end(U1, 20).label("a", "1"));
    assert_eq!(line.sight, Sight::Absent { at: 20, looked: None, missing: false });
    sees(&mut line, live(U3, 50));
    line.node_ended(end(U2, 40).label("b", "1"));
    assert_eq!(line.live().unwrap().uid, U3, "a late end does not hide the living");
    assert_eq!(uids(&line), [1, 2]);
}

#[test]
fn ends_that_come_late_or_twice_are_held_once_and_in_order() {
    let ends: [End; 3] = [end(U1, 10).label("a", "1"), end(U2, 20), end(U3, 30)];
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1], [0, 2, 1], [1, 0, 2]] {
        let mut line = line();
        for index in order.into_iter().chain(order) {
            line.node_ended(ends[index].clone());
        }
        assert_eq!(line.ends, ends, "{order:?}");
        assert_eq!(line.sight, Sight::Absent { at: 30, looked: None, missing: false });
    }
}

#[test]
fn a_deletion_and_a_creation_seen_as_one_update_leave_an_end_to_be_found() {
    let mut line = line();
    sees(&mut line, live(U1, 10).label("a", "1"));
    sees(&mut line, live(U2, 30));
    assert_eq!(line.vanished, Some((U1, 10)));
    line.node_ended(end(U1, 20).label("a", "2"));
    assert_eq!((line.vanished, uids(&line)), (None, vec![1]));
}

#[test]
fn a_life_that_a_record_names_is_proved_from_the_record() {
    let mut line = line();
    line.record_seen(seen(1000, open(U1, 10).label("a", "1")));
    sees(&mut line, live(U1, 20).label("a", "1"));
    sees(&mut line, live(U2, 30));
    assert_eq!(line.vanished, None);
    let case = Case { line, ..node(live(U2, 30)) };
    case.proves(U1, 10, 30);
}

#[test]
fn a_bare_life_that_vanished_leaves_nothing_to_be_found() {
    let mut line = line();
    sees(&mut line, live(U1, 10));
    sees(&mut line, live(U2, 30));
    assert_eq!(line.vanished, None);
}

#[test]
fn a_node_missing_from_a_list_is_neither_absent_nor_ended() {
    let mut line = line();
    sees(&mut line, live(U1, 10).label("a", "1"));
    line.node_missing(20);
    assert_eq!((&line.sight, line.vanished, line.ends.len()), (&Sight::Missing, Some((U1, 10)), 0));
    line.node_absent(50, NOW);
    line.node_missing(60);
    assert_eq!(line.sight, Sight::Absent { at: 50, looked: Some(NOW), missing: true });
}

#[test]
fn a_list_older_than_what_is_known_says_nothing() {
    let mut line = line();
    sees(&mut line, live(U1, 10).label("a", "1"));
    line.node_missing(9);
    assert!(line.live().is_some());
    assert_eq!(line.vanished, None);
}

#[test]
fn a_life_that_was_missing_and_is_there_again_has_not_vanished() {
    let mut line = line();
    sees(&mut line, live(U1, 10).label("a", "1"));
    line.node_missing(20);
    sees(&mut line, live(U1, 30).label("a", "1"));
    assert_eq!(line.vanished, None);
}

#[test]
fn of_two_accounts_of_one_end_the_later_is_held() {
    let mut line = line();
    line.node_ended(end(U1, 20).label("a", "1"));
    line.node_ended(end(U1, 25).label("a", "2"));
    line.node_ended(end(U1, 22).label("a", "3"));
    let held: Vec<_> = line.ends.iter().map(|end| (end.version, end.content.labels["a"].as_str())).collect();
    assert_eq!(held, [(25, "2")]);
}

#[test]
fn a_record_that_is_written_again_is_not_beyond_the_cap_any_more() {
    let mut line = line();
    line.record_seen(seen(1000, closed(U1, 20).label("a", "1")));
    line.over_cap = true;
    line.record_seen(seen(1001, giving(U2, 30).label("a", "1")));
    assert!(!line.over_cap);
}

#[test]
fn what_ended_after_a_record_was_due_for_collection_is_not_forgotten_with_it() {
    let mut line = line();
    line.record_seen(seen(1000, open(U1, 10)));
    line.node_ended(end(U1, 20).label("a", "1"));
    line.record_erased(false);
    assert_eq!(uids(&line), [1]);
    line.record_seen(seen(1001, closed(U1, 20).label("a", "1")));
    line.record_erased(false);
    assert_eq!(uids(&line), [0; 0]);
}

#[test]
fn what_happened_after_a_record_that_somebody_removed_is_forgotten_only_with_a_life_that_it_named() {
    for (record, left) in [
        (closed(U1, 20).label("a", "1"), vec![2]),
        (closed(U1, 15).label("a", "1").unproved(U1, State::Open), vec![2]),
        (open(U1, 10), vec![1, 2]),
        (open(U1, 10).label("a", "1"), vec![]),
        (giving(U1, 10).label("a", "1"), vec![]),
    ] {
        let mut line = line();
        line.record_seen(seen(1000, record.clone()));
        line.node_ended(end(U1, 20).label("a", "1"));
        line.node_ended(end(U2, 30).label("b", "1"));
        line.record_removed(U4, 1001, 1001, true);
        assert_eq!(uids(&line), left, "{record:?}");
    }
}

#[test]
fn who_died_after_a_record_was_removed_is_not_forgotten_with_it() {
    for record in [open(U1, 10).label("a", "1"), giving(U1, 10).label("a", "1")] {
        for (removed, left) in [(18, vec![1, 2]), (20, vec![2]), (25, vec![2]), (30, vec![])] {
            let mut line = line();
            line.record_seen(seen(15, record.clone()));
            line.node_ended(end(U1, 20).label("a", "1"));
            line.node_ended(end(U2, 30).label("b", "1"));
            line.record_removed(U4, removed, removed, true);
            assert_eq!(uids(&line), left, "{record:?} at {removed}");
        }
    }
}

#[test]
fn where_nodes_and_records_are_counted_apart_a_removed_record_takes_every_end_along() {
    // Records lag behind nodes, or are ahead of them.
    for (written, removed) in [(5, 6), (1000, 1001)] {
        let mut line = line();
        line.record_seen(seen(written, open(U1, 10).label("a", "1")));
        line.node_ended(end(U1, 20).label("a", "1"));
        line.node_ended(end(U2, 30).label("b", "1"));
        line.record_removed(U4, removed, removed, true);
        assert_eq!(uids(&line), [0; 0], "{written}");
    }
}

#[test]
fn when_a_record_was_removed_matters_while_its_node_lives_or_ends_are_held() {
    let mut line = line();
    assert!(!line.needs_removal(None));
    line.record_seen(seen(1000, open(U1, 10).label("a", "1")));
    assert!(!line.needs_removal(None));
    line.node_ended(end(U1, 20).label("a", "1"));
    assert!(line.needs_removal(None));
    sees(&mut line, live(U2, 30));
    assert!(line.needs_removal(None), "it may have been gone when its record was removed");
    assert!(!line.needs_removal(Some(U4)), "it is the one that is known");
    assert!(line.needs_removal(Some(U3)), "another one was removed before it");
}

#[test]
fn a_record_that_is_found_gone_unread_is_forgotten_only_with_a_life_that_it_named() {
    for (named, left) in [(U1, vec![2]), (U2, vec![])] {
        let mut line = line();
        line.record_seen(seen(1000, closed(U1, 20).label("a", "1")));
        line.node_ended(end(U2, 30).label("b", "1"));
        let RecordSight::Seen(seen) = &mut line.record else { unreachable!("it was just seen") };
        seen.body = Body::Unread { hint: Some(named) };
        line.record_removed(U4, 1001, 1001, true);
        assert_eq!(uids(&line), left, "{named}");
    }
}

#[test]
fn a_record_that_was_to_be_read_again_is_forgotten_by_whoever_removes_it_before_it_is_due() {
    let mut line = line();
    line.record_seen(seen(1000, open(U1, 10).label("a", "1")));
    sees(&mut line, live(U1, 20).label("a", "2"));
    let RecordSight::Seen(seen) = &mut line.record else { unreachable!("it was just seen") };
    seen.body = Body::Unread { hint: Some(U1) };
    line.record_removed(U4, 1001, 1001, false);
    line.node_ended(end(U1, 30).label("a", "2"));
    assert_eq!(uids(&line), [0; 0]);
}

#[test]
fn a_record_that_went_on_to_another_life_has_accounted_for_the_one_it_named() {
    for (record, left) in [
        (open(U3, 40).label("b", "1"), vec![2]),
        (giving(U3, 40).label("b", "1"), vec![2]),
        (giving(U3, 40).label("b", "1").unproved(U1, State::Open), vec![1, 2]),
        (open(U1, 15).label("a", "2"), vec![1, 2]),
    ] {
        let mut line = line();
        line.record_seen(seen(1000, open(U1, 10).label("a", "1")));
        line.node_ended(end(U1, 20).label("a", "1"));
        line.node_ended(end(U2, 30).label("b", "1"));
        line.record_seen(seen(1001, record.clone()));
        assert_eq!(uids(&line), left, "{record:?}");
    }
}

#[test]
fn a_record_that_was_made_anew_has_not_accounted_for_the_life_that_the_one_before_named() {
    let mut line = line();
    line.record_seen(seen(1000, open(U1, 10)));
    line.node_ended(end(U1, 20).label("a", "1"));
    line.record_seen(Seen { uid: U3, ..seen(1002, open(U2, 30).label("b", "1")) });
    assert_eq!(uids(&line), [1]);
}

#[test]
fn an_end_is_looked_for_again_when_the_record_names_another_version() {
    let mut line = line();
    line.record_seen(seen(1000, open(U1, 10).label("a", "1")));
    line.lost = Some(U1);
    line.record_seen(seen(1001, open(U1, 10).label("a", "1")));
    assert_eq!(line.lost, Some(U1));
    line.record_seen(seen(1002, open(U1, 15).label("a", "2")));
    assert_eq!(line.lost, None);
}

// When an end may be forgotten: the record is closed with it or later, or names a later incarnation whose
// mark was seen.

#[test]
fn an_end_is_forgotten_when_the_record_is_closed_with_it_or_later() {
    for (record, left) in [
        (closed(U1, 20), vec![]),
        (closed(U2, 30), vec![]),
        (closed(U4, 15), vec![1]),
        (closed(U1, 15), vec![]),
        (closed(U1, 15).unproved(U1, State::Open), vec![1]),
    ] {
        let mut line = line();
        line.node_ended(end(U1, 20).label("a", "1"));
        line.record_seen(seen(1000, record.clone()));
        assert_eq!(uids(&line), left, "{record:?}");
    }
}

#[test]
fn an_end_is_held_while_the_life_that_is_named_bears_no_mark() {
    for record in [open(U2, 30), giving(U2, 30)] {
        let mut line = line();
        line.node_ended(end(U1, 20).label("a", "1"));
        sees(&mut line, live(U2, 30));
        line.record_seen(seen(1000, record));
        assert_eq!(uids(&line), [1]);
        sees(&mut line, live(U2, 40).marked());
        assert_eq!(uids(&line), [] as [u128; 0], "its mark was seen");
    }
}

#[test]
fn an_end_is_forgotten_when_the_record_says_that_a_later_life_got_its_own() {
    let mut line = line();
    line.node_ended(end(U1, 20).label("a", "1"));
    line.record_seen(seen(1000, open(U2, 30).given()));
    assert_eq!(uids(&line), [] as [u128; 0]);
}

#[test]
fn an_end_is_forgotten_when_the_named_life_ended_with_its_mark() {
    let mut line = line();
    line.node_ended(end(U1, 20).label("a", "1"));
    line.record_seen(seen(1000, giving(U2, 30)));
    line.node_ended(end(U2, 40).marked());
    assert_eq!(uids(&line), [2], "its own end is not recorded yet");
}

#[test]
fn an_end_after_the_life_that_got_its_own_is_held() {
    let mut line = line();
    line.record_seen(seen(1000, open(U1, 10).given()));
    line.node_ended(end(U1, 20).label("a", "1"));
    line.node_ended(end(U2, 40));
    assert_eq!(uids(&line), [1, 2]);
}

// Records.

#[test]
fn an_older_version_of_the_record_changes_nothing() {
    let mut line = line();
    assert!(line.record_seen(seen(1000, open(U1, 20).label("a", "2"))));
    assert!(!line.record_seen(seen(999, open(U1, 10).label("a", "1"))));
    assert_eq!(line.seen().unwrap().summary().unwrap().version, 20);
}

#[test]
fn the_echo_of_a_write_does_not_replace_the_content_by_its_summary() {
    let mut line = line();
    let record = open(U1, 20).label("a", "2");
    line.record_seen(seen(1000, record.clone()));
    let echo = Seen { body: Body::Summary(record.summary()), ..seen(1000, record.clone()) };
    assert!(!line.record_seen(echo.clone()));
    assert!(matches!(line.seen().unwrap().body, Body::Whole(_)));
    assert!(line.record_seen(Seen { version: 1001, ..echo }));
    assert!(matches!(line.seen().unwrap().body, Body::Summary(_)));
}

#[test]
fn a_line_at_rest_holds_digests_and_a_closed_record_stays_whole() {
    let mut line = line();
    sees(&mut line, live(U1, 20).label("a", "1"));
    line.record_seen(seen(1000, open(U1, 20).label("a", "1")));
    line.settle();
    assert_eq!(line.live().unwrap().content, None);
    assert!(matches!(line.seen().unwrap().body, Body::Summary(_)));
    assert_eq!(line.agreed, None, "equal digests need no note");
    line.record_seen(seen(1001, closed(U1, 30).label("a", "1")));
    line.settle();
    assert!(matches!(line.seen().unwrap().body, Body::Whole(_)));
}

#[test]
fn a_record_of_another_history_counts_as_older_than_everything() {
    let mut line = line();
    line.record_seen(Seen { foreign: true, ..seen(1000, closed(U4, 9000)) });
    line.node_ended(end(U1, 20));
    assert_eq!(uids(&line), [1]);
}

#[test]
fn what_was_looked_for_in_vain_is_let_go_with_the_record_that_named_it() {
    let mut line = line();
    line.record_seen(seen(1000, open(U1, 10)));
    line.lost = Some(U1);
    sees(&mut line, live(U2, 20));
    assert_eq!(line.lost, Some(U1));
    line.record_seen(seen(1001, giving(U2, 20)));
    assert_eq!(line.lost, None);
}
