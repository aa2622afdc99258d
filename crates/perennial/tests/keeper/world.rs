//! A cluster with nodes, people and a keeper: what every suite of keeper tests stands on.
#![allow(dead_code, reason = "each suite uses its own part of the world")]
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "what a test needs and lacks fails it; gauges are whole"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Event, Node};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use perennial::admin::Readiness;
use perennial::cluster::{self, Cluster};
use perennial::config::Connect;
use perennial::keeper::{self, Metrics};
use perennial::members::{self, Membership};
use perennial::{KeeperConfig, MembersConfig, client, metrics};
use perennial_core::policy::Policy;
use perennial_core::record::{DATA_KEY, Record, State, record_name};
use perennial_testkit::{ControlPlane, eventually};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::plane::Plane;

/// How long anything may take on a loaded machine. Nothing waits this long unless it fails; whoever expects
/// failures (`dev/guards/run`) is in more of a hurry.
pub(crate) const SOON: Duration =
    Duration::from_secs(if option_env!("PERENNIAL_HASTE").is_some() { 20 } else { 60 });
/// Where the keeper of a cluster of one's own lives.
pub(crate) const NAMESPACE: &str = "perennial";
/// Its mark.
pub(crate) const MARK: &str = "restored.perennial.dev/perennial";

/// Labels, as tests write them.
pub(crate) type Labels = BTreeMap<String, String>;

/// Pairs from literals.
pub(crate) fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> Labels {
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

/// A cluster with a keeper, or with one that is about to start.
pub(crate) struct World {
    pub(crate) plane: Plane,
    namespace: String,
    kubeconfig: PathBuf,
    pub(crate) account: Client,
    policy: watch::Sender<Arc<Policy>>,
    config: KeeperConfig,
    running: Option<Running>,
    beside: Vec<Running>,
    members: BTreeMap<String, Running>,
}

/// A keeper that runs in this process.
struct Running {
    work: JoinHandle<Result<(), keeper::Error>>,
    /// How it follows the other members, where it does.
    following: Option<JoinHandle<()>>,
    stop: CancellationToken,
    readiness: Readiness,
    registry: prometheus_client::registry::Registry,
}

impl Running {
    /// Ends it as a rollout does: it drains.
    async fn stop(self) {
        self.stop.cancel();
        self.work.await.unwrap().unwrap();
        if let Some(following) = self.following {
            following.await.unwrap();
        }
    }

    /// Ends it as a power cut does, at whatever it was doing.
    async fn crash(self) {
        for task in [Some(self.work.abort_handle()), self.following.as_ref().map(JoinHandle::abort_handle)] {
            task.iter().for_each(AbortHandle::abort);
        }
        assert!(self.work.await.unwrap_err().is_cancelled());
    }

    fn scrape(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        text
    }

    fn metric(&self, name: &str) -> f64 {
        let text = self.scrape();
        let wanted = format!("perennial_{name} ");
        text.lines().find_map(|line| line.strip_prefix(&wanted)).map_or(0.0, |value| value.parse().unwrap())
    }

    async fn is_ready(&self) {
        eventually(SOON, "the keeper is in step", || async {
            Ok(self.readiness.missing().is_empty().then_some(()))
        })
        .await
        .unwrap();
    }
}

impl World {
    /// A cluster with a keeper of the default policy, in step with it.
    pub(crate) async fn start() -> Self {
        Self::with_policy("").await
    }

    /// A cluster with a keeper of this policy, in step with it.
    pub(crate) async fn with_policy(yaml: &str) -> Self {
        let mut world = Self::without_keeper(yaml).await;
        world.start_keeper().await;
        world
    }

    /// A cluster whose keeper is about to start.
    pub(crate) async fn without_keeper(yaml: &str) -> Self {
        let (plane, namespace) = Plane::shared().await;
        Self::in_namespace(plane, namespace, yaml).await
    }

    /// A cluster of one's own, for tests that stop its servers, rewrite its history or change its roles. Its
    /// keeper is about to start.
    pub(crate) async fn alone(yaml: &str) -> Self {
        Self::on(ControlPlane::start().await.unwrap(), yaml).await
    }

    /// The same with a keeper of the default policy, in step with it.
    pub(crate) async fn started_alone() -> Self {
        let mut world = Self::alone("").await;
        world.start_keeper().await;
        world
    }

    /// The same on a control plane of one's own making.
    pub(crate) async fn on(plane: ControlPlane, yaml: &str) -> Self {
        Self::in_namespace(Plane::own(plane), NAMESPACE.to_owned(), yaml).await
    }

    async fn in_namespace(plane: Plane, namespace: String, yaml: &str) -> Self {
        let kubeconfig = plane.kubeconfig_for_keeper(&namespace).await.unwrap();
        let account = connect(&kubeconfig).await;
        let (policy, receiver) = watch::channel(Arc::new(Policy::parse(yaml).unwrap()));
        let config = KeeperConfig {
            close_after: Duration::from_millis(200),
            open_after: Duration::from_millis(200),
            collect_every: Duration::from_millis(300),
            retry_slowly: Duration::from_millis(300),
            installation: "perennial".to_owned(),
            ..KeeperConfig::new(&namespace, receiver)
        };
        Self {
            plane,
            namespace,
            kubeconfig,
            account,
            policy,
            config,
            running: None,
            beside: Vec::new(),
            members: BTreeMap::new(),
        }
    }

    /// Where the keeper lives.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Who the keeper is to the API server.
    pub(crate) fn keepers_name(&self) -> String {
        format!("system:serviceaccount:{}:perennial", self.namespace)
    }

    /// What the keeper finds the API server with.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Puts something between the next keeper and the API server.
    pub(crate) fn interpose<T>(&mut self, between: impl FnOnce(Client) -> (Client, T)) -> T {
        let (account, hand) = between(self.account.clone());
        self.account = account;
        hand
    }

    /// Changes what the next keeper is started with.
    pub(crate) fn configure(&mut self, change: impl FnOnce(&mut KeeperConfig)) {
        change(&mut self.config);
    }

    /// Changes the policy, as a new version of its file would.
    pub(crate) fn change_policy(&self, yaml: &str) {
        self.policy.send(Arc::new(Policy::parse(yaml).unwrap())).unwrap();
    }

    /// Starts the keeper and waits until it is in step with the cluster.
    pub(crate) async fn start_keeper(&mut self) {
        self.spawn_keeper();
        self.keeper_is_ready().await;
    }

    /// Starts the keeper and does not wait.
    pub(crate) fn spawn_keeper(&mut self) {
        assert!(self.running.is_none(), "a keeper runs already");
        self.running = Some(Self::run(self.account.clone(), self.config.clone(), None));
    }

    /// Another keeper takes the place of this one: it knows that there are records, and has yet to read what is in them.
    pub(crate) async fn replace_keeper(&mut self) {
        self.stop_keeper().await;
        self.start_keeper().await;
    }

    /// Starts one more keeper, configured like the first but for this.
    pub(crate) async fn start_keeper_beside(&mut self, change: impl FnOnce(&mut KeeperConfig)) {
        self.start_keeper_by(self.account.clone(), change).await;
    }

    /// The same by another way to the API server.
    pub(crate) async fn start_keeper_by(&mut self, account: Client, change: impl FnOnce(&mut KeeperConfig)) {
        let mut config = self.config.clone();
        change(&mut config);
        let running = Self::run(account, config, None);
        running.is_ready().await;
        self.beside.push(running);
    }

    /// Starts a replica that knows the others by this name, and waits until it is in step.
    pub(crate) async fn start_member(&mut self, name: &str) {
        self.start_member_with(name, |_, _| {}).await;
    }

    /// The same, configured like the first keeper but for this.
    pub(crate) async fn start_member_with(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut KeeperConfig, &mut MembersConfig),
    ) {
        self.spawn_member(name, self.account.clone(), change);
        self.member_is_ready(name).await;
    }

    /// The same by another way to the API server, without waiting.
    pub(crate) fn spawn_member(
        &mut self,
        name: &str,
        account: Client,
        change: impl FnOnce(&mut KeeperConfig, &mut MembersConfig),
    ) {
        let mut config = self.config.clone();
        let mut members = MembersConfig {
            takeover: Duration::from_millis(500),
            lease: Duration::from_secs(2),
            ..MembersConfig::new(name, &config)
        };
        change(&mut config, &mut members);
        members.policy = config.policy.clone();
        let running = Self::run(account, config, Some(members));
        assert!(self.members.insert(name.to_owned(), running).is_none(), "{name} runs already");
    }

    /// Waits until a member is in step with the cluster.
    pub(crate) async fn member_is_ready(&self, name: &str) {
        self.members[name].is_ready().await;
    }

    /// The members that run.
    pub(crate) fn member_names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// Stops a member as a rollout does: it drains, and leaves.
    pub(crate) async fn stop_member(&mut self, name: &str) {
        self.members.remove(name).unwrap().stop().await;
    }

    /// Ends a member as a power cut does.
    pub(crate) async fn crash_member(&mut self, name: &str) {
        self.members.remove(name).unwrap().crash().await;
    }

    /// One of a member's metrics, as [`World::metric`].
    pub(crate) fn metric_of(&self, member: &str, name: &str) -> f64 {
        self.members[member].metric(name)
    }

    /// A metric added up over all members.
    pub(crate) fn metric_of_all(&self, name: &str) -> f64 {
        self.members.values().map(|member| member.metric(name)).sum()
    }

    fn run(account: Client, config: KeeperConfig, members: Option<MembersConfig>) -> Running {
        let mut registry = metrics::registry();
        let section = metrics::section(&mut registry);
        let calls = Arc::new(cluster::Metrics::register(section));
        let measured = Arc::new(Metrics::register(section));
        let of_members = Arc::new(members::Metrics::register(section));
        let cluster = Cluster::new(account, calls);
        let (readiness, stop) = (Readiness::default(), CancellationToken::new());
        let ready = readiness.handle("keeper");
        let (membership, following) = match members {
            None => (Membership::alone(of_members), None),
            Some(config) => {
                let (membership, follow) = members::join(cluster.clone(), config, of_members, stop.clone());
                (membership, Some(tokio::spawn(follow)))
            }
        };
        let work = tokio::spawn(keeper::run(cluster, config, measured, membership, ready, stop.clone()));
        Running { work, following, stop, readiness, registry }
    }

    /// Waits until the keeper is in step with the cluster.
    pub(crate) async fn keeper_is_ready(&self) {
        self.running.as_ref().unwrap().is_ready().await;
    }

    /// Stops the keeper as a rollout does: it drains.
    pub(crate) async fn stop_keeper(&mut self) {
        self.running.take().unwrap().stop().await;
    }

    /// Ends the keeper as a power cut does, at whatever it was doing.
    pub(crate) async fn crash_keeper(&mut self) {
        self.running.take().unwrap().crash().await;
    }

    /// One of the keeper's metrics, `name` or `name{kind="…"}` without the prefix; 0 if it is not there yet.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        self.running.as_ref().unwrap().metric(name)
    }

    /// All of the keeper's metrics, as Prometheus gets them.
    pub(crate) fn scrape(&self) -> String {
        self.running.as_ref().unwrap().scrape()
    }

    /// Waits until a metric is at least this.
    pub(crate) async fn metric_reaches(&self, name: &str, least: f64) {
        eventually(SOON, &format!("{name} reaches {least}"), || async {
            let value = self.metric(name);
            if value >= least { Ok(Some(())) } else { Err(anyhow::anyhow!("{value}")) }
        })
        .await
        .unwrap();
    }

    // ── Nodes, as people and kubelets see them ──

    pub(crate) fn nodes(&self) -> Api<Node> {
        Api::all(self.plane.admin())
    }

    pub(crate) fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.plane.admin(), &self.namespace)
    }

    /// Registers a node with these labels, as a kubelet would.
    pub(crate) async fn register(&self, name: &str, labels: &Labels) -> Node {
        let node = json!({ "metadata": { "name": name, "labels": labels } });
        self.create(node).await
    }

    /// Creates a node from its JSON.
    pub(crate) async fn create(&self, node: Value) -> Node {
        let node = serde_json::from_value(node).unwrap();
        self.nodes().create(&PostParams::default(), &node).await.unwrap()
    }

    /// Patches a node, as a person would.
    pub(crate) async fn patch(&self, name: &str, patch: Value) -> Node {
        self.nodes().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
    }

    /// Sets a label, or removes it.
    pub(crate) async fn label(&self, name: &str, key: &str, value: Option<&str>) -> Node {
        self.patch(name, json!({ "metadata": { "labels": { key: value } } })).await
    }

    /// Sets an annotation, or removes it.
    pub(crate) async fn annotate(&self, name: &str, key: &str, value: Option<&str>) -> Node {
        self.patch(name, json!({ "metadata": { "annotations": { key: value } } })).await
    }

    /// Deletes a node.
    pub(crate) async fn delete(&self, name: &str) {
        self.nodes().delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn node(&self, name: &str) -> Node {
        self.nodes().get(name).await.unwrap()
    }

    pub(crate) async fn labels(&self, name: &str) -> Labels {
        self.node(name).await.metadata.labels.unwrap_or_default()
    }

    /// Waits until the node bears exactly these labels.
    pub(crate) async fn labels_become(&self, name: &str, expected: &Labels) {
        eventually(SOON, &format!("{name} bears {expected:?}"), || async {
            let labels = self.nodes().get(name).await?.metadata.labels.unwrap_or_default();
            if labels == *expected { Ok(Some(())) } else { Err(anyhow::anyhow!("{labels:?}")) }
        })
        .await
        .unwrap();
    }

    /// Waits until the node bears its mark: whatever it was owed was given.
    pub(crate) async fn is_marked(&self, name: &str) -> Node {
        eventually(SOON, &format!("{name} bears its mark"), || async {
            let node = self.nodes().get(name).await?;
            let uid = node.metadata.uid.clone().unwrap_or_default();
            let mark = node.metadata.annotations.as_ref().and_then(|pairs| pairs.get(MARK)).cloned();
            if mark.as_deref().unwrap_or_default().starts_with(&uid) {
                Ok(Some(node))
            } else {
                Err(anyhow::anyhow!("mark {mark:?}, uid {uid}"))
            }
        })
        .await
        .unwrap()
    }

    // ── Records ──

    /// The record's ConfigMap, if there is one.
    pub(crate) async fn config_map(&self, node: &str) -> Option<ConfigMap> {
        self.config_maps().get_opt(&record_name(node)).await.unwrap()
    }

    /// The record, if there is one that can be read.
    pub(crate) async fn record(&self, node: &str) -> Option<Record> {
        let data = self.config_map(node).await?.data.unwrap_or_default();
        Record::parse(node, data.get(DATA_KEY).map(String::as_str)).ok()
    }

    /// Waits until the record answers.
    pub(crate) async fn record_becomes(
        &self,
        node: &str,
        what: &str,
        wanted: impl Fn(&Record) -> bool,
    ) -> Record {
        eventually(SOON, &format!("the record of {node}: {what}"), || async {
            let record = self.record(node).await;
            match record {
                Some(record) if wanted(&record) => Ok(Some(record)),
                other => Err(anyhow::anyhow!("{other:?}")),
            }
        })
        .await
        .unwrap()
    }

    /// Waits until the record holds exactly these labels.
    pub(crate) async fn recorded(&self, node: &str, labels: &Labels) -> Record {
        let what = format!("holds {labels:?}");
        self.record_becomes(node, &what, |record| record.kept.labels == *labels).await
    }

    /// Waits until the record is closed with exactly these labels.
    pub(crate) async fn closed(&self, node: &str, labels: &Labels) -> Record {
        let what = format!("is closed with {labels:?}");
        let closed = |record: &Record| record.state == State::Closed && record.kept.labels == *labels;
        self.record_becomes(node, &what, closed).await
    }

    /// Waits until the record is gone.
    pub(crate) async fn record_goes(&self, node: &str) {
        eventually(SOON, &format!("the record of {node} is gone"), || async {
            match self.config_map(node).await {
                None => Ok(Some(())),
                Some(there) => Err(anyhow::anyhow!("{:?}", there.metadata)),
            }
        })
        .await
        .unwrap();
    }

    /// Replaces the record's text, as somebody with an editor would; its annotations stay.
    pub(crate) async fn edit_record(&self, node: &str, text: &str) {
        let patch = json!({ "data": { DATA_KEY: text } });
        let params = PatchParams::default();
        self.config_maps().patch(&record_name(node), &params, &Patch::Merge(patch)).await.unwrap();
    }

    /// The ConfigMaps into which unreadable records were copied.
    pub(crate) async fn set_aside(&self) -> Vec<ConfigMap> {
        let all = self.config_maps().list(&ListParams::default()).await.unwrap();
        let aside = |map: &ConfigMap| map.metadata.name.as_ref().unwrap().starts_with("node-record-aside.");
        all.items.into_iter().filter(aside).collect()
    }

    /// Waits for an Event about a node.
    pub(crate) async fn event(&self, node: &str, reason: &str) -> Event {
        let events: Api<Event> = Api::namespaced(self.plane.admin(), "default");
        let params = ListParams::default().fields(&format!("involvedObject.name={node}"));
        eventually(SOON, &format!("an Event {reason} about {node}"), || async {
            let found = events.list(&params).await?.items;
            let reasons: Vec<_> = found.iter().filter_map(|event| event.reason.clone()).collect();
            found
                .into_iter()
                .find(|event| event.reason.as_deref() == Some(reason))
                .map(Some)
                .ok_or_else(|| anyhow::anyhow!("{reasons:?}"))
        })
        .await
        .unwrap()
    }

    /// Waits until the keeper has dealt with everything that happened so far: a probe node that is labelled
    /// now is recorded, and nothing is pending. Watches are in order, so whatever came before was seen.
    pub(crate) async fn caught_up(&self) {
        self.caught_up_but(0).await;
    }

    /// As [`World::caught_up`] where so many nodes have to stay pending, because a person must act first.
    pub(crate) async fn caught_up_but(&self, left: u32) {
        let probe = "probe-of-the-test";
        let stamp = self.plane.revision().await.unwrap().to_string();
        let labels = pairs([("probe", stamp.as_str())]);
        if self.nodes().get_opt(probe).await.unwrap().is_none() {
            self.register(probe, &labels).await;
        } else {
            self.label(probe, "probe", Some(&stamp)).await;
        }
        self.recorded(probe, &labels).await;
        eventually(SOON, &format!("{left} are pending, and nothing is under way"), || async {
            let (pending, inflight) = (self.metric("pending"), self.metric("inflight"));
            let caught_up = pending == f64::from(left) && inflight == 0.0;
            if caught_up { Ok(Some(())) } else { Err(anyhow::anyhow!("{pending} pending, {inflight} busy")) }
        })
        .await
        .unwrap();
    }
}

/// The client as it is shipped: it tries nothing again by itself.
pub(crate) async fn connect(kubeconfig: &Path) -> Client {
    let connect = Connect { kubeconfig: Some(kubeconfig.to_owned()), ..Connect::default() };
    client::connect(&connect).await.unwrap()
}
