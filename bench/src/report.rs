//! Numbers for people.

use std::time::Duration;

/// Some durations, in order.
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn new(mut times: Vec<Duration>) -> Self {
        times.sort();
        Self(times)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The time that so many of a hundred do not exceed.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let at = (self.0.len() * percent).div_ceil(100).saturating_sub(1);
        self.0.get(at).copied().unwrap_or_default()
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (p50, p99, most) = (self.percentile(50), self.percentile(99), self.percentile(100));
        write!(f, "{:>4} times: p50 {p50:>8.1?}  p99 {p99:>8.1?}  most {most:>8.1?}", self.count())
    }
}

/// How many times as long.
pub(crate) fn ratio(time: Duration, beside: Duration) -> f64 {
    time.as_secs_f64() / beside.as_secs_f64().max(f64::EPSILON)
}

/// In milliseconds.
pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// In mebibytes.
#[expect(clippy::cast_precision_loss, reason = "nobody reads the last digits")]
pub(crate) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// In megabytes.
#[expect(clippy::cast_precision_loss, reason = "nobody reads the last digits")]
pub(crate) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// So many a second.
pub(crate) fn rate(many: usize, took: Duration) -> anyhow::Result<f64> {
    Ok(f64::from(u32::try_from(many)?) / took.as_secs_f64())
}
