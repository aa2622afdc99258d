//! One run: the cluster up, the scenarios one after another, everything down again.

use std::{cell::OnceCell, fs, process::ExitCode, time::Instant};

use anyhow::Context as _;
use perennial_testkit::{cluster::Cluster, interrupted};

use crate::{
    args::Args,
    scenario::Scenario,
    stage::{self, Stage, say},
};

/// Runs it to its end, or to Ctrl-C.
pub(crate) async fn run(args: Args) -> ExitCode {
    let mut stage = OnceCell::new();
    let ended = tokio::select! {
        // We listen for signals before there is anything to take down.
        biased;
        by = interrupted() => Err(by),
        ended = play(&args, &stage) => Ok(ended),
    };
    let (code, keep) = match ended {
        Ok(Ok(())) => (ExitCode::SUCCESS, false),
        Ok(Err(error)) => {
            say(&format!("FAILED: {error:#}"));
            (ExitCode::FAILURE, args.keep)
        }
        Err(by) => {
            say(&format!("ended by {}, everything is taken down", by.name));
            (by.into(), false)
        }
    };
    let left = match stage.take() {
        Some(stage) => stage.leave(keep).await,
        // A cluster that may be kept does not go with us by itself.
        None if args.keep && args.kubeconfig.is_none() => Cluster::remove().map(drop),
        None => Ok(()),
    };
    left.map_or_else(
        |error| {
            say(&format!("something is left: {error:#}"));
            ExitCode::FAILURE
        },
        |()| code,
    )
}

async fn play(args: &Args, place: &OnceCell<Stage>) -> anyhow::Result<()> {
    let began = Instant::now();
    let folder = stage::folder();
    // What the last run left.
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let stage = Stage::find(args).await?;
    let stage = place.get_or_init(|| stage);
    let scenarios = if args.only.is_empty() { Scenario::ALL.to_vec() } else { args.only.clone() };
    let played = match stage.set_up().await {
        Ok(()) => scenes(stage, &scenarios).await,
        failed => failed,
    };
    if played.is_err() {
        let told = match stage.diagnostics(&folder).await {
            Ok(()) => format!("logs and what kubectl says are in {}", folder.display()),
            Err(error) => format!("logs could not be kept: {error:#}"),
        };
        say(&told);
        return played;
    }
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
