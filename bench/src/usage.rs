//! What a process has taken, as the kernel counts it.

use std::fs;
use std::time::Duration;

use anyhow::Context;
use nix::time::ClockId;
use nix::unistd::Pid;

/// The time that all threads of a process have computed, those that ended included.
pub(crate) fn cpu(pid: u32) -> anyhow::Result<Duration> {
    let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(i32::try_from(pid)?))?;
    Ok(clock.now()?.into())
}

/// How much memory a process has now, and at most had, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) now: u64,
    pub(crate) most: u64,
}

pub(crate) fn memory(pid: u32) -> anyhow::Result<Memory> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    Ok(Memory { now: field(&status, "VmRSS:")?, most: field(&status, "VmHWM:")? })
}

fn field(status: &str, name: &str) -> anyhow::Result<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kilobytes: u64 = kilobytes.with_context(|| format!("no {name} in {status:?}"))?.parse()?;
    Ok(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_of_ourselves() {
        let own = std::process::id();
        let before = cpu(own).unwrap();
        assert!((0..1_000_000u64).map(std::hint::black_box).sum::<u64>() > 0);
        assert!(cpu(own).unwrap() > before);
        let memory = memory(own).unwrap();
        assert!(memory.now > 0 && memory.most >= memory.now, "{memory:?}");
    }

    #[test]
    fn a_process_that_is_gone_is_an_error() {
        assert!(memory(u32::MAX).is_err());
    }
}
