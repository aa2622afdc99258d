//! Wires the parts together and owns their lives.

use std::process::ExitCode;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info};

use crate::admin::{self, Readiness, ReadyHandle, Server};
use crate::args::{Args, Command};
use crate::client;
use crate::cluster::{self, Cluster};
use crate::config::{self, Config, KeeperConfig, MembersConfig, PolicyMetrics, Surroundings};
use crate::members::{self, Membership};
use crate::shutdown::{self, Ended};
use crate::{keeper, log, metrics};

/// Why `perennial` cannot start, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is refused.
    #[error(transparent)]
    Config(#[from] config::Error),
    /// The log cannot be set up.
    #[error(transparent)]
    Log(#[from] log::Error),
    /// No client can be made.
    #[error(transparent)]
    Client(#[from] client::Error),
    /// The admin server cannot listen.
    #[error(transparent)]
    Admin(#[from] admin::Error),
    /// The system gives no threads, or no signals.
    #[error("the system refuses: {0}")]
    System(#[from] std::io::Error),
    /// The keeper ended, though nobody asked it to.
    #[error("the keeper ended: {0}")]
    Keeper(#[from] keeper::Error),
}

/// Does what the command line asks for. Errors before the log is there are returned; later ones are
/// logged, where the machine that reads the log finds them, and become the exit code.
pub fn run(args: Args) -> Result<ExitCode, Error> {
    let Args { command: Command::Run(args) } = args;
    let config = Config::check(&args, &Surroundings::of_process())?;
    log::init(&config.log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(keep(config));
    // A blocking call that hangs must not hold up an exit.
    runtime.shutdown_background();
    match result {
        Ok(Ended::Finished(())) => {
            info!("stopped");
            Ok(ExitCode::SUCCESS)
        }
        Ok(Ended::Aborted(signal)) => Ok(ExitCode::from(signal.exit_code())),
        Err(failure) => {
            let causes = log::chain(&failure);
            error!(error = causes, "cannot go on");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Runs the keeper with all that surrounds it, until a signal.
async fn keep(config: Config) -> Result<Ended<()>, Error> {
    let Config { connect, namespace, admin, log: _, keeper, members, policy, honoured } = config;
    let source = policy.path().map_or_else(|| "built in".to_owned(), |path| path.display().to_string());
    info!(
        version = env!("CARGO_PKG_VERSION"),
        namespace,
        installation = keeper.installation,
        member = members.name,
        policy = source,
        "starting"
    );
    if !honoured.is_empty() {
        info!(variables = honoured.join(", "), "an older operator's variables are honoured");
    }
    let signals = shutdown::signals()?;
    let stop = CancellationToken::new();
    let client = client::connect(&connect).await?;

    let mut registry = metrics::registry();
    let section = metrics::section(&mut registry);
    let policy_metrics = PolicyMetrics::register(section);
    let cluster = Cluster::new(client, Arc::new(cluster::Metrics::register(section)));
    let keeper_metrics = Arc::new(keeper::Metrics::register(section));
    let member_metrics = Arc::new(members::Metrics::register(section));
    let readiness = Readiness::default();
    let ready = readiness.handle("keeper");

    // These serve the keeper and end with this function, after it: probes must answer while it drains.
    let _admin = match admin {
        Some(address) => {
            let server = Server::bind(address).await?;
            info!(address = %server.address(), "serving probes and metrics");
            let routes = admin::routes(readiness, Arc::new(registry));
            Some(AbortOnDropHandle::new(tokio::spawn(server.serve(routes, CancellationToken::new()))))
        }
        None => None,
    };
    let follow = policy.follow(policy_metrics, CancellationToken::new());
    let _policy = AbortOnDropHandle::new(tokio::spawn(follow));

    let work = share(cluster, keeper, keeper_metrics, members, member_metrics, ready, stop.clone());
    match shutdown::until_ended(work, stop, signals).await {
        Ended::Finished(result) => Ok(Ended::Finished(result?)),
        Ended::Aborted(signal) => Ok(Ended::Aborted(signal)),
    }
}

/// Runs the keeper among its members. The Lease is removed as the keeper begins to drain, so that others take
/// over while it finishes. One that writes nothing has no share, and says nothing.
async fn share(
    cluster: Cluster,
    keeper: KeeperConfig,
    metrics: Arc<keeper::Metrics>,
    members: MembersConfig,
    member_metrics: Arc<members::Metrics>,
    ready: ReadyHandle,
    stop: CancellationToken,
) -> Result<(), keeper::Error> {
    if keeper.dry_run {
        let alone = Membership::alone(member_metrics);
        return keeper::run(cluster, keeper, metrics, alone, ready, stop).await;
    }
    let (membership, follow) = members::join(cluster.clone(), members, member_metrics, stop.clone());
    // In a task of its own: renewing must not wait for a keeper that is busy.
    let following = AbortOnDropHandle::new(tokio::spawn(follow));
    let kept = keeper::run(cluster, keeper, metrics, membership, ready, stop.clone()).await;
    stop.cancel();
    // It has nothing to say, and panics are logged where they happen.
    following.await.ok();
    kept
}
