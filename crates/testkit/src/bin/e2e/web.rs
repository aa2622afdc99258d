//! Pages, as those see them who ask for them.

use std::{
    collections::BTreeSet,
    io::{Read as _, Write as _},
    net::{IpAddr, SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context as _, ensure};
use http::Request;
use http_body_util::BodyExt as _;
use kube::client::Body;
use tokio::{task::spawn_blocking, time::timeout};

use crate::stage::{Ground, SHOP, Stage};

/// For one answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whom to ask.
#[derive(Clone, Debug)]
pub(crate) enum Whom {
    /// One nginx: its name and address.
    Pod(String, String),
    /// Whichever its Service chooses: its name and address.
    Service(String, String),
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Page {
    /// The pod that answered.
    pub(crate) served_by: String,
    pub(crate) body: String,
}

impl Page {
    /// All addresses on the page.
    pub(crate) fn addresses(&self) -> BTreeSet<String> {
        addresses(&self.body)
    }
}

impl Stage {
    /// Asks once, on a connection of its own. Where we are not on the cluster's network, through the API server.
    pub(crate) async fn ask(&self, whom: &Whom) -> anyhow::Result<Page> {
        let answer = async {
            match (&self.ground, whom) {
                (Ground::Ours(_), Whom::Pod(_, address)) => directly(address, 8080).await,
                (Ground::Ours(_), Whom::Service(_, address)) => directly(address, 80).await,
                (Ground::Theirs { .. }, Whom::Pod(name, _)) => self.proxied("pods", name, 8080).await,
                (Ground::Theirs { .. }, Whom::Service(name, _)) => self.proxied("services", name, 80).await,
            }
        };
        timeout(PATIENCE, answer).await.context("no answer")?.with_context(|| format!("asking {whom:?}"))
    }

    async fn proxied(&self, kind: &str, name: &str, port: u16) -> anyhow::Result<Page> {
        let path = format!("/api/v1/namespaces/{SHOP}/{kind}/{name}:{port}/proxy/");
        let answer = self.client.send(Request::get(path).body(Body::empty())?).await?;
        ensure!(answer.status().is_success(), "{}", answer.status());
        let served_by = answer.headers().get("x-served-by").and_then(|value| value.to_str().ok());
        let served_by = served_by.unwrap_or_default().to_owned();
        let body = answer.into_body().collect().await?.to_bytes();
        Ok(Page { served_by, body: String::from_utf8_lossy(&body).into_owned() })
    }
}

async fn directly(address: &str, port: u16) -> anyhow::Result<Page> {
    let answer = get(&SocketAddr::new(address.parse()?, port).to_string(), "/").await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("the answer has no end")?;
    let served_by = head.lines().filter_map(|line| line.split_once(": "));
    let served_by = served_by.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("x-served-by"));
    let served_by = served_by.map_or("", |(_, value)| value).to_owned();
    Ok(Page { served_by, body: body.to_owned() })
}

/// Asks anybody by address and port for a path, and returns the whole answer if it is a good one.
pub(crate) async fn get(address: &str, path: &str) -> anyhow::Result<String> {
    let address: SocketAddr = address.parse()?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    let answer = spawn_blocking(move || exchange(address, &request)).await??;
    let status = answer.lines().next().unwrap_or_default();
    ensure!(status.contains(" 200 "), "{status}");
    Ok(answer)
}

/// By hand, since a client of a library would keep its connection, and a Service chooses anew for each.
fn exchange(address: SocketAddr, request: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    // Of this version an answer ends with its connection, and is not cut into pieces.
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Everything in a text that is an address, with or without a port.
pub(crate) fn addresses(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !(letter.is_alphanumeric() || matches!(letter, '.' | ':')));
    words
        .filter_map(|word| {
            word.parse::<IpAddr>().ok().or_else(|| Some(word.parse::<SocketAddr>().ok()?.ip()))
        })
        .map(|address| address.to_string())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_wherever_they_stand() {
        let page =
            "<td>10.244.1.7</td><td>10.244.2.8:8080</td> version 1.2.3, at 12:30, fd00::7, cafe, b::before";
        let found: Vec<String> = addresses(page).into_iter().collect();
        assert_eq!(found, ["10.244.1.7", "10.244.2.8", "fd00::7"]);
    }
}
