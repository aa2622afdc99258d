//! Whether a process still lives that somebody wrote down.

use std::{fs, path::Path};

use anyhow::Context as _;

/// A process, and not another that got its number later.
#[derive(Debug, PartialEq)]
pub(super) struct Life {
    pub(super) pid: i32,
    pub(super) started: u64,
}

impl Life {
    /// Writes down who we are.
    pub(super) fn record_ours(file: &Path) -> anyhow::Result<()> {
        let copied = fs::read("/proc/self/stat").and_then(|stat| fs::write(file, stat));
        copied.with_context(|| format!("writing {}", file.display()))
    }

    /// The process that was written down, if it lives. What was written is a line of `/proc/PID/stat`.
    pub(super) fn recorded(file: &Path) -> Option<Self> {
        let recorded = Self::parse(&fs::read_to_string(file).ok()?)?;
        let now = Self::parse(&fs::read_to_string(format!("/proc/{}/stat", recorded.pid)).ok()?)?;
        (now == recorded).then_some(recorded)
    }

    /// From `/proc/PID/stat`, if it lives. The name is in parentheses and may hold anything.
    pub(super) fn parse(stat: &str) -> Option<Self> {
        let pid = stat.split(' ').next()?.parse().ok()?;
        let mut rest = stat.rsplit(") ").next()?.split(' ');
        // One that is dead and not buried has outlived all others of its machine.
        rest.next().filter(|state| !["Z", "X"].contains(state))?;
        Some(Self { pid, started: rest.nth(18)?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_number_and_its_start() {
        let file = tempfile::NamedTempFile::new().unwrap();
        Life::record_ours(file.path()).unwrap();
        let life = Life::recorded(file.path()).unwrap();
        assert_eq!(life.pid, i32::try_from(std::process::id()).unwrap());

        let ours = fs::read_to_string(file.path()).unwrap();
        let earlier = ours.replace(&life.started.to_string(), &(life.started - 1).to_string());
        fs::write(file.path(), earlier).unwrap();
        assert_eq!(Life::recorded(file.path()), None);
    }

    #[test]
    fn one_that_is_dead_and_not_buried_does_not_live() {
        let zeros = "0 ".repeat(18);
        assert!(Life::parse(&format!("7 (a) b) S {zeros}99 0")).is_some());
        assert_eq!(Life::parse(&format!("7 (a) b) Z {zeros}99 0")), None);
    }
}
