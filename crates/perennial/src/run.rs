//! Wires the parts together and owns their lives.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info};

use crate::admin::page::{RosterSlot, Sources};
use crate::admin::{self, Guarded, Readiness, ReadyHandle, Server};
use crate::args::{self, Args, Command};
use crate::check;
use crate::cli;
use crate::client;
use crate::cluster::{self, Cluster};
use crate::config::{
    self, CheckConfig, Config, Connect, KeeperConfig, ListConfig, ListerConfig, MembersConfig, PolicyMetrics,
    Surroundings, TlsConfig,
};
use crate::lister::{self, Pages, Single};
use crate::members::{self, Membership};
use crate::shutdown::{self, Ended};
use crate::traces::{self, Traces};
use crate::webhook::{self, Webhook};
use crate::{keeper, listener, log, metrics};

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
    /// A port cannot be listened on.
    #[error(transparent)]
    Listener(#[from] listener::Error),
    /// The system gives no threads, or no signals.
    #[error("the system refuses: {0}")]
    System(#[from] std::io::Error),
    /// The keeper ended, though nobody asked it to.
    #[error("the keeper ended: {0}")]
    Keeper(#[from] keeper::Error),
    /// Traces cannot be sent.
    #[error(transparent)]
    Traces(#[from] traces::Error),
    /// One listing could not be shown or published.
    #[error(transparent)]
    List(#[from] lister::ListError),
}

/// Does what the command line asks for. Errors before the log is there are returned; later ones are
/// logged, where the machine that reads the log finds them, and become the exit code.
pub fn run(args: Args) -> Result<ExitCode, Error> {
    let around = Surroundings::of_process();
    // One thread: an event is folded where it is read, and nothing here computes for long. What does, or blocks, goes to
    // threads of its own.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = match args.command {
        Command::Run(args) => {
            let config = Config::check(&args, &around)?;
            let storm = log::init(&config.log)?;
            runtime.spawn(storm.clone().keep_telling());
            let result = runtime.block_on(work(config));
            storm.tell();
            result
        }
        Command::List(args) => {
            let config = ListConfig::check(&args, &around)?;
            let storm = log::init(&config.log)?;
            runtime.spawn(storm.clone().keep_telling());
            let result = runtime.block_on(list(config));
            storm.tell();
            result
        }
        Command::Check(args) => {
            let CheckConfig { config, ready } = CheckConfig::check(&args, &around)?;
            // What is found is told on standard output; the log is for what goes wrong on the way there.
            log::init(&config.log)?;
            return runtime.block_on(async {
                let client = client::connect(&config.connect).await?;
                let findings = check::check(&client, &config, ready.as_ref()).await;
                std::io::stdout().write_all(findings.lines().as_bytes())?;
                Ok(if findings.all_is_well() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
            });
        }
        Command::Operate(operation) => {
            let mut screen = cli::Screen::of_process(operation.desk().color, &around);
            let code = runtime.block_on(cli::run(*operation, &around, &mut screen));
            return Ok(ExitCode::from(code));
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut args::command(), "perennial", &mut script);
            std::io::stdout().write_all(&script)?;
            return Ok(ExitCode::SUCCESS);
        }
    };
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

/// Runs keeper and lister with all that surrounds them, until a signal.
async fn work(config: Config) -> Result<Ended<()>, Error> {
    let Config {
        connect,
        namespace,
        admin,
        page,
        log: _,
        keeps,
        mut keeper,
        lister,
        members,
        policy,
        traces,
        webhook,
        metrics: guarded,
        honoured,
    } = config;
    let lists = lister.is_some();
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

    let traces = traces.map(|config| Traces::start(&config, &members.name, &namespace)).transpose()?;
    keeper.tracer = traces.as_ref().map(Traces::tracer);

    let mut registry = metrics::registry();
    let section = metrics::section(&mut registry);
    let policy_metrics = PolicyMetrics::register(section);
    let cluster = cluster(client, &connect, section).await?;
    let readiness = readiness(&cluster);
    let pages = Pages::default();
    let sources =
        page.map(|page| Sources::new(page, keeps.then_some(&keeper), &members, lists.then(|| pages.clone())));
    // Like those below: whoever asks it goes to another replica while this one drains, and is answered until then.
    let _webhook = match webhook.zip(keeper.door.clone()) {
        Some((config, door)) => {
            let measured = Arc::new(webhook::Metrics::register(section));
            let webhook = Webhook::bind(config).await?;
            info!(address = %webhook.address(), "serving the webhook");
            let installation = keeper.installation.clone();
            let serving = webhook.serve(cluster.clone(), installation, door, measured, stop.clone());
            Some(AbortOnDropHandle::new(tokio::spawn(serving)))
        }
        None => None,
    };
    let parts = Parts {
        cluster: cluster.clone(),
        roster: sources.as_ref().map(|sources| sources.roster.clone()).unwrap_or_default(),
        keeper: keeps.then(|| {
            (keeper.clone(), Arc::new(keeper::Metrics::register(section)), readiness.handle("keeper"))
        }),
        lister: lister.map(|config| {
            let metrics = Arc::new(lister::Metrics::register(section));
            (config, metrics, pages.clone(), readiness.handle("lister"))
        }),
        alone: keeper.dry_run,
        members,
        member_metrics: Arc::new(members::Metrics::register(section)),
    };

    // These serve the parts and end with this function, after them: probes must answer while they drain.
    let registry = Arc::new(registry);
    let (measured, _guarded) = guard(guarded, &cluster, registry).await?;
    let _admin = match admin {
        Some(address) => {
            let server = Server::bind(address).await?;
            info!(address = %server.address(), "serving {}", measured.with_probes());
            let (mut routes, hub) = match sources {
                Some(sources) => {
                    let (routes, hub) = admin::routes_with_page(readiness, measured, sources, cluster);
                    (routes, Some(hub))
                }
                None => (admin::routes(readiness, measured), None),
            };
            if lists {
                routes = routes.merge(lister::routes(pages));
            }
            let serving = tokio::spawn(server.serve(routes, CancellationToken::new()));
            Some((AbortOnDropHandle::new(serving), hub))
        }
        None => None,
    };
    let follow = policy.follow(policy_metrics, CancellationToken::new());
    let _policy = AbortOnDropHandle::new(tokio::spawn(follow));

    let ended = shutdown::until_ended(parts.run(stop.clone()), stop, signals).await;
    if let (Some(traces), Ended::Finished(_)) = (traces, &ended) {
        traces.stop().await;
    }
    match ended {
        Ended::Finished(result) => Ok(Ended::Finished(result?)),
        Ended::Aborted(signal) => Ok(Ended::Aborted(signal)),
    }
}

/// Serves metrics by HTTPS to those who may read them, where somebody wants that; otherwise they are for whoever reaches the
/// probes.
async fn guard(
    config: Option<TlsConfig>,
    cluster: &Cluster,
    registry: Arc<Registry>,
) -> Result<(admin::Metrics, Option<AbortOnDropHandle<()>>), Error> {
    let Some(config) = config else { return Ok((admin::Metrics::Open(registry), None)) };
    let server = Guarded::bind(config).await?;
    info!(address = %server.address(), "serving metrics by HTTPS");
    let serving = tokio::spawn(server.serve(cluster.clone(), registry));
    Ok((admin::Metrics::Guarded, Some(AbortOnDropHandle::new(serving))))
}

/// The way to the API server: for calls, and for watches.
async fn cluster(client: kube::Client, connect: &Connect, section: &mut Registry) -> Result<Cluster, Error> {
    let cluster = Cluster::new(client, Arc::new(cluster::Metrics::register(section)));
    Ok(cluster.watching_by(client::connect_anew(connect).await?))
}

/// Ready only while it knows what happens in the cluster.
fn readiness(cluster: &Cluster) -> Readiness {
    let cluster = cluster.clone();
    Readiness::default().only_while("watches", move || cluster.is_fresh())
}

/// Publishes one listing: shown, once, or until a signal.
async fn list(config: ListConfig) -> Result<Ended<()>, Error> {
    let ListConfig {
        connect,
        namespace,
        what,
        places,
        template,
        once,
        dry_run,
        verify,
        admin,
        log: _,
        honoured,
    } = config;
    if !honoured.is_empty() {
        info!(variables = honoured.join(", "), "an older tool's variables are honoured");
    }
    let client = client::connect(&connect).await?;
    let namespace = namespace.unwrap_or_else(|| client.default_namespace().to_owned());
    let mut registry = metrics::registry();
    let section = metrics::section(&mut registry);
    let cluster = cluster(client, &connect, section).await?;
    let measured = Arc::new(lister::Metrics::register(section));
    let readiness = readiness(&cluster);
    let single = Single::new(cluster, &namespace, what, places, template);
    let (signals, stop, pages) = (shutdown::signals()?, CancellationToken::new(), Pages::default());
    let ready = readiness.handle("page");
    let _admin = match admin {
        Some(address) if !once && !dry_run && verify.is_none() => {
            let server = Server::bind(address).await?;
            info!(address = %server.address(), "serving probes, metrics and the page");
            let routes = admin::routes(readiness, admin::Metrics::Open(Arc::new(registry)));
            let routes = routes.merge(lister::routes(pages.clone()));
            Some(AbortOnDropHandle::new(tokio::spawn(server.serve(routes, CancellationToken::new()))))
        }
        _ => None,
    };
    let ending = stop.clone();
    let work = async move {
        if dry_run {
            let page = single.show().await?;
            std::io::stdout().write_all(page.as_bytes())?;
            return Ok(());
        }
        if let Some(at) = verify {
            return Ok(single.verify(&at).await?);
        }
        if once {
            return Ok(single.once().await?);
        }
        Ok(single.follow(measured, pages, ready, ending).await?)
    };
    match shutdown::until_ended(work, stop, signals).await {
        Ended::Finished(result) => result.map(Ended::Finished),
        Ended::Aborted(signal) => Ok(Ended::Aborted(signal)),
    }
}

/// What this replica does, among the others.
struct Parts {
    cluster: Cluster,
    /// Where the status page finds the members.
    roster: RosterSlot,
    keeper: Option<(KeeperConfig, Arc<keeper::Metrics>, ReadyHandle)>,
    lister: Option<(ListerConfig, Arc<lister::Metrics>, Pages, ReadyHandle)>,
    /// One that writes nothing has no share, and says nothing.
    alone: bool,
    members: MembersConfig,
    member_metrics: Arc<members::Metrics>,
}

impl Parts {
    /// Runs the parts until `stop`. The Lease is removed as they begin to drain, so that others take over while they
    /// finish.
    async fn run(self, stop: CancellationToken) -> Result<(), keeper::Error> {
        let Self { cluster, roster, keeper, lister, alone, members, member_metrics } = self;
        let (membership, following) = if alone {
            (Membership::alone(member_metrics), None)
        } else {
            let (membership, follow) = members::join(cluster.clone(), members, member_metrics, stop.clone());
            // In a task of its own: renewing must not wait for what a keeper waits for.
            (membership, Some(AbortOnDropHandle::new(tokio::spawn(follow))))
        };
        // Nobody else sets it.
        roster.set(membership.roster.clone()).ok();
        let (of_keeper, of_lister) = match (&keeper, &lister) {
            (Some(_), Some(_)) => (Some(membership.another()), Some(membership)),
            (Some(_), None) => (Some(membership), None),
            (None, _) => (None, Some(membership)),
        };
        let keep = async {
            let Some(((config, metrics, ready), membership)) = keeper.zip(of_keeper) else { return Ok(()) };
            let kept = keeper::run(cluster.clone(), config, metrics, membership, ready, stop.clone());
            // In a task of its own: whatever a heartbeat wakes shall be the keeper alone.
            let kept = AbortOnDropHandle::new(tokio::spawn(kept)).await;
            stop.cancel();
            // It is cancelled by nobody while somebody waits for it.
            kept.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()))
        };
        let list = async {
            let Some(((config, metrics, pages, ready), membership)) = lister.zip(of_lister) else { return };
            lister::run(cluster.clone(), config, metrics, pages, membership, ready, stop.clone()).await;
        };
        let (kept, ()) = tokio::join!(keep, list);
        stop.cancel();
        if let Some(following) = following {
            // It has nothing to say, and panics are logged where they happen.
            following.await.ok();
        }
        kept
    }
}
