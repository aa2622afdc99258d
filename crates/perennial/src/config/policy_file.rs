//! Where the policy comes from, and how a changed file comes into force.
//!
//! ```text
//! file ─every few seconds─> same bytes as last seen: nothing
//!                           other bytes ─> checked whole ─> good: sent to all who hold a receiver
//!                                                         ─> broken: told once, the old one stays
//! ```
//!
//! The content is compared, not its time: a mounted `ConfigMap` changes by swapping a symlink two levels up,
//! and the times of what it points to say nothing. The file is small, so reading it costs nothing.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use perennial_core::policy::Policy;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// How often the file is looked at. The kubelet itself takes up to a minute to bring a changed `ConfigMap`.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// More than a `ConfigMap` can hold is not a policy.
const LARGEST: u64 = 1024 * 1024;

/// Why a policy file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It cannot be read.
    #[error("cannot read the policy {path:?}: {reason}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// It is larger than any policy.
    #[error("the policy {0:?} is larger than 1 MiB")]
    TooLarge(PathBuf),
    /// It is not a policy.
    #[error("the policy {path:?} is broken: {reason}")]
    Broken {
        /// The file.
        path: PathBuf,
        /// Which key, which value, what is allowed.
        reason: String,
    },
}

/// Where the policy comes from.
#[derive(Debug)]
pub struct PolicySource {
    sender: watch::Sender<Arc<Policy>>,
    file: Option<PolicyFile>,
}

impl PolicySource {
    /// One that never changes.
    #[must_use]
    pub fn fixed(policy: Policy) -> Self {
        Self { sender: watch::Sender::new(Arc::new(policy)), file: None }
    }

    /// A file, which must be good now and is followed later.
    pub fn file(path: PathBuf) -> Result<Self, Error> {
        let content = read(&path)?;
        let policy = parse(&path, &content)?;
        let file = PolicyFile { path, seen: Ok(content) };
        Ok(Self { sender: watch::Sender::new(Arc::new(policy)), file: Some(file) })
    }

    /// The file, if it is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|file| file.path.as_path())
    }

    /// The policy in force, now and whenever it changes.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Arc<Policy>> {
        self.sender.subscribe()
    }

    /// Brings changes of the file into force until it is stopped. Receivers see no end before that, also
    /// where the policy is fixed.
    pub async fn follow(self, metrics: PolicyMetrics, stop: CancellationToken) {
        let Self { sender, file } = self;
        let Some(mut file) = file else { return stop.cancelled().await };
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            let path = file.path.clone();
            // A file on a network volume may take its time; that must not hold up anything else.
            let Ok(reading) = tokio::task::spawn_blocking(move || read(&path)).await else { continue };
            let Some(outcome) = file.judge(reading) else { continue };
            metrics.tell(&outcome);
            match outcome {
                Ok(policy) => {
                    info!(path = %file.path.display(), "the changed policy is in force");
                    sender.send_if_modified(|in_force| {
                        // Comments and spaces make other bytes, but no other policy.
                        let differs = **in_force != policy;
                        *in_force = Arc::new(policy);
                        differs
                    });
                }
                Err(error) => {
                    warn!(%error, "the changed policy is refused; the one before it stays in force");
                }
            }
        }
    }
}

/// A policy file and what was last seen of it.
#[derive(Debug)]
struct PolicyFile {
    path: PathBuf,
    seen: Result<String, Error>,
}

impl PolicyFile {
    /// What a reading means: nothing if it is the one before, else a policy or why it is none.
    fn judge(&mut self, reading: Result<String, Error>) -> Option<Result<Policy, Error>> {
        if reading == self.seen {
            return None;
        }
        let outcome = reading.clone().and_then(|content| parse(&self.path, &content));
        self.seen = reading;
        Some(outcome)
    }
}

fn read(path: &Path) -> Result<String, Error> {
    let unreadable = |error: std::io::Error| Error::Read { path: path.to_owned(), reason: error.to_string() };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut content = String::new();
    file.take(LARGEST + 1).read_to_string(&mut content).map_err(unreadable)?;
    if content.len() as u64 > LARGEST {
        return Err(Error::TooLarge(path.to_owned()));
    }
    Ok(content)
}

fn parse(path: &Path, content: &str) -> Result<Policy, Error> {
    Policy::parse(content)
        .map_err(|error| Error::Broken { path: path.to_owned(), reason: crate::log::chain(&error) })
}

/// What is measured of the policy.
#[derive(Clone, Debug, Default)]
pub struct PolicyMetrics {
    reloads: Family<Outcome, Counter>,
    refused: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    result: &'static str,
}

impl PolicyMetrics {
    /// Registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let Self { reloads, refused } = Self::default();
        for result in ["ok", "failed"] {
            // Named from the start, so that the first failure is an increase.
            drop(reloads.get_or_create(&Outcome { result }));
        }
        registry.register("policy_reloads", "Changes of the policy file seen, by result", reloads.clone());
        registry.register(
            "policy_refused",
            "1 while the policy file is broken and an older one is in force",
            refused.clone(),
        );
        Self { reloads, refused }
    }

    fn tell<T>(&self, outcome: &Result<T, Error>) {
        let result = if outcome.is_ok() { "ok" } else { "failed" };
        self.reloads.get_or_create(&Outcome { result }).inc();
        self.refused.set(i64::from(outcome.is_err()));
    }
}

#[cfg(test)]
mod tests;
