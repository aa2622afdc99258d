//! Pages in memory: the twin of the real destinations, for tests and for whoever serves pages by HTTP alone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::store::{Object, Over};
use super::{Error, Found, Put, Tag};

/// A place in memory. Clones share it.
#[derive(Clone, Default)]
pub struct Memory {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    objects: BTreeMap<String, (u64, Object)>,
    writes: u64,
    failing: Option<Error>,
}

impl Memory {
    /// Makes every call fail like this, until it is told otherwise.
    pub fn fail(&self, error: Option<Error>) {
        self.with(|inner| inner.failing = error);
    }

    /// What is under a key.
    #[must_use]
    pub fn body(&self, key: &str) -> Option<Bytes> {
        self.with(|inner| inner.objects.get(key).map(|(_, object)| object.body.clone()))
    }

    /// All keys, in order.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        self.with(|inner| inner.objects.keys().cloned().collect())
    }

    /// How often anything was written.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.with(|inner| inner.writes)
    }

    pub(super) fn look(&self, key: &str) -> Result<Option<Found>, Error> {
        self.call(|inner| {
            let (number, object) = inner.objects.get(key)?;
            Some(Found::new(tag(*number), object.stamp))
        })
    }

    pub(super) fn read(&self, key: &str) -> Result<Option<(Tag, Bytes)>, Error> {
        self.call(|inner| {
            let (number, object) = inner.objects.get(key)?;
            Some((tag(*number), object.body.clone()))
        })
    }

    pub(super) fn write(&self, key: &str, object: Object, over: Over<'_>) -> Result<Put, Error> {
        self.call(|inner| {
            let found = inner.objects.get(key).map(|(number, _)| tag(*number));
            let free = match over {
                Over::Nothing => found.is_none(),
                Over::This(wanted) => found.as_ref() == Some(wanted),
            };
            if !free {
                return Put::Conflict;
            }
            inner.writes += 1;
            inner.objects.insert(key.to_owned(), (inner.writes, object));
            Put::Written(tag(inner.writes))
        })
    }

    pub(super) fn remove(&self, key: &str) -> Result<(), Error> {
        self.call(|inner| drop(inner.objects.remove(key)))
    }

    pub(super) fn list(&self, prefix: &str) -> Result<Vec<String>, Error> {
        self.call(|inner| inner.objects.keys().filter(|key| key.starts_with(prefix)).cloned().collect())
    }

    fn call<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> Result<T, Error> {
        self.with(|inner| match &inner.failing {
            Some(error) => Err(error.clone()),
            None => Ok(act(inner)),
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("keys", &self.keys()).finish_non_exhaustive()
    }
}

fn tag(number: u64) -> Tag {
    Tag::new(number.to_string())
}
