//! `perennial list`, as the real binary: one page, without any custom resource.

use std::path::Path;
use std::process::Stdio;

use http::StatusCode;
use perennial_testkit::proxy::{Fault, Matcher, Proxy};
use perennial_testkit::{Port, S3Server, eventually};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::world::{LINES, SOON, World, lines};

fn list(world: &World, flags: &[&str]) -> Command {
    list_through(world, world.kubeconfig(), flags)
}

fn list_through(world: &World, kubeconfig: &Path, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_perennial"));
    command.arg("list").arg("--kubeconfig").arg(kubeconfig).args(flags);
    command.args(["--namespace", &world.namespace]).env_clear();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// Runs it to its end: exit status, what it printed, what it logged.
async fn run(mut command: Command) -> (i32, String, String) {
    let output = command.output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

async fn holds(path: &Path, text: &str) {
    eventually(SOON, &format!("the file holds {text:?}"), || async {
        let now = std::fs::read_to_string(path).unwrap_or_default();
        if now == text { Ok(Some(())) } else { Err(anyhow::anyhow!("{now:?}")) }
    })
    .await
    .unwrap();
}

async fn end(mut child: Child) {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert!(child.wait().await.unwrap().success());
}

#[tokio::test]
async fn a_file_follows_the_endpoints_and_its_template() {
    let world = World::without_lister().await;
    let folder = tempfile::tempdir().unwrap();
    let (page, template) = (folder.path().join("index.txt"), folder.path().join("page"));
    std::fs::write(&template, LINES).unwrap();
    world.endpoints("web", &["10.0.0.1"]).await;
    let flags =
        ["--service", "web", "--file", page.to_str().unwrap(), "--template", template.to_str().unwrap()];
    let child = list(&world, &flags).spawn().unwrap();
    holds(&page, &lines(&["10.0.0.1"])).await;
    world.endpoints("web", &["10.0.0.1", "10.0.0.2"]).await;
    holds(&page, &lines(&["10.0.0.1", "10.0.0.2"])).await;
    std::fs::write(&template, "{{ broken").unwrap();
    world.endpoints("web", &["10.0.0.3"]).await;
    std::fs::write(&template, "{{ count }} of {{ service }}").unwrap();
    holds(&page, "1 of web").await;
    end(child).await;
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[tokio::test]
async fn once_publishes_the_page_as_it_is_and_ends() {
    let (world, server) = (World::without_lister().await, S3Server::start().await.unwrap());
    server.create_bucket("pages").await.unwrap();
    server.publish_bucket("pages").await.unwrap();
    world.endpoints("web", &["10.0.0.1", "10.0.0.2"]).await;
    let folder = tempfile::tempdir().unwrap();
    let template = folder.path().join("page");
    std::fs::write(&template, LINES).unwrap();
    // The older tool's variables, as its CronJob sets them.
    let older = |command: &mut Command| {
        let credentials = server.credentials();
        command
            .env("BUCKET_KEY", &credentials.access_key)
            .env("BUCKET_SECRET", &credentials.secret_key)
            .env("BUCKET_URL", server.url())
            .env("BUCKET_NAME", "pages")
            .env("SERVICE_NAME", "web")
            .env("TEMPLATE_NAME", &template)
            .env("TEMPLATE_OUTPUT", "web.txt");
    };
    let mut command = list(&world, &["--once", "--max-shrink", "50"]);
    older(&mut command);
    let (status, _, log) = run(command).await;
    assert_eq!(status, 0, "{log}");
    assert!(!log.contains(&server.credentials().secret_key), "{log}");
    let page = server.get_as_stranger("/pages/web.txt").await.unwrap();
    assert_eq!(page.text(), lines(&["10.0.0.1", "10.0.0.2"]));
    // Nothing is remembered here, and still it knows what the page shrank from.
    world.endpoints("web", &[]).await;
    let mut command = list(&world, &["--once", "--min-endpoints", "0", "--max-shrink", "50"]);
    older(&mut command);
    let (status, _, log) = run(command).await;
    assert_eq!(status, 1, "{log}");
    assert!(log.contains("not published"), "{log}");
    let page = server.get_as_stranger("/pages/web.txt").await.unwrap();
    assert_eq!(page.text(), lines(&["10.0.0.1", "10.0.0.2"]));
}

#[tokio::test]
async fn a_dry_run_shows_the_page_and_writes_nothing() {
    let world = World::without_lister().await;
    world.endpoints("web", &["10.0.0.1"]).await;
    let (status, page, log) = run(list(&world, &["--service", "web", "--dry-run", "--format", "text"])).await;
    assert_eq!((status, page.as_str()), (0, "10.0.0.1\n"), "{log}");
    let (status, page, _) = run(list(&world, &["--service", "web", "--dry-run"])).await;
    assert!(status == 0 && page.starts_with("<!doctype html>"), "{page}");
}

#[tokio::test]
async fn what_cannot_be_published_ends_once_with_a_clear_word() {
    let world = World::without_lister().await;
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("index.html");
    let file = page.to_str().unwrap();
    let (status, _, log) = run(list(&world, &["--service", "nobody", "--once", "--file", file])).await;
    assert!(status == 1 && log.contains("no Service"), "{status} {log}");
    let (status, _, log) = run(list(&world, &["--listing", "a/nobody", "--once", "--file", file])).await;
    assert!(status == 1 && log.contains("a/nobody"), "{status} {log}");
    world.endpoints("web", &["10.0.0.1"]).await;
    let nowhere = folder.path().join("missing/index.html");
    let flags = ["--service", "web", "--once", "--file", nowhere.to_str().unwrap()];
    let (status, _, log) = run(list(&world, &flags)).await;
    assert!(status == 1 && log.contains("not published everywhere"), "{status} {log}");
    let (status, _, log) = run(list(&world, &["--once"])).await;
    assert!(status == 2 && log.contains("is missing"), "{status} {log}");
    assert!(!page.exists());
}

#[tokio::test]
async fn an_existing_listing_is_followed_into_a_file() {
    let world = World::without_lister().await;
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("index.txt");
    world.endpoints("web", &["10.0.0.1"]).await;
    world
        .listing("web", json!({ "service": "web", "template": { "format": "text", "inline": LINES } }))
        .await;
    let listing = format!("{}/web", world.namespace);
    let flags = ["--listing", listing.as_str(), "--file", page.to_str().unwrap()];
    let child = list(&world, &flags).spawn().unwrap();
    holds(&page, &lines(&["10.0.0.1"])).await;
    world.patch_listing("web", json!({ "spec": { "template": { "inline": "{{ count }}" } } })).await;
    holds(&page, "1").await;
    end(child).await;
    // It is somebody else's Listing: its status is not ours to write.
    assert!(world.status("web").await.conditions.is_empty());
}

#[tokio::test]
async fn once_replaces_a_page_of_another_history_and_leaves_no_place_out() {
    let world = World::without_lister().await;
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("index.txt");
    let flags = ["--service", "web", "--once", "--format", "text", "--config-map", "out"];
    world.endpoints("web", &["10.0.0.1"]).await;
    let (status, _, log) = run(list(&world, &flags)).await;
    assert_eq!(status, 0, "{log}");
    world.comes_from_the_future("out").await;
    world.endpoints("web", &["10.0.0.2"]).await;
    let both = [&flags[..], &["--file", page.to_str().unwrap()]].concat();
    let (status, _, log) = run(list(&world, &both)).await;
    assert_eq!(status, 0, "{log}");
    assert_eq!(world.published("out", "index.html").await, Some(lines(&["10.0.0.2"])), "{log}");
    assert_eq!(std::fs::read_to_string(&page).unwrap(), lines(&["10.0.0.2"]), "{log}");
}

#[tokio::test]
async fn a_page_that_is_served_is_compared_with_the_one_that_should_be() {
    let world = World::without_lister().await;
    world.endpoints("web", &["10.0.0.1"]).await;
    let port = Port::claim().unwrap();
    let child = list(&world, &["--service", "web", "--admin-address", &port.address()]).spawn().unwrap();
    let address = format!("http://{}/listings/{}/web", port.address(), world.namespace);
    for addresses in [&["10.0.0.1"][..], &["10.0.0.1", "10.0.0.2"]] {
        world.endpoints("web", addresses).await;
        let (status, _, told) = run(list(&world, &["--service", "web", "--verify", &address])).await;
        assert_eq!(status, 0, "{told}");
        assert!(told.contains("the page there is the current one"), "{told}");
    }
    end(child).await;
    let (status, _, told) = run(list(&world, &["--service", "web", "--verify", "https://web"])).await;
    assert_eq!(status, 2);
    assert!(told.contains("--verify") && told.contains("http://"), "{told}");
}

/// The status line of an answer; none as long as nobody listens.
async fn answer(port: &Port, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(port.address()).await.ok()?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await.ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await.ok()?;
    text.lines().next().map(str::to_owned)
}

async fn answers(port: &Port, path: &str, status: StatusCode) {
    eventually(SOON, &format!("{path} answers {status}"), || async {
        let line = answer(port, path).await.unwrap_or_default();
        if line.contains(status.as_str()) { Ok(Some(())) } else { Err(anyhow::anyhow!("{line:?}")) }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn one_that_follows_is_ready_once_it_knows_its_page_also_where_a_guard_holds_it() {
    let world = World::without_lister().await;
    world.service("web").await;
    let folder = tempfile::tempdir().unwrap();
    let (page, port) = (folder.path().join("index.html"), Port::claim().unwrap());
    let proxy = Proxy::start(world.kubeconfig()).await.unwrap();
    let refused = proxy.inject(Matcher::on("endpointslices"), Fault::Refuse(503));
    let flags = ["--service", "web", "--file", page.to_str().unwrap(), "--admin-address", &port.address()];
    let child = list_through(&world, proxy.kubeconfig(), &flags).spawn().unwrap();
    answers(&port, "/livez", StatusCode::OK).await;
    answers(&port, "/readyz", StatusCode::SERVICE_UNAVAILABLE).await;
    refused.lift();
    answers(&port, "/readyz", StatusCode::OK).await;
    assert!(!page.exists(), "an empty page is held");
    end(child).await;
}
