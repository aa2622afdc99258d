//! Waiting for a condition: the one place where tests poll.

use std::{fmt::Debug, future::Future, time::Duration};

use anyhow::anyhow;
use tokio::time::{MissedTickBehavior, interval, timeout};

const POLL: Duration = Duration::from_millis(25);

/// Asks again and again until the probe answers, at most for `within`.
///
/// `Ok(Some(value))` is the answer. `Ok(None)` is "not yet". An `Err` is "not yet" too, and says what was seen
/// instead: the last one is shown when the time is over.
pub async fn eventually<T, F, Fut>(within: Duration, what: &str, mut probe: F) -> anyhow::Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = anyhow::Result<Option<T>>>,
{
    let mut seen = None;
    let answer = async {
        let mut ticks = interval(POLL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match probe().await {
                Ok(Some(value)) => return value,
                Ok(None) => seen = None,
                Err(instead) => seen = Some(instead),
            }
        }
    };
    if let Ok(value) = timeout(within, answer).await {
        return Ok(value);
    }
    Err(match seen {
        Some(instead) => anyhow!("not within {within:?}: {what}; last seen: {instead:#}"),
        None => anyhow!("not within {within:?}: {what}"),
    })
}

/// Reads a value again and again until it equals `expected`, at most for `within`; shows the last one otherwise.
pub async fn eventually_eq<T, F, Fut>(
    within: Duration,
    what: &str,
    expected: T,
    mut read: F,
) -> anyhow::Result<()>
where
    T: PartialEq + Debug,
    F: FnMut() -> Fut,
    Fut: Future<Output = anyhow::Result<T>>,
{
    let expected = &expected;
    eventually(within, what, || {
        let reading = read();
        async move {
            let value = reading.await?;
            if value == *expected { Ok(Some(())) } else { Err(anyhow!("{value:?}, not {expected:?}")) }
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn answers_as_soon_as_the_condition_holds() {
        let asked = Cell::new(0);
        let answer = eventually(Duration::from_secs(1), "third time", || async {
            asked.set(asked.get() + 1);
            Ok((asked.get() == 3).then_some("yes"))
        });
        assert_eq!(answer.await.unwrap(), "yes");
        assert_eq!(asked.get(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn shows_the_last_value_when_time_is_over() {
        let error = eventually_eq(Duration::from_secs(1), "two become three", 3, || async { Ok(2) });
        let text = error.await.unwrap_err().to_string();
        assert_eq!(text, "not within 1s: two become three; last seen: 2, not 3");
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_hangs_does_not_hold_up_the_deadline() {
        let never = eventually(Duration::from_secs(1), "an answer", || {
            std::future::pending::<anyhow::Result<Option<()>>>()
        });
        assert_eq!(never.await.unwrap_err().to_string(), "not within 1s: an answer");
    }
}
