//! The configuration: checked once, ready to use.
//!
//! [`Config::check`] takes what was typed ([`RunArgs`]) and the process's [`Surroundings`] (environment,
//! pod, terminal), decides which source wins for each setting, and gives values that need no further
//! judging, or the first [`Error`], which names the key, the value and what is allowed.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use perennial_core::policy::Policy;
use perennial_core::record::{SealError, Seals};
use tokio::sync::watch;

mod check;
mod checking;
mod desk;
mod list;
mod page;
mod policy_file;
mod seals;
mod source;
mod tls;
mod traces;

pub use checking::CheckConfig;
pub use desk::DeskConfig;
pub use list::{ListConfig, What};
pub use page::PageConfig;
pub use policy_file::{Error as PolicyError, PolicyMetrics, PolicySource};
pub use source::Surroundings;
pub use tls::TlsConfig;
pub use traces::TraceConfig;

use crate::args::{RunArgs, settings as names};
use crate::keeper::{Door, Window};
use crate::log::{Format, LogConfig};
use crate::members::Role;
use crate::traces::Tracer;
use source::Sources;

/// Where the records live when nobody says so and no pod does.
const NAMESPACE: &str = "perennial";
const RESYNC: Duration = Duration::from_mins(5);
/// Enough to restore thousands of nodes in seconds; the API server's fairness paces the rest.
const CONCURRENCY: usize = 64;
const CLOSE_AFTER: Duration = Duration::from_secs(3);
const OPEN_AFTER: Duration = Duration::from_secs(5);
const COLLECT_EVERY: Duration = Duration::from_mins(1);
const TAKEOVER: Duration = Duration::from_secs(5);
const LEASE: Duration = Duration::from_secs(15);
const RETRY_SLOWLY: Duration = Duration::from_mins(1);
/// What periods may be: often enough to be a safety net, not so often that they are the load.
const WITHIN_A_DAY: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(24);
/// What a short wait may be.
const WITHIN_MINUTES: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_mins(10);
/// What a Lease may last: whole seconds are all it can say.
const LEASES: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_mins(5);
const ADMIN_ADDRESS: &str = ":8080";

/// Everything `perennial run` needs to know.
#[derive(Debug)]
pub struct Config {
    /// How to reach the API server.
    pub connect: Connect,
    /// The namespace the records live in.
    pub namespace: String,
    /// Where probes and metrics are served; `None` is nowhere.
    pub admin: Option<SocketAddr>,
    /// What the status page there shows; `None` if there is none.
    pub page: Option<PageConfig>,
    /// How to log.
    pub log: LogConfig,
    /// Nodes are kept.
    pub keeps: bool,
    /// What the keeper needs.
    pub keeper: KeeperConfig,
    /// What the lister needs, where listings are published.
    pub lister: Option<ListerConfig>,
    /// What is said to and of the other replicas.
    pub members: MembersConfig,
    /// Where the keeper's policy comes from; following it keeps `keeper.policy` current.
    pub policy: PolicySource,
    /// Where traces are sent; `None` is nowhere.
    pub traces: Option<TraceConfig>,
    /// What the webhook needs, where there is one.
    pub webhook: Option<TlsConfig>,
    /// What guarded metrics need, where they are; otherwise they are served with the probes, to anybody.
    pub metrics: Option<TlsConfig>,
    /// The older operator's variables that were honoured, to be told in the log.
    pub honoured: Vec<&'static str>,
}

/// How to reach the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connect {
    /// This kubeconfig and no other.
    pub kubeconfig: Option<PathBuf>,
    /// This context instead of the current one.
    pub context: Option<String>,
}

/// What the keeper needs to know.
#[derive(Clone, Debug)]
pub struct KeeperConfig {
    /// The namespace the records live in.
    pub namespace: String,
    /// The name part of the mark `restored.perennial.dev/<installation>`.
    pub installation: String,
    /// What to keep, at any time the newest that passed its checks.
    pub policy: watch::Receiver<Arc<Policy>>,
    /// How often everything is compared again.
    pub resync: Duration,
    /// How many nodes are worked on at once.
    pub concurrency: usize,
    /// Whether nodes are recorded.
    pub capture: bool,
    /// Whether nodes get their own back.
    pub restore: bool,
    /// Decide and report, write nothing.
    pub dry_run: bool,
    /// How long an ordinary end waits for a quick return before its record is closed.
    pub close_after: Duration,
    /// How long after the mark was seen a record that was given is open again.
    pub open_after: Duration,
    /// How often the collector passes.
    pub collect_every: Duration,
    /// How long what a person has to change (a missing permission, the brake) is left alone.
    pub retry_slowly: Duration,
    /// Where spans of the work go, where somebody wants them.
    pub tracer: Option<Tracer>,
    /// Through which the status page looks at the fleet, where there is one.
    pub window: Option<Window>,
    /// At which the API server asks about nodes that come and go, where there is a webhook.
    pub door: Option<Door>,
    /// How long a newborn that is owed more than it is born with may be behind a gate; `None` puts up none.
    pub gate: Option<Duration>,
    /// Nodes are told in their status that they have their own.
    pub condition: bool,
    /// What records are sealed with, where they are.
    pub seals: Option<Arc<Seals>>,
}

impl KeeperConfig {
    /// The defaults, with the namespace as the installation's name.
    #[must_use]
    pub fn new(namespace: &str, policy: watch::Receiver<Arc<Policy>>) -> Self {
        Self {
            namespace: namespace.to_owned(),
            installation: namespace.to_owned(),
            policy,
            resync: RESYNC,
            concurrency: CONCURRENCY,
            capture: true,
            restore: true,
            dry_run: false,
            close_after: CLOSE_AFTER,
            open_after: OPEN_AFTER,
            collect_every: COLLECT_EVERY,
            retry_slowly: RETRY_SLOWLY,
            tracer: None,
            window: None,
            door: None,
            gate: None,
            condition: false,
            seals: None,
        }
    }
}

/// What the lister needs to know.
#[derive(Clone, Debug)]
pub struct ListerConfig {
    /// Only Listings of this namespace; of all where there is none.
    pub namespace: Option<String>,
    /// How often everything is looked at again.
    pub resync: Duration,
    /// How long what a person has to change (credentials, a bucket) is left alone.
    pub retry_slowly: Duration,
}

impl Default for ListerConfig {
    fn default() -> Self {
        Self { namespace: None, resync: RESYNC, retry_slowly: RETRY_SLOWLY }
    }
}

/// What replicas need to know to share the work.
#[derive(Clone, Debug)]
pub struct MembersConfig {
    /// The namespace the Leases live in.
    pub namespace: String,
    /// This replica's name among them.
    pub name: String,
    /// What this replica does.
    pub roles: Vec<Role>,
    /// What it keeps, which the others are told of.
    pub policy: watch::Receiver<Arc<Policy>>,
    /// How long a replica leaves a name to the one before it in line.
    pub takeover: Duration,
    /// How long a Lease counts without being renewed.
    pub lease: Duration,
}

impl MembersConfig {
    /// The defaults, for a keeper that is configured like this.
    #[must_use]
    pub fn new(name: &str, keeper: &KeeperConfig) -> Self {
        let roles = [(keeper.capture, Role::Capture), (keeper.restore, Role::Restore)];
        Self {
            namespace: keeper.namespace.clone(),
            name: name.to_owned(),
            roles: roles.into_iter().filter_map(|(does, role)| does.then_some(role)).collect(),
            policy: keeper.policy.clone(),
            takeover: TAKEOVER,
            lease: LEASE,
        }
    }
}

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value that its key does not allow.
    #[error("{key}: {value:?} is not allowed; allowed: {allowed}")]
    Value {
        /// The flag or variable it came from.
        key: &'static str,
        /// What was given.
        value: String,
        /// What could have been given.
        allowed: String,
    },
    /// Two settings that exclude each other.
    #[error("{first} and {second} exclude each other: {remedy}")]
    Conflict {
        /// The one.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// What to do instead.
        remedy: &'static str,
    },
    /// Something that nothing can be done without.
    #[error("{what} is missing: {remedy}")]
    Missing {
        /// What it is.
        what: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// The older operator's prefix cannot be used; the error names the variable itself.
    #[error(transparent)]
    LabelPrefix(perennial_core::policy::PolicyError),
    /// A file of keys that cannot be read.
    #[error("{key}: cannot read {path:?}: {source}")]
    KeyFile {
        /// The flag or variable that named it.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Keys that cannot be used.
    #[error("{key}: {path:?}: {source}")]
    Keys {
        /// The flag or variable that named the file.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with them.
        source: SealError,
    },
    /// A policy file that cannot be used.
    #[error("{key}: {source}")]
    Policy {
        /// The flag or variable that named it.
        key: &'static str,
        /// What is wrong with it.
        source: PolicyError,
    },
}

impl Config {
    /// Checks what was typed against what surrounds the process.
    pub fn check(args: &RunArgs, around: &Surroundings) -> Result<Self, Error> {
        let RunArgs {
            kubeconfig,
            context,
            namespace,
            installation: _,
            policy,
            resync: _,
            concurrency: _,
            no_capture: _,
            no_restore: _,
            dry_run: _,
            roles,
            listing_namespace,
            member: _,
            admin_address,
            page,
            page_values,
            page_hosts,
            metrics_address: _,
            metrics_name: _,
            metrics_certificates: _,
            webhook_address: _,
            webhook_name: _,
            webhook_hosts: _,
            webhook_certificates: _,
            gate: _,
            condition: _,
            record_key: _,
            accept_unsealed: _,
            log_format,
            log_level,
            otlp_endpoint,
            otlp_sample,
            takeover: _,
            lease_duration: _,
            close_after: _,
            open_after: _,
            collect_every: _,
        } = args;
        let mut sources = Sources::new(around);

        let connect = find_connect(&mut sources, kubeconfig.as_deref(), context.as_deref())?;
        let namespace = find_namespace(&mut sources, around, namespace.as_deref())?;
        let policy = find_policy(&mut sources, policy.as_deref())?;
        let page = page::find(&mut sources, page.as_deref(), *page_values, page_hosts.as_deref())?;
        let webhook = tls::webhook(&mut sources, args, &namespace)?;
        let metrics = tls::metrics(&mut sources, args, &namespace)?;
        let keeper = find_keeper(&mut sources, args, &namespace, &policy)?;
        // One that writes nothing has nobody born with anything, and makes no certificates.
        let webhook = webhook.filter(|_| !keeper.dry_run);
        let window = page.is_some().then(Window::default);
        let keeper = KeeperConfig { window, door: webhook.is_some().then(Door::default), ..keeper };
        let (keeps, lister) =
            find_roles(&mut sources, roles.as_deref(), listing_namespace.as_deref(), &keeper)?;
        if webhook.is_some() && !keeps {
            return Err(Error::Conflict {
                first: "--webhook-address",
                second: "--roles lister",
                remedy: "it is the keeper who knows what a node is born with; give --roles keeper, or leave it out",
            });
        }
        if keeper.dry_run && metrics.as_ref().is_some_and(|metrics| metrics.own) {
            return Err(Error::Conflict {
                first: "--metrics-address",
                second: "--dry-run",
                remedy: "a dry run writes nothing, and so makes no certificate; give --metrics-certificates given, or leave one out",
            });
        }
        let mut members = find_members(&mut sources, args, &keeper)?;
        if !keeps {
            members.roles.clear();
        }
        members.roles.extend(lister.is_some().then_some(Role::List));
        let admin = match sources.checked(&names::ADMIN_ADDRESS, admin_address.as_deref(), check::listen)? {
            Some(admin) => admin,
            None => check::listen(ADMIN_ADDRESS).unwrap_or_default(),
        };
        let log = find_log(&mut sources, log_format.as_deref(), log_level.as_deref())?;
        let traces = traces::find(&mut sources, otlp_endpoint.as_deref(), otlp_sample.as_deref())?;
        Ok(Self {
            connect,
            namespace,
            admin,
            page,
            log,
            keeps,
            keeper,
            lister,
            members,
            policy,
            traces,
            webhook,
            metrics,
            honoured: sources.honoured,
        })
    }
}

/// What the keeper needs, but for those who look at it.
fn find_keeper(
    sources: &mut Sources<'_>,
    args: &RunArgs,
    namespace: &str,
    policy: &PolicySource,
) -> Result<KeeperConfig, Error> {
    let RunArgs { installation, resync, concurrency, no_capture, no_restore, dry_run, .. } = args;
    let RunArgs { close_after, open_after, collect_every, gate, condition, .. } = args;
    let RunArgs { record_key, accept_unsealed, .. } = args;
    let default = KeeperConfig::new(namespace, policy.subscribe());
    let keeper = KeeperConfig {
        installation: sources
            .checked(&names::INSTALLATION, installation.as_deref(), check::installation)?
            .unwrap_or(default.installation),
        resync: find_resync(sources, resync.as_deref())?.unwrap_or(default.resync),
        concurrency: sources
            .checked(&names::CONCURRENCY, concurrency.as_deref(), check::concurrency)?
            .unwrap_or(default.concurrency),
        capture: !sources.switch(&names::NO_CAPTURE, *no_capture)?,
        restore: !sources.switch(&names::NO_RESTORE, *no_restore)?,
        dry_run: sources.switch(&names::DRY_RUN, *dry_run)?,
        close_after: sources
            .checked(&names::CLOSE_AFTER, close_after.as_deref(), check::duration(WITHIN_MINUTES))?
            .unwrap_or(default.close_after),
        open_after: sources
            .checked(&names::OPEN_AFTER, open_after.as_deref(), check::duration(WITHIN_MINUTES))?
            .unwrap_or(default.open_after),
        collect_every: sources
            .checked(&names::COLLECT_EVERY, collect_every.as_deref(), check::duration(WITHIN_A_DAY))?
            .unwrap_or(default.collect_every),
        gate: sources.checked(&names::GATE, gate.as_deref(), check::gate)?.flatten(),
        condition: sources.switch(&names::CONDITION, *condition)?,
        seals: seals::find(sources, record_key.as_deref(), *accept_unsealed)?,
        ..default
    };
    if !keeper.capture && !keeper.restore {
        return Err(Error::Conflict {
            first: "--no-capture",
            second: "--no-restore",
            remedy: "nothing would be left to do; give one of them, or --dry-run to write nothing",
        });
    }
    if keeper.condition && !(keeper.capture && keeper.restore) {
        return Err(Error::Conflict {
            first: "--condition",
            second: if keeper.capture { "--no-restore" } else { "--no-capture" },
            remedy: "only who both records and gives back knows that a node has its own; leave one of them out",
        });
    }
    Ok(keeper)
}

/// Whether nodes are kept, and what the lister needs where listings are published.
fn find_roles(
    sources: &mut Sources<'_>,
    roles: Option<&str>,
    namespace: Option<&str>,
    keeper: &KeeperConfig,
) -> Result<(bool, Option<ListerConfig>), Error> {
    let (keeps, lists) = sources.checked(&names::ROLES, roles, check::roles)?.unwrap_or((true, false));
    let namespace = sources.checked(&names::LISTING_NAMESPACE, namespace, check::namespace)?;
    if lists && keeper.dry_run {
        return Err(Error::Conflict {
            first: "--dry-run",
            second: "--roles",
            remedy: "the lister has no dry run; give --roles keeper, or leave --dry-run out",
        });
    }
    let lister = ListerConfig { namespace, resync: keeper.resync, ..ListerConfig::default() };
    Ok((keeps, lists.then_some(lister)))
}

/// How this replica goes by among the others.
fn find_members(
    sources: &mut Sources<'_>,
    args: &RunArgs,
    keeper: &KeeperConfig,
) -> Result<MembersConfig, Error> {
    let RunArgs { member, takeover, lease_duration, .. } = args;
    let member = sources
        .checked(&names::MEMBER, member.as_deref(), check::member)?
        .unwrap_or_else(|| check::as_member(&sources.around().process_name()));
    Ok(MembersConfig {
        takeover: sources
            .checked(&names::TAKEOVER, takeover.as_deref(), check::duration(WITHIN_MINUTES))?
            .unwrap_or(TAKEOVER),
        lease: sources
            .checked(&names::LEASE_DURATION, lease_duration.as_deref(), check::duration(LEASES))?
            .unwrap_or(LEASE),
        ..MembersConfig::new(&member, keeper)
    })
}

/// How to log.
fn find_log(
    sources: &mut Sources<'_>,
    format: Option<&str>,
    level: Option<&str>,
) -> Result<LogConfig, Error> {
    let terminal = sources.around().terminal;
    let by_terminal = if terminal { Format::Text } else { Format::Json };
    Ok(LogConfig {
        format: sources.checked(&names::LOG_FORMAT, format, Format::parse)?.unwrap_or(by_terminal),
        filter: sources.checked(&names::LOG_LEVEL, level, crate::log::Filter::parse)?.unwrap_or_default(),
        color: terminal && sources.around().variable("NO_COLOR").is_none(),
    })
}

/// The resync period: a duration, or the older operator's plain seconds.
fn find_resync(sources: &mut Sources<'_>, typed: Option<&str>) -> Result<Option<Duration>, Error> {
    let Some(given) = sources.find(&names::RESYNC, typed)? else { return Ok(None) };
    let checked = if Some(given.key) == names::RESYNC.older {
        check::seconds(&given.value, WITHIN_A_DAY)
    } else {
        check::duration(WITHIN_A_DAY)(&given.value)
    };
    checked.map(Some).map_err(|allowed| given.refuse(allowed))
}

/// How the API server is reached.
fn find_connect(
    sources: &mut Sources<'_>,
    kubeconfig: Option<&str>,
    context: Option<&str>,
) -> Result<Connect, Error> {
    let kubeconfig = sources.checked(&names::KUBECONFIG, kubeconfig, check::not_empty)?;
    Ok(Connect {
        kubeconfig: kubeconfig.map(PathBuf::from),
        context: sources.checked(&names::CONTEXT, context, check::not_empty)?,
    })
}

/// Where the records live: as given, the pod's own, or ours.
fn find_namespace(
    sources: &mut Sources<'_>,
    around: &Surroundings,
    given: Option<&str>,
) -> Result<String, Error> {
    let given = sources.checked(&names::NAMESPACE, given, check::namespace)?;
    Ok(given.or_else(|| around.pod_namespace()).unwrap_or_else(|| NAMESPACE.to_owned()))
}

/// The policy: from the file, from the older operator's prefix, or the default one.
fn find_policy(sources: &mut Sources<'_>, typed: Option<&str>) -> Result<PolicySource, Error> {
    let file = sources.find(&names::POLICY, typed)?;
    let prefix = sources.find_older(names::LABEL_PREFIX)?;
    match (file, prefix) {
        (Some(file), None) => PolicySource::file(PathBuf::from(file.value))
            .map_err(|source| Error::Policy { key: file.key, source }),
        (None, Some(prefix)) => {
            Policy::for_label_prefix(&prefix.value).map(PolicySource::fixed).map_err(Error::LabelPrefix)
        }
        (None, None) => Ok(PolicySource::fixed(Policy::default())),
        (Some(file), Some(prefix)) => Err(Error::Conflict {
            first: file.key,
            second: prefix.key,
            remedy: "a policy file says all of it; unset the variable and list the prefix under `labels`",
        }),
    }
}

#[cfg(test)]
mod tests;
