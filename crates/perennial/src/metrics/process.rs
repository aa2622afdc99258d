//! Memory, CPU, files and start time of this process, read from `/proc` at each scrape.
//!
//! What cannot be read is left out: a metric that is missing says more than one that is wrong.

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// The unit of times in `/proc`: Linux shows user space 100 ticks a second on every platform of ours,
/// whatever its own timer does (`USER_HZ`, see time(7)).
const TICKS_A_SECOND: f64 = 100.0;

/// Collects the process's metrics, under the names that Prometheus' own client libraries use.
#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let times = Times::parse(&read("/proc/self/stat"), &read("/proc/stat"));
        let status = read("/proc/self/status");
        let mut gauge = |name: &str, help: &str, unit: Option<&Unit>, value: Option<f64>| {
            let Some(value) = value else { return Ok(()) };
            ConstGauge::new(value).encode(encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?)
        };
        let bytes = Some(&Unit::Bytes);
        gauge("process_resident_memory", "Memory in use.", bytes, kilobytes(&status, "VmRSS"))?;
        gauge("process_virtual_memory", "Address space in use.", bytes, kilobytes(&status, "VmSize"))?;
        gauge(
            "process_threads",
            "Threads of the process.",
            None,
            field(&status, "Threads").and_then(number),
        )?;
        gauge("process_open_fds", "Open file descriptors.", None, open_files())?;
        gauge(
            "process_max_fds",
            "Most open file descriptors allowed.",
            None,
            most_files(&read("/proc/self/limits")),
        )?;
        gauge(
            "process_start_time",
            "When the process started, since the epoch.",
            Some(&Unit::Seconds),
            times.started,
        )?;
        if let Some(cpu) = times.cpu {
            ConstCounter::new(cpu).encode(encoder.encode_descriptor(
                "process_cpu",
                "CPU time used, by user and system.",
                Some(&Unit::Seconds),
                MetricType::Counter,
            )?)?;
        }
        Ok(())
    }
}

/// The process's times, in seconds.
#[derive(Debug, Default, PartialEq)]
struct Times {
    cpu: Option<f64>,
    started: Option<f64>,
}

impl Times {
    /// From `/proc/self/stat` and `/proc/stat`, see proc(5).
    fn parse(own: &str, system: &str) -> Self {
        // The second field is the command in parentheses and may hold spaces and parentheses itself.
        let Some((_, fields)) = own.rsplit_once(") ") else { return Self::default() };
        let fields: Vec<&str> = fields.split_whitespace().collect();
        // Numbered from 1 in proc(5), where the first after the command is the third.
        let ticks = |position: usize| fields.get(position - 3).copied().and_then(number);
        let boot = system.lines().find_map(|line| line.strip_prefix("btime ")).and_then(number);
        let cpu = ticks(14).zip(ticks(15)).map(|(user, system)| (user + system) / TICKS_A_SECOND);
        let started = boot.zip(ticks(22)).map(|(boot, since)| boot + since / TICKS_A_SECOND);
        Self { cpu, started }
    }
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

/// A field of `/proc/self/status`.
fn field<'t>(status: &'t str, name: &str) -> Option<&'t str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

fn kilobytes(status: &str, name: &str) -> Option<f64> {
    field(status, name)?.strip_suffix(" kB").and_then(number).map(|kilobytes| kilobytes * 1024.0)
}

fn open_files() -> Option<f64> {
    // The listing itself holds one open.
    let count = fs::read_dir("/proc/self/fd").ok()?.count().checked_sub(1)?;
    u32::try_from(count).ok().map(f64::from)
}

fn most_files(limits: &str) -> Option<f64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next().and_then(number)
}

#[cfg(test)]
mod tests {
    use prometheus_client::registry::Registry;

    use super::*;

    const STAT: &str = "42 (a) b (c) S 1 42 42 0 -1 4194560 500 0 0 0 250 50 0 0 20 0 4 0 12345 1000 2000 0";

    #[test]
    fn times_are_read_past_a_command_with_parentheses() {
        let times = Times::parse(STAT, "cpu 1 2 3\nbtime 1700000000\nprocesses 7\n");
        assert_eq!(times, Times { cpu: Some(3.0), started: Some(1_700_000_123.45) });
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        assert_eq!(Times::parse("", ""), Times::default());
        assert_eq!(Times::parse("42 (x) S 1", "btime soon"), Times::default());
        assert_eq!(Times::parse(STAT, "").started, None);
        assert_eq!(kilobytes("VmRSS:\t  12 MB\n", "VmRSS"), None);
        assert_eq!(most_files("Max open files   unlimited  unlimited files"), None);
    }

    #[test]
    fn memory_is_in_bytes_and_the_name_is_matched_whole() {
        let status = "VmRSSx:\t 1 kB\nVmRSS:\t  12 kB\nThreads:\t4\n";
        assert_eq!(kilobytes(status, "VmRSS"), Some(12_288.0));
        assert_eq!(most_files("Max open files            1024   4096   files"), Some(1024.0));
    }

    #[test]
    fn this_process_has_memory_cpu_files_and_a_start_under_the_usual_names() {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Process));
        let text = crate::metrics::encode(&registry);
        for name in [
            "process_resident_memory_bytes",
            "process_virtual_memory_bytes",
            "process_cpu_seconds_total",
            "process_start_time_seconds",
            "process_open_fds",
            "process_max_fds",
            "process_threads",
        ] {
            assert!(
                text.lines().any(|line| line.starts_with(&format!("{name} "))),
                "{name} is not in\n{text}"
            );
        }
    }
}
