//! Where pages go: an S3 bucket, a ConfigMap, a file, or memory.
//!
//! ```text
//!         look                              fence (core)                     put
//! what is there now: tag, stamp ──> may this page replace it? ──> over that tag, or where nothing is
//!        ^                                                                    │
//!        └── somebody else wrote meanwhile: conflict; the answer got lost: look, it may be there ──┘
//! ```
//!
//! Every write is a compare and swap: a replica that lags, was paused or is confused finds a conflict, looks again and
//! decides again. Nothing is tried again in here; whoever asks decides that by [`Error::retryable`].
//!
//! The tag of an object in S3, and of a file, is a digest of its bytes: when a page comes back that was there before, so
//! does its tag. Whoever slept meanwhile would find it and write something older over it. So a tag is good for a few
//! seconds after it was seen ([`FRESH`]), which leaves only requests that are that long on their way.
//!
//! | file | what |
//! | --- | --- |
//! | `s3`, `config_map`, `file`, `memory` | the places |
//! | `history` | earlier versions, with an index and a limit |
//! | `stamp` | what stands beside a page |
//! | `store` | what history asks of a place |

mod config_map;
mod error;
mod file;
mod history;
mod memory;
mod s3;
mod stamp;
mod store;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use perennial_core::kept::Digest;
use perennial_core::lister::{Page, Stamp};
use tokio::time::Instant;

use crate::cluster::Cluster;

pub use config_map::ConfigMapSettings;
pub use error::{Error, Said};
pub use history::{HistorySettings, HistorySettingsError};
pub use memory::Memory;
pub use s3::{CannedAcl, Credentials, S3Settings, Secret, SettingsError};

use config_map::ConfigMap;
use file::Folder;
use history::History;
use s3::Bucket;
use store::{Object, Store};

/// The current page is asked for anew each time; who has it already is told so in few bytes.
const CACHE_CONTROL: &str = "no-cache";

/// How long after it was seen a tag is good for a write. A look takes milliseconds.
pub const FRESH: Duration = Duration::from_secs(10);

/// What a destination calls the version of the page that it holds. It is good for nothing but a compare and swap.
#[derive(Clone)]
pub struct Tag {
    text: String,
    seen: Instant,
}

impl Tag {
    fn new(text: String) -> Self {
        Self { text, seen: Instant::now() }
    }

    fn as_str(&self) -> &str {
        &self.text
    }

    fn is_fresh(&self) -> bool {
        self.seen.elapsed() <= FRESH
    }
}

/// Equal whenever they were seen.
impl PartialEq for Tag {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Tag {}

/// A server chose it, so it is not shown.
impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tag")
    }
}

/// The page that a destination holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What to write over.
    pub tag: Tag,
    /// What it says of itself, if that can be read.
    pub stamp: Option<Stamp>,
    /// The digest of its body, by its stamp or by its bytes.
    pub digest: Option<Digest>,
}

impl Found {
    fn new(tag: Tag, stamp: Option<Stamp>) -> Self {
        Self { tag, stamp, digest: stamp.map(|stamp| stamp.digest) }
    }
}

/// How a write went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Put {
    /// The page is there.
    Written(Tag),
    /// Something else was there than what was to be replaced: look, and decide again.
    Conflict,
}

/// A place for one page.
#[derive(Debug)]
pub struct Destination {
    place: Place,
}

#[derive(Debug)]
enum Place {
    Objects { store: Store, key: String, cache_control: String, history: Option<History> },
    ConfigMap(ConfigMap),
}

impl Destination {
    /// An object in a bucket. Talks to nobody yet.
    pub fn s3(settings: S3Settings, history: Option<HistorySettings>) -> Result<Self, SettingsError> {
        let (key, cache) = (settings.key.clone(), settings.cache_control.clone());
        let store = Store::S3(Box::new(Bucket::new(settings)?));
        Ok(Self::objects(store, key, cache.unwrap_or_else(|| CACHE_CONTROL.to_owned()), history))
    }

    /// A key of a ConfigMap.
    #[must_use]
    pub fn config_map(cluster: Cluster, settings: ConfigMapSettings) -> Self {
        Self { place: Place::ConfigMap(ConfigMap::new(cluster, settings)) }
    }

    /// A file, for a server beside us to serve. Removes what a crash left of earlier writes.
    pub fn file(path: &Path, history: Option<HistorySettings>) -> Result<Self, Error> {
        let (folder, key) = Folder::of(path)?;
        Ok(Self::objects(Store::File(folder), key, CACHE_CONTROL.to_owned(), history))
    }

    /// A key in memory.
    #[must_use]
    pub fn memory(memory: Memory, key: &str, history: Option<HistorySettings>) -> Self {
        Self::objects(Store::Memory(memory), key.to_owned(), CACHE_CONTROL.to_owned(), history)
    }

    fn objects(store: Store, key: String, cache_control: String, history: Option<HistorySettings>) -> Self {
        let history = history.map(|settings| History::new(settings, &key));
        Self { place: Place::Objects { store, key, cache_control, history } }
    }

    /// The kind, as metrics and conditions spell it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match &self.place {
            Place::Objects { store: Store::S3(_), .. } => "s3",
            Place::Objects { store: Store::File(_), .. } => "file",
            Place::Objects { store: Store::Memory(_), .. } => "memory",
            Place::ConfigMap(_) => "configMap",
        }
    }

    /// Where a page that stands here finds its history: a link relative to itself.
    #[must_use]
    pub fn history_link(&self) -> Option<String> {
        match &self.place {
            Place::Objects { history, .. } => history.as_ref().map(History::link),
            Place::ConfigMap(_) => None,
        }
    }

    /// What is there now.
    pub async fn look(&self) -> Result<Option<Found>, Error> {
        match &self.place {
            Place::Objects { store, key, .. } => store.look(key).await,
            Place::ConfigMap(config_map) => config_map.look().await,
        }
    }

    /// Writes a page over what was found, or where nothing was. If the answer gets lost it looks whether the page is
    /// there.
    pub async fn put(&self, page: &Page, over: Option<&Tag>) -> Result<Put, Error> {
        let error = match self.write(page, over).await {
            Err(error) if error.may_have_happened() => error,
            done => return done,
        };
        match self.look().await {
            Ok(Some(found)) if found.stamp == Some(page.stamp) => Ok(Put::Written(found.tag)),
            _ => Err(error),
        }
    }

    async fn write(&self, page: &Page, over: Option<&Tag>) -> Result<Put, Error> {
        if over.is_some_and(|tag| !tag.is_fresh()) {
            return Ok(Put::Conflict);
        }
        match &self.place {
            Place::Objects { store, key, cache_control, .. } => {
                let object = Object {
                    body: page.body.clone().into(),
                    content_type: page.content_type.clone(),
                    cache_control: cache_control.clone(),
                    stamp: Some(page.stamp),
                };
                store.write(key, object, over.into()).await
            }
            Place::ConfigMap(config_map) => config_map.put(page, over).await,
        }
    }

    /// Adds a page that was published to the history, if there is to be one. What fails is kept in mind and done with
    /// the next one; the current page never waits for it.
    pub async fn keep(&self, page: &Page, now: Timestamp) -> Result<(), Error> {
        match &self.place {
            Place::Objects { store, history: Some(history), .. } => history.keep(store, page, now).await,
            Place::Objects { history: None, .. } | Place::ConfigMap(_) => Ok(()),
        }
    }
}

/// The place, as people know it.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Objects { store: Store::S3(bucket), key, .. } => write!(f, "{key} in {bucket}"),
            Place::Objects { store: Store::File(folder), key, .. } => write!(f, "file {folder}/{key}"),
            Place::Objects { store: Store::Memory(_), key, .. } => write!(f, "{key} in memory"),
            Place::ConfigMap(config_map) => write!(f, "{config_map}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use perennial_core::lister::Versions;

    use super::*;

    fn page(body: &str, version: u64) -> Page {
        let versions = Versions { endpoints: version, ..Versions::default() };
        Page::new(body.to_owned(), "text/plain".to_owned(), 1, versions)
    }

    fn sendable<T: Send>(_: T) {}

    #[allow(dead_code, reason = "that it compiles is the test")]
    fn everything_may_be_done_from_any_task(destination: &Destination, page: &Page) {
        sendable(destination.look());
        sendable(destination.put(page, None));
        sendable(destination.keep(page, Timestamp::UNIX_EPOCH));
    }

    #[tokio::test(start_paused = true)]
    async fn who_slept_looks_again_before_writing() {
        let destination = Destination::memory(Memory::default(), "page", None);
        destination.put(&page("one", 1), None).await.unwrap();
        let seen = destination.look().await.unwrap().unwrap();
        tokio::time::advance(FRESH * 2).await;
        assert_eq!(destination.put(&page("two", 2), Some(&seen.tag)).await, Ok(Put::Conflict));
        let seen = destination.look().await.unwrap().unwrap();
        assert!(matches!(destination.put(&page("two", 2), Some(&seen.tag)).await, Ok(Put::Written(_))));
    }
}
