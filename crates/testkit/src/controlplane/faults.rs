//! What may happen to a control plane: it is stopped, restarted, killed, frozen. Address and data stay.

use std::time::Duration;

use anyhow::Context;
use serde_json::json;

use super::ControlPlane;

const READY: Duration = Duration::from_mins(1);
/// Both, asked to end, wait for streams that do not end by themselves. They begin to refuse new ones at once.
const GRACE: Duration = Duration::from_millis(500);

/// Process ids, for those who want to show or measure them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pids {
    /// Of etcd, unless it is stopped.
    pub etcd: Option<u32>,
    /// Of the API server, unless it is stopped.
    pub apiserver: Option<u32>,
}

impl ControlPlane {
    /// Stops the API server and starts it again: with an empty watch cache, so old versions are gone for watches.
    pub async fn restart_apiserver(&self) -> anyhow::Result<()> {
        self.stop_apiserver().await?;
        self.start_apiserver().await
    }

    /// Stops the API server.
    pub async fn stop_apiserver(&self) -> anyhow::Result<()> {
        self.apiserver.stop(GRACE).await.map(drop)
    }

    /// Kills the API server (SIGKILL).
    pub async fn kill_apiserver(&self) -> anyhow::Result<()> {
        self.apiserver.kill().await.map(drop)
    }

    /// Starts the API server where it was, and returns when it is ready.
    pub async fn start_apiserver(&self) -> anyhow::Result<()> {
        self.apiserver.start(READY).await
    }

    /// Freezes the API server: connections stay open, and nothing answers.
    pub async fn pause_apiserver(&self) -> anyhow::Result<()> {
        self.apiserver.pause().await
    }

    /// Lets the API server go on.
    pub async fn resume_apiserver(&self) -> anyhow::Result<()> {
        self.apiserver.resume().await
    }

    /// Stops etcd and starts it again. Returns when the API server is ready again, too.
    pub async fn restart_etcd(&self) -> anyhow::Result<()> {
        self.stop_etcd().await?;
        self.start_etcd().await?;
        self.apiserver.ready(READY).await
    }

    /// Stops etcd.
    pub async fn stop_etcd(&self) -> anyhow::Result<()> {
        self.etcd.stop(GRACE).await.map(drop)
    }

    /// Kills etcd (SIGKILL).
    pub async fn kill_etcd(&self) -> anyhow::Result<()> {
        self.etcd.kill().await.map(drop)
    }

    /// Freezes etcd.
    pub async fn pause_etcd(&self) -> anyhow::Result<()> {
        self.etcd.pause().await
    }

    /// Lets etcd go on.
    pub async fn resume_etcd(&self) -> anyhow::Result<()> {
        self.etcd.resume().await
    }

    /// Waits until the API server is ready, as it is a while after etcd was away.
    pub async fn ready(&self) -> anyhow::Result<()> {
        self.apiserver.ready(READY).await
    }

    /// Starts etcd where it was, with what it had.
    pub async fn start_etcd(&self) -> anyhow::Result<()> {
        self.etcd.start(READY).await
    }

    /// Has etcd say that its disk is full, or that it is not any more: it refuses whatever needs space. Deletions go on.
    pub async fn fill_etcd(&self, full: bool) -> anyhow::Result<()> {
        let status = self.ask_etcd("/v3/maintenance/status", &json!({})).await?;
        let member = status.pointer("/header/member_id").context("etcd does not say who it is")?;
        let action = if full { "ACTIVATE" } else { "DEACTIVATE" };
        let order = json!({ "action": action, "memberID": member, "alarm": "NOSPACE" });
        self.ask_etcd("/v3/maintenance/alarm", &order).await.map(drop)
    }

    /// The process ids.
    pub async fn pids(&self) -> Pids {
        Pids { etcd: self.etcd.pid().await, apiserver: self.apiserver.pid().await }
    }
}
