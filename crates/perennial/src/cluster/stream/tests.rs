//! What a stream makes of the lines of a watch, without any server.

use std::sync::Arc;

use futures::stream;
use http_body_util::StreamBody;
use hyper::body::Frame;
use prometheus_client::registry::Registry;
use serde_json::json;
use tokio::sync::mpsc::error::TryRecvError;

use super::*;
use crate::cluster::Metrics;
use crate::keeper::NodeObject;

fn json(line: &str) -> Message {
    Message::Json(line.to_owned().into())
}

const LONG_AGO: &str = "2020-01-01T00:00:00Z";
/// Between the words of a watch that speaks seldom.
const SELDOM: Duration = Duration::from_secs(4);
/// How long a watch is asked for.
const LASTS: Duration = Duration::from_secs(10);

fn line(kind: &str, version: u64, label: &str, born: &str) -> String {
    let metadata = json!({
        "name": "worker-1",
        "uid": "00000000-0000-4000-8000-000000000001",
        "resourceVersion": version.to_string(),
        "creationTimestamp": born,
        "labels": { "team": label },
    });
    json!({ "type": kind, "object": { "metadata": metadata } }).to_string()
}

/// A watch that says so many times, now and then, that nothing changed, and then nothing more without ending.
fn that_falls_silent(times: u64) -> Messages<impl Body<Data = Bytes, Error = kube::Error> + Unpin> {
    that_says((1..=times).map(|version| (SELDOM, line("MODIFIED", version, "blue", LONG_AGO))), None)
}

/// A watch that says these things, each so long after the one before, and ends so long after the last, or never.
fn that_says(
    said: impl IntoIterator<Item = (Duration, String), IntoIter: Send + 'static>,
    ends: Option<Duration>,
) -> Messages<impl Body<Data = Bytes, Error = kube::Error> + Unpin> {
    let said = stream::unfold(said.into_iter(), move |mut said| async move {
        let Some((after, line)) = said.next() else {
            match ends {
                Some(after) => tokio::time::sleep(after).await,
                None => std::future::pending().await,
            }
            return None;
        };
        tokio::time::sleep(after).await;
        Some((Ok(Frame::data(Bytes::from(line + "\n"))), said))
    });
    Messages::of(StreamBody::new(Box::pin(said)), Encoding::Json)
}

fn end_of_list(version: u64) -> String {
    let annotations = json!({ LIST_ENDS: "true" });
    let metadata = json!({ "resourceVersion": version.to_string(), "annotations": annotations });
    json!({ "type": "BOOKMARK", "object": { "kind": "Node", "apiVersion": "v1", "metadata": metadata } })
        .to_string()
}

/// A stream of nodes whose list is complete, and what it tells.
struct Heard {
    stream: Stream<NodeObject>,
    events: Receiver<Event<NodeObject>>,
}

impl Heard {
    fn new() -> Self {
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let metrics = Arc::new(Metrics::register(&mut Registry::default()));
        let (to, events) = channel(WAITING);
        let target = Target {
            what: "nodes",
            resource: Resource::new("/api/v1/nodes"),
            chosen: Chosen::All,
            whole: false,
        };
        let cluster = Cluster::new(kube::Client::try_from(config).unwrap(), metrics);
        let mut stream = Stream::new(cluster, target, to);
        stream.listed = true;
        Self { stream, events }
    }

    async fn hear(&mut self, kind: &str, version: u64, label: &str, born: &str) {
        assert!(self.stream.hear(json(&line(kind, version, label, born))).await.is_ok());
    }

    /// What was told since: what kind of event, at which versions.
    fn told(&mut self) -> Vec<(&'static str, Vec<u64>)> {
        let mut told = Vec::new();
        loop {
            told.push(match self.events.try_recv() {
                Ok(Event::Applied(node)) => ("applied", vec![node.metadata.resource_version]),
                Ok(Event::Deleted(node)) => ("deleted", vec![node.metadata.resource_version]),
                Ok(Event::Unchanged(nodes)) => ("unchanged", nodes.iter().map(|node| node.version).collect()),
                Ok(other) => panic!("{other:?}"),
                Err(TryRecvError::Empty) => return told,
                Err(TryRecvError::Disconnected) => panic!("it ended"),
            });
        }
    }
}

#[tokio::test]
async fn heartbeats_are_told_together_and_before_whatever_follows_them() {
    let mut heard = Heard::new();
    for version in 1..=3 {
        heard.hear("MODIFIED", version, "blue", LONG_AGO).await;
    }
    assert_eq!(heard.told(), [("applied", vec![1])]);
    assert_eq!(heard.stream.at, Some(3), "a watch goes on behind what is held back");
    heard.hear("MODIFIED", 4, "green", LONG_AGO).await;
    assert_eq!(heard.told(), [("unchanged", vec![2, 3]), ("applied", vec![4])]);
    heard.hear("MODIFIED", 5, "green", LONG_AGO).await;
    heard.hear("DELETED", 6, "green", LONG_AGO).await;
    assert_eq!(heard.told(), [("unchanged", vec![5]), ("deleted", vec![6])]);
    // Whatever comes after an end is news.
    heard.hear("ADDED", 7, "green", LONG_AGO).await;
    heard.hear("MODIFIED", 8, "green", LONG_AGO).await;
    assert_eq!(heard.told(), [("applied", vec![7]), ("applied", vec![8])]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_never_pauses_tells_of_heartbeats_all_the_same() {
    let mut heard = Heard::new();
    for version in 1..=3 {
        heard.hear("MODIFIED", version, "blue", LONG_AGO).await;
    }
    tokio::time::advance(Duration::from_secs(1)).await;
    heard.hear("MODIFIED", 4, "blue", LONG_AGO).await;
    assert_eq!(heard.told(), [("applied", vec![1]), ("unchanged", vec![2, 3, 4])]);
    let mut told = Vec::new();
    for version in 5..3005 {
        heard.hear("MODIFIED", version, "blue", LONG_AGO).await;
        told.extend(heard.told().into_iter().map(|(kind, versions)| (kind, versions.len())));
    }
    assert_eq!(told, [("unchanged", 1000); 3], "no more are held than that, however fast they come");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_does_not_end_in_time_is_left() {
    let mut heard = Heard::new();
    let began = Instant::now();
    let broken = heard.stream.listen(that_falls_silent(1), LASTS).await;
    assert!(matches!(broken, Err(Broken::Api(ApiError::Timeout))));
    assert_eq!(began.elapsed(), LASTS + LATE);
    assert_eq!(heard.stream.view.told_at() - began, SELDOM, "nobody knows what happened since");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_still_speaks_is_not_left() {
    let mut heard = Heard::new();
    let began = Instant::now();
    let words = (1..=20).map(|version| (Duration::from_secs(1), line("MODIFIED", version, "blue", LONG_AGO)));
    assert!(heard.stream.listen(that_says(words, None), LASTS).await.is_err());
    assert_eq!(began.elapsed().as_secs(), 20 + LATE.as_secs());
}

#[tokio::test(start_paused = true)]
async fn only_a_watch_that_ends_when_it_should_is_followed_by_the_next_at_once() {
    for (after, expected) in [
        (0, Some(End::Early)),
        (7, Some(End::Early)),
        (8, Some(End::InTime)),
        (11, Some(End::InTime)),
        (13, None),
    ] {
        let mut heard = Heard::new();
        let began = Instant::now();
        let ended = heard.stream.listen(that_says([], Some(Duration::from_secs(after))), LASTS).await;
        assert_eq!(ended.ok(), expected, "after {after} s");
        let tells = if expected == Some(End::InTime) { began.elapsed() } else { Duration::ZERO };
        assert_eq!(heard.stream.view.told_at() - began, tells, "after {after} s");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_streamed_list_the_watch_goes_on_for_its_time_however_long_the_list_took() {
    let mut heard = Heard::new();
    heard.stream.listed = false;
    let began = Instant::now();
    let nodes = (1..=3).map(|version| (SELDOM * 3, line("ADDED", version, "blue", LONG_AGO)));
    let words: Vec<_> = nodes.chain([(SELDOM, end_of_list(3))]).collect();
    let ended = heard.stream.listen(that_says(words, None), LASTS).await;
    assert_eq!(ended.ok(), Some(End::InTime));
    assert_eq!(began.elapsed(), SELDOM * 10 + LASTS);
    assert_eq!(heard.stream.view.told_at() - began, SELDOM * 10);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_falls_silent_is_dead() {
    let mut heard = Heard::new();
    heard.stream.listed = false;
    let began = Instant::now();
    let words = [(SELDOM, line("ADDED", 1, "blue", LONG_AGO))];
    assert!(matches!(
        heard.stream.listen(that_says(words, None), LASTS).await,
        Err(Broken::Api(ApiError::Timeout))
    ));
    assert_eq!(began.elapsed(), SELDOM + SILENCE);
    assert_eq!(heard.stream.view.told_at(), began, "what is not whole is not known");
}

#[tokio::test(start_paused = true)]
async fn what_is_held_back_is_told_though_nothing_follows_it() {
    let Heard { mut stream, mut events } = Heard::new();
    let began = Instant::now();
    let mut told = Vec::new();
    let listened = async {
        let _ = stream.listen(that_falls_silent(3), LASTS).await;
        drop(stream);
    };
    let hears = async {
        while let Some(event) = events.recv().await {
            let versions = match event {
                Event::Applied(node) => vec![node.metadata.resource_version],
                Event::Unchanged(nodes) => nodes.iter().map(|node| node.version).collect(),
                other => panic!("{other:?}"),
            };
            told.push((began.elapsed().as_millis(), versions));
        }
    };
    tokio::join!(listened, hears);
    assert_eq!(told, [(4_000, vec![1]), (8_250, vec![2]), (12_250, vec![3])]);
}

#[tokio::test]
async fn an_event_that_cannot_be_read_comes_again_if_the_object_cannot_be_read_either() {
    let mut heard = Heard::new();
    heard.hear("MODIFIED", 1, "blue", LONG_AGO).await;
    let line = json!({ "type": "MODIFIED", "object": { "metadata": {
        "name": "worker-1",
        "uid": "00000000-0000-4000-8000-000000000001",
        "resourceVersion": "2",
        "creationTimestamp": LONG_AGO,
        "labels": "none",
    } } });
    for _ in 0..2 {
        // There is no API server here.
        let broken = heard.stream.hear(json(&line.to_string())).await;
        assert!(matches!(broken, Err(Broken::Api(ApiError::Transport(_)))));
    }
    assert!(heard.stream.tell_unchanged().await.is_ok());
    assert_eq!(heard.told(), [("applied", vec![1])]);
    assert_eq!((heard.stream.at, heard.stream.listed), (Some(1), true), "the watch goes on before it");
}

#[tokio::test]
async fn every_word_of_a_newborn_and_every_one_of_a_list_is_told() {
    let mut heard = Heard::new();
    let now = heard.stream.cluster.now().to_string();
    heard.hear("MODIFIED", 1, "blue", &now).await;
    heard.hear("MODIFIED", 2, "blue", &now).await;
    assert_eq!(heard.told(), [("applied", vec![1]), ("applied", vec![2])]);
    heard.stream.listed = false;
    heard.hear("MODIFIED", 3, "blue", LONG_AGO).await;
    heard.hear("MODIFIED", 4, "blue", LONG_AGO).await;
    assert_eq!(heard.told(), [("applied", vec![3]), ("applied", vec![4])]);
}

#[tokio::test]
async fn a_list_makes_it_forget_what_nodes_were() {
    let mut heard = Heard::new();
    heard.hear("MODIFIED", 1, "blue", LONG_AGO).await;
    assert!(heard.stream.begin_list().await.is_ok());
    assert!(matches!(heard.events.try_recv(), Ok(Event::Applied(_))));
    assert!(matches!(heard.events.try_recv(), Ok(Event::Listing)));
    heard.stream.listed = true;
    // In the list it was green, and it has become what it was before.
    heard.hear("MODIFIED", 9, "blue", LONG_AGO).await;
    assert_eq!(heard.told(), [("applied", vec![9])]);
}

#[tokio::test]
async fn after_an_event_of_an_unknown_object_everything_is_listed_anew() {
    let words = ["", "{", "[]", r#"{"type":"MODIFIED"}"#, r#"{"type":"MODIFIED","object":{"metadata":{}}}"#];
    let frames = [&b""[..], b"x", b"\x0a\x05ADDED"].map(Bytes::from_static).map(Message::Protobuf);
    for broken in words.map(json).into_iter().chain(frames) {
        let mut heard = Heard::new();
        let result = heard.stream.hear(broken.clone()).await;
        assert!(matches!(result, Err(Broken::Api(ApiError::Malformed(_)))), "{broken:?}");
        assert!(!heard.stream.listed, "{broken:?}");
    }
}

#[tokio::test]
async fn the_servers_own_words_end_a_watch() {
    let mut heard = Heard::new();
    let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired" });
    for line in [json!({ "type": "ERROR", "object": status }), status.clone()] {
        let broken = heard.stream.hear(json(&line.to_string())).await;
        assert!(matches!(broken, Err(Broken::Api(ApiError::Expired))), "{line}");
    }
}

#[tokio::test]
async fn in_protobuf_it_hears_the_same() {
    let mut heard = Heard::new();
    let name = "worker-1";
    for (kind, version, label) in
        [("ADDED", 1, "blue"), ("MODIFIED", 2, "blue"), ("MODIFIED", 3, "blue"), ("DELETED", 4, "blue")]
    {
        let frame = proto::tests::frame(kind, name, version, LONG_AGO, label);
        assert!(heard.stream.hear(Message::Protobuf(frame)).await.is_ok());
    }
    let told = [("applied", vec![1]), ("applied", vec![2]), ("unchanged", vec![3]), ("deleted", vec![4])];
    assert_eq!(heard.told(), told);
    let expired = heard.stream.hear(Message::Protobuf(proto::tests::expired())).await;
    assert!(matches!(expired, Err(Broken::Api(ApiError::Expired))));
    heard.stream.listed = false;
    assert!(heard.stream.hear(Message::Protobuf(proto::tests::end_of_list(9))).await.is_ok());
    assert!(matches!(heard.events.try_recv(), Ok(Event::Listed(9))));
}
