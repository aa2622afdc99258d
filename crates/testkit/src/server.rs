//! A child process that says over HTTP when it is ready, and may be stopped and started under the same address.

use std::{process::ExitStatus, time::Duration};

use anyhow::{Context, bail};
use kube::config::AuthInfo;
use tokio::sync::Mutex;

use crate::{
    endpoint::Endpoint,
    port::Port,
    process::{Launch, Process},
};

/// The port is claimed for as long as the server may come back.
#[derive(Debug)]
pub(crate) struct Server {
    process: Mutex<Option<Process>>,
    launch: Launch,
    endpoint: Endpoint,
    identity: AuthInfo,
    /// The page that says when it is ready.
    health: &'static str,
    port: Port,
}

impl Server {
    pub(crate) fn new(launch: Launch, port: Port, endpoint: Endpoint, identity: AuthInfo) -> Self {
        Self { process: Mutex::new(None), launch, endpoint, identity, health: "/readyz", port }
    }

    /// Is ready when this page says so.
    pub(crate) fn health(mut self, path: &'static str) -> Self {
        self.health = path;
        self
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(crate) fn port(&self) -> u16 {
        self.port.number()
    }

    pub(crate) fn launch(&self) -> &Launch {
        &self.launch
    }

    /// Starts it without waiting for it to be ready.
    pub(crate) async fn spawn(&self) -> anyhow::Result<()> {
        let mut slot = self.process.lock().await;
        if slot.as_mut().is_some_and(|running| running.check().is_ok()) {
            bail!("{} runs already", self.endpoint.url());
        }
        *slot = Some(self.launch.start()?);
        Ok(())
    }

    /// Waits until it says that it is ready.
    pub(crate) async fn ready(&self, within: Duration) -> anyhow::Result<()> {
        let what = format!("{}{} answers", self.endpoint.url(), self.health);
        self.with(async |process| {
            process
                .until(within, &what, || async {
                    self.endpoint.get(&self.identity, self.health).await?;
                    Ok(Some(()))
                })
                .await
        })
        .await
    }

    pub(crate) async fn start(&self, within: Duration) -> anyhow::Result<()> {
        self.spawn().await?;
        self.ready(within).await
    }

    /// SIGTERM, then SIGKILL after `grace`.
    pub(crate) async fn stop(&self, grace: Duration) -> anyhow::Result<ExitStatus> {
        self.take().await?.stop(grace).await
    }

    /// SIGKILL.
    pub(crate) async fn kill(&self) -> anyhow::Result<ExitStatus> {
        self.take().await?.kill()
    }

    /// Waits until it has ended by itself.
    pub(crate) async fn ended(&self, within: Duration) -> anyhow::Result<ExitStatus> {
        self.with(async |process| process.wait(within).await).await
    }

    pub(crate) async fn pause(&self) -> anyhow::Result<()> {
        self.with(async |process| process.pause().await).await
    }

    pub(crate) async fn resume(&self) -> anyhow::Result<()> {
        self.with(async |process| process.resume()).await
    }

    /// Fails with the tail of its log if it does not run.
    pub(crate) async fn check(&self) -> anyhow::Result<()> {
        self.with(async |process| process.check()).await
    }

    /// The process id, unless it is stopped.
    pub(crate) async fn pid(&self) -> Option<u32> {
        self.process.lock().await.as_ref().map(Process::pid)
    }

    async fn take(&self) -> anyhow::Result<Process> {
        self.process.lock().await.take().with_context(|| self.not_running())
    }

    async fn with<T>(&self, act: impl AsyncFnOnce(&mut Process) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let mut slot = self.process.lock().await;
        act(slot.as_mut().with_context(|| self.not_running())?).await
    }

    fn not_running(&self) -> String {
        format!("{} is not running", self.endpoint.url())
    }
}
