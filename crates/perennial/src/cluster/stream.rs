//! Follows one kind of object: lists it, watches it, and picks the thread up again whatever breaks.
//!
//! ```text
//!           ┌────────────── 410: history is gone ──────────────┐
//!           v                                                  │
//!   list (streamed, or in pages) ──> watch from its version ───┤ broken: back off, compare histories,
//!                                        ^                     │ watch on from the last version
//!                                        └─────────────────────┘
//! ```
//! It passes on what the API server says and judges nothing: what a missing object means is decided elsewhere. What
//! changes nothing but a version is told a little later, with others of its kind: see [`super::quiet`].

use std::fmt;
use std::hash::RandomState;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Body;
use jiff::Timestamp;
use kube::api::WatchParams;
use kube::core::request::Request as Resource;
use kube::core::watch::Bookmark;
use kube::core::{Status, WatchEvent};
use perennial_core::kept::Pairs;
use perennial_core::record::Version;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, error, info, warn};

use super::messages::{Encoding, Message, Messages};
use super::quiet::{Glance, Quiet, Unchanged};
use super::views::View;
use super::{ApiError, Cluster, Meta, backoff, proto};

/// A streamed list in which nothing comes for so long is dead.
const SILENCE: Duration = Duration::from_secs(30);
/// How late a watch may begin, and how late it may end.
const BEGINS: Duration = Duration::from_secs(10);
const LATE: Duration = Duration::from_secs(2);
/// How often a server is asked about the past that fails to tell, before the watch goes on without.
const TRIES: u32 = 3;
/// How many events may wait to be folded.
const WAITING: usize = 256;
/// The annotation of the bookmark that ends a streamed list.
const LIST_ENDS: &str = "k8s.io/initial-events-end";

/// What a stream says.
#[derive(Debug)]
pub(crate) enum Event<T> {
    /// A list begins.
    Listing,
    /// An object as it is now.
    Applied(T),
    /// Objects that are as they were, at other versions.
    Unchanged(Vec<Unchanged>),
    /// An object as it was at its deletion.
    Deleted(T),
    /// For so long nothing was watched that the API server could not tell what happened: the list that is complete
    /// next shows what came of it.
    Unobserved(Duration),
    /// The list is complete, as of this version.
    Listed(Version),
    /// Everything up to this version was told.
    Reached(Version),
    /// Versions run backwards: this is another history. The stream has ended.
    OtherHistory,
}

/// What to follow.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Its plural name, for logs and metrics.
    pub(crate) what: &'static str,
    /// Where it is.
    pub(crate) resource: Resource,
    /// Which of them.
    pub(crate) chosen: Chosen,
    /// Whole objects, or their metadata alone.
    pub(crate) whole: bool,
}

/// Which objects of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// Every one.
    #[default]
    All,
    /// The one of this name.
    Named(String),
    /// Those with this label.
    Labelled(&'static str, String),
}

impl Chosen {
    /// The selector of labels, and that of fields.
    pub(crate) fn selectors(&self) -> (Option<String>, Option<String>) {
        match self {
            Self::All => (None, None),
            Self::Named(name) => (None, Some(format!("metadata.name={name}"))),
            Self::Labelled(key, value) => (Some(format!("{key}={value}")), None),
        }
    }
}

/// Objects that can be followed.
pub(crate) trait Followed: Clone + DeserializeOwned + Send + 'static {
    /// Its metadata.
    fn meta(&self) -> &Meta;

    /// How one is made of its metadata alone, where that can be asked for.
    fn of_metadata() -> Option<fn(Meta) -> Self> {
        None
    }

    /// What an event says of an object that may well be as it was; `None` where that is to be read whole in any case.
    fn glance<'a>(_message: &'a Message, _now: Timestamp, _hasher: &RandomState) -> Option<Glance<'a>> {
        None
    }
}

/// What a message says.
#[derive(Debug)]
pub(super) enum Heard<T> {
    Applied(T),
    Deleted(T),
    /// How far the watch got, and whether that is the end of a list.
    Bookmark(Version, bool),
    /// The API server's own words.
    Error(Box<Status>),
}

impl<T> Heard<T> {
    pub(super) fn bookmark(version: Version, annotations: &Pairs) -> Self {
        Self::Bookmark(version, annotations.contains_key(LIST_ENDS))
    }
}

impl<T: Followed> Heard<T> {
    fn read(message: Message) -> Result<Self, String> {
        match (message, T::of_metadata()) {
            (Message::Protobuf(frame), Some(make)) => proto::event(frame, make),
            (Message::Protobuf(_), None) => Err("nobody asked for protobuf".to_owned()),
            (Message::Json(line), _) => match serde_json::from_slice::<WatchEvent<T>>(&line) {
                Ok(event) => Ok(Self::from(event)),
                Err(error) => match said(&line) {
                    Some(status) => Ok(Self::Error(Box::new(status))),
                    None => Err(error.to_string()),
                },
            },
        }
    }
}

impl<T> From<WatchEvent<T>> for Heard<T> {
    fn from(event: WatchEvent<T>) -> Self {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => Self::Applied(object),
            WatchEvent::Deleted(object) => Self::Deleted(object),
            WatchEvent::Bookmark(Bookmark { metadata, .. }) => {
                Self::bookmark(metadata.resource_version.parse().unwrap_or(0), &metadata.annotations)
            }
            WatchEvent::Error(status) => Self::Error(status),
        }
    }
}

/// A stream under way. It ends when this is dropped.
pub(crate) struct Following<T> {
    events: Receiver<Event<T>>,
    _task: AbortOnDropHandle<()>,
}

impl<T: Followed> Following<T> {
    /// Begins to follow.
    pub(crate) fn start(cluster: &Cluster, target: Target) -> Self {
        let (to, events) = channel(WAITING);
        let task = AbortOnDropHandle::new(tokio::spawn(follow(cluster.clone(), target, to)));
        Self { events, _task: task }
    }

    /// What the stream says next. One that ended is to be begun anew, as after another history.
    pub(crate) async fn next(&mut self) -> Event<T> {
        self.events.recv().await.unwrap_or(Event::OtherHistory)
    }
}

/// How a step ended that did what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// As it was asked to: the next one goes on.
    InTime,
    /// Before its time, or long after.
    Early,
}

/// Why a step did not do what it should.
enum Broken {
    /// Nobody listens any more.
    Unheard,
    /// The API server, or the way to it, failed.
    Api(ApiError),
}

impl From<ApiError> for Broken {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

/// Follows `target` until nobody listens or history changes.
pub(crate) async fn follow<T: Followed>(cluster: Cluster, target: Target, to: Sender<Event<T>>) {
    let mut stream = Stream::new(cluster, target, to);
    loop {
        match stream.step().await {
            Ok(End::InTime) => continue,
            // Servers end watches when they like. One that ends them all at once must not be asked all the time.
            Ok(End::Early) => stream.failures += 1,
            Err(Broken::Unheard) => return,
            Err(Broken::Api(error)) => stream.failed(&error),
        }
        tokio::time::sleep(backoff(stream.failures)).await;
        if stream.history_changed().await {
            return;
        }
    }
}

struct Stream<T> {
    cluster: Cluster,
    target: Target,
    to: Sender<Event<T>>,
    /// The last version seen, or `None` to list anew.
    at: Option<Version>,
    /// What was told.
    view: Arc<View>,
    /// The list under way, or the last one, is complete.
    listed: bool,
    /// Since when nothing was told, and cannot be told any more.
    gap: Option<Instant>,
    /// The next list is to be streamed.
    streamed: bool,
    failures: u32,
    quiet: Quiet,
}

impl<T: Followed> Stream<T> {
    fn new(cluster: Cluster, target: Target, to: Sender<Event<T>>) -> Self {
        let view = cluster.metrics().views.begin(target.clone());
        Self {
            cluster,
            target,
            to,
            at: None,
            view,
            listed: false,
            gap: None,
            streamed: true,
            failures: 0,
            quiet: Quiet::default(),
        }
    }

    async fn step(&mut self) -> Result<End, Broken> {
        match self.at {
            Some(version) if self.listed => self.watch(version).await,
            _ if std::mem::replace(&mut self.streamed, true) => self.list_streamed().await,
            _ => self.list_in_pages().await,
        }
    }

    fn failed(&mut self, error: &ApiError) {
        self.failures += 1;
        self.cluster.metrics().error(error.kind());
        let what = self.target.what;
        match error {
            ApiError::Expired => {
                info!(what, "history is gone: listing anew");
                self.list_anew();
            }
            ApiError::NotFound | ApiError::Server(404, _) if self.failures == 3 => {
                warn!(what, %error, "are they defined in this cluster (deploy/crds)? Still trying");
            }
            ApiError::Forbidden(_) => self.cluster.metrics().forbidden.tell(error),
            _ if self.failures == 3 => warn!(what, %error, "cannot watch, still trying"),
            _ => debug!(what, %error, "the watch broke"),
        }
    }

    /// Whether versions run backwards, so that a watch from here would stay silent for ever. The stream has ended then.
    ///
    /// etcd may also be restored without that: its revision is raised, or others write more than was lost. Then the object
    /// that changed last is not, as of a version that was seen, what it was: a watch from here would not tell what
    /// happened before, and everything is listed anew. Whoever follows judges by what the list shows.
    async fn history_changed(&mut self) -> bool {
        let Some(seen) = self.at else { return false };
        let (mut surprised, mut tries) = (false, 0);
        loop {
            let asked = self.past_is_as_told(seen).await;
            let head = match &asked {
                Ok(Some(true)) => return false,
                _ => self.cluster.head(&self.target.resource, &self.target.chosen).await,
            };
            let error = match (head, asked) {
                // One wrong answer must not throw away what nobody else may have seen.
                (Ok(head), _) if head < seen && !surprised => {
                    surprised = true;
                    continue;
                }
                (Ok(head), _) if head < seen => {
                    warn!(what = self.target.what, seen, head, "versions run backwards: another history");
                    // If nobody listens any more the stream ends all the same.
                    self.to.send(Event::OtherHistory).await.ok();
                    return true;
                }
                (Ok(_), Ok(Some(false))) => {
                    warn!(what = self.target.what, seen, "the history is another one: listing anew");
                    self.list_anew();
                    return false;
                }
                (Ok(_), Ok(_)) => return false,
                // A server that does not answer about the past at all is believed.
                (Ok(_), Err(_)) if tries == TRIES => return false,
                (Err(error), _) | (_, Err(error)) => error,
            };
            tries += u32::from(tries < TRIES);
            self.failed(&error);
            if self.to.is_closed() {
                return true;
            }
            tokio::time::sleep(backoff(self.failures)).await;
        }
    }

    /// Whether what was told is, as of this version, as it was told; `None` if nothing says so.
    async fn past_is_as_told(&self, at: Version) -> Result<Option<bool>, ApiError> {
        if !self.listed {
            return Ok(None);
        }
        let (last, newest) = (self.view.last(), self.cluster.metrics().views.newest());
        let mut told = None;
        if let Some(last) = &last {
            match self.cluster.version_at(&self.target, &last.identity, at).await {
                Ok(then) if then == last.there() => told = Some(true),
                Ok(_) => return Ok(Some(false)),
                // Where this is gone, the watch is most likely refused as well.
                Err(ApiError::Expired) => {}
                Err(error) => return Err(error),
            }
        }
        // Little happens to what this stream tells of; others may know of something that was lost.
        if let Some((target, newest)) = newest
            && last.is_none_or(|last| last.version < newest.version)
        {
            match self.cluster.version_at(&target, &newest.identity, newest.version).await {
                Ok(then) if then == newest.there() => {}
                Ok(_) => return Ok(Some(false)),
                Err(ApiError::Expired) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(told)
    }

    /// The next step lists everything: the watch cannot go on from where it stands.
    fn list_anew(&mut self) {
        if self.listed {
            self.gap = Some(self.view.told_at());
        }
        self.listed = false;
        self.cluster.metrics().relists.inc();
    }

    /// Lists as client-go does: a streamed list that fails for any reason but one that would stop the pages, too, is followed
    /// by one in pages. An API server that does not stream lists refuses the request; one whose etcd is too old for it
    /// takes it, and answers with an error event.
    async fn list_streamed(&mut self) -> Result<End, Broken> {
        self.begin_list().await?;
        let result = self.read(true, "").await;
        if let Err(Broken::Api(error)) = &result
            && !self.listed
            && is_about_streaming(error)
        {
            info!(what = self.target.what, %error, "cannot list as a stream: listing in pages");
            self.streamed = false;
        }
        result
    }

    async fn list_in_pages(&mut self) -> Result<End, Broken> {
        self.begin_list().await?;
        let mut next = None;
        loop {
            let page = self.cluster.page::<T>(&self.target, next).await?;
            for object in page.items {
                let Meta { namespace, name, resource_version, .. } = object.meta();
                self.view.changed(namespace.as_deref(), name, *resource_version, false);
                self.tell(Event::Applied(object)).await?;
            }
            next = page.metadata.next.filter(|next| !next.is_empty());
            if next.is_none() {
                self.end_list(page.metadata.resource_version).await?;
                return Ok(End::InTime);
            }
        }
    }

    async fn begin_list(&mut self) -> Result<(), Broken> {
        self.listed = false;
        self.view.forget_last();
        self.quiet.clear();
        self.tell(Event::Listing).await
    }

    async fn end_list(&mut self, version: Version) -> Result<(), Broken> {
        self.listed = true;
        self.view.tells();
        self.reached(version);
        if let Some(since) = self.gap.take() {
            self.tell(Event::Unobserved(since.elapsed())).await?;
        }
        self.tell(Event::Listed(version)).await
    }

    async fn watch(&mut self, from: Version) -> Result<End, Broken> {
        self.read(false, &from.to_string()).await
    }

    async fn read(&mut self, send_initial_events: bool, version: &str) -> Result<End, Broken> {
        let (label_selector, field_selector) = self.target.chosen.selectors();
        let lasts = self.cluster.metrics().views.watch_for();
        // Nobody knows how long a list takes. The watch that follows it is left.
        let timeout = (!send_initial_events).then(|| u32::try_from(lasts.as_secs()).unwrap_or(u32::MAX));
        let params = WatchParams {
            send_initial_events,
            label_selector,
            field_selector,
            timeout,
            ..WatchParams::default()
        };
        let resource = &self.target.resource;
        let request = if self.target.whole {
            resource.watch(&params, version)
        } else {
            resource.watch_metadata(&params, version)
        };
        let request = request.map_err(|error| ApiError::Invalid(error.to_string()))?;
        let best = match T::of_metadata() {
            Some(_) if !self.target.whole => Encoding::Protobuf,
            _ => Encoding::Json,
        };
        let asked = Messages::ask(&self.cluster, request, best);
        let messages = if send_initial_events {
            asked.await
        } else {
            tokio::time::timeout(BEGINS, asked).await.unwrap_or(Err(ApiError::Timeout))
        };
        self.listen(messages?, lasts).await
    }

    /// Passes on what a list or a watch says until it breaks, or is over: `lasts` after it began, or after the list was
    /// complete. No other clock notices that it is dead.
    async fn listen<B>(&mut self, mut messages: Messages<B>, lasts: Duration) -> Result<End, Broken>
    where
        B: Body<Data = Bytes, Error = kube::Error> + Unpin,
    {
        let lists = !self.listed;
        // When something last came, and when the watch began.
        let (mut came, mut began) = (Instant::now(), Instant::now());
        let mut alarm = pin!(sleep_until(came));
        loop {
            let over = match (lists, self.listed) {
                (_, false) => came + SILENCE,
                (true, true) => began + lasts,
                (false, true) => (began + lasts).max(came) + LATE,
            };
            // An alarm that comes too early is set anew: that is cheaper than to put it off with every heartbeat.
            let until = self.quiet.due().map_or(over, |due| due.min(over));
            if until < alarm.deadline() || alarm.is_elapsed() {
                alarm.as_mut().reset(until);
            }
            let next = tokio::select! {
                biased;
                message = messages.next() => Some(message),
                () = &mut alarm => None,
            };
            let now = Instant::now();
            match next {
                Some(message) => match message? {
                    Some(message) => {
                        came = now;
                        let listing = !self.listed;
                        self.hear(message).await?;
                        if self.listed {
                            began = if listing { Instant::now() } else { began };
                            self.view.tells();
                        }
                    }
                    // This process may have slept for long.
                    None if !lists && now + LATE >= began + lasts && now <= over => {
                        self.view.tells();
                        return Ok(End::InTime);
                    }
                    None => return Ok(End::Early),
                },
                None if self.quiet.is_due() => self.tell_unchanged().await?,
                None if now < over => {}
                None if lists && self.listed => return Ok(End::InTime),
                None => return Err(ApiError::Timeout.into()),
            }
        }
    }

    async fn hear(&mut self, message: Message) -> Result<(), Broken> {
        // It shares its bytes.
        let whole = message.clone();
        let glance =
            if self.listed { T::glance(&whole, self.cluster.now(), self.quiet.hasher()) } else { None };
        if let Some(glance) = &glance
            && self.quiet.holds(glance)
        {
            self.reached(glance.version);
            // Nodes have no namespace.
            self.view.changed(None, &glance.name, glance.version, false);
            return if self.quiet.is_due() { self.tell_unchanged().await } else { Ok(()) };
        }
        match Heard::read(message) {
            Ok(heard) => {
                if let Some(glance) = &glance {
                    self.quiet.told(glance);
                }
                self.take(heard).await
            }
            Err(why) => self.read_instead(&whole, &why).await,
        }
    }

    /// An event cannot be read: reads the object itself. If that is gone, or if nobody knows which object it is, everything is
    /// listed anew, so that its end is not missed.
    async fn read_instead(&mut self, message: &Message, error: &str) -> Result<(), Broken> {
        let what = self.target.what;
        self.cluster.metrics().error("malformed");
        let found = match &Identity::of(message) {
            Some((object, version)) => {
                warn!(what, %object, error, "cannot read an event: reading the object itself");
                self.quiet.forget(&object.name);
                match self.cluster.find::<T>(&self.target, object).await {
                    // Other objects must not wait for this one, and there is no third way to read it.
                    Err(ApiError::Malformed(error)) => {
                        error!(what, %object, error, "cannot read an object: it is ignored until it changes");
                        return Ok(());
                    }
                    found => found?.map(|object| (object, *version)),
                }
            }
            None => None,
        };
        let Some((object, version)) = found else {
            warn!(what, error, "cannot tell what an event means: listing anew");
            self.list_anew();
            return Err(ApiError::Malformed(error.to_owned()).into());
        };
        // The object may be newer than the event; what lies between is still to come.
        if let Some(version) = version {
            self.reached(version);
        }
        self.view.forget_last();
        self.tell_unchanged().await?;
        self.tell(Event::Applied(object)).await
    }

    async fn take(&mut self, heard: Heard<T>) -> Result<(), Broken> {
        let (event, version) = match heard {
            Heard::Applied(object) => {
                let Meta { namespace, name, resource_version: version, .. } = object.meta();
                self.view.changed(namespace.as_deref(), name, *version, false);
                let version = *version;
                (Event::Applied(object), version)
            }
            Heard::Deleted(object) => {
                let Meta { namespace, name, resource_version: version, .. } = object.meta();
                self.view.changed(namespace.as_deref(), name, *version, true);
                self.quiet.forget(name);
                let version = *version;
                (Event::Deleted(object), version)
            }
            Heard::Bookmark(version, ends_list) => {
                if !self.listed && ends_list {
                    return self.end_list(version).await;
                }
                if !self.listed {
                    return Ok(());
                }
                (Event::Reached(version), version)
            }
            Heard::Error(status) => return Err(ApiError::from_status(*status, None).into()),
        };
        self.reached(version);
        // What came before it is told before it.
        self.tell_unchanged().await?;
        self.tell(event).await
    }

    async fn tell_unchanged(&mut self) -> Result<(), Broken> {
        match self.quiet.take() {
            none if none.is_empty() => Ok(()),
            unchanged => self.tell(Event::Unchanged(unchanged)).await,
        }
    }

    /// The watch works, and got this far. While a list is under way its versions are in no order.
    fn reached(&mut self, version: Version) {
        if self.listed {
            self.at = self.at.max(Some(version));
            self.failures = 0;
        }
    }

    async fn tell(&self, event: Event<T>) -> Result<(), Broken> {
        self.to.send(event).await.map_err(|_| Broken::Unheard)
    }
}

/// An object among those that are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

impl fmt::Display for Identity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(out, "{namespace}/{}", self.name),
            None => out.write_str(&self.name),
        }
    }
}

impl Identity {
    pub(crate) fn is(&self, meta: &Meta) -> bool {
        self.name == meta.name && self.namespace == meta.namespace
    }

    /// As far as the message can be read, with its version.
    fn of(message: &Message) -> Option<(Self, Option<Version>)> {
        let (namespace, name, version) = match message {
            Message::Protobuf(frame) => proto::identity(frame)?,
            Message::Json(line) => {
                let event: serde_json::Value = serde_json::from_slice(line).ok()?;
                let metadata = event.pointer("/object/metadata")?;
                let field = |name| metadata.get(name).and_then(serde_json::Value::as_str);
                let version = field("resourceVersion").and_then(|version| version.parse().ok());
                (field("namespace").map(str::to_owned), field("name")?.to_owned(), version)
            }
        };
        // It is used in a selector.
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':');
        (!name.is_empty() && name.chars().all(plain)).then_some((Self { namespace, name }, version))
    }
}

/// Whether a list in pages may work where a streamed one failed like this.
fn is_about_streaming(error: &ApiError) -> bool {
    !matches!(
        error,
        ApiError::Expired
            | ApiError::Throttled(_)
            | ApiError::Unauthorized(_)
            | ApiError::Forbidden(_)
            | ApiError::Transport(_)
    )
}

/// The API server's own words in the place of an event.
fn said(line: &[u8]) -> Option<Status> {
    let said: serde_json::Value = serde_json::from_slice(line).ok()?;
    (said.get("kind")?.as_str()? == "Status").then(|| serde_json::from_value(said).ok()).flatten()
}

#[cfg(test)]
mod tests;
