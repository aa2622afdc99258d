//! What may happen to a control plane: it is stopped, restarted, killed, frozen. Address and data stay.
//!
//! These methods act on all API servers, or on all etcd members, at once; [`super::ApiServer`] and
//! [`super::EtcdMember`] have those for one of several.

use anyhow::Context;
use futures::future::{select_ok, try_join_all};
use serde_json::{Value, json};

use super::{ApiServer, ControlPlane, EtcdMember, servers::READY};

/// Process ids, for those who want to show or measure them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pids {
    /// Of the first etcd member, unless it is stopped.
    pub etcd: Option<u32>,
    /// Of the first API server, unless it is stopped.
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
        try_join_all(self.apiservers.iter().map(ApiServer::stop)).await.map(drop)
    }

    /// Kills the API server (SIGKILL).
    pub async fn kill_apiserver(&self) -> anyhow::Result<()> {
        try_join_all(self.apiservers.iter().map(ApiServer::kill)).await.map(drop)
    }

    /// Starts the API server where it was, and returns when it is ready.
    pub async fn start_apiserver(&self) -> anyhow::Result<()> {
        try_join_all(self.apiservers.iter().map(ApiServer::start)).await.map(drop)
    }

    /// Freezes the API server: connections stay open, and nothing answers.
    pub async fn pause_apiserver(&self) -> anyhow::Result<()> {
        try_join_all(self.apiservers.iter().map(ApiServer::pause)).await.map(drop)
    }

    /// Lets the API server go on.
    pub async fn resume_apiserver(&self) -> anyhow::Result<()> {
        try_join_all(self.apiservers.iter().map(ApiServer::resume)).await.map(drop)
    }

    /// Stops etcd and starts it again. Returns when the API server is ready again, too.
    pub async fn restart_etcd(&self) -> anyhow::Result<()> {
        self.stop_etcd().await?;
        self.start_etcd().await?;
        self.ready().await
    }

    /// Stops etcd.
    pub async fn stop_etcd(&self) -> anyhow::Result<()> {
        try_join_all(self.members.iter().map(EtcdMember::stop)).await.map(drop)
    }

    /// Kills etcd (SIGKILL).
    pub async fn kill_etcd(&self) -> anyhow::Result<()> {
        try_join_all(self.members.iter().map(EtcdMember::kill)).await.map(drop)
    }

    /// Freezes etcd.
    pub async fn pause_etcd(&self) -> anyhow::Result<()> {
        try_join_all(self.members.iter().map(EtcdMember::pause)).await.map(drop)
    }

    /// Lets etcd go on.
    pub async fn resume_etcd(&self) -> anyhow::Result<()> {
        try_join_all(self.members.iter().map(EtcdMember::resume)).await.map(drop)
    }

    /// Waits until every API server is ready, as it is a while after etcd was away.
    pub async fn ready(&self) -> anyhow::Result<()> {
        try_join_all(self.apiservers.iter().map(ApiServer::ready)).await.map(drop)
    }

    /// Starts etcd where it was, with what it had.
    pub async fn start_etcd(&self) -> anyhow::Result<()> {
        // Together: none of several is ready without a quorum.
        try_join_all(self.members.iter().map(EtcdMember::start)).await.map(drop)
    }

    /// Starts every server. API servers wait for etcd by themselves, so all start together.
    pub(super) async fn start_all(&self) -> anyhow::Result<()> {
        let members = self.members.iter().map(|member| &member.server);
        let servers: Vec<_> = members.chain(self.apiservers.iter().map(|one| &one.server)).collect();
        for server in &servers {
            server.spawn().await?;
        }
        try_join_all(servers.iter().map(|server| server.ready(READY))).await.map(drop)
    }

    /// Which etcd member leads the others now.
    pub async fn leader(&self) -> anyhow::Result<usize> {
        let asked = self.members.iter().enumerate().map(|(index, member)| {
            Box::pin(async move {
                let status = self.ask_member(member, "/v3/maintenance/status", &json!({})).await?;
                let own = status.pointer("/header/member_id").context("etcd does not say who it is")?;
                (status.get("leader") == Some(own)).then_some(index).context("it follows another")
            })
        });
        let (leader, _) = select_ok(asked).await.context("no etcd member says that it leads")?;
        Ok(leader)
    }

    /// Has etcd say that its disk is full, or that it is not any more: it refuses whatever needs space. Deletions go on.
    pub async fn fill_etcd(&self, full: bool) -> anyhow::Result<()> {
        let alarm = |action: &str, member: &Value| json!({ "action": action, "memberID": member, "alarm": "NOSPACE" });
        if full {
            let status = self.ask_etcd("/v3/maintenance/status", &json!({})).await?;
            let member = status.pointer("/header/member_id").context("etcd does not say who it is")?;
            return self.ask_etcd("/v3/maintenance/alarm", &alarm("ACTIVATE", member)).await.map(drop);
        }
        // The member that said so may be away.
        let alarms = self.ask_etcd("/v3/maintenance/alarm", &json!({ "action": "GET" })).await?;
        let alarms = alarms.get("alarms").and_then(Value::as_array).cloned().unwrap_or_default();
        for member in alarms.iter().filter_map(|alarm| alarm.get("memberID")) {
            self.ask_etcd("/v3/maintenance/alarm", &alarm("DEACTIVATE", member)).await?;
        }
        Ok(())
    }

    /// The process ids.
    pub async fn pids(&self) -> Pids {
        Pids { etcd: self.members[0].pid().await, apiserver: self.apiservers[0].pid().await }
    }
}
