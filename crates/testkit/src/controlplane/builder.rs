//! Options of a control plane, and its start.

use std::{path::PathBuf, sync::Mutex};

use anyhow::{Context, ensure};
use kube::config::AuthInfo;

use super::{
    ApiServer, ControlPlane, EtcdMember, apiserver,
    audit::{Audit, audit_log},
    etcd,
    history::copy_folder,
    numbered,
    store::{Kine, Store},
};
use crate::{
    assets::{self, Assets},
    endpoint::{Endpoint, anonymous, certified},
    pki::Authority,
    port::Port,
    process::Died,
    relay::Relay,
    server::Server,
    workdir::Workdir,
};

/// How often other ports are tried when somebody took ours between the choice and the start.
const TRIES: usize = 3;

/// What may be chosen about a control plane.
#[derive(Clone, Debug)]
pub struct ControlPlaneBuilder {
    assets: Option<PathBuf>,
    apiserver_flags: Vec<String>,
    etcd_flags: Vec<String>,
    watch_cache: bool,
    audit: bool,
    data: Option<PathBuf>,
    api_servers: usize,
    etcd_members: usize,
}

impl Default for ControlPlaneBuilder {
    fn default() -> Self {
        Self {
            assets: None,
            apiserver_flags: Vec::new(),
            etcd_flags: Vec::new(),
            watch_cache: true,
            audit: true,
            data: None,
            api_servers: 1,
            etcd_members: 1,
        }
    }
}

impl ControlPlaneBuilder {
    /// Uses the binaries in this folder.
    #[must_use]
    pub fn assets(mut self, folder: impl Into<PathBuf>) -> Self {
        self.assets = Some(folder.into());
        self
    }

    /// Adds a flag of kube-apiserver, e.g. `--max-requests-inflight=4000`. It wins over one of ours.
    #[must_use]
    pub fn apiserver_flag(mut self, flag: impl Into<String>) -> Self {
        self.apiserver_flags.push(flag.into());
        self
    }

    /// Adds a flag of etcd.
    #[must_use]
    pub fn etcd_flag(mut self, flag: impl Into<String>) -> Self {
        self.etcd_flags.push(flag.into());
        self
    }

    /// Has every list and watch served by etcd itself.
    #[must_use]
    pub fn without_watch_cache(mut self) -> Self {
        self.watch_cache = false;
        self
    }

    /// Writes no audit log: it costs time when requests come by the hundred thousand.
    #[must_use]
    pub fn without_audit(mut self) -> Self {
        self.audit = false;
        self
    }

    /// Starts from a copy of what [`ControlPlane::save`] saved in this folder.
    #[must_use]
    pub fn data(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data = Some(folder.into());
        self
    }

    /// Runs so many API servers behind a balancer.
    #[must_use]
    pub fn api_servers(mut self, many: usize) -> Self {
        self.api_servers = many;
        self
    }

    /// Runs an etcd of so many members.
    #[must_use]
    pub fn etcd_members(mut self, many: usize) -> Self {
        self.etcd_members = many;
        self
    }

    /// Starts it, and returns when it is ready.
    pub async fn start(self) -> anyhow::Result<ControlPlane> {
        ensure!(self.api_servers > 0 && self.etcd_members > 0, "a control plane without servers");
        ensure!(
            self.data.is_none() || self.etcd_members == 1,
            "saved data are those of a single etcd member"
        );
        let store = Store::chosen()?;
        ensure!(
            store == Store::Etcd || (self.etcd_members == 1 && self.etcd_flags.is_empty()),
            "several members and flags of etcd need etcd itself"
        );
        let assets = match &self.assets {
            Some(folder) => Assets::in_folder(folder)?,
            None => Assets::find()?,
        };
        let mut tries = 0;
        loop {
            tries += 1;
            let mut controlplane = self.prepare(&assets, store)?;
            let Err(mut error) = controlplane.start_all().await else { return Ok(controlplane) };
            if port_was_taken(&error) {
                if tries < TRIES {
                    continue;
                }
                error = error.context(format!("none of {TRIES} tries found its ports free"));
            }
            controlplane.workdir.keep_logs();
            let logs = controlplane.logs().display().to_string();
            return Err(error.context(format!("the control plane did not start (logs kept in {logs})")));
        }
    }

    fn prepare(&self, assets: &Assets, store: Store) -> anyhow::Result<ControlPlane> {
        let workdir = Workdir::create("perennial-controlplane-")?;
        let authority = Authority::create(workdir.folder("pki")?).context("making certificates")?;
        workdir.folder("kubeconfigs")?;
        let etcd_client = authority.client("kube-apiserver-etcd-client", None)?;
        let etcd_identity = certified(&etcd_client);
        let admin = certified(&authority.client("admin", Some("system:masters"))?);

        let members = match store {
            Store::Etcd => self.prepare_members(assets, &workdir, &authority, &etcd_identity)?,
            Store::Kine => vec![self.prepare_kine(&workdir, &authority)?],
        };
        let etcd: Vec<u16> = members.iter().map(|member| member.port).collect();
        let service_accounts = authority.signing_key("service-accounts")?;
        let apiservers = (0..self.api_servers).map(|index| {
            let name = numbered("kube-apiserver", index);
            let port = Port::claim()?;
            let relay = (self.api_servers > 1 || self.etcd_members > 1).then(|| {
                let mut nearest_first = etcd.clone();
                nearest_first.rotate_left(index % etcd.len());
                Relay::to_first(nearest_first)
            });
            let relay = relay.transpose()?;
            let audit = audit_log(&workdir.logs(), index);
            let flags = apiserver::Flags {
                name: &name,
                program: &assets.kube_apiserver(),
                log: &workdir.logs().join(&name).with_extension("log"),
                port: &port,
                etcd: relay.as_ref().map_or(etcd[0], Relay::port),
                etcd_client: &etcd_client,
                authority: &authority,
                service_accounts: &service_accounts,
                audit: self.audit.then_some(audit.as_path()),
                watch_cache: self.watch_cache,
                more: &self.apiserver_flags,
            };
            let launch = flags.launch()?;
            let endpoint = Endpoint::https(port.number(), &authority);
            let server = Server::new(launch, port, endpoint, admin.clone());
            anyhow::Ok(ApiServer { server, admin: admin.clone(), relay })
        });
        let apiservers = apiservers.collect::<anyhow::Result<Vec<_>>>()?;

        let ports: Vec<u16> = apiservers.iter().map(|one| one.server.port()).collect();
        let first = ports[0];
        let balancer = (ports.len() > 1).then(|| Relay::in_turn(ports)).transpose()?;
        let endpoint = Endpoint::https(balancer.as_ref().map_or(first, Relay::port), &authority);
        let audits = apiservers.iter().map(|_| Audit::default()).collect();
        Ok(ControlPlane {
            apiservers,
            members,
            store,
            _balancer: balancer,
            endpoint,
            etcd_identity,
            admin,
            authority,
            assets: assets.clone(),
            workdir,
            audits: Mutex::new(audits),
        })
    }

    fn prepare_members(
        &self,
        assets: &Assets,
        workdir: &Workdir,
        authority: &Authority,
        identity: &AuthInfo,
    ) -> anyhow::Result<Vec<EtcdMember>> {
        let several = self.etcd_members > 1;
        let peer_ports = (0..self.etcd_members).filter(|_| several).map(|_| Port::claim());
        let peer_ports = peer_ports.collect::<anyhow::Result<Vec<_>>>()?;
        let relays = Relay::between_peers(&peer_ports.iter().map(Port::number).collect::<Vec<_>>())?;
        let advertised: Vec<u16> = relays.iter().map(Relay::port).collect();
        let url = |(index, port)| format!("{}=http://127.0.0.1:{port}", numbered("etcd", index));
        let all = advertised.iter().enumerate().map(url).collect::<Vec<_>>().join(",");

        let (mut peer_ports, mut relays) = (peer_ports.into_iter(), relays.into_iter());
        let members = (0..self.etcd_members).map(|index| {
            let name = numbered("etcd", index);
            let (port, peer_port) = (Port::claim()?, peer_ports.next());
            let data = workdir.path().join(&name);
            if let Some(saved) = &self.data {
                copy_folder(saved, &data).with_context(|| format!("copying {}", saved.display()))?;
            }
            let peers = peer_port.as_ref().zip(advertised.get(index));
            let flags = etcd::Flags {
                name: &name,
                program: &assets.etcd(),
                log: &workdir.logs().join(&name).with_extension("log"),
                data: &data,
                port: &port,
                authority: &authority.certificate(),
                server: &authority.server(&name)?,
                peers: peers.map(|(port, advertised)| etcd::Peers {
                    port,
                    advertised: *advertised,
                    all: &all,
                }),
            };
            let launch = flags.launch().args(&self.etcd_flags);
            let endpoint = Endpoint::https(port.number(), authority);
            let server = Server::new(launch, port, endpoint, identity.clone());
            let (port, relay) = (server.port(), relays.next());
            Ok(EtcdMember { server, port, data, relay, _claimed: peer_port })
        });
        members.collect()
    }

    /// kine in the place of an etcd member.
    fn prepare_kine(&self, workdir: &Workdir, authority: &Authority) -> anyhow::Result<EtcdMember> {
        let (port, metrics) = (Port::claim()?, Port::claim()?);
        let data = workdir.path().join("kine");
        let made = match &self.data {
            Some(saved) => copy_folder(saved, &data),
            None => std::fs::create_dir(&data),
        };
        made.with_context(|| format!("making {}", data.display()))?;
        let kine = Kine {
            program: &assets::kine()?,
            log: &workdir.logs().join("kine.log"),
            data: &data,
            port: &port,
            metrics: &metrics,
            authority: &authority.certificate(),
            server: &authority.server("kine")?,
        };
        let (launch, endpoint) = (kine.launch(), Endpoint::http(&metrics));
        let server = Server::new(launch, metrics, endpoint, anonymous()).health("/metrics");
        Ok(EtcdMember { server, port: port.number(), data, relay: None, _claimed: Some(port) })
    }
}

fn port_was_taken(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Died>().is_some_and(|died| died.tail.contains("address already in use"))
}
