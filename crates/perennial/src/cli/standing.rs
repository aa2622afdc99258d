//! How a node stands, in one word.
//!
//! The words are those of the status page and the metrics. A person who asks for one node wants to know more than a square
//! can show: so some of them are finer, and docs/page.md says which belong to which.

use perennial_core::keeper::{Erasure, Line, Plan, Why};
use serde::Serialize;

use super::screen::Style;

/// How a node stands: what a keeper would do about it, in one word. What needs attention comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Standing {
    /// Its record cannot be read.
    Unreadable,
    /// Its record was written by a newer binary.
    Newer,
    /// Something is owed to it.
    Unrestored,
    /// It is gone, and its end is not recorded yet.
    Closing,
    /// Its record lags behind it.
    Pending,
    /// Privileged labels wait for its machine's identity.
    Waiting,
    /// It is being deleted.
    Terminating,
    /// A person paused it.
    Paused,
    /// A person asked to forget it.
    Forgotten,
    /// It is gone, and remembered.
    Absent,
    /// No rule matches it.
    Unmanaged,
    /// Nothing of it is kept.
    Bare,
    /// Node and record agree.
    Current,
}

impl Standing {
    pub(crate) const ALL: [Self; 13] = [
        Self::Unreadable,
        Self::Newer,
        Self::Unrestored,
        Self::Closing,
        Self::Pending,
        Self::Waiting,
        Self::Terminating,
        Self::Paused,
        Self::Forgotten,
        Self::Absent,
        Self::Unmanaged,
        Self::Bare,
        Self::Current,
    ];

    /// From what a keeper would do.
    pub(crate) fn of(plan: &Plan, line: &Line) -> Self {
        let lives = line.live().is_some();
        match plan {
            Plan::Save(write) if write.record.paused => Self::Paused,
            Plan::Save(_) | Plan::ReadRecord => Self::Pending,
            Plan::Wait { .. } if lives => Self::Current,
            Plan::Tell { .. } => Self::Bare,
            Plan::Give(_) | Plan::Patch(_) => Self::Unrestored,
            Plan::Prove { .. } | Plan::ReadEnd { .. } | Plan::ReadNode | Plan::Close(_) if lives => {
                Self::Unrestored
            }
            Plan::Prove { .. }
            | Plan::ReadEnd { .. }
            | Plan::ReadNode
            | Plan::Close(_)
            | Plan::Wait { .. } => Self::Closing,
            Plan::SetAside => Self::Unreadable,
            Plan::Erase(Erasure::Forgotten) => Self::Forgotten,
            Plan::Erase(_) if lives => Self::Bare,
            Plan::Erase(_) => Self::Absent,
            Plan::Rest(why) => match why {
                Why::Agreed => Self::Current,
                Why::NothingKept => Self::Bare,
                Why::Unmanaged => Self::Unmanaged,
                Why::Away => Self::Absent,
                Why::Paused => Self::Paused,
                Why::Forgotten => Self::Forgotten,
                Why::Terminating => Self::Terminating,
                Why::IdentityUnknown => Self::Waiting,
                Why::NewerSchema => Self::Newer,
                Why::Unreadable => Self::Unreadable,
                Why::RestoreOff => Self::Unrestored,
                Why::NotSynced | Why::Lagging | Why::CaptureOff => Self::Pending,
            },
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::Newer => "newer",
            Self::Unrestored => "unrestored",
            Self::Closing => "closing",
            Self::Pending => "pending",
            Self::Waiting => "waiting",
            Self::Terminating => "terminating",
            Self::Paused => "paused",
            Self::Forgotten => "forgotten",
            Self::Absent => "absent",
            Self::Unmanaged => "unmanaged",
            Self::Bare => "bare",
            Self::Current => "current",
        }
    }

    /// Reads back what [`Standing::as_str`] gave; the error says what is allowed.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let found =
            Self::ALL.into_iter().find(|standing| standing.as_str().eq_ignore_ascii_case(text.trim()));
        found.ok_or_else(|| {
            let allowed = Self::ALL.map(Self::as_str).join(", ");
            format!("--state: {text:?} is not allowed; allowed: {allowed}")
        })
    }

    pub(crate) fn style(self) -> Style {
        match self {
            Self::Current => Style::Good,
            Self::Unreadable | Self::Newer => Style::Bad,
            Self::Unrestored | Self::Closing | Self::Pending | Self::Waiting => Style::Notice,
            Self::Terminating | Self::Paused | Self::Forgotten => Style::Strong,
            Self::Absent | Self::Unmanaged | Self::Bare => Style::Faint,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keeper::window::Cell;

    #[test]
    fn every_word_is_read_back_and_documented() {
        for standing in Standing::ALL {
            assert_eq!(Standing::parse(standing.as_str()), Ok(standing));
            let help = crate::args::command();
            let help = help.find_subcommand("nodes").unwrap().clone().render_long_help().to_string();
            assert!(help.contains(&format!("`{}`", standing.as_str())), "{standing:?} is not in\n{help}");
        }
        assert!(Standing::parse("ready").unwrap_err().contains("current"));
    }

    /// A row of docs/page.md: the word of the page, what it means, and the words of the command line.
    fn row(line: &str) -> Option<(String, Vec<Standing>)> {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, word, _, here, _] = cells[..] else { return None };
        let words = here.split(',').map(|word| Standing::parse(word.trim().trim_matches('`')).ok());
        Some((word.to_owned(), words.collect::<Option<_>>()?))
    }

    #[test]
    fn page_and_command_line_call_the_same_by_the_same_word() {
        let page = include_str!("../../../../docs/page.md");
        let rows: Vec<(String, Vec<Standing>)> = page.lines().filter_map(row).collect();
        let mut all: Vec<Standing> = rows.iter().flat_map(|(_, words)| words.clone()).collect();
        all.sort_unstable();
        assert_eq!(all, Standing::ALL, "each word of the command line belongs to one of the page");
        let script = include_str!("../admin/page/assets/dom.js");
        for cell in Cell::ALL.into_iter().filter(|cell| *cell != Cell::Unknown) {
            let (word, here) = rows.iter().find(|(word, _)| word == cell.as_str()).unwrap();
            assert_eq!(here[0].as_str(), word, "the first is the same word");
            assert!(script.contains(&format!("word: \"{word}\"")), "{word} is not on the page");
        }
    }
}
