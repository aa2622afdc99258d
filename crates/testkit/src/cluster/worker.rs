//! One worker, and what can happen to it.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context as _, anyhow};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use tokio::process::Command;

use super::{
    cgroups,
    command::run,
    console::Console,
    layout::{self, CONTROL_PLANE, Layout},
    machine::{Bond, Machine},
    network,
    node::{self, SOCKET},
};
use crate::{assets::ClusterAssets, eventually::eventually};

/// Seconds when nothing else runs; this is for machines on which much does.
const PATIENCE: Duration = Duration::from_mins(5);

/// Waits until a node is there and ready.
pub async fn ready(nodes: &Api<Node>, name: &str) -> anyhow::Result<Node> {
    eventually(PATIENCE, &format!("{name} is ready"), || async {
        let node = nodes.get(name).await?;
        let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
        let ready = conditions.into_iter().flatten().find(|condition| condition.type_ == "Ready");
        match ready {
            Some(condition) if condition.status == "True" => Ok(Some(node)),
            Some(condition) => Err(anyhow!("{}", condition.message.as_deref().unwrap_or("not ready"))),
            None => Err(anyhow!("its kubelet has said nothing yet")),
        }
    })
    .await
}

/// A machine with a kubelet, a containerd and a kube-proxy.
#[derive(Clone, Debug)]
pub struct Worker {
    number: u8,
    machine: Machine,
    control_plane: Machine,
    layout: Layout,
    assets: ClusterAssets,
    bond: Bond,
}

impl Worker {
    pub(super) fn new(number: u8, layout: &Layout, assets: &ClusterAssets, bond: Bond) -> Self {
        let machine = |name: &str| Machine::new(name, layout.machine(name), &layout.logs());
        Self {
            number,
            machine: machine(&format!("worker-{number}")),
            control_plane: machine(CONTROL_PLANE),
            layout: layout.clone(),
            assets: assets.clone(),
            bond,
        }
    }

    /// Its name, `worker-1` and so on: the Node's too.
    #[must_use]
    pub fn name(&self) -> &str {
        self.machine.name()
    }

    /// Its address on the cluster's network.
    #[must_use]
    pub fn address(&self) -> String {
        layout::address(self.number)
    }

    /// The `spec.providerID` that its kubelet registers with.
    pub fn provider_id(&self) -> anyhow::Result<String> {
        fs::read_to_string(self.machine.etc("provider-id"))
            .with_context(|| format!("reading the provider id of {}", self.name()))
    }

    /// A command that runs on this machine, with its processes, files and network.
    pub fn command(&self, program: &str) -> anyhow::Result<Command> {
        self.machine.command(program)
    }

    /// Ends the kubelet. Its pods run on, and its Node is as it was until the cluster misses it.
    pub async fn stop_kubelet(&self) -> anyhow::Result<()> {
        self.machine.down("kubelet").await
    }

    /// Starts the kubelet. It registers a Node if there is none.
    pub async fn start_kubelet(&self) -> anyhow::Result<()> {
        self.machine.up("kubelet").await
    }

    /// Ends the kubelet and starts it again: then it registers, if its Node was deleted.
    pub async fn restart_kubelet(&self) -> anyhow::Result<()> {
        self.stop_kubelet().await?;
        self.start_kubelet().await
    }

    /// Kills the kubelet without a warning. It is started again a second later.
    pub async fn kill_kubelet(&self) -> anyhow::Result<()> {
        self.machine.kill("kubelet").await
    }

    /// Switches the machine off without a warning: all that runs on it is gone, its disk stays.
    pub fn power_off(&self) -> anyhow::Result<()> {
        self.machine.cut_power()
    }

    /// Switches the machine on again: the same machine, after a reboot.
    pub async fn power_on(&self) -> anyhow::Result<()> {
        self.boot().await?;
        self.start_runtime().await?;
        self.start_node().await
    }

    /// Puts another machine in its place: the same name and address, empty disks, another provider id.
    ///
    /// The Node of the old machine should be deleted before, as a cloud's controller does it: a Node's provider id
    /// cannot be changed. Images that were imported are gone; those of the cluster are imported again.
    pub async fn replace(&self) -> anyhow::Result<()> {
        self.power_off()?;
        self.create()?;
        self.boot().await?;
        self.start_runtime().await?;
        self.import(&self.assets.images()?).await?;
        self.start_node().await
    }

    /// Waits until the Node is there and ready, and returns it.
    ///
    /// Ready is what the cluster believes: a machine that was switched off a moment ago still is, until its Lease runs out
    /// (half a minute) or its Node is deleted.
    pub async fn ready(&self, console: &Console) -> anyhow::Result<Node> {
        let nodes: Api<Node> = Api::all(console.client().await?);
        ready(&nodes, self.name()).await
    }

    /// Imports images from tars, as `docker save` and OCI tools write them.
    pub(super) async fn import(&self, tars: &[impl AsRef<Path>]) -> anyhow::Result<()> {
        for tar in tars {
            let tar = tar.as_ref();
            let file = fs::File::open(tar).with_context(|| format!("opening {}", tar.display()))?;
            // By its standard input, because the machine may not see the file.
            run(self.ctr()?.args(["images", "import", "-"]).stdin(file))
                .await
                .with_context(|| format!("importing {} into {}", tar.display(), self.name()))?;
        }
        Ok(())
    }

    /// Gives an image another name besides.
    pub(super) async fn tag(&self, name: &str, other: &str) -> anyhow::Result<()> {
        run(self.ctr()?.args(["images", "tag", "--force", name, other])).await.map(drop)
    }

    /// Makes a new machine, switched off.
    pub(super) fn create(&self) -> anyhow::Result<()> {
        self.machine.create()?;
        let id = format!("perennial://{}/{:08x}", self.name(), rand::random::<u32>());
        fs::write(self.machine.etc("provider-id"), &id)?;
        node::configure(&self.layout, &self.machine, &self.assets, self.number, &id)
    }

    /// Switches it on and plugs it in. Nothing runs on it yet.
    pub(super) async fn boot(&self) -> anyhow::Result<()> {
        cgroups::create(self.name())?;
        self.machine.boot(self.bond).await?;
        network::connect_worker(&self.machine, self.number, &self.control_plane).await
    }

    /// Starts containerd, and returns when images can be imported.
    pub(super) async fn start_runtime(&self) -> anyhow::Result<()> {
        self.machine.up("containerd").await?;
        eventually(PATIENCE, &format!("containerd answers on {}", self.name()), || async {
            run(self.ctr()?.arg("version")).await.map(Some)
        })
        .await?;
        Ok(())
    }

    /// Starts what makes it a node.
    pub(super) async fn start_node(&self) -> anyhow::Result<()> {
        try_join_all(["kubelet", "kube-proxy"].map(|service| self.machine.up(service))).await?;
        Ok(())
    }

    fn ctr(&self) -> anyhow::Result<Command> {
        let mut ctr = self.machine.command(&self.assets.binary("ctr").display().to_string())?;
        ctr.args(["--address", SOCKET, "--namespace", "k8s.io"]);
        Ok(ctr)
    }
}
