//! One replica: a process, and what may be done to it.

use std::{ffi::OsString, path::Path, time::Duration};

use anyhow::Context;
use perennial_testkit::{
    KeeperBuilder, KeeperProcess,
    proxy::{Call, Injection, Proxy},
};

use crate::{
    ears::Ears,
    plan::{Setting, Wire},
    wire::Line,
};

/// How often a replica looks at everything again. Short, so that silence is soon proved.
const RESYNC: &str = "--resync=1s";
/// How long a replica leaves a node to the one before it in line.
pub(crate) const TAKEOVER: Duration = Duration::from_millis(500);
const FLAGS: [&str; 6] = [
    "--close-after=500ms",
    "--open-after=1s",
    "--takeover=500ms",
    "--lease-duration=3s",
    "--log-level=debug",
    "--log-format=text",
];
/// How long one may need to be in step again, after everything was healed.
const READY: Duration = Duration::from_mins(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Up,
    Paused,
    Down,
}

/// How replicas are started.
pub(crate) struct Order<'a> {
    /// Where their logs are to be.
    pub(crate) logs: &'a Path,
    /// The way to the API server.
    pub(crate) kubeconfig: &'a Path,
    /// Where their records are.
    pub(crate) namespace: &'a str,
    /// The file of their policy.
    pub(crate) policy: &'a Path,
    /// How they run.
    pub(crate) setting: &'a Setting,
    /// What was asked for on the command line.
    pub(crate) arguments: &'a [OsString],
}

pub(crate) struct Replica {
    process: KeeperProcess,
    line: Line,
    state: State,
    pub(crate) ears: Ears,
}

impl Replica {
    /// Starts one, and waits until it is in step.
    pub(crate) async fn start(order: &Order<'_>, number: u64) -> anyhow::Result<Self> {
        let Order { logs, kubeconfig, namespace, policy, setting, arguments } = order;
        let proxy = Proxy::seeded(kubeconfig, number).await?;
        if setting.protobuf {
            proxy.carry_protobuf();
        }
        let line = Line::new(proxy);
        let program = KeeperProcess::beside_current_exe()?;
        let builder =
            KeeperProcess::builder(program, logs).kubeconfig(line.kubeconfig()).namespace(namespace);
        let builder = builder.policy(policy).arg(RESYNC);
        let hours = setting.clocks.get(usize::try_from(number)?).copied().unwrap_or_default();
        let builder = builder.clock_wrong_by(hours)?;
        let builder = FLAGS.iter().fold(builder, |builder, flag| builder.arg(*flag));
        // Some keep their name when they are restarted, others leave a dead one behind.
        let name = format!("--member=replica-{number}");
        let builder = if number.is_multiple_of(2) { builder.arg(name) } else { builder };
        let builder = arguments.iter().fold(builder, KeeperBuilder::arg);
        let process = builder.spawn().await.context("starting a replica")?;
        Ok(Self { process, line, state: State::Up, ears: Ears::starting() })
    }

    pub(crate) async fn ready(&self) -> anyhow::Result<()> {
        self.process.ready(READY).await
    }

    /// Whether it is in step now.
    pub(crate) async fn is_ready(&self) -> bool {
        self.process.get("/readyz").await.is_ok()
    }

    /// Whether it does not run.
    pub(crate) fn is_down(&self) -> bool {
        self.state == State::Down
    }

    pub(crate) async fn kill(&mut self) -> anyhow::Result<()> {
        self.state = State::Down;
        self.process.kill9().await
    }

    pub(crate) async fn stop(&mut self) -> anyhow::Result<()> {
        self.state = State::Down;
        self.process.stop().await.map(drop)
    }

    pub(crate) async fn start_again(&mut self) -> anyhow::Result<()> {
        self.state = State::Up;
        self.process.spawn_again().await
    }

    pub(crate) async fn pause(&mut self) -> anyhow::Result<()> {
        self.state = State::Paused;
        self.process.pause().await
    }

    pub(crate) async fn resume(&mut self) -> anyhow::Result<()> {
        self.state = State::Up;
        self.process.resume().await
    }

    /// Bends what it hears or says.
    pub(crate) fn bend(&mut self, wire: Wire, old: u64) {
        self.line.bend(wire, old);
    }

    /// All is straight again.
    pub(crate) fn lift(&mut self) {
        self.line.lift();
    }

    /// How many calls it made so far.
    pub(crate) fn calls(&self) -> u64 {
        self.line.calls()
    }

    /// The calls that it made since it had made so many.
    pub(crate) fn calls_since(&self, calls: u64) -> Vec<Call> {
        self.line.calls_since(calls)
    }

    /// Whether it is told of every change of a node now.
    pub(crate) fn follows_nodes(&self) -> bool {
        self.line.follows_nodes()
    }

    /// How often it had to list the nodes anew, by its own count; `None` if it does not answer.
    pub(crate) async fn unobserved(&self) -> Option<u64> {
        self.counts("perennial_unobserved_total").await
    }

    /// Whether it knows of so many members, itself among them, is told of every change, and has nothing under way.
    pub(crate) async fn sees_members(&self, many: usize) -> bool {
        let known = self.counts("perennial_member_live").await;
        let inflight = self.counts("perennial_inflight").await;
        self.line.follows() && known == u64::try_from(many).ok() && inflight == Some(0)
    }

    /// One of its metrics, where that is a whole number.
    async fn counts(&self, name: &str) -> Option<u64> {
        if self.state != State::Up {
            return None;
        }
        let metrics = self.process.metrics().await.ok()?;
        metrics.get(name)?.to_string().parse().ok()
    }

    /// The writes that it asked for since it had made so many calls.
    pub(crate) fn writes_since(&self, calls: u64) -> Vec<String> {
        self.line.writes_since(calls)
    }

    /// Counts how often it looks at everything again, from now on.
    pub(crate) fn resyncs(&self) -> Injection {
        self.line.resyncs()
    }

    /// It hears everything, and runs unless it is down.
    pub(crate) async fn ease(&mut self) -> anyhow::Result<()> {
        self.lift();
        if self.state == State::Paused { self.resume().await } else { Ok(()) }
    }

    /// It runs, hears everything, and is in step in a while.
    pub(crate) async fn heal(&mut self) -> anyhow::Result<()> {
        self.ease().await?;
        if self.is_down() { self.start_again().await } else { Ok(()) }
    }

    /// Fails if it has ended by itself.
    pub(crate) async fn check(&self) -> anyhow::Result<()> {
        if self.state == State::Down { Ok(()) } else { self.process.check().await }
    }

    /// Whether it is told of every change, and says that it has nothing to do. One whose way was blocked for a while
    /// waits before it tries again, and has nothing to do because it has heard of nothing.
    pub(crate) async fn is_idle(&self) -> bool {
        if !self.line.follows() {
            return false;
        }
        let Ok(metrics) = self.process.metrics().await else { return false };
        let nothing = |name: &str| metrics.get(name).is_some_and(|value| *value == 0.0);
        nothing("perennial_pending") && nothing("perennial_inflight")
    }

    /// How often it noticed that versions ran backwards; `None` if it does not run.
    pub(crate) async fn histories(&self) -> anyhow::Result<Option<f64>> {
        if self.state != State::Up {
            return Ok(None);
        }
        let metrics = self.process.metrics().await?;
        Ok(metrics.get("perennial_histories_total").copied())
    }
}
