//! Earlier versions, on a real server and on a real disk.

use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use perennial::lister::destination::{Destination, HistorySettings, S3Settings};
use serde_json::Value;

use crate::world::{bucket, page, publish, server};

fn minute(number: i64) -> Timestamp {
    "2026-11-15T12:00:00.123Z".parse::<Timestamp>().unwrap() + Duration::from_mins(number.unsigned_abs())
}

fn three() -> HistorySettings {
    HistorySettings::new("history/", 3, Duration::from_hours(1)).unwrap()
}

#[tokio::test]
async fn a_bucket_keeps_the_last_versions_and_shows_them() {
    let server = server().await;
    let settings = bucket(server).await;
    let path = |key: &str| format!("/{}/{key}", settings.bucket);
    server.publish_bucket(&settings.bucket).await.unwrap();
    server.ask(Method::PUT, &path("history/2020/01/01/mine.html"), "mine").await.unwrap().good().unwrap();
    let destination = Destination::s3(settings.clone(), Some(three())).unwrap();
    for number in 0..5u8 {
        let page = page(&format!("page {number}"), number.into());
        publish(&destination, &page).await.unwrap();
        destination.keep(&page, minute(number.into())).await.unwrap();
    }
    let index = server.get_as_stranger(&path("history/index.json")).await.unwrap().good().unwrap();
    assert_eq!(index.header("content-type"), Some("application/json"));
    let index: Value = serde_json::from_slice(&index.body).unwrap();
    assert_eq!(index["page"], "index.html");
    let versions = index["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 3);
    for (version, number) in versions.iter().zip([4, 3, 2]) {
        let key = version["path"].as_str().unwrap();
        assert!(key.starts_with(&format!("2026/11/15/2026-11-15T12-0{number}-00.123Z-")), "{key}");
        assert_eq!(version["endpoints"], 3);
        let object = server.get_as_stranger(&path(&format!("history/{key}"))).await.unwrap().good().unwrap();
        assert_eq!(object.text(), format!("page {number}"));
        assert_eq!(object.header("content-type"), Some("text/html; charset=utf-8"));
        assert!(object.header("cache-control").unwrap().contains("immutable"), "{object:?}");
    }
    let shown = server.get_as_stranger(&path("history/index.html")).await.unwrap().good().unwrap();
    assert_eq!(shown.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(shown.text().matches("<tr><td>").count(), 3);
    // What is left is what the index names, and what is not ours.
    let list = server
        .ask(Method::GET, &path("?list-type=2&prefix=history%2F2"), "")
        .await
        .unwrap()
        .good()
        .unwrap()
        .text();
    assert_eq!(list.matches("<Key>").count(), 4, "{list}");
    assert!(list.contains("mine.html"), "{list}");
}

#[tokio::test]
async fn two_replicas_lose_nothing_of_each_other() {
    let settings = S3Settings { key: "team/index.html".to_owned(), ..bucket(server().await).await };
    let replica = || Destination::s3(settings.clone(), Some(HistorySettings::default())).unwrap();
    let (one, two) = (replica(), replica());
    for number in 0..5u8 {
        let (left, right) = (page(&format!("left {number}"), 1), page(&format!("right {number}"), 2));
        let now = minute(number.into());
        // Both may meet at the index more often than they try: what is owed goes with the next one.
        let _ = tokio::join!(one.keep(&left, now), two.keep(&right, now));
    }
    one.keep(&page("left last", 1), minute(8)).await.unwrap();
    two.keep(&page("right last", 2), minute(9)).await.unwrap();
    let path = format!("/{}/team/history/index.json", settings.bucket);
    let index = server().await.ask(Method::GET, &path, "").await.unwrap().good().unwrap();
    let index: Value = serde_json::from_slice(&index.body).unwrap();
    assert_eq!(index["versions"].as_array().unwrap().len(), 12);
}

#[tokio::test]
async fn more_versions_than_a_page_of_a_list_are_found_again() {
    let server = server().await;
    let settings = bucket(server).await;
    // A file in its folder is an object to this server, and a thousand uploads would take a minute.
    let day = server.folder().join("data").join(&settings.bucket).join("history/2026/11/14");
    std::fs::create_dir_all(&day).unwrap();
    for number in 0..1_100 {
        let (minute, second) = (number / 60, number % 60);
        let name = format!("2026-11-14T00-{minute:02}-{second:02}.000Z-{number:08x}.html");
        std::fs::write(day.join(name), "old").unwrap();
    }
    let history = HistorySettings::new("history", 10_000, HistorySettings::AGE).unwrap();
    let destination = Destination::s3(settings.clone(), Some(history)).unwrap();
    destination.keep(&page("new", 1), minute(0)).await.unwrap();
    let path = format!("/{}/history/index.json", settings.bucket);
    let index = server.ask(Method::GET, &path, "").await.unwrap().good().unwrap();
    let index: Value = serde_json::from_slice(&index.body).unwrap();
    assert_eq!(index["versions"].as_array().unwrap().len(), 1_101);
}

#[tokio::test]
async fn a_folder_keeps_the_last_versions_and_removes_empty_days() {
    let folder = tempfile::tempdir().unwrap();
    let destination = Destination::file(&folder.path().join("index.html"), Some(three())).unwrap();
    for number in 0..5u8 {
        let page = page(&format!("page {number}"), number.into());
        publish(&destination, &page).await.unwrap();
        destination.keep(&page, minute(i64::from(number) * 60 * 24)).await.unwrap();
    }
    let history = folder.path().join("history");
    let index = std::fs::read_to_string(history.join("index.json")).unwrap();
    let index: Value = serde_json::from_str(&index).unwrap();
    let versions = index["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 1, "none is younger than an hour but the newest");
    assert_eq!(
        std::fs::read_to_string(history.join(versions[0]["path"].as_str().unwrap())).unwrap(),
        "page 4"
    );
    assert!(history.join("index.html").exists());
    let days: Vec<_> =
        std::fs::read_dir(history.join("2026/11")).unwrap().map(|day| day.unwrap().file_name()).collect();
    assert_eq!(days, ["19"]);
}
