//! Options of a control plane, and its start.

use std::{path::PathBuf, sync::Mutex, time::Duration};

use anyhow::Context;

use super::{ControlPlane, apiserver::ApiServer, etcd::Etcd, history::copy_folder};
use crate::{
    assets::Assets,
    endpoint::{Endpoint, certified},
    pki::Authority,
    port::Port,
    process::Died,
    server::Server,
    workdir::Workdir,
};

/// About two seconds when nothing else runs; this is for machines on which much does.
const READY: Duration = Duration::from_mins(1);
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

    /// Starts it, and returns when it is ready.
    pub async fn start(self) -> anyhow::Result<ControlPlane> {
        let assets = match &self.assets {
            Some(folder) => Assets::in_folder(folder)?,
            None => Assets::find()?,
        };
        let mut tries = 0;
        loop {
            tries += 1;
            let mut controlplane = self.prepare(&assets)?;
            let Err(mut error) = controlplane.start_both().await else { return Ok(controlplane) };
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

    fn prepare(&self, assets: &Assets) -> anyhow::Result<ControlPlane> {
        let workdir = Workdir::create("perennial-controlplane-")?;
        let authority = Authority::create(workdir.folder("pki")?).context("making certificates")?;
        workdir.folder("kubeconfigs")?;
        let etcd_client = authority.client("kube-apiserver-etcd-client", None)?;
        let etcd_identity = certified(&etcd_client);
        let admin = certified(&authority.client("admin", Some("system:masters"))?);
        let (etcd_port, port) = (Port::claim()?, Port::claim()?);

        let data = workdir.path().join("etcd");
        if let Some(saved) = &self.data {
            copy_folder(saved, &data).with_context(|| format!("copying {}", saved.display()))?;
        }
        let etcd = Etcd {
            program: &assets.etcd(),
            log: &workdir.logs().join("etcd.log"),
            data: &data,
            port: &etcd_port,
            authority: &authority.certificate(),
            server: &authority.server("etcd")?,
        };
        let etcd = etcd.launch().args(&self.etcd_flags);
        let audit = workdir.logs().join("audit.log");
        let apiserver = ApiServer {
            program: &assets.kube_apiserver(),
            log: &workdir.logs().join("kube-apiserver.log"),
            port: &port,
            etcd: &etcd_port,
            etcd_client: &etcd_client,
            authority: &authority,
            audit: self.audit.then_some(audit.as_path()),
            watch_cache: self.watch_cache,
            flags: &self.apiserver_flags,
        };
        let apiserver = apiserver.launch()?;

        let etcd_endpoint = Endpoint::https(&etcd_port, &authority);
        let endpoint = Endpoint::https(&port, &authority);
        Ok(ControlPlane {
            apiserver: Server::new(apiserver, port, endpoint, admin.clone()),
            etcd: Server::new(etcd, etcd_port, etcd_endpoint, etcd_identity.clone()),
            etcd_identity,
            admin,
            authority,
            assets: assets.clone(),
            workdir,
            audit: Mutex::default(),
        })
    }
}

impl ControlPlane {
    /// The API server waits for etcd by itself, so they start together.
    pub(super) async fn start_both(&self) -> anyhow::Result<()> {
        self.etcd.spawn().await?;
        self.apiserver.spawn().await?;
        tokio::try_join!(self.etcd.ready(READY), self.apiserver.ready(READY))?;
        Ok(())
    }
}

fn port_was_taken(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Died>().is_some_and(|died| died.tail.contains("address already in use"))
}
