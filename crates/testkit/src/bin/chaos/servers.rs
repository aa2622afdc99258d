//! Harms one server of several, and mends it.

use std::time::Duration;

use perennial_testkit::{Link, eventually};
use tokio::time::sleep;

use crate::{
    cluster::Cluster,
    plan::{Harm, Server},
};

/// How long etcd may need to choose another leader.
const CHOICE: Duration = Duration::from_mins(1);

impl Cluster {
    /// Does this to a server.
    pub(crate) async fn harm(&mut self, server: Server, harm: Harm) -> anyhow::Result<()> {
        self.harmed.insert(server, harm);
        match (server, harm) {
            (Server::Api(one), Harm::Kill) => self.plane.api_server(one).kill().await,
            (Server::Api(one), Harm::Freeze) => self.plane.api_server(one).pause().await,
            (Server::Member(one), Harm::Kill) => self.plane.etcd_member(one).kill().await,
            (Server::Member(one), Harm::Freeze) => self.plane.etcd_member(one).pause().await,
            (server, Harm::Cut) => self.link(server, Link::Cut),
            (server, Harm::Hold) => self.link(server, Link::Held),
            (server, Harm::Delay(late)) => self.link(server, Link::Delayed(late)),
        }
    }

    /// Undoes what was done to a server, if anything was.
    pub(crate) async fn mend(&mut self, server: Server) -> anyhow::Result<()> {
        let Some(harm) = self.harmed.remove(&server) else { return Ok(()) };
        if matches!((server, harm), (Server::Api(_), Harm::Kill)) {
            // It does not start without its member.
            self.mend_members().await?;
        }
        match (server, harm) {
            (Server::Api(one), Harm::Kill) => self.plane.api_server(one).start().await,
            (Server::Api(one), Harm::Freeze) => self.plane.api_server(one).resume().await,
            (Server::Member(one), Harm::Kill) => self.plane.etcd_member(one).start().await,
            (Server::Member(one), Harm::Freeze) => self.plane.etcd_member(one).resume().await,
            (server, Harm::Cut | Harm::Hold | Harm::Delay(_)) => self.link(server, Link::Open),
        }
    }

    /// Undoes all of it, and waits until every server is ready.
    pub(crate) async fn mend_all(&mut self) -> anyhow::Result<()> {
        if !self.harmed.is_empty() {
            self.shake();
        }
        self.mend_members().await?;
        while let Some(server) = self.harmed.keys().next().copied() {
            self.mend(server).await?;
        }
        self.plane.ready().await
    }

    async fn mend_members(&mut self) -> anyhow::Result<()> {
        while let Some(server @ Server::Member(_)) = self.harmed.keys().next_back().copied() {
            Box::pin(self.mend(server)).await?;
        }
        Ok(())
    }

    /// Does this to the member that leads, for a while.
    pub(crate) async fn harm_leader(&mut self, harm: Harm, while_: Duration) -> anyhow::Result<()> {
        let leader =
            eventually(CHOICE, "an etcd member leads", || async { self.plane.leader().await.map(Some) });
        let leader = Server::Member(leader.await?);
        self.harm(leader, harm).await?;
        sleep(while_).await;
        self.mend(leader).await
    }

    fn link(&self, server: Server, link: Link) -> anyhow::Result<()> {
        match server {
            Server::Api(one) => self.plane.api_server(one).link_to_etcd(link),
            Server::Member(one) => self.plane.etcd_member(one).link_to_peers(link),
        }
    }
}
