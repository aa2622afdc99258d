//! A page in a bucket: written, read back, and never lost to another writer.

use http::Method;
use perennial::lister::destination::{CannedAcl, Put, S3Settings};

use crate::wire::{Fault, Wire};
use crate::world::{bucket, destination, found, page, publish, server};

#[tokio::test]
async fn a_page_comes_back_with_its_stamp() {
    let server = server().await;
    let settings = bucket(server).await;
    let destination = destination(&settings);
    assert_eq!(destination.look().await, Ok(None));
    for (text, version) in [("first", 10), ("second", 20), ("", 30)] {
        let page = page(text, version);
        let Put::Written(tag) = publish(&destination, &page).await.unwrap() else { panic!("a conflict") };
        let found = found(&destination).await;
        assert_eq!((found.tag, found.stamp, found.digest), (tag, Some(page.stamp), Some(page.stamp.digest)));
        let object = server.ask(Method::GET, &format!("/{}/index.html", settings.bucket), "").await.unwrap();
        assert_eq!(object.text(), text);
        assert_eq!(object.header("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(object.header("cache-control"), Some("no-cache"));
        assert_eq!(object.header("x-amz-meta-perennial-versions"), Some(format!("7-0-{version}").as_str()));
    }
    assert_eq!(
        destination.to_string(),
        format!("index.html in bucket {} at {}", settings.bucket, server.url().trim_start_matches("http://"))
    );
}

#[tokio::test]
async fn names_that_need_escaping_are_signed_right() {
    let server = server().await;
    for key in ["team a/ü & ö?.html", "a+b=c/%20.html", "quote'\"(1)*!.html", "tilde~/日本.html"] {
        let settings = S3Settings { key: key.to_owned(), ..bucket(server).await };
        let destination = destination(&settings);
        publish(&destination, &page("page", 1)).await.unwrap();
        assert_eq!(found(&destination).await.stamp, Some(page("page", 1).stamp), "{key}");
    }
}

#[tokio::test]
async fn strangers_read_a_page_if_its_bucket_allows_it_and_only_then() {
    let server = server().await;
    let (open, closed) = (bucket(server).await, bucket(server).await);
    server.publish_bucket(&open.bucket).await.unwrap();
    for settings in [&open, &closed] {
        publish(&destination(settings), &page("hello", 1)).await.unwrap();
    }
    let reply = server.get_as_stranger(&format!("/{}/index.html", open.bucket)).await.unwrap();
    assert_eq!((reply.status.as_u16(), reply.text()), (200, "hello".to_owned()));
    let reply = server.get_as_stranger(&format!("/{}/index.html", closed.bucket)).await.unwrap();
    assert_eq!(reply.status.as_u16(), 403);
    assert!(!reply.text().contains("hello"), "{reply:?}");
}

#[tokio::test]
async fn of_two_writers_one_finds_a_conflict() {
    let server = server().await;
    let settings = bucket(server).await;
    let (one, two) = (destination(&settings), destination(&settings));
    // Where nothing is.
    assert!(matches!(one.put(&page("one", 1), None).await, Ok(Put::Written(_))));
    assert_eq!(two.put(&page("two", 2), None).await, Ok(Put::Conflict));
    // Over the same page.
    let seen = found(&two).await;
    assert!(matches!(one.put(&page("three", 3), Some(&seen.tag)).await, Ok(Put::Written(_))));
    assert_eq!(two.put(&page("two", 2), Some(&seen.tag)).await, Ok(Put::Conflict));
    assert_eq!(found(&two).await.stamp, Some(page("three", 3).stamp));
    // Over a page that somebody removed.
    let seen = found(&two).await;
    server
        .ask(Method::DELETE, &format!("/{}/index.html", settings.bucket), "")
        .await
        .unwrap()
        .good()
        .unwrap();
    assert_eq!(two.put(&page("four", 4), Some(&seen.tag)).await, Ok(Put::Conflict));
    assert_eq!(two.look().await, Ok(None));
}

#[tokio::test]
async fn of_many_writers_at_once_exactly_one_wins() {
    let server = server().await;
    let settings = bucket(server).await;
    publish(&destination(&settings), &page("first", 1)).await.unwrap();
    for round in 2..6u64 {
        let over = found(&destination(&settings)).await.tag;
        let writers: Vec<_> = (0..8)
            .map(|writer| (destination(&settings), page(&format!("{round} by {writer}"), round)))
            .collect();
        let puts = writers.iter().map(|(destination, page)| destination.put(page, Some(&over)));
        let outcomes = futures::future::join_all(puts).await;
        let won = outcomes.iter().filter(|outcome| matches!(outcome, Ok(Put::Written(_)))).count();
        assert_eq!(won, 1, "{outcomes:?}");
        let winner = outcomes.iter().position(|outcome| matches!(outcome, Ok(Put::Written(_)))).unwrap();
        assert_eq!(found(&destination(&settings)).await.stamp, Some(writers[winner].1.stamp));
    }
}

#[tokio::test]
async fn an_object_of_somebody_else_has_no_stamp() {
    let server = server().await;
    let settings = bucket(server).await;
    let path = format!("/{}/index.html", settings.bucket);
    server.ask(Method::PUT, &path, "theirs").await.unwrap().good().unwrap();
    let found = found(&destination(&settings)).await;
    assert_eq!((found.stamp, found.digest), (None, None));
    assert!(matches!(
        destination(&settings).put(&page("ours", 1), Some(&found.tag)).await,
        Ok(Put::Written(_))
    ));
}

#[tokio::test]
async fn a_lost_answer_is_found_out_by_looking() {
    let server = server().await;
    let wire = Wire::to(server.url()).await;
    let settings = S3Settings { endpoint: Some(wire.url.clone()), ..bucket(server).await };
    let destination = destination(&settings);
    wire.fault(Some(Fault::LoseAnswers));
    let Ok(Put::Written(tag)) = destination.put(&page("one", 1), None).await else { panic!("not found") };
    let Ok(Put::Written(tag)) = destination.put(&page("two", 2), Some(&tag)).await else {
        panic!("not found")
    };
    wire.fault(None);
    assert!(matches!(destination.put(&page("three", 3), Some(&tag)).await, Ok(Put::Written(_))));
}

#[tokio::test]
async fn a_server_that_knows_no_conditions_is_asked_for_them_once() {
    let server = server().await;
    let wire = Wire::to(server.url()).await;
    let settings = S3Settings { endpoint: Some(wire.url.clone()), ..bucket(server).await };
    let destination = destination(&settings);
    wire.fault(Some(Fault::NoConditions));
    publish(&destination, &page("one", 1)).await.unwrap();
    publish(&destination, &page("two", 2)).await.unwrap();
    assert_eq!(found(&destination).await.stamp, Some(page("two", 2).stamp));
    assert_eq!(wire.puts(), [true, false, false]);
}

#[tokio::test]
async fn conditions_can_be_switched_off() {
    let server = server().await;
    let wire = Wire::to(server.url()).await;
    let settings = S3Settings { endpoint: Some(wire.url.clone()), conditions: false, ..bucket(server).await };
    let destination = destination(&settings);
    assert!(matches!(destination.put(&page("one", 1), None).await, Ok(Put::Written(_))));
    assert!(matches!(destination.put(&page("two", 2), None).await, Ok(Put::Written(_))));
    assert_eq!(wire.puts(), [false, false]);
}

#[tokio::test]
async fn nobody_on_the_way_can_change_what_is_asked_for() {
    let server = server().await;
    let wire = Wire::to(server.url()).await;
    let acl = Some(CannedAcl::PublicRead);
    let settings = S3Settings { endpoint: Some(wire.url.clone()), acl, ..bucket(server).await };
    let destination = destination(&settings);
    publish(&destination, &page("one", 1)).await.unwrap();
    for (name, value) in [
        ("x-amz-acl", "public-read-write"),
        ("if-match", "*"),
        ("content-type", "text/plain"),
        ("cache-control", "max-age=1000"),
        ("x-amz-meta-perennial-versions", "9-9-9"),
    ] {
        wire.fault(Some(Fault::Alter(name, value)));
        let error = publish(&destination, &page("two", 2)).await.unwrap_err();
        assert!(error.to_string().contains("SignatureDoesNotMatch"), "{name}: {error}");
    }
    wire.fault(None);
    assert_eq!(found(&destination).await.stamp, Some(page("one", 1).stamp));
}
