//! Asks somebody in the same cluster over plain HTTP, with patience: what was installed a moment ago may not answer yet.

use std::time::Duration;

use bytes::Bytes;
use http::{StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::time::{Instant, sleep, timeout};

/// How long the right answer may take to come.
const PATIENCE: Duration = Duration::from_mins(1);
/// Between two questions.
const PAUSE: Duration = Duration::from_secs(1);
/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(5);
/// The most that is read of it: more than any page has.
const LARGEST: usize = 32 << 20;

/// Asks until the answer is judged good. The error is the last one, in words.
pub(crate) async fn until<T>(
    uri: &Uri,
    judge: impl AsyncFn(Result<Bytes, String>) -> Result<T, String>,
) -> Result<T, String> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = timeout(ANSWER, get(&client, uri)).await;
        match judge(answer.unwrap_or_else(|_| Err("no answer".to_owned()))).await {
            Err(_) if Instant::now() < deadline => sleep(PAUSE).await,
            judged => return judged,
        }
    }
}

async fn get(client: &Client<HttpConnector, Empty<Bytes>>, uri: &Uri) -> Result<Bytes, String> {
    let answer = client.get(uri.clone()).await.map_err(|error| crate::log::chain(&error))?;
    let status = answer.status();
    if status != StatusCode::OK {
        return Err(format!("the answer is {status}"));
    }
    let body = Limited::new(answer.into_body(), LARGEST).collect().await;
    body.map(http_body_util::Collected::to_bytes).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_last_error_is_told_when_patience_is_over() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let uri: Uri = format!("http://127.0.0.1:{port}/").parse().unwrap();
        let asked = AtomicUsize::new(0);
        let told = until(&uri, async |answer| {
            asked.fetch_add(1, Ordering::Relaxed);
            answer.map(drop).map_err(|_| "nobody there".to_owned())
        });
        assert_eq!(told.await, Err("nobody there".to_owned()));
        assert!(asked.into_inner() > 5);
    }
}
