//! Replicas behind proxies of their own, in this process or as the real binary, so that each sees a world of its
//! own; and what must be true when all of that is over.

use kube::api::ListParams;
use perennial::{KeeperConfig, MembersConfig};
use perennial_core::ranks::Ranks;
use perennial_testkit::proxy::{Fault, Matcher, Proxy};
use perennial_testkit::{KeeperBuilder, KeeperProcess, eventually};

use crate::world::{SOON, World, connect, pairs};

/// The end of a probe's name.
const PROBE: &str = "probe-of-the-test";

/// Some node names for which this member comes first.
pub(crate) fn first_for(member: &str, members: &[&str], count: usize) -> Vec<String> {
    let ranks = Ranks::new(member, members.iter().copied());
    let names = (0..).map(|number| format!("worker-{number}")).filter(|name| ranks.rank(name) == 0);
    names.take(count).collect()
}

impl World {
    /// A way to the API server for one member. By itself it changes nothing.
    pub(crate) async fn proxy(&self) -> Proxy {
        Proxy::start(self.kubeconfig()).await.unwrap()
    }

    /// Starts a member that goes this way, and does not wait.
    pub(crate) async fn spawn_through(
        &mut self,
        proxy: &Proxy,
        name: &str,
        change: impl FnOnce(&mut KeeperConfig, &mut MembersConfig),
    ) {
        let account = connect(proxy.kubeconfig()).await;
        self.spawn_member(name, account, change);
    }

    /// Starts a member that goes this way, and waits until it is in step.
    pub(crate) async fn start_through(&mut self, proxy: &Proxy, name: &str) {
        self.spawn_through(proxy, name, |_, _| {}).await;
        self.member_is_ready(name).await;
    }

    /// Two members, each with a way of its own, that know each other.
    pub(crate) async fn two_members(&mut self, change: impl Fn(&mut MembersConfig)) -> [Proxy; 2] {
        let proxies = [self.proxy().await, self.proxy().await];
        for (name, proxy) in ["a", "b"].into_iter().zip(&proxies) {
            self.spawn_through(proxy, name, |_, members| change(members)).await;
        }
        for name in ["a", "b"] {
            self.member_is_ready(name).await;
            self.sees(name, 2).await;
        }
        proxies
    }

    /// The real binary as a member that goes this way.
    pub(crate) fn process(&self, proxy: &Proxy, name: &str) -> KeeperBuilder {
        KeeperProcess::builder(env!("CARGO_BIN_EXE_perennial"), self.plane.logs())
            .kubeconfig(proxy.kubeconfig())
            .namespace(self.namespace())
            .arg("--installation=perennial")
            .arg(format!("--member={name}"))
            .arg("--takeover=500ms")
            .arg("--lease-duration=2s")
            .arg("--close-after=200ms")
            .arg("--open-after=200ms")
    }

    /// Registers these nodes with a label, and waits until they are recorded.
    pub(crate) async fn begin_with(&self, nodes: &[String], value: &str) {
        let labels = pairs([("team", value)]);
        for node in nodes {
            self.register(node, &labels).await;
        }
        for node in nodes {
            self.recorded(node, &labels).await;
        }
    }

    /// Changes the label, deletes the node, and has it join again bare.
    pub(crate) async fn return_with(&self, node: &str, value: &str) {
        self.label(node, "team", Some(value)).await;
        self.delete(node).await;
        self.register(node, &pairs([])).await;
    }

    /// Waits until these nodes bear this label and nothing else, and their records are open and say the same.
    pub(crate) async fn all_are_back(&self, nodes: &[String], value: &str) {
        let labels = pairs([("team", value)]);
        for node in nodes {
            self.labels_become(node, &labels).await;
            let uid = self.node(node).await.metadata.uid.unwrap_or_default();
            let open = |record: &perennial_core::record::Record| {
                record.given && record.kept.labels == labels && record.incarnation.uid.to_string() == uid
            };
            self.record_becomes(node, "is open, with the same", open).await;
        }
    }

    /// Every incarnation got its own back, once: `times` of each name did.
    pub(crate) fn given_once(&self, nodes: &[String], times: usize) {
        let patches = self.patches();
        for node in nodes {
            assert_eq!(
                patches.get(node).copied().unwrap_or_default(),
                times,
                "patches of {node}: {patches:?}"
            );
        }
    }

    /// The same where a replica died without a proxy: what it asked for at the last may be done all the same, and
    /// stands in the log as refused.
    pub(crate) fn given_at_most_once(&self, nodes: &[String]) {
        let patches = self.patches();
        for node in nodes {
            assert!(patches.get(node).is_none_or(|times| *times == 1), "{node}: {patches:?}");
        }
    }

    /// Waits until every member has seen whatever happened so far and has nothing to do, and nobody writes.
    pub(crate) async fn silence(&self) {
        let mut before = None;
        let mut round = 0;
        loop {
            round += 1;
            self.members_caught_up().await;
            let writes = self.keeper_writes().await;
            let writes = writes.into_iter().filter(|write| !write.ends_with(PROBE));
            let writes: Vec<_> = writes.filter(|write| !write.contains(" leases ")).collect();
            if before.as_ref() == Some(&writes) {
                return;
            }
            assert!(round < 30, "it goes on and on: {writes:?}");
            before = Some(writes);
        }
    }

    /// Waits until a node that joins now is recorded, and every member has seen that and has nothing to do.
    async fn members_caught_up(&self) {
        let probe = format!("{:08x}.{PROBE}", rand::random::<u32>());
        let labels = pairs([("probe", "yes")]);
        self.register(&probe, &labels).await;
        self.recorded(&probe, &labels).await;
        let nodes = self.nodes().list_metadata(&ListParams::default()).await.unwrap().items.len();
        let nodes = f64::from(u32::try_from(nodes).unwrap());
        eventually(SOON, "every member sees all nodes and has nothing to do", || async {
            for name in self.member_names() {
                let [there, pending, busy] =
                    ["nodes", "pending", "inflight"].map(|metric| self.metric_of(name, metric));
                if (there, pending, busy) != (nodes, 0.0, 0.0) {
                    let said = format!("{name}: {there} of {nodes} nodes, {pending} pending, {busy} busy");
                    return Err(anyhow::anyhow!(said));
                }
            }
            Ok(Some(()))
        })
        .await
        .unwrap();
    }

    /// Waits until one of a member's metrics is at least this.
    pub(crate) async fn metric_of_reaches(&self, member: &str, name: &str, least: f64) {
        eventually(SOON, &format!("{name} of {member} reaches {least}"), || async {
            let value = self.metric_of(member, name);
            if value >= least { Ok(Some(())) } else { Err(anyhow::anyhow!("{value}")) }
        })
        .await
        .unwrap();
    }

    /// Waits until one of a member's metrics is this.
    pub(crate) async fn metric_becomes(&self, member: &str, name: &str, wanted: f64) {
        eventually(SOON, &format!("{name} of {member} becomes {wanted}"), || async {
            let value = self.metric_of(member, name);
            if value == wanted { Ok(Some(())) } else { Err(anyhow::anyhow!("{value}")) }
        })
        .await
        .unwrap();
    }

    /// Ends this member's watch of nodes, as one that is too far behind: it lists anew.
    pub(crate) async fn expire(&self, proxy: &Proxy, member: &str) {
        let relists = self.metric_of(member, "relists_total");
        let expires = proxy.inject(Matcher::watches("nodes"), Fault::Expire.once());
        self.metric_of_reaches(member, "relists_total", relists + 1.0).await;
        drop(expires);
    }

    /// No end was in doubt, for anybody.
    pub(crate) async fn nothing_is_in_doubt(&self, nodes: &[String]) {
        assert_eq!(self.metric_of_all("notices_total{kind=\"EndUnproved\"}"), 0.0);
        for node in nodes {
            assert_eq!(self.record(node).await.unwrap().unproved, None, "{node}");
        }
    }
}
