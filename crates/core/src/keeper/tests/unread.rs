//! An end whose machine nobody read: it is read before the end is written down or acted on, where that matters.

use uuid::Uuid;

use super::dsl::*;
use crate::keeper::{End, Mark, Notice, Patch, Plan, Provider, Why, decide};
use crate::policy::Policy;
use crate::record::{Record, Version};

fn provider() -> Policy {
    policy("rules: [{identity: provider}]")
}

fn machine() -> Policy {
    policy("rules: [{identity: machine}]")
}

/// An end as the watch tells it.
fn told(uid: Uuid, version: Version) -> End {
    End { provider: Provider::Unread, ..end(uid, version) }
}

#[test]
fn the_machine_of_an_end_is_read_before_it_is_closed() {
    for policy in [provider(), machine()] {
        let case = || gone(15).ends([told(U1, 15).label("a", "1")]).policy(policy.clone());
        case().reads_end(U1, 15);
        case().with(open(U1, 10).label("a", "1").under(&policy)).reads_end(U1, 15);
        case().with(giving(U1, 10).label("a", "1").under(&policy)).reads_end(U1, 15);
        let earlier = closed(U2, 5).machine("m1").label("a", "1").under(&policy);
        case().with(earlier.clone()).reads_end(U1, 15);
        gone(15).ends([told(U1, 15)]).with(earlier).policy(policy.clone()).reads_end(U1, 15);
    }
}

#[test]
fn the_machine_of_an_end_is_read_before_a_successor_is_given_it_or_refused() {
    for newborn in [live(U2, 20).no_machine(), live(U2, 20).machine("m1"), live(U2, 20).machine("m2")] {
        let case = || node(newborn.clone()).ends([told(U1, 15).label("a", "1")]).policy(provider());
        case().reads_end(U1, 15);
        case().with(open(U1, 10).label("a", "1").under(&provider())).reads_end(U1, 15);
        case().with(open(U2, 18).label("b", "1").under(&provider())).reads_end(U1, 15);
    }
}

#[test]
fn once_it_is_read_it_decides_who_is_given_what() {
    let after = |id: Option<&str>, newborn| {
        let mut case = node(newborn).ends([told(U1, 15).label("a", "1")]).policy(provider());
        case.line.end_read(U1, id.map(str::to_owned));
        case
    };
    let given = giving(U2, 20).label("a", "1").under(&provider());
    after(Some("m1"), live(U2, 20).machine("m1")).gives(first(given.clone().machine("m1")));
    let kept = closed(U1, 15).machine("m1").label("a", "1").under(&provider());
    after(Some("m1"), live(U2, 20).no_machine()).closes(first(kept.clone()));
    let before = Record { captured_at: NOW, ..kept };
    after(Some("m1"), live(U2, 20).machine("m2").label("b", "1")).saves(telling(
        Notice::OtherMachine,
        first(open(U2, 20).machine("m2").label("b", "1").under(&provider()).before(&before)),
    ));
    // It had none, or nobody can tell any more: that is asked for once.
    after(None, live(U2, 20).no_machine()).gives(first(given));
}

#[test]
fn the_machine_of_an_end_with_privileged_keys_is_read() {
    let rights = || told(U1, 15).label(ROLE, "");
    gone(15).ends([rights()]).reads_end(U1, 15);
    gone(15).ends([rights()]).with(open(U1, 10).label(ROLE, "")).reads_end(U1, 15);
    node(live(U2, 20)).ends([rights()]).reads_end(U1, 15);
    let mut case = node(live(U2, 20)).ends([rights()]);
    case.line.end_read(U1, Some("m1".to_owned()));
    case.gives(first(giving(U2, 20).waits(ROLE, "", Some("m1"))));
}

#[test]
fn the_machine_of_one_that_got_its_privileged_keys_back_is_read() {
    let record = open(U2, 20).label("a", "1").given().waits(ROLE, "", Some("m1"));
    let end = || told(U2, 25).label("a", "1").marked_full();
    gone(25).ends([end()]).with(record.clone()).reads_end(U2, 25);
    let mut case = gone(25).ends([end()]).with(record.clone());
    case.line.end_read(U2, Some("m1".to_owned()));
    case.closes(next(closed(U2, 25).machine("m1").label("a", "1").before(&record)));
}

#[test]
fn an_ordinary_end_is_not_asked_for_its_machine() {
    let end = || told(U1, 15).label("a", "1");
    gone(15).ends([end()]).closes(first(closed(U1, 15).label("a", "1")));
    gone(15).ends([end()]).with(open(U1, 10).label("a", "1")).closes(next(closed(U1, 15).label("a", "1")));
    node(live(U2, 20)).ends([end()]).gives(first(giving(U2, 20).label("a", "1")));
    let marked = told(U1, 15).label("a", "1").marked_full();
    gone(15).ends([marked]).with(open(U1, 10).label("a", "1")).closes(next(closed(U1, 15).label("a", "1")));
    let excluding = policy("rules: [{labels: {exclude: [\"node-role.kubernetes.io/*\"]}}]");
    let rights = told(U1, 15).label("a", "1").label(ROLE, "");
    let kept = first(closed(U1, 15).label("a", "1").under(&excluding));
    gone(15).ends([rights]).policy(excluding).closes(kept);
}

#[test]
fn an_end_whose_machine_the_record_knows_is_not_asked() {
    let record = open(U1, 10).machine("m1").label("a", "1").under(&provider());
    gone(15)
        .ends([told(U1, 15).label("a", "1")])
        .with(record)
        .policy(provider())
        .closes(next(closed(U1, 15).machine("m1").label("a", "1").under(&provider())));
}

#[test]
fn an_end_that_no_record_needs_any_more_is_not_asked() {
    let record = giving(U2, 20).machine("m1").label("a", "1").under(&provider());
    let ends = || [told(U1, 15).label("a", "1"), end(U2, 25).machine("m1")];
    gone(25)
        .ends(ends())
        .with(record.clone())
        .policy(provider())
        .closes(next(closed(U2, 25).machine("m1").label("a", "1").under(&provider())));
    let mark = Patch { withheld: 0, ..patch(U2, 22, Mark::Given, &[("a", "1")]) };
    node(live(U2, 22).machine("m1"))
        .ends([told(U1, 15).label("a", "1")])
        .with(record)
        .policy(provider())
        .patches(mark);
}

#[test]
fn nothing_is_read_while_there_is_nothing_to_write() {
    let soon = End { seen_at: NOW, ..told(U1, 15).label(ROLE, "") };
    gone(15).ends([soon]).with(open(U1, 10)).waits(NOW + CLOSE_AFTER);
    gone(15).ends([told(U1, 15).label(ROLE, "")]).no_capture().rests(Why::CaptureOff);
    gone(15).ends([told(U1, 15)]).policy(provider()).rests(Why::NothingKept);
}

#[test]
fn each_of_several_ends_is_read_once() {
    let mut case =
        gone(25).ends([told(U1, 15).label("a", "1"), told(U2, 25).label("b", "1")]).policy(provider());
    for expected in [(U1, 15), (U2, 25)] {
        let Plan::ReadEnd { uid, deleted } = decide(NODE, &case.line, &case.context()) else {
            panic!("not read")
        };
        assert_eq!((uid, deleted), expected);
        case.line.end_read(uid, None);
    }
    case.closes(first(closed(U2, 25).label("a", "1").label("b", "1").under(&provider())));
}

#[test]
fn what_is_known_of_an_ends_machine_is_not_unlearned() {
    let mut case = node(live(U1, 10).label("a", "1").machine("m1"));
    case.line.node_ended(told(U1, 15));
    assert_eq!(case.line.ends[0].provider.id(), Some("m1"), "the living one was read");
    case.line.node_ended(told(U1, 15));
    assert_eq!(case.line.ends[0].provider.id(), Some("m1"), "the same end told again");
    case.line.end_read(U1, None);
    assert_eq!(case.line.ends[0].provider.id(), Some("m1"), "history that is gone");
    case.line.node_ended(told(U2, 25));
    case.line.end_read(U2, None);
    assert_eq!(case.line.ends[1].provider, Provider::Read(None));
    case.line.node_ended(end(U2, 25).machine("m2"));
    assert_eq!(case.line.ends[1].provider.id(), Some("m2"), "a proof");
}
