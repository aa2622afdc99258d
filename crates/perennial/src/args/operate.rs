//! The commands by which people see and steer Perennial, as typed.
//!
//! They talk to the API server with a person's own kubeconfig and permissions, and never to a replica.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

#[cfg(test)]
mod docs;
mod words;

/// What a person can see and do.
#[derive(Debug, Subcommand)]
pub enum Operation {
    /// List the nodes, what is kept of them and how they stand
    #[command(long_about = words::NODES, after_help = words::NODES_EXAMPLES)]
    Nodes(NodesArgs),

    /// Show one node against its record: what differs, its Events, its former states
    #[command(after_help = words::SHOW_EXAMPLES)]
    Show(ShowArgs),

    /// Sum up the fleet, and who does the work
    #[command(long_about = words::STATUS)]
    Status(StatusArgs),

    /// Show how living nodes differ from their records
    #[command(long_about = words::DIFF)]
    Diff(DiffArgs),

    /// Give a node now what its record holds and it lacks
    #[command(long_about = words::RESTORE, after_help = words::RESTORE_EXAMPLES)]
    Restore(RestoreArgs),

    /// Bring one node, or all, back to what was kept of them at some time
    #[command(long_about = words::ROLLBACK, after_help = words::ROLLBACK_EXAMPLES)]
    Rollback(RollbackArgs),

    /// Forget nodes: erase their records, and keep nothing of them
    #[command(long_about = words::FORGET)]
    Forget(ForgetArgs),

    /// Leave nodes alone until they are resumed, also while they are away
    Pause(HandArgs),

    /// End a pause
    Resume(HandArgs),

    /// Write all records to a file
    #[command(long_about = words::EXPORT, after_help = words::EXPORT_EXAMPLES)]
    Export(ExportArgs),

    /// Read records from a file: of another cluster, a backup, or an older tool
    #[command(long_about = words::IMPORT, after_help = words::IMPORT_EXAMPLES)]
    Import(ImportArgs),

    /// Check a policy before it is in force
    Policy(PolicyArgs),

    /// List the Listings and what came of them
    Listings(ListingsArgs),
}

/// The names of these commands.
pub(crate) const NAMES: [&str; 13] = [
    "nodes", "show", "status", "diff", "restore", "rollback", "forget", "pause", "resume", "export",
    "import", "policy", "listings",
];

/// Which cluster, and how it is talked to.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = "Cluster")]
pub struct DeskArgs {
    /// Kubeconfig to connect with; otherwise $KUBECONFIG, ~/.kube/config, or the pod's own account
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<String>,

    /// Context of the kubeconfig; otherwise its current one
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// Namespace the records live in [default: perennial]
    #[arg(long, short = 'n', value_name = "NAME")]
    pub namespace: Option<String>,

    /// Name of the installation in the mark on restored nodes; otherwise the namespace
    #[arg(long, value_name = "NAME")]
    pub installation: Option<String>,

    /// The policy in force, as YAML; otherwise the one of the chart's ConfigMap, or the default one
    #[arg(long, value_name = "FILE")]
    pub policy: Option<String>,

    /// File with the keys that records are sealed with, where they are: what is written is sealed, too
    #[arg(long, value_name = "FILE")]
    pub record_key: Option<String>,

    /// Whether to colour what is shown
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// In any case.
    Always,
    /// Not at all.
    Never,
}

/// How to show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// A table with more columns.
    Wide,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Names alone, a line each.
    Name,
}

/// How to show one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Document {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// What to sort nodes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SortBy {
    /// The name.
    #[default]
    Name,
    /// How they stand, what needs attention first.
    State,
    /// How many labels are kept, the most first.
    Labels,
    /// When they were recorded, the latest first.
    Recorded,
    /// When they were restored, the latest first.
    Restored,
}

/// The flags of `perennial nodes`.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct NodesArgs {
    /// Only these
    #[arg(value_name = "NODE")]
    pub names: Vec<String>,

    /// Only nodes whose labels, or recorded labels, match, as for `kubectl -l`
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    pub selector: Option<String>,

    /// Only nodes in these states, with commas between
    #[arg(long, value_name = "STATES", value_delimiter = ',')]
    pub state: Vec<String>,

    /// What to sort by
    #[arg(long, value_name = "WHAT", default_value = "name")]
    pub sort_by: SortBy,

    /// How to show it
    #[arg(long, short = 'o', value_name = "FORMAT")]
    pub output: Option<Output>,

    /// Leave the header out
    #[arg(long)]
    pub no_headers: bool,

    /// Which cluster.
    #[command(flatten)]
    pub desk: DeskArgs,
}

/// The flags of `perennial show`.
#[derive(Clone, Debug, ClapArgs)]
pub struct ShowArgs {
    /// The node
    #[arg(value_name = "NODE")]
    pub node: String,

    /// How to show it
    #[arg(long, short = 'o', value_name = "FORMAT")]
    pub output: Option<Document>,

    /// Which cluster.
    #[command(flatten)]
    pub desk: DeskArgs,
}

/// The flags of `perennial status`.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct StatusArgs {
    /// How to show it
    #[arg(long, short = 'o', value_name = "FORMAT")]
    pub output: Option<Document>,

    /// Which cluster.
    #[command(flatten)]
    pub desk: DeskArgs,
}

/// The flags of `perennial diff`.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct DiffArgs {
    /// Only these; otherwise all that live
    #[arg(value_name = "NODE")]
    pub names: Vec<String>,

    /// Which cluster.
    #[command(flatten)]
    pub desk: DeskArgs,
}

/// The flags of `perennial restore`.
#[derive(Clone, Debug, ClapArgs)]
pub struct RestoreArgs {
    /// The nodes
    #[arg(value_name = "NODE", required = true)]
    pub names: Vec<String>,

    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Also where etcd's history does not tell how the node last was: what is recorded may be older than that
    #[arg(long)]
    pub unproved: bool,

    /// Which cluster.
    #[command(flatten)]
    pub desk: DeskArgs,
}

/// The flags of `perennial rollback`.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct RollbackArgs {
    /// The nodes
    #[arg(value_name = "NODE", required_unless_present = "all", conflicts_with = "all")]
    pub names: Vec<String>,

    /// All nodes that have a record
    #[arg(long)]
    pub all: bool,

    /// The time: such as 2026-05-01T12:00:00Z, or 10m, 2h, 1d ago
    #[arg(long, value_name = "TIME", required = true)]
    pub to: String,

    /// Also remove what came since and is kept; otherwise it stays
    #[arg(long)]
    pub exact: bool,

    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Do not ask
    #[arg(long, short = 'y')]
    pub yes: bool,

    /// Which cluster.
    #[command(flatten)]
    pub desk: DeskArgs,
}

/// The flags of `perennial pause` and `resume`.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct HandArgs {
    /// The nodes
    #[arg(value_name = "NODE", required = true)]
    pub names: Vec<String>,

    /// Which cluster.
    #[command(flatten)]
    pub desk: DeskArgs,
}

/// The flags of `perennial forget`.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct ForgetArgs {
    /// The nodes
    #[arg(value_name = "NODE", required = true)]
    pub names: Vec<String>,

    /// Do not ask
    #[arg(long, short = 'y')]
    pub yes: bool,

    /// Which cluster.
    #[command(flatten)]
    pub desk: DeskArgs,
}

/// The flags of `perennial export`.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct ExportArgs {
    /// The file to write; otherwise standard output
    #[arg(long, short = 'f', value_name = "FILE")]
    pub file: Option<String>,

    /// Which cluster.
    #[command(flatten)]
    pub desk: DeskArgs,
}

/// The flags of `perennial import`.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct ImportArgs {
    /// The file to read, `-` for standard input
    #[arg(
        value_name = "FILE",
        required_unless_present = "from_namespace",
        conflicts_with = "from_namespace"
    )]
    pub file: Option<String>,

    /// Read the ConfigMaps of an older tool from this namespace of the cluster instead
    #[arg(long, value_name = "NAME")]
    pub from_namespace: Option<String>,

    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Also where there is a record already; what it says stays in its former states
    #[arg(long)]
    pub overwrite: bool,

    /// Pass over ConfigMaps that nobody knows, instead of refusing them all
    #[arg(long)]
    pub skip_unknown: bool,

    /// Do not ask before records are overwritten
    #[arg(long, short = 'y')]
    pub yes: bool,

    /// Which cluster.
    #[command(flatten)]
    pub desk: DeskArgs,
}

/// What to do with a policy.
#[derive(Clone, Debug, ClapArgs)]
#[command(subcommand_required = true)]
pub struct PolicyArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: PolicyCommand,
}

/// What can be done with a policy.
#[derive(Clone, Debug, Subcommand)]
pub enum PolicyCommand {
    /// Check a policy file, and with --against-cluster what it would mean for every node
    #[command(long_about = words::POLICY, after_help = words::POLICY_EXAMPLES)]
    Check(PolicyCheckArgs),
}

/// The flags of `perennial policy check`.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct PolicyCheckArgs {
    /// The policy, as YAML
    #[arg(value_name = "FILE")]
    pub file: String,

    /// Also say which keys of which nodes would be kept, restored, refused
    #[arg(long)]
    pub against_cluster: bool,

    /// How to show it
    #[arg(long, short = 'o', value_name = "FORMAT")]
    pub output: Option<Output>,

    /// Which cluster.
    #[command(flatten)]
    pub desk: DeskArgs,
}

/// The flags of `perennial listings`.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct ListingsArgs {
    /// Only those of this namespace
    #[arg(value_name = "NAMESPACE")]
    pub only: Option<String>,

    /// How to show it
    #[arg(long, short = 'o', value_name = "FORMAT")]
    pub output: Option<Output>,

    /// Leave the header out
    #[arg(long)]
    pub no_headers: bool,

    /// Which cluster.
    #[command(flatten)]
    pub desk: DeskArgs,
}

impl Operation {
    /// Which cluster it is about.
    #[must_use]
    pub fn desk(&self) -> &DeskArgs {
        match self {
            Self::Nodes(args) => &args.desk,
            Self::Show(args) => &args.desk,
            Self::Status(args) => &args.desk,
            Self::Diff(args) => &args.desk,
            Self::Restore(args) => &args.desk,
            Self::Rollback(args) => &args.desk,
            Self::Forget(args) => &args.desk,
            Self::Pause(args) | Self::Resume(args) => &args.desk,
            Self::Export(args) => &args.desk,
            Self::Import(args) => &args.desk,
            Self::Policy(PolicyArgs { command: PolicyCommand::Check(args) }) => &args.desk,
            Self::Listings(args) => &args.desk,
        }
    }
}
