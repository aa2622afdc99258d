//! Places that hold any number of objects under keys, as the current page and its history need them.

use bytes::Bytes;
use perennial_core::lister::Stamp;

use super::file::Folder;
use super::memory::Memory;
use super::s3::Bucket;
use super::{Error, Found, Put, Tag};

/// An object to be written.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) body: Bytes,
    pub(super) content_type: String,
    pub(super) cache_control: String,
    pub(super) stamp: Option<Stamp>,
}

/// What an object may be written over.
#[derive(Clone, Copy, Debug)]
pub(super) enum Over<'a> {
    /// Only where nothing is.
    Nothing,
    /// Only what bears this tag.
    This(&'a Tag),
}

impl<'a> From<Option<&'a Tag>> for Over<'a> {
    fn from(tag: Option<&'a Tag>) -> Self {
        tag.map_or(Self::Nothing, Self::This)
    }
}

/// A place that holds objects.
#[derive(Debug)]
pub(super) enum Store {
    S3(Box<Bucket>),
    File(Folder),
    Memory(Memory),
}

impl Store {
    /// What is there, without its body.
    pub(super) async fn look(&self, key: &str) -> Result<Option<Found>, Error> {
        match self {
            Self::S3(bucket) => bucket.look(key).await,
            Self::File(folder) => folder.look(key).await,
            Self::Memory(memory) => memory.look(key),
        }
    }

    /// What is there, whole.
    pub(super) async fn read(&self, key: &str) -> Result<Option<(Tag, Bytes)>, Error> {
        match self {
            Self::S3(bucket) => bucket.read(key).await,
            Self::File(folder) => folder.read(key).await,
            Self::Memory(memory) => memory.read(key),
        }
    }

    pub(super) async fn write(&self, key: &str, object: Object, over: Over<'_>) -> Result<Put, Error> {
        match self {
            Self::S3(bucket) => bucket.write(key, object, over).await,
            Self::File(folder) => folder.write(key, object, over).await,
            Self::Memory(memory) => memory.write(key, object, over),
        }
    }

    /// Removes an object; one that is not there is removed already.
    pub(super) async fn remove(&self, key: &str) -> Result<(), Error> {
        match self {
            Self::S3(bucket) => bucket.remove(key).await,
            Self::File(folder) => folder.remove(key).await,
            Self::Memory(memory) => memory.remove(key),
        }
    }

    /// All keys that begin with this.
    pub(super) async fn list(&self, prefix: &str) -> Result<Vec<String>, Error> {
        match self {
            Self::S3(bucket) => bucket.list(prefix).await,
            Self::File(folder) => folder.list(prefix).await,
            Self::Memory(memory) => memory.list(prefix),
        }
    }
}
