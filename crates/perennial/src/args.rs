//! The command line, as typed.
//!
//! Nothing is judged here: values are kept as text and [`crate::config`] checks them, together with the
//! environment, so that one place decides which source wins and an error can name it. clap could read
//! the environment itself, but then an error could not say which of the two was wrong, and no test
//! could give it another environment than its own.

use std::ffi::OsString;

use clap::{Args as ClapArgs, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

mod check;
mod list;
pub mod operate;
pub(crate) mod settings;

#[cfg(test)]
mod docs;

pub use check::CheckArgs;
pub use list::ListArgs;
pub use operate::Operation;
use settings::Setting;

const LONG_ABOUT: &str = "\
Perennial remembers what a Kubernetes cluster forgets about its nodes.

When a Node object is deleted, its labels die with it; when the machine joins again it comes back bare. \
Perennial records what was on every node, in ConfigMaps of its own namespace, and gives it back.

No database, no state on disk, no leader: everything that must last is in the cluster's own API.";

const RUN_LONG_ABOUT: &str = "\
Watches all nodes, keeps one record for each, and gives back what a returning node has lost.

Every flag can also be given as an environment variable, shown beside it. A flag wins over its variable, \
a variable over that of an older operator, and an empty variable counts as not given.";

const RUN_EXAMPLES: &str = "\
Examples:
  Try it from a laptop, against the cluster kubectl talks to, writing nothing:
    perennial run --dry-run

  In a cluster: the pod's own account and namespace are found, logs are JSON
    perennial run --policy /etc/perennial/policy.yaml

  Capture and restore as two processes, with different permissions:
    perennial run --no-restore
    perennial run --no-capture --admin-address :8081

  See every decision, and what the Kubernetes client does:
    perennial run --log-level perennial=debug,kube=debug,info

The older operator's PERSIST_LABEL_PREFIX is honoured where no policy file is given.
Signals: the first SIGINT or SIGTERM finishes what is under way, the second leaves at once.";

/// Everything that was typed.
#[derive(Debug, Parser)]
#[command(name = "perennial", version, about = "Remembers what a Kubernetes cluster forgets about its nodes")]
#[command(long_about = LONG_ABOUT, max_term_width = 100)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What `perennial` can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Keep the nodes' labels: record them, and give them back
    #[command(long_about = RUN_LONG_ABOUT, after_help = RUN_EXAMPLES)]
    Run(Box<RunArgs>),

    /// Publish the endpoints of one Service as a page, without any custom resource
    #[command(long_about = list::LONG_ABOUT, after_help = list::EXAMPLES)]
    List(Box<ListArgs>),

    /// Check what `perennial run` would be given: settings, policy, cluster, permissions; change nothing
    #[command(long_about = check::LONG_ABOUT, after_help = check::EXAMPLES)]
    Check(Box<CheckArgs>),

    /// See and steer it, as a person.
    #[command(flatten)]
    Operate(Box<Operation>),

    /// Print what a shell needs to complete the words of this command
    Completions {
        /// The shell
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
}

/// The flags of `perennial run`.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct RunArgs {
    /// Kubeconfig to connect with; otherwise $KUBECONFIG, ~/.kube/config, or the pod's own account
    #[arg(long, value_name = "PATH", help_heading = "Cluster")]
    pub kubeconfig: Option<String>,

    /// Context of the kubeconfig; otherwise its current one
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    pub context: Option<String>,

    /// Namespace the records live in; otherwise the pod's own, or `perennial` outside a cluster
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    pub namespace: Option<String>,

    /// Name of this installation in the mark on restored nodes; otherwise the namespace
    ///
    /// The mark is the annotation `restored.perennial.dev/<installation>`. Two installations on one
    /// cluster need two names; a changed name makes every mark unknown, so choose it once.
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    pub installation: Option<String>,

    /// What to keep, as YAML; otherwise all labels but those that others assert again
    ///
    /// The file is checked whole at start. When it changes it is read again; a broken new version is
    /// told by log and metric, and the one in force stays.
    #[arg(long, value_name = "FILE", help_heading = "Keeping")]
    pub policy: Option<String>,

    /// How often everything is compared again, as a safety net [default: 5m]
    #[arg(long, value_name = "DURATION", help_heading = "Keeping")]
    pub resync: Option<String>,

    /// How many nodes are worked on at once [default: 64]
    #[arg(long, value_name = "N", help_heading = "Keeping")]
    pub concurrency: Option<String>,

    /// Record nothing, only give back: for a separate restoring process
    #[arg(long, help_heading = "Keeping")]
    pub no_capture: bool,

    /// Give nothing back, only record: for a separate capturing process
    #[arg(long, help_heading = "Keeping")]
    pub no_restore: bool,

    /// Decide and report, write nothing
    #[arg(long, help_heading = "Keeping")]
    pub dry_run: bool,

    /// Say in the status of a node that it has its own: the condition `perennial.dev/MetadataRestored`
    ///
    /// For what waits for conditions of nodes, such as node-readiness-controller. It is set when a node got what is
    /// remembered of it, or nothing is.
    #[arg(long, help_heading = "Keeping")]
    pub condition: bool,

    /// File with the keys that records are sealed with, one a line; otherwise they are not sealed
    ///
    /// A record that somebody without the key wrote or edited is copied aside, told of, and not given. The first key seals, all
    /// are believed: put a new one first, and take the old one out when all records are sealed anew.
    #[arg(long, value_name = "FILE", help_heading = "Keeping")]
    pub record_key: Option<String>,

    /// Believe records without a seal, and seal them: for the time in which seals are brought in
    #[arg(long, help_heading = "Keeping")]
    pub accept_unsealed: bool,

    /// What this replica does: `keeper`, `lister`, or both with a comma between [default: keeper]
    ///
    /// The keeper remembers what nodes bear and gives it back. The lister publishes what `Listing` objects ask for,
    /// whose definition has to be installed first.
    #[arg(long, value_name = "ROLES", help_heading = "Operating")]
    pub roles: Option<String>,

    /// Publish the Listings of this namespace alone; otherwise those of all
    #[arg(long, value_name = "NAME", help_heading = "Operating")]
    pub listing_namespace: Option<String>,

    /// Name of this replica among the others, unique in the namespace; otherwise host name and process id
    ///
    /// Replicas share the nodes among them by these names, each announced by a Lease of its own. In a pod, its
    /// own name is a good one: it stays the same when the container restarts.
    #[arg(long, value_name = "NAME", help_heading = "Operating")]
    pub member: Option<String>,

    /// Where probes and metrics are served, or `off` [default: :8080]
    ///
    /// Plain HTTP, read-only, no secrets: /livez, /readyz, /healthz, /metrics. Without a host it listens
    /// on every address, IPv6 and IPv4, because the kubelet's probes come to the pod's own address.
    #[arg(long, value_name = "ADDRESS", help_heading = "Operating")]
    pub admin_address: Option<String>,

    /// Whether a status page is served there too, `on` or `off` [default: on]
    ///
    /// A page for a browser: the fleet, what came back and how fast, events, replicas, listings. It reads and never
    /// writes. Whoever reaches the address sees the names of nodes and the keys of their labels.
    #[arg(long, value_name = "ON", help_heading = "Operating")]
    pub page: Option<String>,

    /// Show the values of labels on the status page, not only their keys
    #[arg(long, help_heading = "Operating")]
    pub page_values: bool,

    /// Further names by which browsers may ask for the status page, with commas between
    ///
    /// It answers to addresses, names without a dot, the machine's own and those of Services (`….svc`): no stranger can
    /// have one of these point here and read the page through somebody's browser. `*.example.com` is every name below
    /// it; `*` is any, for a proxy in front that checks them.
    #[arg(long, value_name = "NAMES", help_heading = "Operating")]
    pub page_hosts: Option<String>,

    /// Where metrics are served by HTTPS to those who may read them, or `off` [default: off]
    ///
    /// With it /metrics is no longer where probes are, for anybody, but here, for whoever shows a token that the cluster
    /// knows, of somebody whom it allows to `get` the path /metrics. The chart (`metrics.secure`) or `deploy/metrics.yaml`
    /// make what it needs.
    #[arg(long, value_name = "ADDRESS", help_heading = "Metrics")]
    pub metrics_address: Option<String>,

    /// Name of the Service and the Secret of metrics by HTTPS [default: perennial-metrics]
    #[arg(long, value_name = "NAME", help_heading = "Metrics")]
    pub metrics_name: Option<String>,

    /// Who makes the certificates in that Secret: `own` or `given` [default: own]
    ///
    /// `own`: Perennial makes and renews them; whom to trust is in its `ca.crt`. `given`: somebody else does, such as
    /// cert-manager, and Perennial reads `tls.crt` and `tls.key`.
    #[arg(long, value_name = "WHO", help_heading = "Metrics")]
    pub metrics_certificates: Option<String>,

    /// Where the API server asks about nodes that come and go, or `off` [default: off]
    ///
    /// HTTPS on a port of its own, for the webhooks that the chart (`webhook.enabled`) or `deploy/webhook.yaml` define. With
    /// it a node that comes back is born with its labels; without it they follow right after.
    #[arg(long, value_name = "ADDRESS", help_heading = "Webhook")]
    pub webhook_address: Option<String>,

    /// Name of the Service, the Secret and the configurations of the webhook [default: perennial-webhook]
    #[arg(long, value_name = "NAME", help_heading = "Webhook")]
    pub webhook_name: Option<String>,

    /// Names and addresses by which the API server asks, with commas between; otherwise the Service's
    #[arg(long, value_name = "NAMES", help_heading = "Webhook")]
    pub webhook_hosts: Option<String>,

    /// Who makes the certificates in the Secret: `own` or `given` [default: own]
    ///
    /// `own`: Perennial makes them, renews them and tells the API server whom to trust. `given`: somebody else does all
    /// of that, such as cert-manager, and Perennial reads `tls.crt` and `tls.key`.
    #[arg(long, value_name = "WHO", help_heading = "Webhook")]
    pub webhook_certificates: Option<String>,

    /// How long a newborn may be kept behind a gate until it has all its own, or `off` [default: off]
    ///
    /// What a kubelet may not set itself (`node-role.kubernetes.io/…`), annotations, taints and cordon are given right after
    /// birth. With a gate such a node is born with the taint `perennial.dev/unrestored:NoSchedule`, which goes with that;
    /// after this time it goes in any case.
    #[arg(long, value_name = "DURATION", help_heading = "Webhook")]
    pub gate: Option<String>,

    /// `text` for a person or `json` for a machine; otherwise text on a terminal, json elsewhere
    #[arg(long, value_name = "FORMAT", help_heading = "Operating")]
    pub log_format: Option<String>,

    /// `error`, `warn`, `info`, `debug`, `trace`, or filter directives [default: info]
    ///
    /// `debug` and `trace` are about Perennial alone, its libraries stay at info; directives such as
    /// `perennial=debug,kube=trace,info` choose for each. `WARNING` and `CRITICAL` are understood.
    #[arg(long, value_name = "LEVEL", help_heading = "Operating")]
    pub log_level: Option<String>,

    /// Where traces of the keeper's work are sent by OTLP (HTTP, protobuf); otherwise nowhere
    ///
    /// The address of a collector, such as `http://otel-collector:4318`; `/v1/traces` is added where it is not there.
    /// Headers that it asks for are given in `OTEL_EXPORTER_OTLP_HEADERS`.
    #[arg(long, value_name = "URL", help_heading = "Operating")]
    pub otlp_endpoint: Option<String>,

    /// Share of the traces that are sent, from 0 to 1 [default: 1]
    #[arg(long, value_name = "SHARE", help_heading = "Operating")]
    pub otlp_sample: Option<String>,

    /// How long a replica leaves a node to the one before it in line [default: 5s]
    ///
    /// The first in line acts at once, the second after this time if there is still something to do, and so on.
    /// Shorter covers a dead replica sooner, longer makes it rarer that two do the same.
    #[arg(long, value_name = "DURATION", help_heading = "Timing", hide_short_help = true)]
    pub takeover: Option<String>,

    /// How long a replica counts as alive without renewing its Lease [default: 15s]
    ///
    /// It is renewed three times as often. A dead replica's nodes wait for `--takeover` until then.
    #[arg(long, value_name = "DURATION", help_heading = "Timing", hide_short_help = true)]
    pub lease_duration: Option<String>,

    /// How long a node's end waits for a quick return before its record is closed [default: 3s]
    ///
    /// A node that is back within this time costs one record write instead of two.
    #[arg(long, value_name = "DURATION", help_heading = "Timing", hide_short_help = true)]
    pub close_after: Option<String>,

    /// How long after a restore the record follows the node again [default: 5s]
    ///
    /// Within this time a mark that is removed by hand cannot start the restore again.
    #[arg(long, value_name = "DURATION", help_heading = "Timing", hide_short_help = true)]
    pub open_after: Option<String>,

    /// How often records of nodes long gone are looked for [default: 60s]
    #[arg(long, value_name = "DURATION", help_heading = "Timing", hide_short_help = true)]
    pub collect_every: Option<String>,
}

impl Args {
    /// The arguments of this process; shows help, version or a usage error and ends it where asked to.
    #[must_use]
    pub fn from_command_line() -> Self {
        let called = std::env::args_os().next().unwrap_or_default();
        let plugin =
            std::path::Path::new(&called).file_name().is_some_and(|name| name == "kubectl-perennial");
        let command = if plugin { command().bin_name("kubectl perennial") } else { command() };
        Self::from_matches(&command.get_matches()).unwrap_or_else(|error| error.exit())
    }

    /// The arguments in a list that begins with the program's name.
    pub fn try_from_list<I, T>(list: I) -> Result<Self, clap::Error>
    where
        I: IntoIterator<Item = T>,
        T: Into<OsString> + Clone,
    {
        Self::from_matches(&command().try_get_matches_from(list)?)
    }

    fn from_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        Self::from_arg_matches(matches).map_err(|error| error.format(&mut command()))
    }
}

/// The clap command, with each flag's variables in its help.
pub(crate) fn command() -> clap::Command {
    let command =
        ["run", "list", "check", "completions"].into_iter().fold(Args::command(), |command, name| {
            command.mut_subcommand(name, |subcommand| subcommand.mut_args(show_variables))
        });
    operate::NAMES.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |subcommand| {
            let below: Vec<String> =
                subcommand.get_subcommands().map(|one| one.get_name().to_owned()).collect();
            let shown = |one: clap::Command| one.mut_args(show_variables_of_cluster);
            below.into_iter().fold(shown(subcommand), |command, name| command.mut_subcommand(name, shown))
        })
    })
}

/// What a person asks for is typed; only where to is also found in the environment.
fn show_variables_of_cluster(arg: clap::Arg) -> clap::Arg {
    if arg.get_help_heading() == Some("Cluster") { show_variables(arg) } else { arg }
}

fn show_variables(arg: clap::Arg) -> clap::Arg {
    let Some(setting) = arg.get_long().and_then(Setting::of_flag) else { return arg };
    let variables = format!("[env: {}]", setting.variables());
    let short = arg.get_help().map(|help| format!("{help} {variables}")).unwrap_or_default();
    let long = arg.get_long_help().map(|help| format!("{help}\n\n{variables}"));
    let arg = arg.help(short);
    match long {
        Some(long) => arg.long_help(long),
        None => arg,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_command() -> clap::Command {
        subcommand("run")
    }

    fn subcommand(name: &str) -> clap::Command {
        command().find_subcommand(name).cloned().unwrap()
    }

    #[test]
    fn the_command_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_flag_has_a_variable_and_every_setting_has_a_flag() {
        let check = [settings::RUN, settings::CHECK].concat();
        for (name, settings) in [("run", settings::RUN), ("list", settings::LIST), ("check", &check)] {
            let command = subcommand(name);
            let flags = command.get_arguments().filter_map(clap::Arg::get_long);
            let flags: Vec<String> = flags.map(|long| format!("--{long}")).collect();
            let settings: Vec<&str> = settings.iter().map(|setting| setting.flag).collect();
            assert_eq!(flags, settings, "{name}");
        }
    }

    #[test]
    fn help_shows_the_variable_of_each_flag_and_how_to_begin() {
        let help = run_command().render_long_help().to_string();
        for setting in settings::RUN {
            assert!(help.contains(setting.env), "{} is not in\n{help}", setting.env);
        }
        assert!(help.contains("OPERATOR_NAMESPACE") && help.contains("perennial run --dry-run"), "{help}");
    }

    #[test]
    fn timing_knobs_are_in_the_long_help_alone() {
        let short = run_command().render_help().to_string();
        assert!(!short.contains("--close-after") && short.contains("--resync"), "{short}");
        assert!(run_command().render_long_help().to_string().contains("--close-after"));
    }

    #[test]
    fn every_shell_gets_completions_with_all_commands() {
        for shell in <clap_complete::Shell as clap::ValueEnum>::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut command(), "perennial", &mut script);
            let script = String::from_utf8(script).unwrap();
            for word in ["run", "list", "check", "takeover", "rollback", "against-cluster"] {
                assert!(script.contains(word), "{shell}: no {word}");
            }
        }
    }

    #[test]
    fn an_unknown_flag_is_refused_with_the_nearest_one() {
        let error = Args::try_from_list(["perennial", "run", "--resink", "5m"]).unwrap_err().to_string();
        assert!(error.contains("--resink") && error.contains("--resync"), "{error}");
    }

    #[test]
    fn a_flag_without_its_value_or_given_twice_is_refused() {
        assert!(Args::try_from_list(["perennial", "run", "--resync"]).is_err());
        assert!(Args::try_from_list(["perennial", "run", "--resync", "1m", "--resync", "2m"]).is_err());
        assert!(Args::try_from_list(["perennial"]).is_err());
    }
}
