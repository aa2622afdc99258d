//! Through which others ask the keeper: the task that owns the ledger answers, one question after the other.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};

/// Questions on their way. Clones are the same hatch.
pub(super) struct Hatch<Q> {
    to: mpsc::Sender<Q>,
    from: Arc<Mutex<Option<mpsc::Receiver<Q>>>>,
}

impl<Q> Hatch<Q> {
    /// One in which so many questions may wait.
    pub(super) fn new(waiting: usize) -> Self {
        let (to, from) = mpsc::channel(waiting);
        Self { to, from: Arc::new(Mutex::new(Some(from))) }
    }

    /// The questions, for the one who answers them.
    pub(super) fn questions(&self) -> Option<mpsc::Receiver<Q>> {
        self.from.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Asks. `None` while the keeper is too busy, or not there, or does not care to answer.
    pub(super) async fn ask<A>(&self, question: impl FnOnce(oneshot::Sender<A>) -> Q) -> Option<A> {
        let (to, answer) = oneshot::channel();
        self.to.try_send(question(to)).ok()?;
        answer.await.ok()
    }

    /// Says something that needs no answer. One who is too busy does not hear it.
    pub(super) fn say(&self, what: Q) {
        let _ = self.to.try_send(what);
    }
}

impl<Q> Clone for Hatch<Q> {
    fn clone(&self) -> Self {
        Self { to: self.to.clone(), from: self.from.clone() }
    }
}

impl<Q> fmt::Debug for Hatch<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hatch").finish_non_exhaustive()
    }
}

/// The next question; for ever if nobody can ask.
pub(super) async fn next<Q>(questions: &mut Option<mpsc::Receiver<Q>>) -> Option<Q> {
    match questions {
        Some(questions) => questions.recv().await,
        None => std::future::pending().await,
    }
}
