//! A person's word, switches, and records that this binary may not use.

use super::dsl::*;
use crate::keeper::{Body, Erasure, Notice, Plan, Why};

// Paused: Rest, remembered in the record.

#[test]
fn a_paused_node_is_remembered_as_paused_once_and_then_rests() {
    let record = open(U1, 10).label("a", "1");
    node(live(U1, 20).label("a", "2").paused(true))
        .with(record.clone())
        .saves(next(open(U1, 20).label("a", "1").on_hold()));
    node(live(U1, 20).label("a", "2").paused(true)).with(record.on_hold()).rests(Why::Paused);
}

#[test]
fn a_paused_node_rests_whatever_its_record() {
    let paused = live(U2, 20).label("a", "2").paused(true);
    node(paused.clone()).rests(Why::Paused);
    for record in [giving(U2, 10), closed(U1, 10)] {
        node(paused.clone()).with(record.label("a", "1")).rests(Why::Paused);
    }
}

#[test]
fn the_end_before_a_paused_life_is_looked_for_and_recorded() {
    let paused = || node(live(U2, 20).label("a", "2").paused(true));
    let ended = || end(U1, 15).label("a", "3");
    for record in [open(U1, 10), giving(U1, 10)] {
        let record = record.label("a", "1");
        paused().with(record.clone()).proves(U1, 10, 20);
        paused()
            .ends([ended()])
            .with(record.clone())
            .closes(next(closed(U1, 15).label("a", "3").before(&record)));
    }
    let record = closed(U3, 10).label("a", "1");
    paused()
        .ends([ended()])
        .with(record.clone())
        .closes(next(closed(U1, 15).label("a", "3").before(&record)));
    paused().ends([ended()]).closes(first(closed(U1, 15).label("a", "3")));
    paused().vanished(U1, 10).proves(U1, 10, 20);
    // It is given once the pause ends.
    let resumed = node(live(U2, 30).label("b", "2")).with(closed(U1, 15).label("a", "3"));
    resumed.gives(next(giving(U2, 30).label("a", "3")));
}

#[test]
fn a_pause_outlives_its_node() {
    let record = open(U1, 10).label("a", "1").on_hold();
    gone(15).ends([end(U1, 15).label("a", "2").paused(true)]).with(record.clone()).rests(Why::Paused);
    looked(50).with(record).rests(Why::Paused);
    for record in [open(U1, 10), closed(U1, 10), giving(U1, 10)] {
        node(live(U2, 20)).with(record.label("a", "1").on_hold()).rests(Why::Paused);
    }
}

#[test]
fn a_pause_that_only_the_end_bore_is_remembered_by_the_closed_record() {
    let paused = || end(U1, 15).label("a", "1").paused(true);
    let expected = || closed(U1, 15).label("a", "1").on_hold();
    gone(15).ends([paused()]).with(open(U1, 10).label("a", "1")).closes(next(expected()));
    node(live(U2, 20)).ends([paused()]).with(open(U1, 10).label("a", "1")).closes(next(expected()));
    gone(15).ends([paused()]).closes(first(expected()));
    node(live(U2, 20)).ends([paused()]).closes(first(expected()));
    node(live(U2, 20)).with(expected()).rests(Why::Paused);
}

#[test]
fn a_pause_is_remembered_though_nothing_else_is() {
    let paused = || end(U1, 15).paused(true);
    gone(15).ends([paused()]).closes(first(closed(U1, 15).on_hold()));
    node(live(U2, 20).label("a", "1")).ends([paused()]).closes(first(closed(U1, 15).on_hold()));
    node(live(U2, 20).label("a", "1")).with(closed(U1, 15).on_hold()).rests(Why::Paused);
    looked(50).with(closed(U1, 15).on_hold()).rests(Why::Away);
    let ended = node(live(U2, 20).label("a", "1").paused(false)).ends([paused()]);
    ended.saves(first(open(U2, 20).label("a", "1")));
}

#[test]
fn an_end_behind_the_recorded_one_is_proved_before_its_pause_is_remembered() {
    node(live(U3, 30)).ends([end(U2, 25).paused(true)]).with(open(U1, 10).label("a", "1")).proves(U1, 10, 25);
}

#[test]
fn a_pause_ends_by_its_removal_from_the_same_node_or_by_false_on_a_later_one() {
    let record = open(U1, 10).label("a", "1").on_hold();
    node(live(U1, 20).label("a", "1")).with(record.clone()).saves(next(open(U1, 20).label("a", "1")));
    node(live(U1, 20).label("a", "1").paused(false)).with(record).saves(next(open(U1, 20).label("a", "1")));
    node(live(U2, 20).paused(false))
        .with(closed(U1, 15).label("a", "1").on_hold())
        .gives(next(giving(U2, 20).label("a", "1")));
    node(live(U2, 20).paused(false)).with(open(U1, 10).label("a", "1").on_hold()).proves(U1, 10, 20);
}

#[test]
fn an_end_that_ended_the_pause_is_closed() {
    let record = open(U1, 10).label("a", "1").on_hold();
    for last in [end(U1, 15).label("a", "1").paused(false), end(U1, 15).label("a", "1")] {
        gone(15).ends([last]).with(record.clone()).closes(next(closed(U1, 15).label("a", "1")));
    }
}

// To be forgotten: Erase.

#[test]
fn a_node_to_be_forgotten_loses_its_record_whatever_its_state() {
    for record in [open(U2, 10), giving(U2, 10), closed(U2, 10), open(U1, 10), giving(U1, 10), closed(U1, 10)]
    {
        node(live(U2, 20).label("a", "1").forget()).with(record.label("a", "1")).erases(Erasure::Forgotten);
    }
    node(live(U2, 20).label("a", "1").forget()).rests(Why::Forgotten);
    node(live(U2, 20).forget()).ends([end(U1, 15).label("a", "1")]).rests(Why::Forgotten);
}

#[test]
fn an_end_that_was_to_be_forgotten_erases_the_record_and_leaves_none() {
    let forgotten = || end(U1, 15).label("a", "1").forget();
    gone(15).ends([forgotten()]).with(open(U1, 10).label("a", "1")).erases(Erasure::Forgotten);
    gone(15).ends([forgotten()]).with(closed(U2, 10).label("a", "1")).erases(Erasure::Forgotten);
    gone(15).ends([forgotten()]).rests(Why::Forgotten);
}

#[test]
fn what_was_to_be_forgotten_is_not_given_to_the_next_life() {
    let forgotten = || end(U1, 15).label("a", "1").forget();
    node(live(U2, 20)).ends([forgotten()]).rests(Why::NothingKept);
    node(live(U2, 20).label("b", "1")).ends([forgotten()]).saves(first(open(U2, 20).label("b", "1")));
    node(live(U2, 20)).ends([forgotten()]).with(open(U1, 10).label("a", "1")).erases(Erasure::Forgotten);
    node(live(U3, 30))
        .ends([forgotten(), end(U2, 25).label("b", "1")])
        .gives(first(giving(U3, 30).label("b", "1")));
    gone(25).ends([forgotten(), end(U2, 25).label("b", "1")]).closes(first(closed(U2, 25).label("b", "1")));
}

#[test]
fn a_life_after_the_forgotten_one_keeps_its_own_record() {
    let forgotten = end(U1, 15).label("a", "1").forget();
    node(live(U2, 20).label("b", "1"))
        .ends([forgotten])
        .with(open(U2, 18).label("b", "1"))
        .rests(Why::Agreed);
}

// Of a newer schema: never written, never given.

#[test]
fn a_record_of_a_newer_schema_is_neither_written_nor_given() {
    node(live(U1, 10).label("a", "1")).body(Body::Newer).rests(Why::NewerSchema);
    node(live(U1, 10).forget()).body(Body::Newer).rests(Why::NewerSchema);
    gone(10).ends([end(U1, 10).label("a", "1")]).body(Body::Newer).rests(Why::NewerSchema);
    missing().body(Body::Newer).rests(Why::NewerSchema);
    looked(10).body(Body::Newer).over_cap().rests(Why::NewerSchema);
}

// Unreadable: copied aside first; alive and of this uid: Save over it; otherwise nothing.

fn broken(hint: Option<uuid::Uuid>, aside: bool) -> Body {
    Body::Unreadable { why: "not JSON".to_owned(), hint, aside }
}

#[test]
fn an_unreadable_record_is_copied_aside_before_anything_else() {
    for case in [node(live(U1, 10).label("a", "1")), gone(10).ends([end(U1, 10).label("a", "1")])] {
        assert_eq!(case.body(broken(Some(U1), false)).plan(), Plan::SetAside);
    }
}

#[test]
fn an_unreadable_record_of_the_living_node_is_written_anew_and_told() {
    node(live(U1, 10).label("a", "1"))
        .body(broken(Some(U1), true))
        .saves(telling(Notice::Rewritten, first(open(U1, 10).label("a", "1"))));
    node(live(U1, 10).label("a", "1")).body(broken(Some(U1), true)).settled().reads_node();
}

#[test]
fn an_unreadable_record_of_another_life_gives_nothing() {
    node(live(U2, 10).label("a", "1")).body(broken(Some(U1), true)).rests(Why::Unreadable);
    node(live(U1, 10).label("a", "1")).body(broken(None, true)).rests(Why::Unreadable);
    missing().body(broken(Some(U1), true)).rests(Why::Unreadable);
    // A bare end says nothing: the life it ended may never have got its own back.
    gone(10).ends([end(U1, 10)]).body(broken(Some(U1), true)).rests(Why::Unreadable);
    gone(10).ends([end(U2, 10).label("a", "1")]).body(broken(Some(U1), true)).rests(Why::Unreadable);
}

#[test]
fn an_unreadable_record_is_closed_with_the_end_of_its_life_where_that_is_held() {
    let ended = || end(U1, 10).label("a", "1");
    let closed = telling(Notice::Rewritten, first(closed(U1, 10).label("a", "1")));
    gone(10).ends([ended()]).body(broken(Some(U1), true)).closes(closed.clone());
    node(live(U2, 20)).ends([ended()]).body(broken(Some(U1), true)).closes(closed);
    missing().ends([ended()]).body(broken(Some(U1), true)).reads_node();
}

#[test]
fn a_persons_word_counts_for_an_unreadable_record_too() {
    node(live(U1, 10).forget()).body(broken(None, true)).erases(Erasure::Forgotten);
    node(live(U1, 10).label("a", "1").paused(true)).body(broken(Some(U1), true)).rests(Why::Paused);
}

#[test]
fn a_record_that_somebody_else_edited_is_read_and_judged_whatever_is_known() {
    for case in [node(live(U1, 10).label("a", "1")), gone(10), missing()] {
        case.body(Body::Unread { hint: Some(U1) }).reads_record();
    }
}

// Capture and restore can each be switched off.

#[test]
fn without_capture_nothing_is_saved_closed_or_erased() {
    let record = open(U1, 10).label("a", "1");
    node(live(U1, 20).label("a", "1")).no_capture().rests(Why::CaptureOff);
    node(live(U1, 20).label("a", "2")).with(record.clone()).no_capture().rests(Why::CaptureOff);
    node(live(U1, 20).paused(true)).with(record.clone()).no_capture().rests(Why::CaptureOff);
    node(live(U1, 20).forget()).with(record.clone()).no_capture().rests(Why::CaptureOff);
    gone(15).ends([end(U1, 15).label("a", "1")]).no_capture().rests(Why::CaptureOff);
    gone(15).ends([end(U1, 15).label("a", "1")]).with(record).no_capture().rests(Why::CaptureOff);
    looked(50).with(closed(U1, 15).label("a", "1")).over_cap().no_capture().rests(Why::CaptureOff);
    node(live(U1, 20).label("a", "1")).body(broken(Some(U1), true)).no_capture().rests(Why::CaptureOff);
}

#[test]
fn without_capture_nodes_are_still_given_their_own() {
    node(live(U2, 20))
        .with(closed(U1, 15).label("a", "1"))
        .no_capture()
        .gives(next(giving(U2, 20).label("a", "1")));
    node(live(U2, 20))
        .ends([end(U1, 15).label("a", "1")])
        .with(open(U1, 10).label("a", "1"))
        .no_capture()
        .gives(next(giving(U2, 20).label("a", "1")));
    node(live(U2, 25)).with(giving(U2, 20).label("a", "1")).no_capture().patches(patch(
        U2,
        25,
        crate::keeper::Mark::Given,
        &[("a", "1")],
    ));
}

#[test]
fn without_restore_nothing_is_given_and_no_node_is_patched() {
    node(live(U2, 20)).with(closed(U1, 15).label("a", "1")).no_restore().rests(Why::RestoreOff);
    node(live(U2, 25)).with(giving(U2, 20).label("a", "1")).no_restore().rests(Why::RestoreOff);
}

#[test]
fn without_restore_ends_are_still_closed_so_that_somebody_else_can_give_them() {
    let record = open(U1, 10).label("a", "1");
    node(live(U2, 20))
        .ends([end(U1, 15).label("a", "2")])
        .with(record.clone())
        .no_restore()
        .closes(next(closed(U1, 15).label("a", "2").before(&record)));
    node(live(U2, 20))
        .ends([end(U1, 15).label("a", "2")])
        .no_restore()
        .closes(first(closed(U1, 15).label("a", "2")));
    node(live(U2, 20)).with(record).no_restore().proves(U1, 10, 20);
}

#[test]
fn without_restore_living_nodes_are_still_followed() {
    let record = open(U1, 10).label("a", "1");
    node(live(U1, 20).label("a", "2"))
        .with(record.clone())
        .no_restore()
        .saves(next(open(U1, 20).label("a", "2").before(&record)));
}
