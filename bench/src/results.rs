//! What was measured, as it is kept: every sample of every round, and what each of them is.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::{fs, thread};

use anyhow::{Context as _, ensure};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::contender::Contender;

/// One thing that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Case {
    /// Records a second while a whole fleet is recorded for the first time, counted from the start of the process.
    Capture,
    /// From the answer to a label's change until an observer sees the record, one at a time.
    ChangeP50,
    /// The same, at its slowest hundredth.
    ChangeP99,
    /// The same while 333 nodes a second beat.
    BusyChangeP50,
    /// The same, at its slowest hundredth.
    BusyChangeP99,
    /// From the answer to a node's registration until an observer sees its labels, one at a time.
    ReturnP50,
    /// The same, at its slowest hundredth.
    ReturnP99,
    /// Nodes a second while many return at once, from the first registration to the last label.
    Mass,
    /// From the start of the process, with all records there, until it says that it is in step with the cluster.
    Synced,
    /// The same until it has recorded what changed while it was away.
    Start,
    /// Computing for one heartbeat that changes nothing kept.
    Heartbeat,
    /// Memory at rest, all nodes there.
    MemorySteady,
    /// Memory at most.
    MemoryPeak,
    /// Memory at rest, all nodes gone.
    MemoryAbsent,
    /// What the API server sends for a start.
    Bytes,
}

impl Case {
    pub(crate) const ALL: [Self; 15] = [
        Self::Capture,
        Self::ChangeP50,
        Self::ChangeP99,
        Self::BusyChangeP50,
        Self::BusyChangeP99,
        Self::ReturnP50,
        Self::ReturnP99,
        Self::Mass,
        Self::Synced,
        Self::Start,
        Self::Heartbeat,
        Self::MemorySteady,
        Self::MemoryPeak,
        Self::MemoryAbsent,
        Self::Bytes,
    ];

    /// For a table.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Capture => "whole fleet recorded",
            Self::ChangeP50 => "change to durable record, p50",
            Self::ChangeP99 => "change to durable record, p99",
            Self::BusyChangeP50 => "the same under heartbeats, p50",
            Self::BusyChangeP99 => "the same under heartbeats, p99",
            Self::ReturnP50 => "re-created node to labels back, p50",
            Self::ReturnP99 => "re-created node to labels back, p99",
            Self::Mass => "mass return",
            Self::Synced => "start to in step",
            Self::Start => "start to caught up",
            Self::Heartbeat => "CPU for a heartbeat",
            Self::MemorySteady => "memory, steady",
            Self::MemoryPeak => "memory, peak",
            Self::MemoryAbsent => "memory, all nodes gone",
            Self::Bytes => "sent by the API server for a start",
        }
    }

    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Capture => "records/s",
            Self::Mass => "nodes/s",
            Self::ChangeP50
            | Self::ChangeP99
            | Self::BusyChangeP50
            | Self::BusyChangeP99
            | Self::ReturnP50
            | Self::ReturnP99 => "ms",
            Self::Synced | Self::Start => "s",
            Self::Heartbeat => "µs",
            Self::MemorySteady | Self::MemoryPeak | Self::MemoryAbsent => "MiB",
            Self::Bytes => "MB",
        }
    }

    /// Whether more is better.
    pub(crate) fn more_is_better(self) -> bool {
        matches!(self, Self::Capture | Self::Mass)
    }
}

/// Whose figure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Who {
    /// The API server's own limit, by bare requests.
    Limit,
    /// Somebody who keeps labels.
    #[serde(untagged)]
    Contender(Contender),
}

impl Who {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Limit => "the limit",
            Self::Contender(contender) => contender.name(),
        }
    }
}

/// A figure, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Sample {
    Figure(f64),
    DidNotFinish { did_not_finish: String },
}

/// When, of what and where it was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setting {
    pub(crate) began: String,
    pub(crate) commit: String,
    pub(crate) machine: String,
}

impl Setting {
    /// Here and now, of what git knows.
    pub(crate) fn here() -> anyhow::Result<Self> {
        let described = Command::new("git").args(["describe", "--always", "--dirty"]).output();
        let commit = described.map_or_else(|_| Vec::new(), |output| output.stdout);
        Ok(Self {
            began: Timestamp::now().strftime("%Y-%m-%d").to_string(),
            commit: String::from_utf8_lossy(&commit).trim().to_owned(),
            machine: format!("{} cores", thread::available_parallelism()?),
        })
    }
}

/// Writes what was measured into a file, whose folder is made.
pub(crate) fn save(measured: &impl Serialize, out: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(out.parent().context("no folder to write to")?)?;
    let text = serde_json::to_string_pretty(measured)? + "\n";
    fs::write(out, text).with_context(|| format!("writing {}", out.display()))
}

/// The one in the middle, or between the two in the middle.
pub(crate) fn median(figures: &[f64]) -> Option<f64> {
    let mut figures = figures.to_vec();
    figures.sort_by(f64::total_cmp);
    let (low, high) = (figures.get((figures.len().max(1) - 1) / 2)?, figures.get(figures.len() / 2)?);
    Some(f64::midpoint(*low, *high))
}

/// Everything of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Results {
    #[serde(flatten)]
    pub(crate) setting: Setting,
    pub(crate) nodes: usize,
    pub(crate) rounds: usize,
    /// How the limit was reached.
    pub(crate) manner: String,
    pub(crate) samples: BTreeMap<Case, BTreeMap<Who, Vec<Sample>>>,
}

impl Results {
    /// Goes on where an earlier run ended.
    pub(crate) fn follow(&mut self, before: Self) -> anyhow::Result<()> {
        ensure!(before.nodes == self.nodes, "its figures are of {} nodes", before.nodes);
        let Setting { began, commit, machine } = before.setting;
        ensure!(machine == self.setting.machine, "its figures are of another machine: {machine}");
        if commit != self.setting.commit {
            self.setting.commit = format!("{commit}, {}", self.setting.commit);
        }
        self.setting.began = began;
        self.rounds += before.rounds;
        self.samples = before.samples;
        Ok(())
    }

    pub(crate) fn add(&mut self, case: Case, who: Who, figure: f64) {
        self.push(case, who, Sample::Figure(figure));
    }

    pub(crate) fn push(&mut self, case: Case, who: Who, sample: Sample) {
        self.samples.entry(case).or_default().entry(who).or_default().push(sample);
    }

    /// The figures in order; none if any round did not finish.
    pub(crate) fn figures(&self, case: Case, who: Who) -> Option<Vec<f64>> {
        let samples = self.samples.get(&case)?.get(&who)?;
        let figures = samples.iter().map(|sample| match sample {
            Sample::Figure(figure) => Some(*figure),
            Sample::DidNotFinish { .. } => None,
        });
        let mut figures = figures.collect::<Option<Vec<_>>>()?;
        figures.sort_by(f64::total_cmp);
        Some(figures)
    }

    pub(crate) fn median(&self, case: Case, who: Who) -> Option<f64> {
        median(&self.figures(case, who)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }
}
