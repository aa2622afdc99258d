//! etcd's history: where it stands, how to cut it off, how to turn it back.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::Request;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, api::ListParams};
use serde_json::{Value, json};

use super::{ControlPlane, EtcdMember, Store};
use crate::assets;

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

/// A snapshot as etcd itself gives it to those who make backups, for as long as the control plane lives.
#[derive(Clone, Debug)]
pub struct Backup {
    file: PathBuf,
    /// The revision that it has at least.
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
        self.kill_all().await?;
        for (member, folder) in self.members.iter().zip(&snapshot.folders) {
            fs::remove_dir_all(&member.data)?;
            copy_folder(folder, &member.data).context("copying the snapshot")?;
        }
        self.start_all().await
    }

    /// Asks etcd for a snapshot, as `etcdctl snapshot save` does.
    pub async fn back_up_etcd(&self) -> anyhow::Result<Backup> {
        let revision = self.revision().await?;
        let number = fs::read_dir(self.workdir.path())?.count();
        let file = self.workdir.path().join(format!("backup-{number}.db"));
        // The gateway sends one JSON object a piece.
        let answer = self.answer_of(self.only_member()?, "/v3/maintenance/snapshot", &json!({})).await?;
        let mut snapshot = Vec::new();
        for piece in serde_json::Deserializer::from_str(&answer).into_iter::<Value>() {
            let piece = piece?;
            let blob = piece.pointer("/result/blob").and_then(Value::as_str).unwrap_or_default();
            STANDARD.decode_vec(blob, &mut snapshot)?;
        }
        fs::write(&file, snapshot)?;
        Ok(Backup { file, revision })
    }

    /// Restores such a snapshot with etcdutl, under the same address. With `raised_by`, it adds so much to the revision and
    /// marks all before as compacted, as etcd recommends for Kubernetes, so that versions never run backwards. Returns when
    /// all servers are ready again. Only where there is one etcd member.
    pub async fn restore_backup(&self, backup: &Backup, raised_by: Option<u64>) -> anyhow::Result<()> {
        let member = self.only_member()?;
        self.kill_all().await?;
        fs::remove_dir_all(&member.data)?;
        let mut command = tokio::process::Command::new(assets::etcdutl()?);
        command.args(["snapshot", "restore"]).arg(&backup.file).arg("--data-dir").arg(&member.data);
        if let Some(by) = raised_by {
            command.args(["--mark-compacted", "--bump-revision", &by.to_string()]);
        }
        // Ctrl-C is for us alone.
        command.stdin(Stdio::null()).process_group(0).kill_on_drop(true);
        let restored = command.output().await.context("starting etcdutl")?;
        let told = String::from_utf8_lossy(&restored.stderr);
        ensure!(restored.status.success(), "etcdutl snapshot restore: {}", told.trim());
        self.start_all().await
    }

    fn only_member(&self) -> anyhow::Result<&EtcdMember> {
        match self.members.as_slice() {
            [member] => Ok(member),
            _ => bail!("only a single etcd member can be saved, backed up or restored from a backup"),
        }
    }

    async fn kill_all(&self) -> anyhow::Result<()> {
        let members = self.members.iter().map(|member| &member.server);
        for server in self.apiservers.iter().map(|one| &one.server).chain(members) {
            if server.pid().await.is_some() {
                server.kill().await?;
            }
        }
        Ok(())
    }

    /// Ends it, and leaves what it knew in this new folder, for [`super::ControlPlaneBuilder::data`]. Only where there
    /// is one etcd member.
    pub async fn save(self, folder: &Path) -> anyhow::Result<()> {
        let member = self.only_member()?;
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
        Ok(serde_json::from_str(&self.answer_of(member, path, body).await?)?)
    }

    async fn answer_of(&self, member: &EtcdMember, path: &str, body: &Value) -> anyhow::Result<String> {
        ensure!(self.store == Store::Etcd, "this needs etcd itself: kine has no JSON gateway");
        let request = Request::post(path).body(serde_json::to_vec(body)?)?;
        member.server.endpoint().ask(&self.etcd_identity, request).await
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
