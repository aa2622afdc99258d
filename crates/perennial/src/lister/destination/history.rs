//! Earlier versions of a page, beside the current one.
//!
//! ```text
//! history/2026/11/15/2026-11-15T12-00-00.123Z-0a1b2c3d.html    one for each version that was published
//! history/index.json                                           what there is, newest first: the truth
//! history/index.html                                           the same for people
//! ```
//!
//! A version is written first, then the index by compare and swap, then what is over the limit is removed. Whatever fails
//! on the way leaves a version that the index does not know: the next time everything under the prefix is listed, and
//! versions that were not known are taken in. Only what bears a name of ours is ever removed.

mod index;
mod name;
mod page;

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;
use perennial_core::lister::Page;
use tokio::sync::Mutex;

use super::Error;
use super::error::Said;
use super::store::{Object, Over, Store};

use index::Index;
use name::Name;

/// A version never changes.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
/// An index changes with every version.
const NOT_AT_ALL: &str = "no-cache";
/// How often an index that others write, too, is tried again.
const TRIES: usize = 5;
/// How many versions that could not be written are held. Pages may be large.
const OWED: usize = 4;
/// How many versions are removed at a time. More go with the next one.
const REMOVED: usize = 200;

/// How much is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistorySettings {
    prefix: String,
    count: usize,
    age: Duration,
}

/// A setting that cannot be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistorySettingsError {
    /// It is no part of a key.
    #[error(
        "the prefix {0:?} of the history is not one such as history/: parts without . and .., between slashes"
    )]
    Prefix(String),
    /// Too few or too many.
    #[error("a history keeps 1 to {most} versions, not {0}", most = HistorySettings::MOST)]
    Count(usize),
    /// Nothing would ever be in it.
    #[error("a history that keeps versions for no time keeps none: leave it out")]
    Age,
}

impl HistorySettings {
    /// The prefix unless told otherwise.
    pub const PREFIX: &str = "history/";
    /// How many versions unless told otherwise.
    pub const COUNT: usize = 100;
    /// How long unless told otherwise.
    pub const AGE: Duration = Duration::from_hours(30 * 24);
    /// The most versions that an index may name.
    const MOST: usize = 10_000;

    /// Keeps so many versions, none older than this, under a prefix beside the page. The newest one always stays.
    pub fn new(prefix: &str, count: usize, age: Duration) -> Result<Self, HistorySettingsError> {
        let bare = prefix.strip_suffix('/').unwrap_or(prefix);
        let good = |part: &str| !matches!(part, "" | "." | "..") && !part.chars().any(char::is_control);
        if bare.len() > 200 || !bare.split('/').all(good) {
            return Err(HistorySettingsError::Prefix(prefix.to_owned()));
        }
        if !(1..=Self::MOST).contains(&count) {
            return Err(HistorySettingsError::Count(count));
        }
        if age.is_zero() {
            return Err(HistorySettingsError::Age);
        }
        Ok(Self { prefix: format!("{bare}/"), count, age })
    }
}

impl HistorySettings {
    /// From the page to the index.
    #[must_use]
    pub fn link(&self) -> String {
        format!("{}index.html", self.prefix)
    }
}

impl Default for HistorySettings {
    fn default() -> Self {
        Self { prefix: Self::PREFIX.to_owned(), count: Self::COUNT, age: Self::AGE }
    }
}

/// The history of one page.
#[derive(Debug)]
pub(super) struct History {
    settings: HistorySettings,
    /// The page's own key.
    page: String,
    /// What all keys of the history begin with.
    prefix: String,
    owed: Mutex<Owed>,
}

/// What is left to do.
#[derive(Debug, Default)]
struct Owed {
    versions: VecDeque<(Name, Page)>,
    /// Whether the index knows all versions that are there.
    complete: bool,
}

impl History {
    pub(super) fn new(settings: HistorySettings, page: &str) -> Self {
        let folder = page.rfind('/').map_or("", |slash| &page[..=slash]);
        let prefix = format!("{folder}{}", settings.prefix);
        Self { settings, page: page.to_owned(), prefix, owed: Mutex::default() }
    }

    /// From the page to the index.
    pub(super) fn link(&self) -> String {
        self.settings.link()
    }

    pub(super) async fn keep(&self, store: &Store, page: &Page, now: Timestamp) -> Result<(), Error> {
        let mut owed = self.owed.lock().await;
        while owed.versions.len() >= OWED {
            owed.versions.pop_front();
        }
        owed.versions.push_back((Name::of(page, now), page.clone()));
        let complete = std::mem::take(&mut owed.complete);
        owed.complete = self.settle(store, &mut owed.versions, complete, now).await?;
        Ok(())
    }

    /// Writes all versions that are owed. Answers whether nothing is left to do.
    async fn settle(
        &self,
        store: &Store,
        owed: &mut VecDeque<(Name, Page)>,
        complete: bool,
        now: Timestamp,
    ) -> Result<bool, Error> {
        // An index that is not ours means that the versions there are not ours either: before anything is written.
        self.read(store).await?;
        for (name, page) in owed.iter() {
            let object = Object {
                body: page.body.clone().into(),
                content_type: page.content_type.clone(),
                cache_control: FOR_EVER.to_owned(),
                stamp: Some(page.stamp),
            };
            // A conflict means that it is there: its name says when it was published and what is in it.
            store.write(&format!("{}{name}", self.prefix), object, Over::Nothing).await?;
        }
        let there = if complete { Vec::new() } else { store.list(&self.prefix).await? };
        let there: Vec<Name> =
            there.iter().filter_map(|key| Name::parse(key.strip_prefix(&self.prefix)?)).collect();
        let over = self.swap(store, owed, &there, now).await?;
        owed.clear();
        self.show(store).await?;
        for name in over.iter().take(REMOVED) {
            store.remove(&format!("{}{name}", self.prefix)).await?;
        }
        Ok(over.len() <= REMOVED)
    }

    /// Brings the index up to date, and answers which versions are over the limit.
    async fn swap(
        &self,
        store: &Store,
        owed: &VecDeque<(Name, Page)>,
        there: &[Name],
        now: Timestamp,
    ) -> Result<Vec<Name>, Error> {
        for _ in 0..TRIES {
            let (tag, mut index) = self.read(store).await?;
            for name in there {
                index.add(name, None);
            }
            for (name, page) in owed {
                index.add(name, Some(page.stamp.endpoints));
            }
            let over = index.limit(self.settings.count, self.settings.age, now);
            let object = plain(index.to_json(), "application/json");
            let put = store.write(&self.key("index.json"), object, tag.as_ref().into()).await?;
            if put != super::Put::Conflict {
                return Ok(over);
            }
        }
        Err(Error::Conflict)
    }

    /// Shows the index to people. Its tag is taken before the index is read, so that an older one never replaces a newer.
    async fn show(&self, store: &Store) -> Result<(), Error> {
        let key = self.key("index.html");
        for _ in 0..TRIES {
            let found = store.look(&key).await?;
            let (_, index) = self.read(store).await?;
            let up = "../".repeat(self.settings.prefix.matches('/').count());
            let object = plain(page::render(&index, &up), "text/html; charset=utf-8");
            let put = store.write(&key, object, found.as_ref().map(|found| &found.tag).into()).await?;
            if put != super::Put::Conflict {
                return Ok(());
            }
        }
        Err(Error::Conflict)
    }

    async fn read(&self, store: &Store) -> Result<(Option<super::Tag>, Index), Error> {
        let key = self.key("index.json");
        let Some((tag, bytes)) = store.read(&key).await? else { return Ok((None, Index::new(&self.page))) };
        match Index::parse(&bytes) {
            Some(index) if index.page() == self.page => Ok((Some(tag), index)),
            Some(_) => Err(Error::Foreign(Said::text(&format!(
                "the history at {key} is of another page: choose another prefix for one of them"
            )))),
            None => Err(Error::Foreign(Said::text(&format!(
                "{key} is no index that this version can read: move it away, or choose another prefix"
            )))),
        }
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

fn plain(text: String, content_type: &str) -> Object {
    let cache_control = NOT_AT_ALL.to_owned();
    Object { body: text.into(), content_type: content_type.to_owned(), cache_control, stamp: None }
}

#[cfg(test)]
mod tests;
