//! The state of each line in one word, for whoever looks at the whole fleet.

use perennial_core::keeper::{Body, Plan, Sight, Why};
use tokio::time::Instant;

use super::entry::{Entry, Urgency};
use super::{Ledger, Name};
use crate::keeper::fleet::Standing;
use crate::keeper::window::{Cell, Cells, LineView};

/// How many changes are noted; after that everything is told again, which is not much more.
const NOTED: usize = 5_000;

/// What changed since somebody last looked.
#[derive(Debug, Default)]
pub(super) enum Noted {
    /// Nobody looks.
    #[default]
    Nothing,
    /// These lines.
    Names(Vec<Name>),
    /// More than are worth naming.
    TooMany,
}

impl Noted {
    pub(super) fn note(&mut self, name: &Name) {
        if let Self::Names(names) = self {
            if names.len() < NOTED {
                names.push(name.clone());
            } else {
                *self = Self::TooMany;
            }
        }
    }
}

impl Ledger {
    /// Every line, or the lines that changed since this was last asked. From now on changes are noted.
    pub(crate) fn cells(&mut self, all: bool) -> Cells {
        match std::mem::replace(&mut self.noted, Noted::Names(Vec::new())) {
            Noted::Names(mut names) if !all => {
                names.sort_unstable();
                names.dedup();
                let cell = |name: Name| {
                    let cell = self.lines.pulse(&name).map(|pulse| pulse.cell);
                    (name, cell)
                };
                Cells::Changed(names.into_iter().map(cell).collect())
            }
            _ => Cells::All(self.lines.pulses().map(|(name, pulse)| (name.clone(), pulse.cell)).collect()),
        }
    }

    /// Nobody looks any more.
    pub(crate) fn note_nothing(&mut self) {
        self.noted = Noted::Nothing;
    }

    /// Whether changes are noted.
    #[cfg(test)]
    pub(crate) fn notes(&self) -> bool {
        !matches!(self.noted, Noted::Nothing)
    }

    /// One line, for a person.
    pub(crate) fn line_view(&self, name: &str, now: Instant) -> Option<LineView> {
        let entry = self.lines.get(name)?;
        Some(LineView {
            cell: entry.cell,
            why: entry.skipped.map(Why::as_str),
            failures: entry.failures,
            pending_seconds: self.fleet.pending_for(&entry.counted, now),
        })
    }
}

/// The word for a line that this is planned for.
pub(super) fn cell(entry: &Entry, plan: &Plan, standing: Standing) -> Cell {
    let line = &entry.line;
    if let Some(Body::Unreadable { .. } | Body::Newer) = line.seen().map(|seen| &seen.body) {
        return Cell::Unreadable;
    }
    if matches!(plan, Plan::Rest(Why::Paused)) {
        return Cell::Paused;
    }
    let live = matches!(line.sight, Sight::Live(_));
    match standing {
        Standing::Current => Cell::Current,
        Standing::Away => Cell::Absent,
        Standing::Pending if live => match plan {
            Plan::Rest(Why::IdentityUnknown | Why::RestoreOff) => Cell::Unrestored,
            Plan::Rest(_) => Cell::Pending,
            plan => match entry.urgency(plan) {
                Urgency::Restore | Urgency::ProveRestore => Cell::Unrestored,
                Urgency::End | Urgency::ProveEnd | Urgency::Save | Urgency::Later => Cell::Pending,
            },
        },
        // What is only looked at again, to be collected one day, is away like any other.
        Standing::Pending if entry.urgency(plan) == Urgency::Later => Cell::Absent,
        Standing::Pending => Cell::Pending,
        Standing::Nothing => Cell::Unknown,
    }
}
