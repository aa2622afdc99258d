//! What the keeper lets others see of the fleet, without slowing it.
//!
//! ```text
//! status page ── Ask ──> the task that owns the ledger ── Fleet, LineView ──> status page
//!                        the same task ── what happened ──> Story (fixed rings) ──> status page
//! ```
//! Nothing is copied while nobody asks. Whoever asks gets every line once, and after that only the lines that
//! changed since: work follows changes, not the size of the fleet.

mod story;

use tokio::sync::{mpsc, oneshot};

use super::hatch::Hatch;
use super::ledger::Name;

pub(crate) use story::{Happened, Kind, Series, Slot, Story, WITHIN};

/// How many questions may wait.
const WAITING: usize = 16;

/// The state of one line, in the words that page, command line and metrics share. The command line has finer ones
/// besides, see `cli::standing`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cell {
    /// It is not known yet.
    #[default]
    Unknown,
    /// The node is there, and what is kept of it is recorded.
    Current,
    /// Node and record do not agree yet: somebody has to act.
    Pending,
    /// The node is back and waits for its own.
    Unrestored,
    /// The node is away; its record waits for it.
    Absent,
    /// A person paused it.
    Paused,
    /// Its record cannot be read by this binary: nothing is given from it.
    Unreadable,
}

impl Cell {
    /// Every one.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 7] = [
        Self::Unknown,
        Self::Current,
        Self::Pending,
        Self::Unrestored,
        Self::Absent,
        Self::Paused,
        Self::Unreadable,
    ];

    /// The letter that stands for it on the wire.
    pub(crate) fn letter(self) -> u8 {
        match self {
            Self::Unknown => b'?',
            Self::Current => b'c',
            Self::Pending => b'p',
            Self::Unrestored => b'u',
            Self::Absent => b'a',
            Self::Paused => b'z',
            Self::Unreadable => b'x',
        }
    }

    /// The word for it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Current => "current",
            Self::Pending => "pending",
            Self::Unrestored => "unrestored",
            Self::Absent => "absent",
            Self::Paused => "paused",
            Self::Unreadable => "unreadable",
        }
    }
}

/// What the lines are.
#[derive(Debug)]
pub(crate) enum Cells {
    /// Every line there is.
    All(Vec<(Name, Cell)>),
    /// Those that may have changed since the last time; `None` is gone.
    Changed(Vec<(Name, Option<Cell>)>),
}

/// The fleet at one moment.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) cells: Cells,
    /// Both lists are complete, and everything was looked at since.
    pub(crate) synced: bool,
    /// How many nodes are worked on.
    pub(crate) inflight: usize,
    pub(crate) records: usize,
    /// The brake is on.
    pub(crate) braked: bool,
    /// The nodes whose records went back to the state that they had just left most often, and how often.
    pub(crate) churners: Vec<(Name, u16)>,
}

/// One line, as far as the ledger knows it.
#[derive(Clone, Debug)]
pub(crate) struct LineView {
    pub(crate) cell: Cell,
    /// Why it is left as it is, though it is not settled.
    pub(crate) why: Option<&'static str>,
    /// How often in a row work on it failed.
    pub(crate) failures: u32,
    /// For how many seconds there is something to do about it.
    pub(crate) pending_seconds: Option<u64>,
}

/// A question to the keeper.
#[derive(Debug)]
pub(crate) enum Ask {
    /// The fleet: all of it, or what changed since this was last asked.
    Fleet {
        /// Everything, whatever was told before.
        all: bool,
        to: oneshot::Sender<Fleet>,
    },
    /// One line.
    Line { name: String, to: oneshot::Sender<Option<LineView>> },
    /// Nobody looks any more.
    Enough,
}

/// A window into the keeper. Clones are the same window.
#[derive(Clone, Debug)]
pub struct Window {
    hatch: Hatch<Ask>,
    story: Story,
}

impl Default for Window {
    fn default() -> Self {
        Self { hatch: Hatch::new(WAITING), story: Story::default() }
    }
}

impl Window {
    /// The questions, for the one who answers them.
    pub(crate) fn questions(&self) -> Option<mpsc::Receiver<Ask>> {
        self.hatch.questions()
    }

    /// What happened lately.
    pub(crate) fn story(&self) -> &Story {
        &self.story
    }

    /// Asks for the fleet. `None` while the keeper is too busy, or not there.
    pub(crate) async fn fleet(&self, all: bool) -> Option<Fleet> {
        self.hatch.ask(|to| Ask::Fleet { all, to }).await
    }

    /// Asks for one line. `None` while nobody answers; `Some(None)` if there is no such line.
    pub(crate) async fn line(&self, name: &str) -> Option<Option<LineView>> {
        self.hatch.ask(|to| Ask::Line { name: name.to_owned(), to }).await
    }

    /// Nobody looks any more: the keeper may forget what it noted for us.
    pub(crate) fn enough(&self) {
        // One that is too busy to hear it notes a bounded number of changes, and then no more.
        self.hatch.say(Ask::Enough);
    }
}
