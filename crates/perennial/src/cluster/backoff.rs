//! How long to wait before trying again: arithmetic, and a little chance so that replicas do not march in step.

use std::time::Duration;

/// The first wait.
const FIRST: Duration = Duration::from_millis(100);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(30);

/// The wait after so many failures in a row, with jitter.
pub(crate) fn backoff(failures: u32) -> Duration {
    let chance: f64 = rand::random();
    plain(failures).mul_f64(0.5 + chance / 2.0)
}

/// The wait without jitter: doubled with each failure, up to a limit.
fn plain(failures: u32) -> Duration {
    FIRST.saturating_mul(2u32.saturating_pow(failures.saturating_sub(1).min(20))).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_its_limit() {
        let waits: Vec<_> = (1..6).map(|failures| plain(failures).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1600]);
        assert_eq!(plain(u32::MAX), LONGEST);
        assert_eq!(plain(0), FIRST);
    }

    #[test]
    fn jitter_never_makes_it_longer_or_shorter_than_half() {
        for failures in 1..20 {
            let wait = backoff(failures);
            assert!(wait <= plain(failures) && wait >= plain(failures) / 2, "{wait:?}");
        }
    }
}
