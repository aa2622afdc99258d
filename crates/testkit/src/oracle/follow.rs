//! Follows etcd's history while it is made.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use futures::{AsyncBufReadExt as _, TryStreamExt as _, future::select_ok};
use http::Request;
use kube::Client;
use perennial_core::policy::Policy;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::{
    history::{Entry, Fact, Told},
    judge::Judge,
};
use crate::{ControlPlane, eventually};

/// From here to there lie ConfigMaps and Nodes (which etcd knows as minions), and a few others in between.
const RANGE: (&str, &str) = ("/registry/configmaps/", "/registry/minions0");
/// A key among them that the API server does not know.
const FENCE: &str = "/registry/fence";
/// How often a broken watch is taken up again.
const AGAIN: Duration = Duration::from_millis(50);
/// How long etcd may be away.
const PATIENCE: Duration = Duration::from_mins(2);

/// A [`Judge`] that sees everything that happens in a control plane, in order, from a known version on.
///
/// The API server may store JSON or protobuf. It may come and go, and so may etcd; only a history that is compacted before it was seen is an error, so call [`Oracle::fence`] first.
pub struct Oracle {
    /// One for each etcd member. All of them are followed: any may be dead, frozen or behind.
    etcd: Vec<Client>,
    shared: Arc<Mutex<Shared>>,
    following: Mutex<Vec<AbortOnDropHandle<()>>>,
}

struct Shared {
    judge: Judge,
    /// As it was when nodes were last forgotten.
    checkpoint: Judge,
    /// What was folded since.
    log: Vec<Entry>,
    /// Everything up to this revision was seen.
    seen: u64,
    failure: Option<String>,
}

impl Shared {
    fn fold(&mut self, entry: Entry) {
        self.judge.fold(&entry);
        self.log.push(entry);
    }
}

impl Oracle {
    /// Begins to follow, from now on.
    pub async fn follow(plane: &ControlPlane, judge: Judge) -> anyhow::Result<Self> {
        let seen = plane.revision().await?;
        let checkpoint = judge.clone();
        let shared = Shared { judge, checkpoint, log: Vec::new(), seen, failure: None };
        let shared = Arc::new(Mutex::new(shared));
        let oracle = Self { etcd: plane.etcd_clients()?, shared, following: Mutex::default() };
        oracle.take_up();
        Ok(oracle)
    }

    fn take_up(&self) {
        let following = self
            .etcd
            .iter()
            .map(|member| AbortOnDropHandle::new(tokio::spawn(follow(member.clone(), self.shared.clone()))));
        *lock(&self.following) = following.collect();
    }

    /// Waits until it has seen everything that happened before this call. Returns the version.
    pub async fn fence(&self) -> anyhow::Result<u64> {
        let order = json!({ "key": BASE64.encode(FENCE), "value": "" });
        let put = eventually(PATIENCE, "etcd takes a fence", || async {
            let body = serde_json::to_vec(&order)?;
            let asked = self.etcd.iter().map(|member| {
                let body = body.clone();
                Box::pin(async move {
                    let request = Request::post("/v3/kv/put").body(body)?;
                    let asked = timeout(Duration::from_secs(5), member.request::<Answer>(request));
                    anyhow::Ok(asked.await??.header.revision.parse::<u64>()?)
                })
            });
            Ok(Some(select_ok(asked).await?.0))
        });
        let version = put.await?;
        eventually(PATIENCE, "the oracle has seen the fence", || async {
            let shared = lock(&self.shared);
            if let Some(failure) = &shared.failure {
                return Ok(Some(Err(anyhow::anyhow!("{failure}"))));
            }
            Ok((shared.seen >= version).then_some(Ok(())))
        })
        .await??;
        Ok(version)
    }

    /// Folds what the driver knows, after whatever was seen so far.
    pub fn tell(&self, told: Told) {
        let mut shared = lock(&self.shared);
        let version = shared.seen;
        shared.fold(Entry { version, fact: Fact::Told(told) });
    }

    /// Looks at the judge as it is now.
    pub fn look<T>(&self, look: impl FnOnce(&Judge) -> T) -> T {
        look(&lock(&self.shared).judge)
    }

    /// Forgets all nodes, see [`Judge::forget`]. What was seen before cannot be restored any more.
    pub fn forget(&self) {
        let mut shared = lock(&self.shared);
        shared.judge.forget();
        shared.checkpoint = shared.judge.clone();
        shared.log.clear();
    }

    /// Judges by this policy from now on. All nodes must have been forgotten right before.
    pub fn change_policy(&self, policy: Policy) {
        let mut shared = lock(&self.shared);
        shared.judge.change_policy(policy);
        shared.checkpoint = shared.judge.clone();
    }

    /// Time is over, see [`Judge::out_of_time`].
    pub fn out_of_time(&self) {
        lock(&self.shared).judge.out_of_time();
    }

    /// Stops following: etcd is about to be turned back. What happened until now is judged first.
    pub async fn suspend(&self) -> anyhow::Result<()> {
        self.fence().await?;
        lock(&self.following).clear();
        Ok(())
    }

    /// Goes on in the history that begins at this revision of the one before.
    pub fn restored(&self, revision: u64) -> anyhow::Result<()> {
        {
            let mut shared = lock(&self.shared);
            let first = shared.log.iter().find(|entry| !matches!(entry.fact, Fact::Told(_)));
            ensure!(
                first.is_none_or(|first| first.version <= revision),
                "nobody remembers revision {revision}"
            );
            // What was broken in a history stays broken when it is abandoned.
            let broken = shared.judge.violations().to_vec();
            shared.judge = shared.checkpoint.clone();
            shared.judge.adopt(broken);
            for entry in std::mem::take(&mut shared.log).into_iter().filter(|entry| entry.stays(revision)) {
                shared.fold(entry);
            }
            shared.seen = revision;
            shared.fold(Entry { version: revision, fact: Fact::Told(Told::Restored(revision)) });
        }
        self.take_up();
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Watches until history is missed, which nothing can mend.
async fn follow(etcd: Client, shared: Arc<Mutex<Shared>>) {
    let mut again = interval(AGAIN);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        again.tick().await;
        // A watch that broke is taken up where it was, so why it broke does not matter.
        if let Ok(Err(missed)) = watch(&etcd, &shared).await {
            lock(&shared).failure = Some(missed.to_string());
            return;
        }
    }
}

type Missed = anyhow::Error;

async fn watch(etcd: &Client, shared: &Mutex<Shared>) -> anyhow::Result<Result<(), Missed>> {
    let from = lock(shared).seen + 1;
    let order = json!({ "create_request": {
        "key": BASE64.encode(RANGE.0),
        "range_end": BASE64.encode(RANGE.1),
        "start_revision": from.to_string(),
    }});
    let request = Request::post("/v3/watch").body(serde_json::to_vec(&order)?)?;
    let stream = etcd.request_stream(request).await?;
    let mut lines = std::pin::pin!(stream.lines());
    while let Some(line) = lines.try_next().await? {
        let Line { result } = serde_json::from_str(&line)?;
        if result.canceled {
            // A member that was frozen may be asked for what is compacted by now, after the others told of it.
            ensure!(lock(shared).seen < from, "others are ahead");
            return Ok(Err(anyhow::anyhow!("history after {from} is gone ({})", result.cancel_reason)));
        }
        let entries: anyhow::Result<Vec<_>> = result.events.iter().map(Event::read).collect();
        let mut shared = lock(shared);
        let seen = shared.seen;
        for (version, entry) in match entries {
            Ok(entries) => entries,
            Err(error) => return Ok(Err(error.context("reading etcd's history"))),
        } {
            // Every member tells everything in order: what one has told is not heard again from another.
            if version > seen {
                shared.seen = version;
                if let Some(entry) = entry {
                    shared.fold(entry);
                }
            }
        }
    }
    bail!("the watch ended")
}

#[derive(Deserialize)]
struct Answer {
    header: Header,
}

#[derive(Deserialize)]
struct Header {
    revision: String,
}

#[derive(Deserialize)]
struct Line {
    result: Watched,
}

#[derive(Deserialize)]
struct Watched {
    #[serde(default)]
    canceled: bool,
    #[serde(default)]
    cancel_reason: String,
    #[serde(default)]
    events: Vec<Event>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default, rename = "type")]
    kind: String,
    kv: Pair,
}

#[derive(Deserialize)]
struct Pair {
    key: String,
    mod_revision: String,
    #[serde(default)]
    value: String,
}

impl Event {
    fn read(&self) -> anyhow::Result<(u64, Option<Entry>)> {
        let key = String::from_utf8(BASE64.decode(&self.kv.key)?)?;
        let version = self.kv.mod_revision.parse()?;
        let value = BASE64.decode(&self.kv.value)?;
        let value = (self.kind != "DELETE").then_some(value.as_slice());
        Ok((version, Entry::read(version, &key, value).with_context(|| key.clone())?))
    }
}
