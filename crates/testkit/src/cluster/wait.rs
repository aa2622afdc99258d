//! Waiting where there is no runtime: when the cluster is taken down, be it in the middle of a panic.

use std::{
    error::Error,
    thread,
    time::{Duration, Instant},
};

use anyhow::anyhow;

const POLL: Duration = Duration::from_millis(20);

/// Tries again and again until it succeeds, at most for `within`; shows the last failure otherwise.
pub(super) fn wait_until<E>(
    within: Duration,
    what: &str,
    mut attempt: impl FnMut() -> Result<(), E>,
) -> anyhow::Result<()>
where
    E: Into<Box<dyn Error + Send + Sync>>,
{
    let began = Instant::now();
    loop {
        let Err(error) = attempt() else { return Ok(()) };
        if began.elapsed() > within {
            return Err(anyhow!("not within {within:?}: {what}; last seen: {}", error.into()));
        }
        thread::sleep(POLL);
    }
}
