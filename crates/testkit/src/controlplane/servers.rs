//! The servers of a control plane, one by one: what may be done to each, and to its connections.

use std::{path::PathBuf, time::Duration};

use anyhow::Context;
use kube::{Client, config::AuthInfo};

use crate::{
    port::Port,
    relay::{Link, Relay},
    server::Server,
};

/// About two seconds when nothing else runs; this is for machines on which much does.
pub(super) const READY: Duration = Duration::from_mins(1);
/// Both, asked to end, wait for streams that do not end by themselves. They begin to refuse new ones at once.
const GRACE: Duration = Duration::from_millis(500);

/// One API server of a control plane.
pub struct ApiServer {
    pub(super) server: Server,
    pub(super) admin: AuthInfo,
    /// Between it and etcd.
    pub(super) relay: Option<Relay>,
}

/// One etcd member of a control plane.
pub struct EtcdMember {
    pub(super) server: Server,
    /// Where it serves etcd's API.
    pub(super) port: u16,
    pub(super) data: PathBuf,
    /// Between it and the other members.
    pub(super) relay: Option<Relay>,
    /// Claimed for as long as it may come back.
    pub(super) _claimed: Option<Port>,
}

impl ApiServer {
    /// Its own address, without the balancer.
    pub fn url(&self) -> &str {
        self.server.endpoint().url()
    }

    /// A client that may do everything and talks to this server alone.
    pub fn admin(&self) -> Client {
        self.client(&self.admin).expect("the same credentials served at the start")
    }

    pub(super) fn client(&self, identity: &AuthInfo) -> anyhow::Result<Client> {
        self.server.endpoint().client(identity)
    }

    /// Kills it (SIGKILL).
    pub async fn kill(&self) -> anyhow::Result<()> {
        self.server.kill().await.map(drop)
    }

    /// Stops it (SIGTERM).
    pub async fn stop(&self) -> anyhow::Result<()> {
        self.server.stop(GRACE).await.map(drop)
    }

    /// Starts it where it was, and returns when it is ready.
    pub async fn start(&self) -> anyhow::Result<()> {
        self.server.start(READY).await
    }

    /// Stops it and starts it again: with an empty watch cache, so old versions are gone for watches.
    pub async fn restart(&self) -> anyhow::Result<()> {
        self.stop().await?;
        self.start().await
    }

    /// Freezes it: connections stay open, new ones are accepted, and nothing answers.
    pub async fn pause(&self) -> anyhow::Result<()> {
        self.server.pause().await
    }

    /// Lets it go on.
    pub async fn resume(&self) -> anyhow::Result<()> {
        self.server.resume().await
    }

    /// Waits until it is ready.
    pub async fn ready(&self) -> anyhow::Result<()> {
        self.server.ready(READY).await
    }

    /// Decides what becomes of its connections to etcd. While they are held or delayed, its watch caches lag behind
    /// those of the other servers. Only where there are several API servers or etcd members.
    pub fn link_to_etcd(&self, link: Link) -> anyhow::Result<()> {
        self.relay.as_ref().context("a control plane of one server and one member has no relays")?.set(link);
        Ok(())
    }

    /// Its process id, unless it is stopped.
    pub async fn pid(&self) -> Option<u32> {
        self.server.pid().await
    }
}

impl EtcdMember {
    /// Kills it (SIGKILL).
    pub async fn kill(&self) -> anyhow::Result<()> {
        self.server.kill().await.map(drop)
    }

    /// Stops it (SIGTERM).
    pub async fn stop(&self) -> anyhow::Result<()> {
        self.server.stop(GRACE).await.map(drop)
    }

    /// Starts it where it was, with what it had. Returns when it answers, which takes a quorum.
    pub async fn start(&self) -> anyhow::Result<()> {
        self.server.start(READY).await
    }

    /// Freezes it.
    pub async fn pause(&self) -> anyhow::Result<()> {
        self.server.pause().await
    }

    /// Lets it go on.
    pub async fn resume(&self) -> anyhow::Result<()> {
        self.server.resume().await
    }

    /// Decides what becomes of its connections to the other members. A follower whose link is delayed lags, and so do
    /// the watch caches of the API server that is connected to it.
    pub fn link_to_peers(&self, link: Link) -> anyhow::Result<()> {
        self.relay.as_ref().context("a single etcd member has no peers")?.set(link);
        Ok(())
    }

    /// Its process id, unless it is stopped.
    pub async fn pid(&self) -> Option<u32> {
        self.server.pid().await
    }
}
