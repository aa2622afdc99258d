use perennial_core::kept::Digest;
use perennial_core::lister::Versions;

use super::*;

fn now() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

fn stamp(body: &str, endpoints: usize) -> Stamp {
    Stamp { digest: Digest::of(body.as_bytes()), endpoints, versions: Versions::default() }
}

fn place(name: &str, page: Option<&Stamp>) -> DestinationStatus {
    DestinationStatus {
        name: name.to_owned(),
        digest: page.map(|page| page.digest.to_string()),
        last_published: page.map(|_| "2026-11-15T11:00:00Z".to_owned()),
        reason: None,
        message: None,
    }
}

fn status(stage: &Stage, said: &ListingStatus, destinations: Vec<DestinationStatus>) -> ListingStatus {
    project(&View { stage, generation: Some(1), said, destinations }, now())
}

fn ready(status: &ListingStatus) -> (&str, &str) {
    let ready = status.conditions.iter().find(|one| one.kind == "Ready").unwrap();
    (&ready.status, &ready.reason)
}

#[test]
fn a_page_that_is_everywhere_is_published() {
    let page = stamp("a", 3);
    let status = status(&Stage::Page(page), &ListingStatus::default(), vec![place("x", Some(&page))]);
    assert_eq!(ready(&status), ("True", "Published"));
    assert_eq!((status.endpoints, status.digest), (Some(3), Some(page.digest.to_string())));
    assert_eq!(status.last_published.as_deref(), Some("2026-11-15T11:00:00Z"));
}

#[test]
fn what_is_said_already_is_not_said_again() {
    let page = stamp("a", 3);
    for places in [vec![place("x", Some(&page))], vec![]] {
        let said = status(&Stage::Page(page), &ListingStatus::default(), places.clone());
        let later = "2026-11-15T13:00:00Z".parse().unwrap();
        let view = View { stage: &Stage::Page(page), generation: Some(1), said: &said, destinations: places };
        assert_eq!(project(&view, later), said);
    }
}

#[test]
fn a_page_on_its_way_is_no_news() {
    let (old, new) = (stamp("a", 3), stamp("b", 4));
    let said = status(&Stage::Page(old), &ListingStatus::default(), vec![place("x", Some(&old))]);
    assert_eq!(status(&Stage::Page(new), &said, vec![place("x", Some(&old))]), said);
    let first = status(&Stage::Page(new), &ListingStatus::default(), vec![place("x", None)]);
    assert_eq!(ready(&first), ("Unknown", "Publishing"));
}

#[test]
fn what_fails_is_named_and_the_last_good_page_stays_in_the_status() {
    let (old, new) = (stamp("a", 3), stamp("b", 4));
    let said = status(&Stage::Page(old), &ListingStatus::default(), vec![place("x", Some(&old))]);
    let mut failing = place("x", Some(&old));
    (failing.reason, failing.message) = (Some("Auth".to_owned()), Some("no".to_owned()));
    let now = status(&Stage::Page(new), &said, vec![failing, place("y", Some(&new))]);
    assert_eq!(ready(&now), ("False", "DestinationFailing"));
    let message = &now.conditions.iter().find(|one| one.kind == "Ready").unwrap().message;
    assert_eq!(message, "x: no");
    assert_eq!((now.endpoints, now.digest), (Some(3), Some(old.digest.to_string())));
}

#[test]
fn each_stage_has_its_reason() {
    let held = Held::TooFew { endpoints: 0, min: 1 };
    let stages = [
        (Stage::Starting, ("Unknown", "Starting")),
        (Stage::NoService("web".to_owned()), ("False", "ServiceNotFound")),
        (
            Stage::NoPage { reason: "TemplateBroken", message: "line 1".to_owned() },
            ("False", "TemplateBroken"),
        ),
        (Stage::Held(held, stamp("a", 0)), ("False", "Held")),
        (Stage::Page(stamp("a", 1)), ("True", "Served")),
    ];
    for (stage, expected) in stages {
        let status = status(&stage, &ListingStatus::default(), vec![]);
        assert_eq!(ready(&status), expected, "{stage:?}");
        let held = status.conditions.iter().find(|one| one.kind == "Held").map(|one| one.status.as_str());
        let expected = match stage {
            Stage::Starting => None,
            Stage::Held(..) => Some("True"),
            _ => Some("False"),
        };
        assert_eq!(held, expected, "{stage:?}");
    }
}

#[test]
fn a_condition_keeps_its_time_until_its_status_changes() {
    let page = stamp("a", 1);
    let said = status(&Stage::Page(page), &ListingStatus::default(), vec![]);
    let later: Timestamp = "2026-11-15T13:00:00Z".parse().unwrap();
    let gone = Stage::NoService("web".to_owned());
    let view = View { stage: &gone, generation: Some(1), said: &said, destinations: vec![] };
    let changed = project(&view, later);
    let times = |status: &ListingStatus| -> Vec<String> {
        status.conditions.iter().map(|one| one.last_transition_time.clone()).collect()
    };
    assert_eq!(times(&said), ["2026-11-15T12:00:00Z"; 2]);
    assert_eq!(times(&changed), ["2026-11-15T13:00:00Z", "2026-11-15T12:00:00Z"]);
}
