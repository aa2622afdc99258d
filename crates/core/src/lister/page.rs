//! A page, ready to be published.

use serde::{Deserialize, Serialize};

use super::versions::Versions;
use crate::kept::Digest;

/// What a page is written in: how values are escaped, and what it is served as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// A page for people.
    #[default]
    Html,
    /// A page for programs.
    Json,
    /// Plain text; nothing is escaped.
    Text,
}

impl Format {
    /// What it is served as.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Json => "application/json",
            Self::Text => "text/plain; charset=utf-8",
        }
    }
}

/// A page, ready to be published.
#[derive(Clone, PartialEq, Eq)]
pub struct Page {
    /// What is published, byte for byte.
    pub body: String,
    /// What it is served as.
    pub content_type: String,
    /// What is known of it wherever it is.
    pub stamp: Stamp,
}

/// What stays beside a published page, so that whoever finds it can judge it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Equal if and only if the bodies are.
    pub digest: Digest,
    /// How many endpoints it lists.
    pub endpoints: usize,
    /// What it was made from.
    pub versions: Versions,
}

impl Page {
    /// A page of this body.
    #[must_use]
    pub fn new(body: String, content_type: String, endpoints: usize, versions: Versions) -> Self {
        let stamp = Stamp { digest: Digest::of(body.as_bytes()), endpoints, versions };
        Self { body, content_type, stamp }
    }
}

/// Pages may be large.
impl std::fmt::Debug for Page {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { body, content_type, stamp } = self;
        f.debug_struct("Page")
            .field("bytes", &body.len())
            .field("content_type", content_type)
            .field("stamp", stamp)
            .finish()
    }
}
