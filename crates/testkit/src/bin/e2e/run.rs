//! One run: the cluster up, the scenarios one after another, everything down again.

use std::{fs, future::pending, process::ExitCode, time::Instant};

use anyhow::Context as _;
use perennial_testkit::cluster::Cluster;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    args::Args,
    scenario::Scenario,
    stage::{self, Stage, say},
};

/// Runs it to its end, or to Ctrl-C.
pub(crate) async fn run(args: Args) -> ExitCode {
    let keep = args.keep && args.kubeconfig.is_none();
    tokio::select! {
        // We listen for signals before there is anything to take down.
        biased;
        code = interrupted() => {
            // A cluster that may be kept does not go with us by itself; any other just did, or does so now.
            if keep && let Err(error) = Cluster::remove() {
                say(&format!("the cluster could not be taken down, `make down` tries again: {error:#}"));
            }
            code
        }
        ended = play(&args) => match ended {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                say(&format!("FAILED: {error:#}"));
                ExitCode::FAILURE
            }
        }
    }
}

async fn play(args: &Args) -> anyhow::Result<()> {
    let began = Instant::now();
    let folder = stage::folder();
    // What the last run left.
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let stage = Stage::set_up(args).await?;
    let scenarios = if args.only.is_empty() { Scenario::ALL.to_vec() } else { args.only.clone() };
    let played = scenes(&stage, &scenarios).await;
    if let Err(error) = played {
        let told = match stage.diagnostics(&folder).await {
            Ok(()) => format!("logs and what kubectl says are in {}", folder.display()),
            Err(error) => format!("logs could not be kept: {error:#}"),
        };
        say(&told);
        stage.leave(args.keep).await?;
        return Err(error);
    }
    stage.leave(false).await?;
    say(&format!("all good, after {:.0?}", began.elapsed()));
    Ok(())
}

async fn scenes(stage: &Stage, scenarios: &[Scenario]) -> anyhow::Result<()> {
    let mut times = Vec::new();
    for scenario in scenarios {
        let name = scenario.name();
        if let Some(why) = scenario.impossible(stage) {
            say(&format!("{name}: SKIPPED, {why}"));
            times.push(format!("{name} skipped"));
            continue;
        }
        say(&format!("{name}: {}", scenario.what()));
        let began = Instant::now();
        scenario.play(stage).await.with_context(|| name.clone())?;
        say(&format!("{name}: good, after {:.1?}", began.elapsed()));
        times.push(format!("{name} {:.0?}", began.elapsed()));
    }
    say(&times.join(", "));
    Ok(())
}

async fn interrupted() -> ExitCode {
    let received = async |kind| match signal(kind) {
        Ok(mut signals) => drop(signals.recv().await),
        Err(_) => pending().await,
    };
    let code = tokio::select! {
        () = received(SignalKind::interrupt()) => 130,
        () = received(SignalKind::terminate()) => 143,
        () = received(SignalKind::hangup()) => 129,
    };
    say("interrupted, everything is taken down");
    ExitCode::from(code)
}
