//! Signals that ask a program to end.

use std::{future::pending, process::ExitCode};

use tokio::signal::unix::{SignalKind, signal};

/// A signal that asked us to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// What a person calls it.
    pub name: &'static str,
    /// The exit status that goes with it, as shells give it.
    pub code: u8,
}

impl From<Interrupt> for ExitCode {
    fn from(interrupt: Interrupt) -> Self {
        Self::from(interrupt.code)
    }
}

/// Waits for such a signal. It no longer ends the process by itself from the first poll on.
pub async fn interrupted() -> Interrupt {
    let received = async |kind| match signal(kind) {
        Ok(mut signals) => drop(signals.recv().await),
        // Then it ends us the hard way, and the kernel cleans up.
        Err(_) => pending().await,
    };
    let (name, code) = tokio::select! {
        () = received(SignalKind::interrupt()) => ("Ctrl-C", 130),
        () = received(SignalKind::terminate()) => ("SIGTERM", 143),
        () = received(SignalKind::hangup()) => ("SIGHUP", 129),
    };
    Interrupt { name, code }
}
