//! The S3 servers against themselves: they are what they say.

use std::fs;
use std::time::Duration;

use http::{Method, StatusCode};
use perennial_testkit::{S3Server, eventually};

const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_bucket_is_closed_to_strangers_until_it_is_opened() {
    let s3 = S3Server::start().await.unwrap();
    s3.create_bucket("pages").await.unwrap();
    s3.ask(Method::PUT, "/pages/index.html", "hello").await.unwrap().good().unwrap();
    let closed = s3.get_as_stranger("/pages/index.html").await.unwrap();
    assert_eq!(closed.status, StatusCode::FORBIDDEN);
    s3.publish_bucket("pages").await.unwrap();
    let open = s3.get_as_stranger("/pages/index.html").await.unwrap();
    assert_eq!((open.status, open.text()), (StatusCode::OK, "hello".to_owned()));
}

#[tokio::test]
async fn what_it_has_survives_its_death() {
    let s3 = S3Server::start().await.unwrap();
    s3.create_bucket("pages").await.unwrap();
    s3.ask(Method::PUT, "/pages/index.html", "hello").await.unwrap().good().unwrap();
    s3.kill().await.unwrap();
    s3.ask(Method::GET, "/pages/index.html", "").await.unwrap_err();
    s3.start_again().await.unwrap();
    assert_eq!(s3.ask(Method::GET, "/pages/index.html", "").await.unwrap().text(), "hello");
}

#[tokio::test]
async fn a_full_disk_refuses_and_has_room_again() {
    let s3 = S3Server::builder().space("512k").start().await.unwrap();
    s3.create_bucket("pages").await.unwrap();
    s3.fill().await.unwrap();
    let refused = s3.ask(Method::PUT, "/pages/index.html", "hello").await.unwrap();
    assert!(!refused.status.is_success(), "{refused:?}");
    s3.empty().await.unwrap();
    s3.ask(Method::PUT, "/pages/index.html", "hello").await.unwrap().good().unwrap();
}

#[tokio::test]
async fn it_serves_by_tls() {
    let s3 = S3Server::builder().tls().start().await.unwrap();
    assert!(s3.url().starts_with("https://"), "{}", s3.url());
    s3.create_bucket("pages").await.unwrap();
}

#[tokio::test]
async fn nothing_is_left_of_it() {
    for builder in [S3Server::builder(), S3Server::builder().space("512k")] {
        let s3 = builder.start().await.unwrap();
        let (pid, folder) = (s3.pid().await.unwrap(), s3.folder().to_owned());
        drop(s3);
        eventually(SOON, "process and folder are gone", || async {
            anyhow::ensure!(!fs::exists(format!("/proc/{pid}"))?, "it lives");
            anyhow::ensure!(!folder.exists(), "{} exists", folder.display());
            Ok(Some(()))
        })
        .await
        .unwrap();
    }
}
