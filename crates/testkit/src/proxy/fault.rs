//! What can happen to a call, or to the events of a stream.

use std::{fmt, sync::Arc, time::Duration};

use serde_json::Value;

/// What an edit makes of one event of a stream, or of one item of a list; `None` ends the stream, or the list.
pub type Edit = Arc<dyn Fn(Value) -> Option<Vec<Value>> + Send + Sync>;

/// Something that goes wrong.
///
/// | meets | faults |
/// | --- | --- |
/// | a call | `DelayRequest`, `Hang`, `Cut`, `Refuse`, `Throttle`, `Dumb`, `DelayReply`, `HangReply`, `LoseReply`, `Dribble`, `Break` |
/// | a list, in one answer or as a stream | `Stale`, `Empty`, `Thin` |
/// | an event of a stream | `Drop`, `Duplicate`, `Swap`, `Replay`, `Hold`, `Lag` |
/// | a stream, open or new | `Expire` |
/// | an event of a stream, or a list | `Edit` |
///
/// A fault that is lifted lets go: what it delays, hangs, holds or dribbles goes on at once.
/// The items of a streamed list are events too (see [`super::Matcher::news`]).
/// Faults that meet the same call add up, in the order of this table. Bookmarks are held, lagged and edited, and
/// otherwise left alone.
#[derive(Clone)]
pub enum Fault {
    /// The request reaches the API server later, also if its sender has given up by then.
    DelayRequest(Duration),
    /// The request is kept until the fault is lifted, and reaches the API server then, also if its sender has
    /// given up by then.
    Hang,
    /// The connection breaks; the API server is not asked.
    Cut,
    /// The API server is not asked: this status is the answer, in its words.
    Refuse(u16),
    /// The same with a `Retry-After` of so many seconds, in plain text, as the API server throttles.
    Throttle(u16, u64),
    /// The API server is not asked: a proxy answers with this status, in its own words.
    Dumb(u16),
    /// The API server does it at once, its reply comes later.
    DelayReply(Duration),
    /// The API server does it at once, its reply comes when the fault is lifted.
    HangReply,
    /// The API server does it, and the connection breaks before its reply.
    LoseReply,
    /// The reply comes in pieces of so many bytes, with a pause before each.
    Dribble(usize, Duration),
    /// The connection breaks in the middle of the reply: after half of its bytes; in a streamed list before the
    /// bookmark that ends it; in a watch in the middle of its first event.
    Break,
    /// The list as it was at this version. A streamed list goes on from there, as a server's that lags. Lists
    /// that ask for an exact version are left alone.
    Stale(u64),
    /// The list without its items.
    Empty,
    /// The list, from which each item is missing with this probability.
    Thin(f64),
    /// The event does not come.
    Drop,
    /// The event comes twice.
    Duplicate,
    /// The event comes after the one that follows it.
    Swap,
    /// An earlier event of this resource comes again after it.
    Replay,
    /// The event, and those after it that the fault meets, come when the fault is lifted, in their order.
    Hold,
    /// The event comes later, and those after it too.
    Lag(Duration),
    /// The stream says that history has expired (410), and ends.
    Expire,
    /// See [`Fault::edit`].
    Edit(Edit),
}

impl Fault {
    /// What is sent is edited: each event of a stream, bookmarks too, or each item of a list.
    pub fn edit(edit: impl Fn(Value) -> Option<Vec<Value>> + Send + Sync + 'static) -> Self {
        Self::Edit(Arc::new(edit))
    }

    /// It happens so many times, and no more.
    pub fn times(self, times: u64) -> Dose {
        Dose::from(self).times(times)
    }

    /// It happens once.
    pub fn once(self) -> Dose {
        self.times(1)
    }

    /// It happens with this probability, by the proxy's seed.
    pub fn chance(self, probability: f64) -> Dose {
        Dose::from(self).chance(probability)
    }

    /// It passes over the first so many that it could meet.
    pub fn after(self, skip: u64) -> Dose {
        Dose::from(self).after(skip)
    }

    /// Whether it meets a call when it comes.
    pub(super) fn meets_calls(&self, streams: bool) -> bool {
        match self {
            Self::Drop
            | Self::Duplicate
            | Self::Swap
            | Self::Replay
            | Self::Hold
            | Self::Lag(_)
            | Self::Expire => false,
            Self::Edit(_) => !streams,
            _ => true,
        }
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DelayRequest(by) => write!(out, "DelayRequest({by:?})"),
            Self::Hang => write!(out, "Hang"),
            Self::Cut => write!(out, "Cut"),
            Self::Refuse(code) => write!(out, "Refuse({code})"),
            Self::Throttle(code, seconds) => write!(out, "Throttle({code}, {seconds})"),
            Self::Dumb(code) => write!(out, "Dumb({code})"),
            Self::DelayReply(by) => write!(out, "DelayReply({by:?})"),
            Self::HangReply => write!(out, "HangReply"),
            Self::LoseReply => write!(out, "LoseReply"),
            Self::Dribble(bytes, pause) => write!(out, "Dribble({bytes}, {pause:?})"),
            Self::Break => write!(out, "Break"),
            Self::Stale(version) => write!(out, "Stale({version})"),
            Self::Empty => write!(out, "Empty"),
            Self::Thin(share) => write!(out, "Thin({share})"),
            Self::Drop => write!(out, "Drop"),
            Self::Duplicate => write!(out, "Duplicate"),
            Self::Swap => write!(out, "Swap"),
            Self::Replay => write!(out, "Replay"),
            Self::Hold => write!(out, "Hold"),
            Self::Lag(by) => write!(out, "Lag({by:?})"),
            Self::Expire => write!(out, "Expire"),
            Self::Edit(_) => write!(out, "Edit(..)"),
        }
    }
}

/// A fault, and how much of it.
#[derive(Clone, Debug)]
#[must_use]
pub struct Dose {
    pub(super) fault: Fault,
    pub(super) times: Option<u64>,
    pub(super) skip: u64,
    pub(super) chance: f64,
}

impl Dose {
    /// See [`Fault::times`].
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// See [`Fault::chance`].
    pub fn chance(mut self, probability: f64) -> Self {
        self.chance = probability;
        self
    }

    /// See [`Fault::after`].
    pub fn after(mut self, skip: u64) -> Self {
        self.skip = skip;
        self
    }
}

impl From<Fault> for Dose {
    fn from(fault: Fault) -> Self {
        Self { fault, times: None, skip: 0, chance: 1.0 }
    }
}
