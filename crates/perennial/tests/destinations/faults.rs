//! A server that dies, hangs, or has no space left.

use std::time::Duration;

use perennial::lister::destination::{Put, S3Settings};
use perennial_testkit::{S3Server, eventually};

use crate::world::{SOON, bucket, destination, found, page, publish};

#[tokio::test]
async fn a_server_that_was_killed_is_written_to_when_it_is_back() {
    let server = S3Server::start().await.unwrap();
    let destination = destination(&bucket(&server).await);
    publish(&destination, &page("one", 1)).await.unwrap();
    server.kill().await.unwrap();
    let error = publish(&destination, &page("two", 2)).await.unwrap_err();
    assert!(error.retryable(), "{error}");
    server.start_again().await.unwrap();
    assert_eq!(found(&destination).await.stamp, Some(page("one", 1).stamp));
    assert!(matches!(publish(&destination, &page("two", 2)).await, Ok(Put::Written(_))));
}

#[tokio::test]
async fn a_server_that_hangs_does_not_hold_us_up() {
    let server = S3Server::start().await.unwrap();
    let settings = S3Settings { deadline: Duration::from_secs(2), ..bucket(&server).await };
    let destination = destination(&settings);
    publish(&destination, &page("one", 1)).await.unwrap();
    let seen = found(&destination).await;
    server.pause().await.unwrap();
    let error = destination.put(&page("two", 2), Some(&seen.tag)).await.unwrap_err();
    assert_eq!((error.kind(), error.retryable(), error.may_have_happened()), ("timeout", true, true));
    server.resume().await.unwrap();
    // What was on its way may arrive yet: either way a lister that looks again comes to the same end.
    eventually(SOON, "the page is there", || async {
        let found = destination.look().await?;
        if found.as_ref().is_some_and(|found| found.stamp == Some(page("two", 2).stamp)) {
            return Ok(Some(()));
        }
        destination.put(&page("two", 2), found.as_ref().map(|found| &found.tag)).await?;
        Ok(None)
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_server_without_space_keeps_the_page_it_has() {
    let server = S3Server::builder().space("1m").start().await.unwrap();
    let settings = bucket(&server).await;
    server.publish_bucket(&settings.bucket).await.unwrap();
    let destination = destination(&settings);
    publish(&destination, &page("one", 1)).await.unwrap();
    server.fill().await.unwrap();
    let error = publish(&destination, &page(&"two".repeat(10_000), 2)).await.unwrap_err();
    assert_eq!((error.kind(), error.retryable()), ("full", true));
    let reply = server.get_as_stranger(&format!("/{}/index.html", settings.bucket)).await.unwrap();
    assert_eq!(reply.text(), "one");
    assert_eq!(found(&destination).await.stamp, Some(page("one", 1).stamp));
    server.empty().await.unwrap();
    assert!(matches!(publish(&destination, &page("three", 3)).await, Ok(Put::Written(_))));
}
