//! What `decide` and `fence` may ask for. They perform none of it.

use std::time::Duration;

use super::guard::Held;

/// What to do about a listing's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// Nothing to do until something changes.
    Rest(Why),
    /// There is no good page to publish: the last good one stays, and why is told.
    Keep(Lack),
    /// The page waits for a person: the last good one stays.
    Hold(Held),
    /// The page goes out, but not before this time.
    Wait {
        /// When to decide again.
        until: Duration,
    },
    /// The page goes out now.
    Publish,
}

/// Why there is nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// The first lists are not complete, or a watch broke and is not.
    NotSynced,
    /// The page is published. Destinations that lack it may have it.
    Published,
}

/// Why there is no good page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lack {
    /// The template is missing or broken.
    Template,
    /// There is no such Service.
    Service,
}

impl Plan {
    /// The plan's name, as metrics and logs spell it.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Rest(_) => "rest",
            Self::Keep(_) => "keep",
            Self::Hold(_) => "hold",
            Self::Wait { .. } => "wait",
            Self::Publish => "publish",
        }
    }
}

/// What to do at one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Write {
    /// It has this page already.
    Rest,
    /// It has nothing: put the page there if that is still so.
    Create,
    /// Put the page in the place of what was found, if that is still there.
    Replace,
    /// As [`Write::Replace`], and tell: what was found comes from another history.
    Overrule,
    /// What was found is newer than the page in some part: look at the API server itself, and decide again.
    Lag,
}

impl Write {
    /// Its name, as metrics and logs spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rest => "rest",
            Self::Create => "create",
            Self::Replace => "replace",
            Self::Overrule => "overrule",
            Self::Lag => "lag",
        }
    }
}
