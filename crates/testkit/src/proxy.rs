//! A proxy between a replica and the API server that goes wrong on purpose.
//!
//! It takes a kubeconfig and gives another: whoever uses that one talks to the API server through the proxy, with
//! the identity of the first. Left alone it changes nothing. A test injects faults ([`Proxy::inject`]), breaks
//! what is under way ([`Proxy::cut`]), and stands still at a call ([`Proxy::stop`]). One proxy for each replica,
//! so that they see different worlds.
//!
//! Streams pass it in JSON, which is what a client gets of a server without protobuf: what it bends it has to read. Where
//! only calls are to go wrong, and no events, they may pass in protobuf ([`Proxy::carry_protobuf`]).
//!
//! Chance follows a seed: the same calls in the same order meet the same faults.
//!
//! ```text
//! replica ── http ──> carry: admit ─> wait, cut, refuse ─> ask the API server ─> wait, lose ─> bend ──> replica
//!                       │ journal, rules, stops                                      list, or stream
//! ```
//!
//! | file | what |
//! | --- | --- |
//! | `call`, `matcher` | what a request asks for, and which ones are meant |
//! | `fault`, `rules`, `plan` | what goes wrong, for whom, and all together |
//! | `carry`, `upstream`, `answer` | the way of one call |
//! | `list`, `stream`, `source`, `event`, `untouched` | what is in a reply |
//! | `stop`, `journal`, `shared` | what the test's hand holds |

use std::{
    io::Write,
    path::Path,
    sync::{Arc, Weak, atomic::Ordering},
};

use anyhow::Context;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kube::{
    Client, Config,
    config::{
        Cluster, Context as KubeContext, KubeConfigOptions, Kubeconfig, NamedAuthInfo, NamedCluster,
        NamedContext,
    },
};
use tempfile::NamedTempFile;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::{endpoint::anonymous, port::Port};

mod answer;
mod call;
mod carry;
mod event;
mod fault;
mod journal;
mod list;
mod matcher;
mod plan;
mod rules;
mod shared;
mod source;
mod stop;
mod stream;
mod untouched;
mod upstream;

pub use call::{Call, Verb};
pub use fault::{Dose, Edit, Fault};
pub use journal::Entry;
pub use matcher::Matcher;
pub use stop::{Moment, Stop, Stopped};

use shared::Shared;

/// A running proxy. Everything through it breaks when it is dropped.
pub struct Proxy {
    shared: Arc<Shared>,
    url: String,
    kubeconfig: NamedTempFile,
    _port: Port,
}

impl Proxy {
    /// Starts one before the API server of this kubeconfig. It lives on the runtime that it is started on.
    pub async fn start(kubeconfig: impl AsRef<Path>) -> anyhow::Result<Self> {
        Self::seeded(kubeconfig, 0).await
    }

    /// The same, with a seed for whatever is left to chance.
    pub async fn seeded(kubeconfig: impl AsRef<Path>, seed: u64) -> anyhow::Result<Self> {
        let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        // Whoever is behind the proxy shall see every refusal.
        config.default_retry = false;
        let shared = Arc::new(Shared::new(Client::try_from(config)?, seed));
        let port = Port::claim()?;
        let listener = TcpListener::bind(port.address()).await.context("listening")?;
        tokio::spawn(serve(listener, Arc::clone(&shared)));
        let url = format!("http://{}", port.address());
        let kubeconfig = write_kubeconfig(&url)?;
        Ok(Self { shared, url, kubeconfig, _port: port })
    }

    /// A kubeconfig that leads through it.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        self.kubeconfig.path()
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A client that goes through it, and tries everything once.
    pub fn client(&self) -> anyhow::Result<Client> {
        let mut config = Config::new(self.url().parse()?);
        config.default_retry = false;
        Ok(Client::try_from(config)?)
    }

    /// Has a fault meet whatever the matcher picks, from now on: until the injection is dropped.
    ///
    /// ```text
    /// let lag = proxy.inject(Matcher::watches("configmaps"), Fault::Hold);
    /// let lost = proxy.inject(Matcher::on("nodes").verbs([Verb::Patch]), Fault::LoseReply.once());
    /// drop(lag);
    /// ```
    pub fn inject(&self, matcher: Matcher, fault: impl Into<Dose>) -> Injection {
        let lifted = self.shared.ended.child_token();
        let id = self.shared.state().rules.inject(matcher, fault.into(), lifted.clone());
        self.shared.changed.send_replace(());
        Injection { shared: Arc::downgrade(&self.shared), id, lifted, keep: false }
    }

    /// Lets streams pass in protobuf from now on. Those may be cut, refused or kept waiting, but faults that meet events do
    /// not meet theirs.
    pub fn carry_protobuf(&self) {
        self.shared.protobuf.store(true, Ordering::Relaxed);
    }

    /// Breaks the connections of what is under way now and picked: requests, replies and open streams.
    pub fn cut(&self, matcher: &Matcher) {
        self.shared.cut(matcher);
    }

    /// Cuts off whatever is picked, under way or new, until the injection is dropped.
    pub fn partition(&self, matcher: &Matcher) -> Injection {
        let injection = self.inject(matcher.clone(), Fault::Cut);
        self.cut(matcher);
        injection
    }

    /// Stops at a call: the one that the matcher picks after passing over `skip` others, counted from now. It
    /// waits there, and every call that comes after it waits too, for the test to go on.
    ///
    /// ```text
    /// let stop = proxy.stop(Matcher::any(), 7, Moment::BeforeReply);
    /// let stopped = stop.reached().await?;
    /// keeper.kill9().await?;
    /// drop(stopped);
    /// ```
    pub fn stop(&self, matcher: Matcher, skip: u64, moment: Moment) -> Stop {
        Stop::set(&self.shared, matcher, skip, moment)
    }

    /// How many calls came so far, which is the next one's index. Calls that wait at a stop are not counted yet.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.shared.state().journal.next()
    }

    /// Whether whoever is behind it is told of every change in a resource now: its list is complete, and its watch open.
    #[must_use]
    pub fn follows(&self, resource: &str) -> bool {
        self.shared.state().follows(resource)
    }

    /// How many calls wait now, because they came after one that stands still.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.state().waiting
    }

    /// The calls from this index on, in order.
    #[must_use]
    pub fn journal_since(&self, index: u64) -> Vec<Entry> {
        self.shared.state().journal.since(index)
    }

    /// Every call so far (the last 200,000), in order.
    #[must_use]
    pub fn journal(&self) -> Vec<Entry> {
        self.shared.state().journal.entries()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.ended.cancel();
    }
}

/// A fault that is on. Dropped, it is lifted: whatever it keeps waiting goes on.
#[must_use]
pub struct Injection {
    /// The proxy may go before.
    shared: Weak<Shared>,
    id: u64,
    lifted: CancellationToken,
    keep: bool,
}

impl Injection {
    /// Lifts it.
    pub fn lift(self) {}

    /// Leaves it on for as long as the proxy lives.
    pub fn keep(mut self) {
        self.keep = true;
    }

    /// How often it has struck.
    #[must_use]
    pub fn met(&self) -> u64 {
        self.shared.upgrade().map_or(0, |shared| shared.state().rules.met(self.id))
    }
}

impl Drop for Injection {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        if let Some(shared) = self.shared.upgrade() {
            shared.state().rules.lift(self.id);
            self.lifted.cancel();
            shared.changed.send_replace(());
        }
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = shared.ended.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        // A caller that has gone already is not our trouble.
        if let Ok((stream, _)) = accepted {
            tokio::spawn(connection(stream, Arc::clone(&shared)));
        }
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    // Small events shall not wait for each other.
    let _ = stream.set_nodelay(true);
    let ended = shared.ended.clone();
    let service = service_fn(move |request| carry::carry(Arc::clone(&shared), request));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // It ends with an error whenever something breaks on purpose.
    let _ = ended.run_until_cancelled(connection).await;
}

fn write_kubeconfig(url: &str) -> anyhow::Result<NamedTempFile> {
    let name = "proxy".to_owned();
    let cluster = Cluster { server: Some(url.to_owned()), ..Cluster::default() };
    let context = KubeContext { cluster: name.clone(), user: Some(name.clone()), ..KubeContext::default() };
    let kubeconfig = Kubeconfig {
        api_version: Some("v1".to_owned()),
        kind: Some("Config".to_owned()),
        clusters: vec![NamedCluster {
            name: name.clone(),
            cluster: Some(cluster),
            ..NamedCluster::default()
        }],
        auth_infos: vec![NamedAuthInfo {
            name: name.clone(),
            auth_info: Some(anonymous()),
            ..NamedAuthInfo::default()
        }],
        contexts: vec![NamedContext {
            name: name.clone(),
            context: Some(context),
            ..NamedContext::default()
        }],
        current_context: Some(name),
        ..Kubeconfig::default()
    };
    let mut file = NamedTempFile::with_prefix("perennial-proxy-")?;
    file.write_all(&serde_json::to_vec_pretty(&kubeconfig)?)?;
    Ok(file)
}
