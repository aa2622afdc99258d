//! It was away, and comes back to a fleet that it has records of.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Context;
use futures::AsyncReadExt as _;
use http::Request;
use http::header::ACCEPT;
use perennial_testkit::ControlPlane;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

use super::{Bout, REST, changes};
use crate::contender::{Contender, NAMESPACE, detour};
use crate::report::{mebibytes, megabytes};
use crate::results::{Case, Who};
use crate::sight::{METADATA, Sight};

/// So many nodes change while it is away, all over the fleet: it is there when it has recorded them all.
const CHANGED: usize = 50;

pub(super) async fn measure(bout: &mut Bout<'_>) -> anyhow::Result<()> {
    let peak = bout.running()?.memory()?.most;
    bout.stop().await?;
    changed_meanwhile(bout, "away").await?;
    if bout.contender == Contender::Perennial {
        let began = Instant::now();
        let bytes = stream(&bout.plane).await?;
        for case in [Case::Synced, Case::Start] {
            bout.results.add(case, Who::Limit, began.elapsed().as_secs_f64());
        }
        bout.results.add(Case::Bytes, Who::Limit, megabytes(bytes));
    }
    let began = bout.start()?;
    let ready = bout.running()?.ready();
    // The peers do not tell.
    let ready = async { if bout.contender == Contender::Perennial { Some(ready.await) } else { None } };
    let (last, ready) = tokio::join!(caught_up(&mut bout.records, "away"), ready);
    bout.add(Case::Start, (last? - began).as_secs_f64());
    if let Some(ready) = ready {
        bout.add(Case::Synced, (ready - began).as_secs_f64());
    }
    bout.records.quiet(REST).await?;
    let memory = bout.running()?.memory()?;
    bout.add(Case::MemorySteady, mebibytes(memory.now));
    bout.add(Case::MemoryPeak, mebibytes(peak.max(memory.most)));
    Ok(())
}

/// The same once more, by a way on which the bytes are counted.
pub(super) async fn measure_bytes(bout: &mut Bout<'_>) -> anyhow::Result<()> {
    bout.stop().await?;
    changed_meanwhile(bout, "counted").await?;
    let counter = Counter::start(bout.plane.url()).await?;
    let kubeconfig = detour(&bout.kubeconfig, bout.plane.url(), &counter.url)?;
    let direct = std::mem::replace(&mut bout.kubeconfig, kubeconfig);
    bout.start()?;
    caught_up(&mut bout.records, "counted").await?;
    bout.add(Case::Bytes, megabytes(counter.received.load(Ordering::Relaxed)));
    // Those that follow shall not be slowed down by it.
    bout.kubeconfig = direct;
    bout.stop().await?;
    bout.start()?;
    bout.records.quiet(REST).await
}

async fn changed_meanwhile(bout: &Bout<'_>, value: &str) -> anyhow::Result<()> {
    for number in 0..CHANGED {
        changes::change(&bout.plane, number * bout.plan.nodes / CHANGED, &format!("{value}-{number}-x"))
            .await?;
    }
    Ok(())
}

async fn caught_up(records: &mut Sight, value: &str) -> anyhow::Result<Instant> {
    let mut waiting: Vec<String> = (0..CHANGED).map(|number| format!("{value}-{number}-x")).collect();
    records
        .until(|seen| {
            waiting.retain(|value| !seen.says(value));
            waiting.is_empty()
        })
        .await
}

/// Reads the metadata of all nodes and of all records, both at once, and does nothing with them: what any start must take.
async fn stream(plane: &ControlPlane) -> anyhow::Result<u64> {
    let records = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    let (nodes, records) = tokio::try_join!(read(plane, "/api/v1/nodes".to_owned()), read(plane, records))?;
    Ok(nodes + records)
}

/// A watch that begins with everything, up to the bookmark that says that this was all.
async fn read(plane: &ControlPlane, path: String) -> anyhow::Result<u64> {
    let how = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let request = Request::get(format!("{path}?{how}")).header(ACCEPT, METADATA).body(Vec::new())?;
    let mut stream = std::pin::pin!(plane.admin().request_stream(request).await?);
    let (mut bytes, mut buffer, mut end) = (0, vec![0; 1 << 16], Vec::new());
    loop {
        let read = stream.read(&mut buffer).await?;
        anyhow::ensure!(read > 0, "the stream of {path} ended before its time");
        bytes += read as u64;
        // The bookmark is short, and nothing follows it while nothing changes.
        end.extend_from_slice(&buffer[..read]);
        end.drain(..end.len().saturating_sub(1000));
        if String::from_utf8_lossy(&end).contains("k8s.io/initial-events-end") {
            return Ok(bytes);
        }
    }
}

/// Carries bytes to the API server and back, and counts those that come back.
struct Counter {
    url: String,
    received: Arc<AtomicU64>,
    _carries: AbortOnDropHandle<()>,
}

impl Counter {
    async fn start(url: &str) -> anyhow::Result<Self> {
        let server = url.strip_prefix("https://").context("no https")?.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("https://{}", listener.local_addr()?);
        let received = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&received);
        let carries = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (server, count) = (server.clone(), Arc::clone(&count));
                // A connection that breaks is its two ends' business.
                tokio::spawn(async move { carry(client, &server, &count).await.ok() });
            }
        });
        Ok(Self { url, received, _carries: AbortOnDropHandle::new(carries) })
    }
}

async fn carry(mut client: TcpStream, server: &str, count: &AtomicU64) -> anyhow::Result<()> {
    let mut server = TcpStream::connect(server).await?;
    server.set_nodelay(true)?;
    client.set_nodelay(true)?;
    let ((mut from, mut to), (mut back, mut forth)) = (client.split(), server.split());
    let there = tokio::io::copy(&mut from, &mut forth);
    let and_back = async {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let read = back.read(&mut buffer).await?;
            if read == 0 {
                return Ok(());
            }
            count.fetch_add(read as u64, Ordering::Relaxed);
            to.write_all(&buffer[..read]).await?;
        }
    };
    tokio::try_join!(there, and_back)?;
    Ok(())
}
