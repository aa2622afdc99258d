//! What it costs to be told of things that do not matter.

use std::env;
use std::time::{Duration, Instant};

use futures::AsyncReadExt as _;
use http::Request;
use http::header::ACCEPT;
use kube::Client;
use perennial_testkit::{Launch, Process};

use super::{BEATS, Bout};
use crate::contender::Contender;
use crate::results::{Case, Who};
use crate::sight::{METADATA, now};
use crate::usage;

/// How long a bare watch has to begin.
const BEGINS: Duration = Duration::from_secs(2);
/// How long it is watched at rest, to take away what it computes anyway.
const IDLE: Duration = Duration::from_secs(5);
const LASTING: Duration = Duration::from_secs(20);
/// So many of the nodes beat: few enough for each of them to have been heard of before, as after the first minutes of any day.
const HEARD: u32 = 3 * BEATS;

pub(super) async fn measure(bout: &mut Bout<'_>) -> anyhow::Result<()> {
    // Beside the first alone: to be watched by one more costs the API server something.
    let mut bare = if bout.contender == Contender::Perennial { Some(start_bare(bout)?) } else { None };
    tokio::time::sleep(BEGINS).await;
    let heard = 0..bout.plan.nodes.min(HEARD as usize);
    let beats = async |lasting| bout.fleet().heartbeats(heard.clone(), BEATS, lasting).await;
    beats(Duration::from_secs((HEARD / BEATS).into())).await?;
    let pids = [Some(bout.running()?.pid()), bare.as_ref().map(Process::pid)];
    let idle = {
        let (before, began) = (computed(pids)?, Instant::now());
        tokio::time::sleep(IDLE).await;
        let seconds = began.elapsed().as_secs_f64();
        less(computed(pids)?, before).map(|own| own / seconds)
    };
    let (before, began) = (computed(pids)?, Instant::now());
    let beats = f64::from(u32::try_from(beats(LASTING).await?)?);
    let (own, seconds) = (less(computed(pids)?, before), began.elapsed().as_secs_f64());
    let [own, limit] = less(own, idle.map(|idle| idle * seconds)).map(|own| 1e6 * own.max(0.0) / beats);
    bout.add(Case::Heartbeat, own);
    if let Some(bare) = &mut bare {
        bare.check()?;
        bout.results.add(Case::Heartbeat, Who::Limit, limit);
    }
    Ok(())
}

/// The seconds that each has computed.
fn computed(pids: [Option<u32>; 2]) -> anyhow::Result<[f64; 2]> {
    let [own, bare] = pids.map(|pid| pid.map_or(Ok(Duration::ZERO), usage::cpu));
    Ok([own?.as_secs_f64(), bare?.as_secs_f64()])
}

fn less([own, bare]: [f64; 2], [own_before, bare_before]: [f64; 2]) -> [f64; 2] {
    [own - own_before, bare - bare_before]
}

/// Starts this program as one that only watches.
fn start_bare(bout: &Bout<'_>) -> anyhow::Result<Process> {
    let log = bout.plane.logs().join("bare-watch.log");
    let launch = Launch::new("a bare watch", env::current_exe()?, log).args(["watch"]);
    launch.env("KUBECONFIG", &bout.kubeconfig).start()
}

/// Reads all that is said of nodes, and does nothing with it: what nobody who follows them can do without.
pub(crate) async fn watch() -> anyhow::Result<()> {
    let client = Client::try_default().await?;
    let path = "/api/v1/nodes";
    let mut buffer = vec![0; 1 << 16];
    // Servers end watches when they see fit.
    loop {
        let version = now(&client, path).await?;
        let request = Request::get(format!("{path}?watch=1&resourceVersion={version}&timeoutSeconds=14400"));
        let request = request.header(ACCEPT, METADATA).body(Vec::new())?;
        let mut stream = std::pin::pin!(client.request_stream(request).await?);
        while stream.read(&mut buffer).await? > 0 {}
    }
}
