//! The page through the admin server's real listener: what a browser may do, what it is told, what it costs.

use std::net::SocketAddr;
use std::time::Duration;

use perennial_core::kept::Pairs;
use perennial_core::lister::{Page, Versions};
use perennial_testkit::{node_name, run_script};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{self, Sender};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::admin::{Readiness, Server, routes_with_page};
use crate::cluster::Clock;
use crate::lister::order::Id;
use crate::members::Live;
use filled::{Deed, Filled};

mod filled;

/// A server with its page, over a fleet in memory.
struct Served {
    address: SocketAddr,
    deeds: Sender<Deed>,
    _tasks: Vec<AbortOnDropHandle<()>>,
    _roster: watch::Sender<Arc<Roster>>,
}

impl Served {
    async fn start(prepare: impl FnOnce(&mut Filled) + Send) -> Self {
        let window = Window::default();
        let (sources, roster) = sources(window.clone());
        let mut filled = Filled::new(window.story().clone());
        prepare(&mut filled);
        let (deeds, to_do) = mpsc::channel(8);
        let answering = tokio::spawn(filled.answer(window.questions().unwrap(), to_do));
        let server = Server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = server.address();
        let mut registry = crate::metrics::registry();
        let metrics = crate::cluster::Metrics::register(crate::metrics::section(&mut registry));
        let nowhere =
            kube::Client::try_from(kube::Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        let pages = sources.pages.clone().unwrap();
        let (routes, hub) = routes_with_page(
            Readiness::default(),
            crate::admin::Metrics::Open(Arc::new(registry)),
            sources,
            Cluster::new(nowhere, Arc::new(metrics)),
        );
        let routes = routes.merge(crate::lister::routes(pages));
        let serving = tokio::spawn(server.serve(routes, CancellationToken::new()));
        let tasks = vec![hub, AbortOnDropHandle::new(serving), AbortOnDropHandle::new(answering)];
        Self { address, deeds, _tasks: tasks, _roster: roster }
    }

    async fn act(&self, deed: impl FnOnce(&mut Filled) + Send + 'static) {
        let (to, done) = tokio::sync::oneshot::channel();
        let deed = |filled: &mut Filled| {
            deed(filled);
            to.send(()).unwrap();
        };
        self.deeds.send(Box::new(deed)).await.ok().unwrap();
        done.await.unwrap();
    }

    async fn send(&self, request: &str) -> TcpStream {
        self.send_to("a", request).await
    }

    /// As a browser does that knows this place by that name.
    async fn send_to(&self, host: &str, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!("{request} HTTP/1.1\r\nhost: {host}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    async fn whole(&self, request: &str) -> String {
        self.whole_of("a", request).await
    }

    async fn whole_of(&self, host: &str, request: &str) -> String {
        let mut answer = Vec::new();
        let _ = self.send_to(host, request).await.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }
}

/// A page of three replicas with two listings, and whoever tells it of the members.
fn sources(window: Window) -> (Sources, watch::Sender<Arc<Roster>>) {
    let keeper = KeeperConfig {
        window: Some(window),
        ..KeeperConfig::new("perennial", watch::channel(Arc::new(Policy::default())).1)
    };
    let members = MembersConfig::new("perennial-7c9d-x2vkq", &keeper);
    let sources = Sources::new(
        PageConfig { values: false, hosts: vec!["fleet.example.com".to_owned()] },
        Some(&keeper),
        &members,
        Some(listings()),
    );
    let (to, roster) = watch::channel(Arc::new(roster(&members)));
    sources.roster.set(roster).unwrap();
    (sources, to)
}

/// Reads until the text is there.
async fn until(stream: &mut TcpStream, wanted: &str) -> String {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if text.contains(wanted) {
            return text;
        }
        let more = stream.read_buf(&mut read).await.unwrap();
        assert!(more > 0, "it ended without {wanted:?}: {text}");
    }
}

fn roster(members: &MembersConfig) -> Roster {
    let others: Vec<Live<'_>> = ["perennial-7c9d-b8tnw", "perennial-7c9d-m5zjr"]
        .map(|name| Live { name, roles: &members.roles, policy: Some(members.policy.borrow().digest()) })
        .into();
    Roster::new(members, true, &others, Some(std::collections::BTreeSet::new()))
}

fn listings() -> Pages {
    let pages = Pages::default();
    let id = |name: &str| Id { namespace: "shop".to_owned(), name: name.to_owned() };
    for (name, endpoints) in [("storefront", 240), ("checkout", 36)] {
        pages.expect(&id(name));
        let body = format!("<!doctype html><title>{name}</title><h1>{endpoints} endpoints</h1>");
        let page = Page::new(body, "text/html".to_owned(), endpoints, Versions::default());
        pages.show(&id(name), Arc::new(page));
    }
    let held = "36 endpoints became 4: more than half of them are gone";
    pages.trouble(&id("checkout"), Some(("Held", held.to_owned())));
    pages
}

#[test]
fn the_page_is_small_and_has_nothing_inline_and_nothing_from_elsewhere() {
    let size: usize = HTML.len() + FILES.iter().map(|(_, _, text)| text.len()).sum::<usize>();
    assert!(size < 100_000, "{size} bytes");
    for forbidden in ["style=\"", "onclick=", "<style", "innerHTML", "outerHTML", "insertAdjacent", "eval("] {
        for (name, _, text) in FILES.iter().chain([&("index.html", "", HTML)]) {
            assert!(!text.contains(forbidden), "{name} has {forbidden}");
        }
    }
    for (name, _, text) in FILES.iter().chain([&("index.html", "", HTML)]) {
        let elsewhere = text.replace("http://www.w3.org/2000/svg", "");
        assert!(!elsewhere.contains("http://") && !elsewhere.contains("https://"), "{name}");
    }
    assert_eq!(HTML.matches("<script").count(), 1);
}

#[tokio::test]
async fn a_browser_gets_the_page_and_everybody_else_the_list() {
    let served = Served::start(|_| ()).await;
    assert!(served.whole("GET /").await.contains("/metrics"));
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let request = "GET / HTTP/1.1\r\nhost: a\r\naccept: text/html,application/xhtml+xml\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let page = until(&mut stream, "</html>").await;
    assert!(page.contains("content-security-policy: default-src 'none'; script-src 'self'"), "{page}");
    for (name, kind, _) in FILES {
        let file = served.whole(&format!("GET /page/{name}")).await;
        let tag = file.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();
        assert!(
            file.starts_with("HTTP/1.1 200")
                && file.contains(&format!("content-type: {kind}; charset=utf-8"))
        );
        let again = served.whole(&format!("GET /page/{name} HTTP/1.1\r\nif-none-match: {tag}\r\nx:")).await;
        assert!(again.starts_with("HTTP/1.1 304"), "{again}");
    }
}

#[tokio::test]
async fn the_page_is_not_given_to_whoever_asks_for_it_by_a_strangers_name() {
    let served = Served::start(|fleet| fleet.fill(3)).await;
    let front = "GET / HTTP/1.1\r\naccept: text/html\r\nx:";
    for host in ["evil.example", "127.0.0.1.evil.example:8080"] {
        for request in [front, "GET /page/app.js", "GET /page/stream", "GET /page/node/web-00000"] {
            let mut stream = served.send_to(host, request).await;
            let answer = until(&mut stream, "\r\n\r\n").await;
            assert!(answer.starts_with("HTTP/1.1 421"), "{host} {request}: {answer}");
        }
        // Kubelets and Prometheus ask by whatever name they like.
        for request in
            ["GET /livez", "GET /healthz", "GET /readyz", "GET /metrics", "GET /listings/shop/storefront"]
        {
            let answer = served.whole_of(host, request).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{host} {request}: {answer}");
        }
    }
    for host in ["localhost:8080", "[::1]:8080", "perennial.perennial.svc", "fleet.example.com"] {
        let answer = served.whole_of(host, front).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{host}: {answer}");
    }
}

#[tokio::test]
async fn nothing_can_be_written_by_any_of_its_paths() {
    let served = Served::start(|_| ()).await;
    for path in ["/", "/page/app.js", "/page/stream", "/page/node/a"] {
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            let answer = served.whole(&format!("{method} {path}")).await;
            assert!(answer.starts_with("HTTP/1.1 405"), "{method} {path}: {answer}");
        }
    }
}

#[tokio::test]
async fn whoever_looks_is_told_everything_once_and_then_what_changes() {
    let served = Served::start(|fleet| fleet.fill(3)).await;
    let mut stream = served.send("GET /page/stream").await;
    let greeting = until(&mut stream, "event: news").await;
    assert!(greeting.contains("content-type: text/event-stream") && greeting.contains("event: hello"));
    assert!(
        greeting.contains(r#""cells":"ccc","names":"00batch-00002 00web-00000 081","tail":"""#),
        "{greeting}"
    );
    served.act(|fleet| fleet.die("web-00001")).await;
    until(&mut stream, r#""changes":{"a":["web-00001"]}"#).await;
    let mut another = served.send("GET /page/stream").await;
    let greeting = until(&mut another, "left the cluster").await;
    assert!(greeting.contains(r#""cells":"cca""#), "{greeting}");
}

#[tokio::test]
async fn only_so_many_may_look_and_probes_are_answered_all_the_same() {
    let served = Served::start(|fleet| fleet.fill(1)).await;
    let mut streams = Vec::new();
    for _ in 0..16 {
        let mut stream = served.send("GET /page/stream").await;
        until(&mut stream, "event: hello").await;
        streams.push(stream);
    }
    assert!(served.whole("GET /page/stream").await.starts_with("HTTP/1.1 503"));
    assert!(served.whole("GET /livez").await.starts_with("HTTP/1.1 200"));
    drop(streams.pop());
    // The place is free once the server notices, with what it says next.
    loop {
        let mut stream = served.send("GET /page/stream").await;
        let mut start = [0; 12];
        stream.read_exact(&mut start).await.unwrap();
        if &start == b"HTTP/1.1 200" {
            break;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_does_not_keep_up_is_cut_off_and_when_nobody_looks_nothing_is_noted() {
    let window = Window::default();
    let mut filled = Filled::new(window.story().clone());
    filled.fill(2);
    let (deeds, to_do) = mpsc::channel(8);
    let answering = tokio::spawn(filled.answer(window.questions().unwrap(), to_do));
    let (door, hub) = Hub::new(sources(window.clone()).0, Clock::default());
    let _tasks = [AbortOnDropHandle::new(answering), AbortOnDropHandle::new(tokio::spawn(hub.run()))];
    let leash = Leash::default();
    let stream = door.enter(&leash).unwrap();
    let cut = tokio::time::timeout(Duration::from_mins(1), async {
        let mut dead = false;
        loop {
            let deed: Deed =
                Box::new(
                    move |fleet| if dead { fleet.come_back("web-00000") } else { fleet.die("web-00000") },
                );
            deeds.send(deed).await.ok().unwrap();
            dead = !dead;
            tokio::select! {
                () = leash.cut() => return,
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
            }
        }
    });
    cut.await.expect("it is cut off once some messages wait");
    drop(stream);
    tokio::time::sleep(Duration::from_secs(30)).await;
    let (to, noted) = tokio::sync::oneshot::channel();
    let deed: Deed = Box::new(|fleet| to.send(fleet.notes()).unwrap());
    deeds.send(deed).await.ok().unwrap();
    assert!(!noted.await.unwrap(), "changes are still noted");
}

#[tokio::test]
async fn a_hundred_thousand_nodes_in_a_real_browser() {
    let served = Served::start(|fleet| {
        fleet.fill(99_999);
        // No cluster would take this name; a picture has another.
        let pictures = std::env::var_os("SCREENSHOTS").is_some();
        let name = if pictures { "web-99999" } else { "<img src=x onerror=alert(1)>" };
        fleet.join(name, Pairs::from([("team".to_owned(), "x".to_owned())]));
        fleet.settle();
        fleet.quiet = true;
        big(fleet);
        fleet.quiet = false;
        if pictures {
            fleet.had_an_hour();
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let url = format!("http://{}/", served.address);
    let many = || (0..).map(node_name).filter(|name| name.starts_with("stateful")).take(8000);
    let printed = run_script("big.mjs", &url, folder.path(), Duration::from_mins(3), async |question| {
        match question {
            "one dies" => served.act(|fleet| fleet.die("batch-00002")).await,
            "many die" => served.act(move |fleet| many().for_each(|name| fleet.die(&name))).await,
            "all return" => {
                served
                    .act(move |fleet| {
                        fleet.come_back("batch-00002");
                        many().for_each(|name| fleet.come_back(&name));
                        fleet.settle();
                    })
                    .await;
            }
            other => anyhow::bail!("nobody knows how to {other}"),
        }
        Ok(())
    })
    .await
    .unwrap();
    println!("{printed}");
}

/// What a fleet of this size looks like on a day when things happen.
fn big(fleet: &mut Filled) {
    let of = |pool: &'static str| (0..100_000).map(node_name).filter(move |name| name.starts_with(pool));
    for name in of("stateful").skip(9_000).take(5) {
        fleet.pause(&name);
    }
    for name in of("batch").skip(9_000).take(1_997) {
        fleet.die(&name);
    }
    for name in of("web").skip(2_000).step_by(4_000).take(3) {
        fleet.die(&name);
    }
    for name in of("gpu").skip(700).step_by(3_000).take(3) {
        fleet.die(&name);
        fleet.leave(&name);
        fleet.come_back(&name);
    }
    for name in of("web").skip(30_000).take(12) {
        fleet.change(&name);
    }
    for name in of("gpu").skip(5_000).take(2) {
        fleet.break_record(&name);
    }
}
