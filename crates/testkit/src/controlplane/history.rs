//! etcd's history: where it stands, how to cut it off, how to turn it back.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use http::Request;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, api::ListParams};
use serde_json::{Value, json};

use super::{ControlPlane, EtcdMember, Store};

/// A member with a large fleet takes its time to write all it has.
const SAVED: Duration = Duration::from_mins(1);

/// A copy of etcd's data, for as long as the control plane lives.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// One for each member.
    folders: Vec<PathBuf>,
    /// The revision that it was taken at.
    pub revision: u64,
}

impl ControlPlane {
    /// etcd's current revision, which is also the newest resourceVersion.
    pub async fn revision(&self) -> anyhow::Result<u64> {
        if self.store == Store::Kine {
            let nodes: Api<Node> = Api::all(self.admin());
            let listed = nodes.list_metadata(&ListParams::default().limit(1)).await?;
            return Ok(listed.metadata.resource_version.context("a list without a version")?.parse()?);
        }
        // etcd's gateway speaks protobuf's JSON: bytes in base64 (this is "/"), 64-bit numbers as strings.
        let answer = self.ask_etcd("/v3/kv/range", &json!({ "key": "Lw==", "limit": "1" })).await?;
        let revision = answer.pointer("/header/revision").and_then(Value::as_str);
        Ok(revision.with_context(|| format!("no revision in {answer}"))?.parse()?)
    }

    /// Makes etcd forget all history before `revision`, and waits until it has.
    pub async fn compact(&self, revision: u64) -> anyhow::Result<()> {
        let order = json!({ "revision": revision.to_string(), "physical": true });
        self.ask_etcd("/v3/kv/compaction", &order).await.map(drop)
    }

    /// Copies etcd's data as they are now. etcd stands still for a moment; nobody is disconnected.
    pub async fn snapshot_etcd(&self) -> anyhow::Result<Snapshot> {
        let revision = self.revision().await?;
        let number = fs::read_dir(self.workdir.path())?.count();
        let folder = |member| self.workdir.path().join(format!("snapshot-{number}-{member}"));
        let folders: Vec<PathBuf> = (0..self.members.len()).map(folder).collect();
        // Frozen between two instructions, its files are what they would be after a kill -9: etcd starts from that.
        // So does a quorum, and members that were frozen a little earlier are only a little behind.
        self.pause_etcd().await?;
        let mut members = self.members.iter().zip(&folders);
        let copied = members.try_for_each(|(member, folder)| copy_folder(&member.data, folder));
        self.resume_etcd().await?;
        copied.context("copying etcd's data")?;
        Ok(Snapshot { folders, revision })
    }

    /// Puts an older state in the place of the present one, under the same address: what an administrator does
    /// after a disaster. Every member gets what it had itself. Returns when all servers are ready again.
    pub async fn restore_etcd(&self, snapshot: &Snapshot) -> anyhow::Result<()> {
        let members = self.members.iter().map(|member| &member.server);
        for server in self.apiservers.iter().map(|one| &one.server).chain(members) {
            if server.pid().await.is_some() {
                server.kill().await?;
            }
        }
        for (member, folder) in self.members.iter().zip(&snapshot.folders) {
            fs::remove_dir_all(&member.data)?;
            copy_folder(folder, &member.data).context("copying the snapshot")?;
        }
        self.start_all().await
    }

    /// Ends it, and leaves what it knew in this new folder, for [`super::ControlPlaneBuilder::data`]. Only where there
    /// is one etcd member.
    pub async fn save(self, folder: &Path) -> anyhow::Result<()> {
        let [member] = self.members.as_slice() else {
            bail!("only the data of a single member can be saved")
        };
        // The API server first: what it has under way shall be in it.
        self.stop_apiserver().await?;
        member.server.stop(SAVED).await?;
        copy_folder(&member.data, folder).with_context(|| format!("saving to {}", folder.display()))
    }

    /// A client of the gateway of each member.
    pub(crate) fn etcd_clients(&self) -> anyhow::Result<Vec<kube::Client>> {
        ensure!(self.store == Store::Etcd, "this needs etcd itself: kine has no JSON gateway");
        let clients = self.members.iter().map(|member| member.server.endpoint().client(&self.etcd_identity));
        clients.collect()
    }

    /// Asks one member after the other until one answers.
    pub(super) async fn ask_etcd(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let mut refused = None;
        for member in &self.members {
            match self.ask_member(member, path, body).await {
                Ok(answer) => return Ok(answer),
                Err(error) => refused = Some(error),
            }
        }
        Err(refused.context("there is no etcd")?)
    }

    pub(super) async fn ask_member(
        &self,
        member: &EtcdMember,
        path: &str,
        body: &Value,
    ) -> anyhow::Result<Value> {
        ensure!(self.store == Store::Etcd, "this needs etcd itself: kine has no JSON gateway");
        let request = Request::post(path).body(serde_json::to_vec(body)?)?;
        Ok(serde_json::from_str(&member.server.endpoint().ask(&self.etcd_identity, request).await?)?)
    }
}

pub(super) fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
