//! One task for all who look: it asks the keeper once a second, and tells everybody what changed.
//!
//! Nobody looks: it sleeps, holds nothing, and the keeper notes nothing. Memory is bounded: so many streams, so many
//! messages a stream. Whoever does not keep up is dropped, and gets everything anew when it comes back.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::Stream;
use futures::stream;
use jiff::Timestamp;
use perennial_core::ranks;
use serde_json::{Map, Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::DropGuard;

use super::fold::fold;
use super::{Leash, Sources, wire};
use crate::cluster::Clock;
use crate::keeper::Window;
use crate::keeper::ledger::Name;
use crate::keeper::window::{Cell, Cells, Fleet};
use crate::members::{Member, Role};

/// How many may look at once. Probes and metrics have the rest of the connections.
const STREAMS: usize = 16;
/// How many messages may wait for one of them.
const BEHIND: usize = 8;
/// How often changes are told.
const EVERY: Duration = Duration::from_secs(1);
/// How often something is said though nothing changed, so that both sides know they are there.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// How long a stream lasts; a browser comes back by itself. A client that vanished holds its place no longer.
const LASTS: Duration = Duration::from_mins(10);
/// What is held is kept for so long after the last one left: a page that is loaded again is back at once.
const LINGER: Duration = Duration::from_secs(10);
/// How long the keeper may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often newcomers are greeted at once; others wait for the next time that changes are told.
const GREETINGS: Duration = Duration::from_millis(250);
/// How often shares are counted anew while nodes come and go.
const SHARES: Duration = Duration::from_secs(10);

/// Where those who look come in.
#[derive(Clone)]
pub(super) struct Door {
    permits: Arc<Semaphore>,
    to: mpsc::Sender<Client>,
}

impl Door {
    /// What one of them is told from now on; `None` if there is no room.
    pub(super) fn enter(
        &self,
        leash: &Leash,
    ) -> Option<impl Stream<Item = Result<Bytes, std::io::Error>> + use<>> {
        let permit = self.permits.clone().try_acquire_owned().ok()?;
        let (to, from) = mpsc::channel(BEHIND);
        let client =
            Client { to, since: Instant::now(), greeted: false, _permit: permit, _leash: leash.take() };
        self.to.try_send(client).ok()?;
        let until = Instant::now() + LASTS;
        Some(stream::unfold(from, move |mut from| async move {
            let chunk = tokio::time::timeout_at(until, from.recv()).await.ok().flatten()?;
            Some((Ok(chunk), from))
        }))
    }
}

/// Somebody who looks. Dropped, their connection ends, whether or not they read.
struct Client {
    to: mpsc::Sender<Bytes>,
    since: Instant,
    greeted: bool,
    _permit: OwnedSemaphorePermit,
    _leash: DropGuard,
}

impl Client {
    /// Tells them something, unless they do not keep up.
    fn tell(&self, message: &Bytes) -> bool {
        self.since.elapsed() < LASTS + HEARTBEAT && self.to.try_send(message.clone()).is_ok()
    }
}

/// What everybody was told.
#[derive(Default)]
struct Told {
    /// Every line, sorted by name.
    lines: Vec<(Name, Cell)>,
    /// These are all there are; what changes since is noted for us.
    known: bool,
    facts: Value,
    members: Value,
    listings: Value,
    event: u64,
    counted: u64,
    /// When shares were last counted, and whether nodes came or went since.
    shared: Option<Instant>,
    moved: bool,
}

pub(super) struct Hub {
    sources: Sources,
    clock: Clock,
    from: mpsc::Receiver<Client>,
    clients: Vec<Client>,
    /// `None` while nobody looks.
    told: Option<Told>,
    /// When everybody, newcomers, and anybody at all was last told something.
    spoke: Instant,
    greeted: Instant,
    left: Instant,
}

impl Hub {
    pub(super) fn new(sources: Sources, clock: Clock) -> (Door, Self) {
        let (to, from) = mpsc::channel(STREAMS);
        let door = Door { permits: Arc::new(Semaphore::new(STREAMS)), to };
        let now = Instant::now();
        (
            door,
            Self {
                sources,
                clock,
                from,
                clients: Vec::new(),
                told: None,
                spoke: now,
                greeted: now,
                left: now,
            },
        )
    }

    pub(super) async fn run(mut self) {
        let mut tick = tokio::time::interval(EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                client = self.from.recv() => {
                    let Some(client) = client else { return };
                    self.clients.push(client);
                    if self.told.is_some() && self.greeted.elapsed() < GREETINGS {
                        continue;
                    }
                }
                _ = tick.tick(), if self.told.is_some() => {}
            }
            if self.clients.is_empty() {
                if self.left.elapsed() >= LINGER {
                    self.rest();
                }
                continue;
            }
            self.tell().await;
        }
    }

    /// Nobody looks any more.
    fn rest(&mut self) {
        self.told = None;
        if let Some(window) = &self.sources.window {
            window.enough();
        }
    }

    /// Finds out what changed, tells everybody, and greets those who are new with all there is.
    async fn tell(&mut self) {
        let now = self.clock.now();
        let mut told = self.told.take().unwrap_or_default();
        let fleet = match &self.sources.window {
            Some(window) => ask(window, !told.known).await,
            None => None,
        };
        let news = told.learn(&self.sources, fleet, now);
        if self.clients.iter().any(|client| !client.greeted) {
            self.greeted = Instant::now();
            let greeting = self.greeting(&told, now);
            self.clients.retain_mut(|client| {
                let new = !std::mem::replace(&mut client.greeted, true);
                if new { client.tell(&greeting) } else { news.tell(client, self.spoke) }
            });
        } else {
            self.clients.retain(|client| news.tell(client, self.spoke));
        }
        if news.is_due(self.spoke) {
            self.spoke = Instant::now();
        }
        self.left = Instant::now();
        self.told = Some(told);
    }

    /// All there is.
    fn greeting(&self, told: &Told, now: Timestamp) -> Bytes {
        let Sources { config, window, pages, member, namespace, installation, dry_run, .. } = &self.sources;
        let hello = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "namespace": namespace,
            "installation": installation,
            "member": member,
            "values": config.values,
            "keeps": window.is_some(),
            "lists": pages.is_some(),
            "dryRun": dry_run,
        });
        let mut all = told.so_far();
        if let Some(window) = window {
            let events: Vec<Value> = window.story().events_after(0).iter().map(wire::event).collect();
            all.insert("events".to_owned(), json!(events));
            if let Some((_, minutes, quarters)) = window.story().series_after(u64::MAX) {
                all.insert("hour".to_owned(), wire::series(&minutes, now));
                all.insert("day".to_owned(), wire::series(&quarters, now));
            }
        }
        all.insert("now".to_owned(), json!(now.as_millisecond()));
        let mut greeting = BytesMut::new();
        greeting.extend_from_slice(&wire::message("hello", &hello));
        greeting.extend_from_slice(&wire::message("fleet", &wire::fleet(&told.lines)));
        greeting.extend_from_slice(&wire::message("news", &all));
        greeting.freeze()
    }
}

async fn ask(window: &Window, all: bool) -> Option<Fleet> {
    tokio::time::timeout(PATIENCE, window.fleet(all)).await.ok().flatten()
}

/// What changed.
struct News {
    message: Bytes,
    anything: bool,
}

impl News {
    fn is_due(&self, spoke: Instant) -> bool {
        self.anything || spoke.elapsed() >= HEARTBEAT
    }

    fn tell(&self, client: &Client, spoke: Instant) -> bool {
        if self.is_due(spoke) { client.tell(&self.message) } else { !client.to.is_closed() }
    }
}

impl Told {
    /// What holds besides the lines.
    fn so_far(&self) -> Map<String, Value> {
        let mut all = Map::new();
        for (name, value) in
            [("facts", &self.facts), ("members", &self.members), ("listings", &self.listings)]
        {
            if !value.is_null() {
                all.insert(name.to_owned(), value.clone());
            }
        }
        all
    }

    /// Takes in what is so now, and says what of it is new.
    fn learn(&mut self, sources: &Sources, fleet: Option<Fleet>, now: Timestamp) -> News {
        let mut news = Map::new();
        let mut whole = None;
        self.known = fleet.is_some();
        if let Some(Fleet { cells, synced, inflight, records, braked, churners }) = fleet {
            match cells {
                Cells::All(mut lines) => {
                    lines.sort_unstable();
                    self.lines = lines;
                    self.moved = true;
                    whole = Some(wire::message("fleet", &wire::fleet(&self.lines)));
                }
                Cells::Changed(changed) => {
                    let changed = self.change(changed);
                    if !changed.is_empty() {
                        news.insert("changes".to_owned(), wire::changes(&changed));
                    }
                }
            }
            let churners: Vec<(&str, u16)> = churners.iter().map(|(name, times)| (&**name, *times)).collect();
            let facts = json!({
                "synced": synced, "inflight": inflight, "records": records, "brake": braked, "churners": churners,
            });
            replace(&mut news, "facts", &mut self.facts, facts);
        } else if sources.window.is_some() {
            let facts = json!({ "synced": false, "silent": true });
            replace(&mut news, "facts", &mut self.facts, facts);
        }
        if let Some(window) = &sources.window {
            let events = window.story().events_after(self.event);
            if let Some(last) = events.last() {
                self.event = last.sequence;
                news.insert("events".to_owned(), events.iter().map(wire::event).collect());
            }
            if let Some((counted, minutes, quarters)) = window.story().series_after(self.counted) {
                self.counted = counted;
                news.insert("hour".to_owned(), wire::series(&minutes, now));
                news.insert("day".to_owned(), wire::series(&quarters, now));
            }
        }
        if let Some(roster) = sources.roster.get() {
            let roster = roster.borrow().clone();
            self.count_shares(roster.members(), &mut news);
        }
        if let Some(pages) = &sources.pages {
            replace(&mut news, "listings", &mut self.listings, wire::listings(pages));
        }
        let anything = !news.is_empty() || whole.is_some();
        news.insert("now".to_owned(), json!(now.as_millisecond()));
        let mut message = BytesMut::from(&whole.unwrap_or_default()[..]);
        message.extend_from_slice(&wire::message("news", &news));
        News { message: message.freeze(), anything }
    }

    /// Folds changed lines in; gives back those that are news.
    fn change(&mut self, changed: Vec<(Name, Option<Cell>)>) -> Vec<(Name, Option<Cell>)> {
        let (news, moved) = fold(&mut self.lines, changed);
        self.moved |= moved;
        news
    }

    /// Who is at work, and for how many nodes each comes first. Counting takes a moment, so it is not done each time.
    fn count_shares(&mut self, members: &[Member], news: &mut Map<String, Value>) {
        let named =
            |value: &Value| value.as_array().map(|all| all.iter().map(|one| one["name"].clone()).collect());
        let before: Option<Vec<Value>> = named(&self.members);
        let same = before.is_some_and(|before| before.iter().eq(members.iter().map(|one| &one.name)));
        let due = self.moved && self.shared.is_none_or(|at| at.elapsed() >= SHARES);
        if same && !due {
            return;
        }
        (self.moved, self.shared) = (false, Some(Instant::now()));
        let keepers: Vec<&str> = members
            .iter()
            .filter(|member| member.roles.contains(&Role::Capture))
            .map(|member| member.name.as_str())
            .collect();
        let shares = ranks::shares(&keepers, self.lines.iter().map(|(name, _)| &**name));
        let share = |name: &str| keepers.iter().position(|keeper| *keeper == name).map(|at| shares[at]);
        let members = members.iter().map(|member| {
            let roles: Vec<&str> = member.roles.iter().map(|role| role.as_str()).collect();
            let policy = member.policy.map(wire::short);
            json!({ "name": member.name, "roles": roles, "policy": policy, "share": share(&member.name) })
        });
        let members = members.collect();
        replace(news, "members", &mut self.members, members);
    }
}

fn replace(news: &mut Map<String, Value>, name: &str, before: &mut Value, now: Value) {
    if *before != now {
        news.insert(name.to_owned(), now.clone());
        *before = now;
    }
}
