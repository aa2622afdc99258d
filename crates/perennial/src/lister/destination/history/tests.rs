use perennial_core::lister::Versions;

use super::super::{Destination, Error, Memory};
use super::*;

fn page(number: u64) -> Page {
    let versions = Versions { endpoints: number, ..Versions::default() };
    Page::new(format!("page {number}"), "text/html; charset=utf-8".to_owned(), 3, versions)
}

fn minute(number: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + 60 * number).unwrap()
}

fn settings(count: usize, minutes: u64) -> HistorySettings {
    HistorySettings::new("history", count, Duration::from_mins(minutes)).unwrap()
}

/// A destination in memory with such a history, and the memory.
fn destination(settings: HistorySettings) -> (Destination, Memory) {
    let memory = Memory::default();
    (Destination::memory(memory.clone(), "team/index.html", Some(settings)), memory)
}

fn versions(memory: &Memory) -> Vec<String> {
    memory.keys().into_iter().filter(|key| key.starts_with("team/history/2")).collect()
}

fn indexed(memory: &Memory) -> Vec<String> {
    let index = Index::parse(&memory.body("team/history/index.json").unwrap()).unwrap();
    index.versions().iter().rev().map(|version| format!("team/history/{}", version.name)).collect()
}

#[tokio::test]
async fn every_version_is_there_and_in_the_index() {
    let (destination, memory) = destination(HistorySettings::default());
    assert_eq!(destination.history_link().unwrap(), "history/index.html");
    for number in 0..3u8 {
        destination.keep(&page(number.into()), minute(number.into())).await.unwrap();
    }
    assert_eq!(versions(&memory).len(), 3);
    assert_eq!(versions(&memory), indexed(&memory));
    assert_eq!(memory.body(&versions(&memory)[2]).unwrap(), "page 2");
    let shown = String::from_utf8(memory.body("team/history/index.html").unwrap().to_vec()).unwrap();
    assert_eq!(shown.matches("<tr><td>").count(), 3);
}

#[tokio::test]
async fn what_is_over_the_limit_goes() {
    let (by_count, memory) = destination(settings(2, 1_000));
    for number in 0..5u8 {
        by_count.keep(&page(number.into()), minute(number.into())).await.unwrap();
    }
    assert_eq!(versions(&memory).len(), 2);
    assert_eq!(versions(&memory), indexed(&memory));

    let (by_age, memory) = destination(settings(100, 3));
    for number in 0..9u8 {
        by_age.keep(&page(number.into()), minute(number.into())).await.unwrap();
    }
    assert_eq!(versions(&memory).len(), 4);
    by_age.keep(&page(99), minute(1_000)).await.unwrap();
    assert_eq!(versions(&memory).len(), 1, "the newest stays");
}

#[tokio::test]
async fn nothing_of_others_is_ever_removed() {
    let (_, memory) = destination(settings(1, 1));
    let store = Store::Memory(memory.clone());
    let others = [
        "team/index.html",
        "team/history/notes.txt",
        "team/history/2020/01/01/photo.html",
        "team/history/2020/01/01/2020-01-01T00-00-00.000Z-0a1b2c3d.css",
        "history/2020/01/01/2020-01-01T00-00-00.000Z-0a1b2c3d.html",
        "team/history-of-mine/2020/01/01/2020-01-01T00-00-00.000Z-0a1b2c3d.html",
    ];
    for key in others {
        store.write(key, plain(String::new(), "text/plain"), Over::Nothing).await.unwrap();
    }
    let destination = Destination::memory(memory.clone(), "team/index.html", Some(settings(1, 1)));
    for number in 0..3u8 {
        destination.keep(&page(number.into()), minute(100 * i64::from(number))).await.unwrap();
    }
    for key in others {
        assert!(memory.body(key).is_some(), "{key}");
    }
}

#[tokio::test]
async fn what_could_not_be_kept_is_kept_with_the_next_one() {
    let (destination, memory) = destination(HistorySettings::default());
    memory.fail(Some(Error::Timeout));
    for number in 0..9u8 {
        assert_eq!(destination.keep(&page(number.into()), minute(number.into())).await, Err(Error::Timeout));
    }
    memory.fail(None);
    destination.keep(&page(9), minute(9)).await.unwrap();
    assert_eq!(versions(&memory).len(), OWED, "no more than it may hold");
    assert_eq!(versions(&memory), indexed(&memory));
}

#[tokio::test]
async fn a_version_that_the_index_does_not_know_is_taken_in_at_the_start() {
    let (first, memory) = destination(HistorySettings::default());
    first.keep(&page(0), minute(0)).await.unwrap();
    first.keep(&page(1), minute(1)).await.unwrap();
    // As if the index had been lost before a crash.
    Store::Memory(memory.clone()).remove("team/history/index.json").await.unwrap();
    let second = Destination::memory(memory.clone(), "team/index.html", Some(HistorySettings::default()));
    second.keep(&page(2), minute(2)).await.unwrap();
    assert_eq!(indexed(&memory).len(), 3);
}

#[tokio::test]
async fn the_same_version_twice_is_one() {
    let (destination, memory) = destination(HistorySettings::default());
    destination.keep(&page(1), minute(1)).await.unwrap();
    destination.keep(&page(1), minute(1)).await.unwrap();
    assert_eq!(versions(&memory).len(), 1);
}

#[tokio::test]
async fn two_pages_do_not_share_a_history() {
    let (one, memory) = destination(settings(1, 1));
    one.keep(&page(1), minute(1)).await.unwrap();
    let other = Destination::memory(memory.clone(), "team/other.html", Some(settings(1, 1)));
    let error = other.keep(&page(2), minute(2)).await.unwrap_err();
    assert_eq!(error.kind(), "foreign");
    assert!(error.to_string().contains("choose another prefix"), "{error}");
    assert_eq!(versions(&memory).len(), 1, "nothing was written there");
}

#[tokio::test]
async fn an_index_that_cannot_be_read_is_left_alone() {
    let (destination, memory) = destination(HistorySettings::default());
    let store = Store::Memory(memory.clone());
    let theirs = plain("my notes".to_owned(), "text/plain");
    store.write("team/history/index.json", theirs, Over::Nothing).await.unwrap();
    let error = destination.keep(&page(1), minute(1)).await.unwrap_err();
    assert_eq!(error.kind(), "foreign");
    assert_eq!(memory.body("team/history/index.json").unwrap(), "my notes");
}

#[tokio::test]
async fn two_replicas_lose_nothing_of_each_other() {
    let (_, memory) = destination(HistorySettings::default());
    let replica = || Destination::memory(memory.clone(), "team/index.html", Some(HistorySettings::default()));
    let (one, two) = (replica(), replica());
    for number in 0..10u8 {
        let (left, right) = (page(u64::from(number)), page(100 + u64::from(number)));
        let (left, right) =
            tokio::join!(one.keep(&left, minute(number.into())), two.keep(&right, minute(number.into())));
        left.unwrap();
        right.unwrap();
    }
    assert_eq!(versions(&memory).len(), 20);
    assert_eq!(indexed(&memory), versions(&memory));
}

#[test]
fn settings_that_cannot_be_right_are_refused() {
    let day = Duration::from_hours(24);
    assert_eq!(HistorySettings::new("a/b", 1, day).unwrap().prefix, "a/b/");
    assert_eq!(HistorySettings::new("history/", 100, HistorySettings::AGE), Ok(HistorySettings::default()));
    for prefix in ["", "/", "/a", "a//b", "../a", "a/./b", "a\nb"] {
        let error = HistorySettings::new(prefix, 1, day).unwrap_err();
        assert_eq!(error, HistorySettingsError::Prefix(prefix.to_owned()));
    }
    for count in [0, 10_001] {
        assert_eq!(HistorySettings::new("a", count, day), Err(HistorySettingsError::Count(count)));
    }
    assert_eq!(HistorySettings::new("a", 1, Duration::ZERO), Err(HistorySettingsError::Age));
}
