//! Which machine bears the name: `identity`, and privileged keys that wait for it.

use super::dsl::*;
use crate::keeper::{Kin, Mark, Notice, Patch, Plan, Why};
use crate::policy::Policy;
use crate::record::{Record, State};

fn provider() -> Policy {
    policy("rules: [{identity: provider}]")
}

fn machine() -> Policy {
    policy("rules: [{identity: machine}]")
}

fn bare_metal() -> Policy {
    policy("rules: [{privileged: {withoutProviderID: true}}]")
}

// Live, another machine under `identity: provider`: nothing is given; Save open anew; Event.

#[test]
fn the_same_machine_is_given_its_own() {
    let record = closed(U1, 15).machine("m1").label("a", "1").under(&provider());
    node(live(U2, 20).machine("m1"))
        .with(record)
        .policy(provider())
        .gives(next(giving(U2, 20).machine("m1").label("a", "1").under(&provider())));
}

#[test]
fn another_machine_is_given_nothing_and_the_old_state_is_remembered() {
    let record = closed(U1, 15).machine("m1").label("a", "1").under(&provider());
    node(live(U2, 20).machine("m2").label("b", "1")).with(record.clone()).policy(provider()).saves(telling(
        Notice::OtherMachine,
        next(open(U2, 20).machine("m2").label("b", "1").under(&provider()).before(&record)),
    ));
}

#[test]
fn another_machine_is_given_nothing_whatever_the_record() {
    let ends = || [end(U1, 15).machine("m1").label("a", "1")];
    let newborn = || live(U2, 20).machine("m2").label("b", "1");
    for record in [open(U1, 10), giving(U1, 10)] {
        let record = record.machine("m1").label("a", "0").under(&provider());
        node(newborn())
            .ends(ends())
            .with(record)
            .policy(provider())
            .plan_is_save_of(|saved| assert_eq!((saved.incarnation.uid, saved.kept.labels.len()), (U2, 1)));
    }
    let before = closed(U1, 15).machine("m1").label("a", "1").under(&provider());
    let before = Record { captured_at: NOW, ..before };
    node(newborn()).ends(ends()).policy(provider()).saves(telling(
        Notice::OtherMachine,
        first(open(U2, 20).machine("m2").label("b", "1").under(&provider()).before(&before)),
    ));
    node(newborn())
        .ends(ends())
        .with(open(U2, 18).machine("m2").label("b", "1").under(&provider()))
        .policy(provider())
        .rests(Why::Agreed);
}

#[test]
fn what_is_remembered_of_another_machine_is_its_end_and_what_the_record_held() {
    let record = open(U1, 10).machine("m1").label("a", "0").under(&provider());
    let ended = closed(U1, 15).machine("m1").label("a", "1").under(&provider());
    node(live(U2, 20).machine("m2").label("b", "1"))
        .ends([end(U1, 15).machine("m1").label("a", "1")])
        .with(record.clone())
        .policy(provider())
        .saves(telling(
            Notice::OtherMachine,
            next(
                open(U2, 20).machine("m2").label("b", "1").under(&provider()).before(&ended).before(&record),
            ),
        ));
}

#[test]
fn what_is_remembered_of_another_machine_includes_what_waited_for_it() {
    let record = closed(U2, 15).machine("m1").label("a", "1").waits(ROLE, "", Some("m1")).under(&provider());
    node(live(U3, 20).machine("m2").label("b", "1")).with(record.clone()).policy(provider()).saves(telling(
        Notice::OtherMachine,
        next(open(U3, 20).machine("m2").label("b", "1").under(&provider()).before(&record)),
    ));
}

#[test]
fn a_machine_that_was_not_read_is_read_first() {
    let record = closed(U1, 15).machine("m1").label("a", "1").under(&provider());
    node(live(U2, 20)).with(record).policy(provider()).reads_node();
    node(live(U2, 20)).ends([end(U1, 15).machine("m1").label("a", "1")]).policy(provider()).reads_node();
    node(live(U1, 20).label("a", "1")).policy(provider()).reads_node();
}

#[test]
fn a_machine_that_is_not_known_yet_is_given_nothing_and_the_end_is_kept() {
    let record = closed(U1, 15).machine("m1").label("a", "1").under(&provider());
    node(live(U2, 20).no_machine()).with(record.clone()).policy(provider()).rests(Why::IdentityUnknown);
    node(live(U3, 30).no_machine())
        .ends([end(U2, 25).machine("m1").label("b", "1")])
        .with(record.clone())
        .policy(provider())
        .closes(next(
            closed(U2, 25).machine("m1").label("a", "1").label("b", "1").under(&provider()).before(&record),
        ));
    let open = open(U1, 10).machine("m1").label("a", "1").under(&provider());
    node(live(U2, 20).no_machine())
        .ends([end(U1, 15).label("a", "1")])
        .with(open)
        .policy(provider())
        .closes(next(closed(U1, 15).machine("m1").label("a", "1").under(&provider())));
}

#[test]
fn a_newborn_that_died_before_its_machine_was_known_does_not_take_the_name_from_it() {
    let record = closed(U1, 15).machine("m1").label("a", "1").under(&provider());
    gone(25)
        .ends([end(U2, 25)])
        .with(record)
        .policy(provider())
        .closes(next(closed(U2, 25).machine("m1").label("a", "1").under(&provider())));
}

#[test]
fn a_newborn_of_another_machine_that_died_inherits_nothing() {
    let record = closed(U1, 15).machine("m1").label("a", "1").under(&provider());
    gone(25)
        .ends([end(U2, 25).machine("m2").label("b", "1")])
        .with(record.clone())
        .policy(provider())
        .closes(next(closed(U2, 25).machine("m2").label("b", "1").under(&provider()).before(&record)));
}

// `identity: machine`: the record is found by providerID, also under a new name.

#[test]
fn a_machine_is_given_what_it_left_under_another_name() {
    let kin = Record { node: "old".to_owned(), ..closed(U1, 500).machine("m1").label("a", "1") };
    let kin = || Kin::Closed(Box::new(kin.clone()));
    // Whichever policy chose it there.
    let expected = || giving(U2, 20).machine("m1").label("a", "1");
    node(live(U2, 20).machine("m1")).kin(kin()).policy(machine()).gives(first(expected()));
    let empty = closed(U3, 15).under(&machine());
    node(live(U2, 20).machine("m1"))
        .kin(kin())
        .with(empty.clone())
        .policy(machine())
        .gives(next(expected().before(&empty)));
    let others = closed(U3, 15).machine("m2").label("b", "1").under(&machine());
    node(live(U2, 20).machine("m1"))
        .kin(kin())
        .with(others.clone())
        .policy(machine())
        .gives(next(expected().before(&others)));
}

#[test]
fn a_machine_is_given_the_newest_of_what_it_left_under_its_names() {
    let own = closed(U1, 15).machine("m1").label("a", "1").under(&machine());
    let elsewhere = |version| {
        let record = closed(U3, version).machine("m1").label("a", "2").under(&machine());
        Kin::Closed(Box::new(Record { node: "other".to_owned(), ..record }))
    };
    let back = || node(live(U2, 20).machine("m1")).with(own.clone()).policy(machine());
    let given = |value| giving(U2, 20).machine("m1").label("a", value).under(&machine());
    back().kin(elsewhere(18)).gives(next(given("2").before(&own)));
    back().kin(elsewhere(12)).gives(next(given("1")));
    back().kin(Kin::Open(18)).waits(NOW + CLOSE_AFTER);
}

#[test]
fn a_machine_whose_other_name_is_not_closed_yet_waits_for_it() {
    node(live(U2, 20).machine("m1").label("b", "1"))
        .kin(Kin::Open(15))
        .policy(machine())
        .waits(NOW + CLOSE_AFTER);
}

#[test]
fn a_machine_without_another_name_is_saved_and_one_unread_is_read() {
    node(live(U2, 20).label("b", "1")).policy(machine()).reads_node();
    node(live(U2, 20)).policy(machine()).reads_node();
    node(live(U2, 20).machine("m1").label("b", "1"))
        .policy(machine())
        .saves(first(open(U2, 20).machine("m1").label("b", "1").under(&machine())));
    node(live(U2, 20).machine("m1")).policy(machine()).rests(Why::NothingKept);
}

#[test]
fn without_restore_a_machine_is_left_for_somebody_who_can_give() {
    let kin = || Kin::Closed(Box::new(closed(U1, 500).machine("m1").label("a", "1")));
    node(live(U2, 20).machine("m1").label("b", "1"))
        .kin(kin())
        .policy(machine())
        .no_restore()
        .rests(Why::RestoreOff);
    let others = closed(U3, 15).machine("m2").label("b", "1").under(&machine());
    node(live(U2, 20).machine("m1"))
        .kin(kin())
        .with(others)
        .policy(machine())
        .no_restore()
        .rests(Why::RestoreOff);
}

// Privileged keys stay in `waiting` through every state until identity matches.

#[test]
fn a_node_with_privileged_keys_is_saved_with_its_machine() {
    node(live(U1, 10).label(ROLE, "")).reads_node();
    node(live(U1, 10).label(ROLE, "").machine("m1")).saves(first(open(U1, 10).machine("m1").label(ROLE, "")));
    node(live(U1, 10).label(ROLE, "").no_machine()).saves(first(open(U1, 10).label(ROLE, "")));
}

#[test]
fn a_machine_that_becomes_known_is_saved() {
    let record = open(U1, 10).label(ROLE, "");
    node(live(U1, 20).label(ROLE, "").young()).with(record.clone()).reads_node();
    node(live(U1, 20).label(ROLE, "").young().no_machine()).with(record.clone()).rests(Why::Agreed);
    node(live(U1, 20).label(ROLE, "").machine("m1"))
        .with(record)
        .saves(next(open(U1, 20).machine("m1").label(ROLE, "")));
}

#[test]
fn privileged_keys_wait_when_a_record_is_given() {
    let record = closed(U1, 15).machine("m1").label("a", "1").label(ROLE, "");
    let given = giving(U2, 20).label("a", "1").waits(ROLE, "", Some("m1"));
    node(live(U2, 20)).with(record).gives(next(given));
}

#[test]
fn privileged_keys_are_patched_at_once_where_the_machine_matches() {
    let record = giving(U2, 20).label("a", "1").waits(ROLE, "", Some("m1"));
    node(live(U2, 25)).with(record.clone()).reads_node();
    node(live(U2, 25).machine("m1")).with(record).patches(patch(
        U2,
        25,
        Mark::Full,
        &[("a", "1"), (ROLE, "")],
    ));
}

#[test]
fn privileged_keys_are_withheld_while_the_machine_is_unknown_or_another() {
    let record = giving(U2, 20).label("a", "1").waits(ROLE, "", Some("m1"));
    for newborn in [live(U2, 25).no_machine(), live(U2, 25).machine("m2")] {
        let expected = Patch { withheld: 1, ..patch(U2, 25, Mark::Given, &[("a", "1")]) };
        node(newborn).with(record.clone()).patches(expected);
    }
}

#[test]
fn waiting_keys_stay_when_the_record_opens_follows_and_closes() {
    let waits = |record: Record| record.waits(ROLE, "", Some("m1"));
    let restored = live(U2, 25).label("a", "1").marked().no_machine();
    node(restored.clone())
        .with(waits(giving(U2, 20).label("a", "1")))
        .saves(next(waits(open(U2, 25).label("a", "1").given())));
    let record = waits(open(U2, 25).label("a", "1").given());
    node(restored).with(record.clone()).rests(Why::IdentityUnknown);
    node(live(U2, 30).label("a", "2").marked().no_machine())
        .with(record.clone())
        .saves(next(waits(open(U2, 30).label("a", "2").given()).before(&record)));
    gone(40)
        .ends([end(U2, 40).label("a", "1").marked()])
        .with(record)
        .closes(next(waits(closed(U2, 40).label("a", "1"))));
}

#[test]
fn waiting_keys_stay_through_lives_that_end_unmarked() {
    let record = giving(U2, 20).label("a", "1").waits(ROLE, "", Some("m1"));
    gone(25).ends([end(U2, 25)]).with(record.clone()).closes(next(closed(U2, 25).label("a", "1").waits(
        ROLE,
        "",
        Some("m1"),
    )));
    node(live(U3, 30)).ends([end(U2, 25)]).with(record).gives(next(giving(U3, 30).label("a", "1").waits(
        ROLE,
        "",
        Some("m1"),
    )));
    let record = closed(U1, 15).machine("m1").label(ROLE, "");
    gone(25).ends([end(U2, 25)]).with(record).closes(next(closed(U2, 25).machine("m1").waits(
        ROLE,
        "",
        Some("m1"),
    )));
}

#[test]
fn waiting_keys_are_patched_once_the_machine_is_known_to_match() {
    let record = open(U2, 25).label("a", "1").given().waits(ROLE, "", Some("m1"));
    let restored = || live(U2, 30).label("a", "1").marked();
    node(restored()).with(record.clone()).reads_node();
    node(restored().machine("m1")).with(record.clone()).patches(patch(U2, 30, Mark::Full, &[(ROLE, "")]));
    node(restored().machine("m1")).with(record).no_restore().rests(Why::IdentityUnknown);
}

#[test]
fn waiting_keys_leave_the_record_once_they_were_given() {
    let record = open(U2, 25).label("a", "1").given().waits(ROLE, "", Some("m1"));
    node(live(U2, 35).label("a", "1").label(ROLE, "").marked_full().machine("m1"))
        .with(record.clone())
        .saves(next(open(U2, 35).machine("m1").label("a", "1").label(ROLE, "").given()));
    node(live(U2, 35).label("a", "1").marked_full().machine("m1"))
        .with(record.clone())
        .saves(next(open(U2, 35).machine("m1").label("a", "1").given().before(&record)));
}

#[test]
fn waiting_keys_of_another_machine_are_dropped_and_told() {
    let record = open(U2, 25).label("a", "1").given().waits(ROLE, "", Some("m1"));
    node(live(U2, 30).label("a", "1").marked().machine("m2")).with(record.clone()).saves(telling(
        Notice::PrivilegedDropped,
        next(open(U2, 30).machine("m2").label("a", "1").given().before(&record)),
    ));
}

#[test]
fn keys_without_a_machine_come_back_only_where_the_policy_allows_it() {
    let record = giving(U2, 20).waits(ROLE, "", None);
    let newborn = || live(U2, 25).no_machine();
    let withheld = Patch { withheld: 1, ..patch(U2, 25, Mark::Given, &[]) };
    node(newborn()).with(record.clone()).patches(withheld.clone());
    let allowed = bare_metal();
    node(newborn()).with(record.clone()).policy(allowed).patches(patch(U2, 25, Mark::Full, &[(ROLE, "")]));
    node(live(U2, 25).machine("m1")).with(record).policy(bare_metal()).patches(withheld);
}

#[test]
fn a_key_that_is_given_early_does_not_take_those_that_still_wait_with_it() {
    const OTHER: &str = "node-role.kubernetes.io/web";
    let record = || open(U2, 20).given().waits(ROLE, "", Some("m1")).under(&bare_metal());
    let both = record().waits(OTHER, "", None);
    let early = Patch { withheld: 1, ..patch(U2, 25, Mark::Given, &[(OTHER, "")]) };
    node(live(U2, 25).marked().no_machine()).with(both.clone()).policy(bare_metal()).patches(early);
    let one = || open(U2, 30).label(OTHER, "").given().waits(ROLE, "", Some("m1")).under(&bare_metal());
    node(live(U2, 30).label(OTHER, "").marked().no_machine())
        .with(both)
        .policy(bare_metal())
        .saves(next(one()));
    node(live(U2, 35).label(OTHER, "").marked().machine("m1"))
        .with(one())
        .policy(bare_metal())
        .patches(patch(U2, 35, Mark::Full, &[(ROLE, "")]));
}

#[test]
fn a_key_that_was_given_in_full_and_removed_by_hand_does_not_come_back_with_the_next_life() {
    let record = open(U2, 20).machine("m1").label("a", "1").given().waits(ROLE, "", Some("m1"));
    gone(25)
        .ends([end(U2, 25).label("a", "1").marked_full()])
        .with(record.clone())
        .closes(next(closed(U2, 25).machine("m1").label("a", "1").before(&record)));
}

#[test]
fn privileged_labels_of_an_unknown_machine_are_never_anothers() {
    let record = closed(U1, 15).machine("m1").label("a", "1");
    gone(25)
        .ends([end(U2, 25).label(ROLE, "")])
        .with(record.clone())
        .closes(next(closed(U2, 25).machine("m1").label("a", "1").waits(ROLE, "", None).before(&record)));
    let record = record.label(ROLE, "x");
    gone(25)
        .ends([end(U2, 25).label(ROLE, "y")])
        .with(record.clone())
        .closes(next(closed(U2, 25).machine("m1").label("a", "1").waits(ROLE, "x", Some("m1"))));
    assert_eq!(record.state, State::Closed);
}

#[test]
fn what_another_machine_left_does_not_lie_beneath_a_life_that_was_never_given_it() {
    let policy = policy("rules: [{identity: provider}]");
    let case = |first: &str| {
        let ends = [end(U1, 15).machine(first).label("a", "1"), end(U2, 25).machine("m2").label("b", "1")];
        let record = open(U2, 18).machine("m2").label("b", "1").under(&policy);
        gone(25).ends(ends).with(record).policy(policy.clone())
    };
    for (first, lies_beneath) in [("m1", false), ("m2", true)] {
        let Plan::Close(write) = case(first).plan() else { panic!("{first} is not closed") };
        assert_eq!(write.record.kept.labels.contains_key("a"), lies_beneath, "{first}: {:?}", write.record);
    }
}
