//! Two-stage shutdown: the first signal drains, the second aborts.
//!
//! ```text
//! SIGINT, SIGTERM ─1st─> stop is cancelled; the work finishes what is under way and ends: Finished
//!                 ─2nd─> the work is dropped where it stands: Aborted
//! ```

use std::future::Future;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// A signal that asks the process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// What Kubernetes and systemd send.
    Terminate,
}

impl Signal {
    /// The exit code of a process that a signal ended, by the shell's convention: 128 and its number.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

/// How the work ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended<T> {
    /// By itself, or drained after a first signal.
    Finished(T),
    /// A second signal came first.
    Aborted(Signal),
}

/// The signals of this process, from now on.
pub fn signals() -> std::io::Result<mpsc::Receiver<Signal>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (sender, receiver) = mpsc::channel(2);
    tokio::spawn(async move {
        loop {
            let signal = tokio::select! {
                Some(()) = interrupt.recv() => Signal::Interrupt,
                Some(()) = terminate.recv() => Signal::Terminate,
                else => return,
            };
            if sender.send(signal).await.is_err() {
                return;
            }
        }
    });
    Ok(receiver)
}

/// Runs the work to its end: the first signal cancels `stop`, the second drops the work.
pub async fn until_ended<T>(
    work: impl Future<Output = T>,
    stop: CancellationToken,
    mut signals: mpsc::Receiver<Signal>,
) -> Ended<T> {
    tokio::pin!(work);
    let first = tokio::select! {
        // Work that is done has ended by itself, whatever arrived with its last step.
        biased;
        result = &mut work => return Ended::Finished(result),
        Some(signal) = signals.recv() => signal,
    };
    info!(signal = ?first, "finishing what is under way; a second signal leaves at once");
    stop.cancel();
    tokio::select! {
        biased;
        result = &mut work => Ended::Finished(result),
        Some(signal) = signals.recv() => {
            warn!(signal = ?signal, "left at once; what was under way is decided again at the next start");
            Ended::Aborted(signal)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Work that drains for a minute once it is asked to stop.
    async fn slow_drain(stop: CancellationToken) -> &'static str {
        stop.cancelled().await;
        tokio::time::sleep(Duration::from_mins(1)).await;
        "drained"
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_signal_drains_and_waits_for_the_work() {
        let (stop, (sender, signals)) = (CancellationToken::new(), mpsc::channel(2));
        sender.send(Signal::Terminate).await.unwrap();
        let started = tokio::time::Instant::now();
        let ended = until_ended(slow_drain(stop.clone()), stop, signals).await;
        assert_eq!(ended, Ended::Finished("drained"));
        assert_eq!(started.elapsed(), Duration::from_mins(1));
    }

    #[tokio::test(start_paused = true)]
    async fn the_second_signal_leaves_at_once() {
        let (stop, (sender, signals)) = (CancellationToken::new(), mpsc::channel(2));
        sender.send(Signal::Terminate).await.unwrap();
        sender.send(Signal::Interrupt).await.unwrap();
        let started = tokio::time::Instant::now();
        let ended = until_ended(slow_drain(stop.clone()), stop, signals).await;
        assert_eq!(ended, Ended::Aborted(Signal::Interrupt));
        assert_eq!(started.elapsed(), Duration::ZERO);
    }

    #[tokio::test]
    async fn work_that_ends_by_itself_needs_no_signal() {
        let (_sender, signals) = mpsc::channel(2);
        let stop = CancellationToken::new();
        assert_eq!(until_ended(async { 7 }, stop.clone(), signals).await, Ended::Finished(7));
        assert!(!stop.is_cancelled());
    }

    #[tokio::test]
    async fn work_goes_on_when_no_signal_can_come_any_more() {
        let (sender, signals) = mpsc::channel(2);
        drop(sender);
        let work = async {
            tokio::task::yield_now().await;
            7
        };
        assert_eq!(until_ended(work, CancellationToken::new(), signals).await, Ended::Finished(7));
    }

    #[test]
    fn an_abort_has_the_exit_code_of_its_signal() {
        assert_eq!([Signal::Interrupt.exit_code(), Signal::Terminate.exit_code()], [130, 143]);
    }
}
