//! Pages in a real S3 server.

use http::Method;
use perennial_testkit::{S3Server, eventually};
use serde_json::{Value, json};

use crate::world::{LINES, SOON, World, lines};

/// A spec that publishes into a bucket.
pub(crate) fn into_bucket(server: &S3Server, history: bool) -> Value {
    let mut s3 = json!({
        "endpoint": server.url(),
        "bucket": "pages",
        "key": "index.txt",
        "credentials": { "secret": "listing-bucket" },
    });
    if history {
        s3["history"] = json!({ "keep": 2 });
    }
    json!({
        "service": "web",
        "template": { "format": "text", "inline": LINES },
        "destinations": [{ "name": "bucket", "s3": s3 }],
    })
}

pub(crate) async fn with_secret(world: &World, server: &S3Server) {
    let credentials = server.credentials();
    let pairs = [
        ("AWS_ACCESS_KEY_ID", credentials.access_key.as_str()),
        ("AWS_SECRET_ACCESS_KEY", credentials.secret_key.as_str()),
    ];
    world.secret("listing-bucket", &pairs).await;
}

/// Waits until anybody can read this in the bucket.
pub(crate) async fn anybody_reads(server: &S3Server, key: &str, text: &str) {
    eventually(SOON, &format!("anybody reads {text:?}"), || async {
        let reply = server.get_as_stranger(&format!("/pages/{key}")).await?;
        if reply.text() == text { Ok(Some(())) } else { Err(anyhow::anyhow!("{}", reply.text())) }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_page_in_a_public_bucket_is_read_by_anybody_and_follows_the_endpoints() {
    let (world, server) = (World::start().await, S3Server::start().await.unwrap());
    server.create_bucket("pages").await.unwrap();
    server.publish_bucket("pages").await.unwrap();
    with_secret(&world, &server).await;
    world.endpoints("web", &["10.0.0.1"]).await;
    world.listing("web", into_bucket(&server, true)).await;
    anybody_reads(&server, "index.txt", &lines(&["10.0.0.1"])).await;
    for last in 2..=5 {
        let now = format!("10.0.0.{last}");
        world.endpoints("web", &[&now]).await;
        anybody_reads(&server, "index.txt", &lines(&[&now])).await;
    }
    world.is("web", "True", "Published").await;
    eventually(SOON, "the history keeps two", || async {
        let list = server.ask(Method::GET, "/pages?list-type=2&prefix=history/20", "").await?.good()?.text();
        let keys = list.matches("<Key>").count();
        if keys == 2 { Ok(Some(())) } else { Err(anyhow::anyhow!("{list}")) }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn what_is_wrong_with_a_bucket_is_told_until_it_is_put_right() {
    let (world, server) = (World::start().await, S3Server::start().await.unwrap());
    world.endpoints("web", &["10.0.0.1"]).await;
    world.listing("web", into_bucket(&server, false)).await;
    let message = world.is("web", "False", "DestinationFailing").await;
    assert!(message.contains("no Secret \"listing-bucket\""), "{message}");
    let secret = "this-is-not-the-secret";
    let access = server.credentials().access_key.clone();
    let pairs = [("AWS_ACCESS_KEY_ID", access.as_str()), ("AWS_SECRET_ACCESS_KEY", secret)];
    world.secret("listing-bucket", &pairs).await;
    fails_with(&world, "credentials").await;
    with_secret(&world, &server).await;
    fails_with(&world, "no such bucket").await;
    server.create_bucket("pages").await.unwrap();
    world.is("web", "True", "Published").await;
    for event in world.events().await {
        assert!(!event.contains(secret) && !event.contains(&access), "{event}");
    }
}

async fn fails_with(world: &World, word: &str) {
    eventually(SOON, &format!("it fails with {word}"), || async {
        let status = world.status("web").await;
        let message = status.destinations.first().and_then(|one| one.message.clone()).unwrap_or_default();
        if message.contains(word) { Ok(Some(())) } else { Err(anyhow::anyhow!("{message}")) }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_server_that_was_away_gets_the_newest_page_when_it_is_back() {
    let (world, server) = (World::start().await, S3Server::start().await.unwrap());
    server.create_bucket("pages").await.unwrap();
    server.publish_bucket("pages").await.unwrap();
    with_secret(&world, &server).await;
    world.endpoints("web", &["10.0.0.1"]).await;
    world.listing("web", into_bucket(&server, false)).await;
    anybody_reads(&server, "index.txt", &lines(&["10.0.0.1"])).await;
    server.kill().await.unwrap();
    world.endpoints("web", &["10.0.0.2"]).await;
    world.is("web", "False", "DestinationFailing").await;
    world.endpoints("web", &["10.0.0.3"]).await;
    server.start_again().await.unwrap();
    anybody_reads(&server, "index.txt", &lines(&["10.0.0.3"])).await;
    world.is("web", "True", "Published").await;
}
