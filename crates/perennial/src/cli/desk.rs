//! A person's desk: their way to the cluster, whose records, and under which policy.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::api::ListParams;
use kube::core::request::Request as Resource;
use perennial_core::keeper::Context;
use perennial_core::kept::Digest;
use perennial_core::policy::{Policy, PolicyError};
use serde::de::DeserializeOwned;

use super::error::Error;
use super::screen::Screen;
use crate::client;
use crate::cluster::{self, ApiError, Chosen, Cluster, List, Target};
use crate::config::DeskConfig;
use crate::keeper::{Api, RecordObject};
use crate::members::{LeaseObject, Role};

/// The key of the ConfigMap that the chart keeps the policy in.
pub(crate) const POLICY_KEY: &str = "policy.yaml";
/// What the chart's objects are labelled with.
const OF_CHART: &str = "app.kubernetes.io/name=perennial";
/// How long a Lease is shown as alive that says nothing about it.
const LEASE: Duration = Duration::from_secs(15);

/// A replica, as its Lease tells.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) roles: Vec<Role>,
    pub(crate) policy: Option<Digest>,
    pub(crate) renewed: Option<Timestamp>,
    pub(crate) lease: Duration,
}

impl Member {
    /// Whether it renewed its Lease in time.
    pub(crate) fn is_alive(&self, now: Timestamp) -> bool {
        let patience = SignedDuration::try_from(self.lease * 2).unwrap_or(SignedDuration::MAX);
        self.renewed.is_some_and(|renewed| now.duration_since(renewed) < patience)
    }

    pub(crate) fn keeps(&self) -> bool {
        self.roles.iter().any(|role| *role != Role::List)
    }
}

/// The desk.
pub(crate) struct Desk {
    pub(crate) api: Api,
    pub(crate) policy: Arc<Policy>,
    /// Where the policy is from.
    pub(crate) policy_from: String,
    /// Nobody named it, and nothing in the cluster says that it is the one.
    guessed: bool,
    /// The chart's ConfigMaps that hold no policy that can be read, and why.
    broken: Vec<String>,
    /// The replicas; the error where a person may not see them.
    pub(crate) members: Result<Vec<Member>, Error>,
    url: String,
}

impl Desk {
    /// A way to the cluster, and nothing asked yet.
    pub(crate) async fn connect(config: &DeskConfig) -> Result<Self, Error> {
        let (client, url) = client::connect_to(&config.connect).await?;
        let metrics = cluster::Metrics::register(&mut prometheus_client::registry::Registry::default());
        let cluster = Cluster::new(client, Arc::new(metrics));
        let (policy, policy_from) = match &config.policy {
            Some((path, policy)) => (policy.clone(), path.display().to_string()),
            None => (Arc::default(), "built in".to_owned()),
        };
        Ok(Self {
            api: Api::new(cluster, &config.namespace, &config.installation, config.seals.clone()),
            policy,
            policy_from,
            guessed: config.policy.is_none(),
            broken: Vec::new(),
            members: Ok(Vec::new()),
            url,
        })
    }

    /// The same, with the policy in force and the replicas.
    pub(crate) async fn open(config: &DeskConfig) -> Result<Self, Error> {
        let mut desk = Self::connect(config).await?;
        let (members, policies) = tokio::join!(desk.read_members(), desk.read_policies());
        desk.members = match members {
            Err(error) if !error.is_forbidden() => return Err(error),
            members => members,
        };
        if config.policy.is_none() {
            desk.choose(policies?);
        }
        Ok(desk)
    }

    /// The time, by the API server's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.api.cluster().now()
    }

    /// Takes the policy that replicas run under, or the only one there is.
    fn choose(&mut self, found: Vec<(String, Result<Policy, PolicyError>)>) {
        let in_force = self.digests();
        let mut policies = Vec::new();
        for (name, policy) in found {
            match policy {
                Ok(policy) => policies.push((name, policy)),
                Err(why) => self.broken.push(format!("configmap/{name} holds no policy in force: {why}")),
            }
        }
        let known = policies.iter().position(|(_, policy)| in_force.contains(&policy.digest()));
        let alike = policies.windows(2).all(|pair| pair[0].1.digest() == pair[1].1.digest());
        if let Some(at) = known.or((!policies.is_empty()).then_some(0)) {
            let (name, policy) = policies.swap_remove(at);
            (self.policy, self.policy_from) = (Arc::new(policy), format!("configmap/{name}"));
            self.guessed = known.is_none() && !(alike && self.broken.is_empty());
        }
    }

    /// What to say where this desk goes by another policy than the replicas, or a ConfigMap holds none that can be read.
    pub(crate) fn doubt(&self) -> Option<String> {
        let other = self.other_policy().map(|other| format!("{other}: give it with --policy FILE"));
        self.doubts(other).map(|doubts| format!("Warning: {doubts}"))
    }

    /// For those that write: what is kept is not a guess. A policy that somebody named is his own word.
    pub(crate) fn certain(
        &self,
        config: &DeskConfig,
        dry_run: bool,
        screen: &mut Screen,
    ) -> Result<(), Error> {
        let why = self.other_policy().map(|other| {
            format!(
                "{other}: give it with --policy FILE; while replicas are rolled out, wait until they agree"
            )
        });
        let why = why.or_else(|| self.unknown_policy());
        let refuses = why.is_some() && config.policy.is_none() && !dry_run;
        match self.doubts(why) {
            Some(doubts) if refuses => Err(Error::Said(doubts)),
            doubts => doubts.map_or(Ok(()), |doubts| screen.note(format_args!("Warning: {doubts}"))),
        }
    }

    fn doubts(&self, why: Option<String>) -> Option<String> {
        let doubts: Vec<String> = self.broken.iter().cloned().chain(why).collect();
        (!doubts.is_empty()).then(|| doubts.join("\n"))
    }

    /// Why nobody can tell what replicas keep, where that is so.
    fn unknown_policy(&self) -> Option<String> {
        if !self.guessed || !self.digests().is_empty() {
            return None;
        }
        let why = match &self.members {
            Ok(_) => format!("no replica is seen at work in namespace {:?}", self.api.namespace()),
            Err(error) => format!("replicas cannot be seen ({error})"),
        };
        Some(format!("{why}, so nobody knows what they keep: give their policy with --policy FILE"))
    }

    fn other_policy(&self) -> Option<String> {
        let own = self.policy.digest();
        let other = self.digests().into_iter().find(|digest| *digest != own)?;
        let from = &self.policy_from;
        Some(format!("replicas run under another policy ({other}) than the one used here ({own}, {from})"))
    }

    /// The policies that live replicas run under.
    pub(crate) fn digests(&self) -> BTreeSet<Digest> {
        let alive = |member: &&Member| member.keeps() && member.is_alive(self.now());
        self.members.iter().flatten().filter(alive).filter_map(|member| member.policy).collect()
    }

    /// What a line is decided with: `writes` is what this desk may do about it.
    pub(crate) fn context(&self, capture: bool) -> Context<'_> {
        Context {
            policy: &self.policy,
            now: self.now(),
            capture,
            restore: true,
            close_after: SignedDuration::ZERO,
            // A person restores, however late it is; the gate opens with that.
            gate: SignedDuration::MAX,
            condition: false,
            seals: false,
            open_after: SignedDuration::ZERO,
            rollout: self.digests().iter().any(|digest| *digest != self.policy.digest()),
        }
    }

    /// Puts an answer into a person's words.
    pub(crate) fn told<T>(&self, answer: Result<T, ApiError>) -> Result<T, Error> {
        answer.map_err(|error| Error::Api { url: self.url.clone(), error })
    }

    /// Asks the API server.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<T, Error> {
        self.told(self.api.cluster().call(request).await)
    }

    /// Lists objects whole, or by their metadata alone.
    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        what: &'static str,
        resource: &Resource,
        whole: bool,
    ) -> Result<(Vec<T>, u64), Error> {
        let target = Target { what, resource: resource.clone(), chosen: Chosen::All, whole };
        self.told(self.api.cluster().list(&target).await)
    }

    async fn read_members(&self) -> Result<Vec<Member>, Error> {
        let namespace = self.api.namespace();
        let leases = Resource::new(format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"));
        let (leases, _) = self.list::<LeaseObject>("leases", &leases, true).await?;
        let member = |lease: LeaseObject| {
            Some(Member {
                name: lease.member()?.to_owned(),
                roles: lease.roles(),
                policy: lease.policy(),
                renewed: lease.renewed(),
                lease: lease.duration().unwrap_or(LEASE),
            })
        };
        let mut members: Vec<Member> = leases.into_iter().filter_map(member).collect();
        members.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(members)
    }

    /// The policies that charts have put into this namespace, or why they are none.
    async fn read_policies(&self) -> Result<Vec<(String, Result<Policy, PolicyError>)>, Error> {
        let params = ListParams { label_selector: Some(OF_CHART.to_owned()), ..ListParams::default() };
        let list: List<RecordObject> = self.call(self.api.records().list(&params)).await?;
        let policy = |object: RecordObject| {
            let policy = Policy::parse(object.data.as_ref()?.get(POLICY_KEY)?);
            Some((object.metadata.name, policy))
        };
        Ok(list.items.into_iter().filter_map(policy).collect())
    }
}
