//! A control plane with a fleet and some replicas of the keeper.

use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt as _};
use perennial_testkit::{
    ControlPlane, Fleet, KeeperProcess, company_labels, eventually, node_name, registration,
};

const NAMESPACE: &str = "perennial";
/// How long any phase may take.
pub(crate) const LONG: Duration = Duration::from_mins(15);
/// How long one restore may take.
const RESTORE: Duration = Duration::from_mins(2);

/// Everything that runs. Stopped and removed on drop.
pub(crate) struct Cluster {
    // Dropped in this order: first those who talk, then whom they talk to.
    pub(crate) keepers: Vec<KeeperProcess>,
    pub(crate) plane: ControlPlane,
    pub(crate) nodes: Api<Node>,
    records: Api<ConfigMap>,
}

impl Cluster {
    /// Starts a control plane with so many labelled nodes, and replicas that have recorded them all.
    pub(crate) async fn start(nodes: usize, replicas: usize) -> anyhow::Result<Self> {
        let plane = ControlPlane::builder().without_audit().start().await?;
        let mut cluster = Self {
            keepers: Vec::new(),
            nodes: Api::all(plane.admin()),
            records: Api::namespaced(plane.admin(), NAMESPACE),
            plane,
        };
        let kubeconfig = cluster.plane.kubeconfig_for_keeper(NAMESPACE).await?;
        println!("bench: creating {nodes} nodes");
        cluster.fleet().create(0..nodes).await?;
        let program = KeeperProcess::beside_current_exe()?;
        for number in 1..=replicas {
            let keeper = KeeperProcess::builder(&program, cluster.plane.logs())
                .kubeconfig(&kubeconfig)
                .namespace(NAMESPACE)
                .arg("--member")
                .arg(format!("replica-{number}"));
            cluster.keepers.push(keeper.start().await.context("starting a replica")?);
        }
        cluster.records_become(nodes, "").await?;
        Ok(cluster)
    }

    pub(crate) fn fleet(&self) -> Fleet {
        Fleet::new(self.plane.admin())
    }

    /// Waits until there are so many records with this label selector.
    pub(crate) async fn records_become(&self, wanted: usize, selector: &str) -> anyhow::Result<()> {
        let what = format!("{wanted} records {selector}");
        eventually(LONG, &what, || async {
            let there = self.count(selector).await?;
            if there == wanted { Ok(Some(())) } else { Err(anyhow!("{there}")) }
        })
        .await
    }

    /// How many records there are with this label selector.
    pub(crate) async fn count(&self, selector: &str) -> anyhow::Result<usize> {
        let mut params = ListParams::default().labels(selector).limit(1);
        params.label_selector = params.label_selector.filter(|selector| !selector.is_empty());
        let page = self.records.list_metadata(&ListParams { limit: None, ..params }).await?;
        Ok(page.items.iter().filter(|map| map.name_any().starts_with("node-record.")).count())
    }

    /// Has one node deleted and registered bare, and waits until it is whole. Returns the time from the answer to
    /// the registration until a watch says so.
    pub(crate) async fn restore_one(&self, index: usize) -> anyhow::Result<Duration> {
        let name = node_name(index);
        self.nodes.delete(&name, &DeleteParams::default()).await?;
        let born = self.nodes.create(&PostParams::default(), &registration(index)).await?;
        let answered = Instant::now();
        let wanted = company_labels(index);
        let params = WatchParams::default().fields(&format!("metadata.name={name}"));
        let version = born.resource_version().unwrap_or_default();
        let whole = async {
            let mut events = std::pin::pin!(self.nodes.watch_metadata(&params, &version).await?);
            while let Some(event) = events.try_next().await? {
                if let WatchEvent::Modified(node) = event {
                    let labels = node.metadata.labels.unwrap_or_default();
                    if wanted.iter().all(|(key, value)| labels.get(key) == Some(value)) {
                        return Ok(answered.elapsed());
                    }
                }
            }
            Err(anyhow!("the watch ended"))
        };
        tokio::time::timeout(RESTORE, whole).await.with_context(|| format!("{name} is not restored"))?
    }

    /// A metric added up over all replicas.
    pub(crate) async fn metric(&self, name: &str) -> anyhow::Result<f64> {
        let mut sum = 0.0;
        for keeper in &self.keepers {
            sum += keeper.metrics().await?.get(name).copied().unwrap_or_default();
        }
        Ok(sum)
    }
}
