//! Wires the parts together, and ends in order whatever happens.

use std::{
    io::{self, Write as _},
    process::ExitCode,
    time::Instant,
};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use perennial_testkit::{Interrupt, interrupted};

use crate::{
    args::Args,
    board::{Board, Shared},
    cluster::Cluster,
    eyes,
    scenes::Scenes,
    verdict::Verdict,
    view::{View, words},
};

/// So many nodes are created at a time.
const CONCURRENCY: usize = 64;

/// How it ended.
enum End {
    Played(anyhow::Result<Verdict>),
    Interrupted(Interrupt),
    /// Nobody reads what we say.
    Unheard(io::Error),
}

/// Plays the demo and tells how it ended.
pub(crate) fn run(args: &Args) -> ExitCode {
    let end = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime.block_on(demo(args)),
        Err(error) => End::Played(Err(error.into())),
    };
    match end {
        End::Played(Ok(verdict)) => {
            verdict.details().iter().for_each(|line| words::say(line));
            words::say(&verdict.to_string());
            if verdict.all_kept() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        End::Played(Err(error)) => {
            words::say(&format!("failed: {error:#}"));
            ExitCode::FAILURE
        }
        End::Interrupted(by) => {
            words::say(&format!("ended by {}, nothing is left running", by.name));
            by.into()
        }
        End::Unheard(error) => {
            let _ = writeln!(io::stderr(), "demo: ended, for nobody reads it: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn demo(args: &Args) -> End {
    let board = Shared::new(Board::new(args.nodes.into(), args.replicas.into(), args.lasting, args.seed));
    let mut view = View::new(board.clone());
    let mut cluster = None;
    let end = tokio::select! {
        by = interrupted() => End::Interrupted(by),
        played = play(args, &board, &mut cluster) => End::Played(played),
        unheard = view.show() => End::Unheard(unheard),
    };
    // The view first: what is told while things are stopped goes below it.
    view.finish();
    if let (End::Played(played), Some(cluster)) = (&end, &mut cluster)
        && !played.as_ref().is_ok_and(Verdict::all_kept)
    {
        cluster.keep_logs();
    }
    end
}

async fn play(args: &Args, board: &Shared, slot: &mut Option<Cluster>) -> anyhow::Result<Verdict> {
    board.now("etcd and kube-apiserver start");
    let began = Instant::now();
    let cluster = slot.insert(Cluster::start(board.clone()).await?);
    started(board, "a control plane: etcd, kube-apiserver", began);
    let eyes = eyes::watch(cluster.nodes(), board.clone());
    tokio::select! {
        blind = eyes => match blind? {},
        verdict = watched(args, board, cluster) => verdict,
    }
}

/// All that is done while the eyes are open.
async fn watched(args: &Args, board: &Shared, cluster: &mut Cluster) -> anyhow::Result<Verdict> {
    board.now("a fleet with a company's labels is created");
    let began = Instant::now();
    let all = stream::iter(0..usize::from(args.nodes)).map(|index| cluster.create(index));
    all.buffer_unordered(CONCURRENCY).try_collect::<()>().await?;
    let labels = board.lock().labels();
    let what = format!("{} with {}", words::count(args.nodes.into(), "node"), words::count(labels, "label"));
    started(board, &what, began);

    let keepers = words::count(args.replicas.into(), "keeper");
    board.now(format!("{keepers}, with the permissions of deploy/rbac.yaml"));
    let began = Instant::now();
    cluster.start_keepers(&args.keeper).await?;
    cluster.recorded().await?;
    started(board, &format!("{keepers}, and a record of every node"), began);

    let mut web = cluster.web().await?;
    tokio::select! {
        deaf = cluster.keepers().listen() => match deaf {},
        broken = web.scale() => match broken? {},
        played = Scenes::new(cluster, board.clone(), args).play() => played?,
    }
    board.now("the page of the Service web is compared");
    web.finish(args.patience).await?;
    let changes = board.lock().page.latencies.len();
    board
        .done(format!("the page of the Service web, true after each of {}", words::count(changes, "change")));
    board.now("all nodes are listed and compared");
    let verdict = Verdict::reach(&cluster.nodes(), board).await?;
    board.now("it is over");
    Ok(verdict)
}

fn started(board: &Shared, what: &str, began: Instant) {
    board.done(format!("{what} ({})", words::duration(began.elapsed())));
}
