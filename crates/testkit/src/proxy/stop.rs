//! Standing still at one call, so that a test can do something exactly then: kill the caller, say.

use std::sync::{Arc, Weak};

use anyhow::Context;
use tokio::sync::{oneshot, watch};

use super::{Call, Matcher, answer::Broken, shared::Shared};

/// Where in a call to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The request came; the API server knows nothing of it.
    BeforeRequest,
    /// The API server has done it and answered; its sender knows nothing of that.
    BeforeReply,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Wait,
    GoOn,
    Cut,
}

/// What keeps calls waiting.
#[derive(Clone)]
pub(super) struct Gate {
    id: u64,
    verdict: watch::Receiver<Verdict>,
}

impl Gate {
    pub(super) async fn pass(mut self) -> Result<(), Broken> {
        match self.verdict.wait_for(|verdict| *verdict != Verdict::Wait).await.map(|verdict| *verdict) {
            Ok(Verdict::GoOn) => Ok(()),
            _ => Err(Broken),
        }
    }
}

/// A call that a test waits for.
pub(super) struct Awaited {
    matcher: Matcher,
    left: u64,
    point: Point,
}

/// The stop, as the call itself sees it.
pub(super) struct Point {
    pub(super) moment: Moment,
    reached: oneshot::Sender<Call>,
    gate: Gate,
}

impl Point {
    /// Tells the test, and waits for its verdict.
    pub(super) async fn stop(self, call: Call) -> Result<(), Broken> {
        // A test that has gone away has closed the gate as well.
        let _ = self.reached.send(call);
        self.gate.pass().await
    }
}

/// The stops of a proxy.
#[derive(Default)]
pub(super) struct Stops {
    next: u64,
    awaited: Vec<Awaited>,
    frozen: Option<Gate>,
}

impl Stops {
    /// What every new call has to pass first.
    pub(super) fn frozen(&self) -> Option<Gate> {
        self.frozen.clone()
    }

    /// Whether this call is one that a test waits for. From then on all others wait.
    pub(super) fn meet(&mut self, call: &Call) -> Option<Point> {
        let mut met = None;
        for (at, awaited) in self.awaited.iter_mut().enumerate().filter(|(_, it)| it.matcher.takes(call)) {
            if awaited.left == 0 && met.is_none() {
                met = Some(at);
            }
            awaited.left = awaited.left.saturating_sub(1);
        }
        let point = self.awaited.remove(met?).point;
        self.frozen = Some(point.gate.clone());
        Some(point)
    }

    fn forget(&mut self, id: u64) {
        self.awaited.retain(|awaited| awaited.point.gate.id != id);
        if self.frozen.as_ref().is_some_and(|gate| gate.id == id) {
            self.frozen = None;
        }
    }
}

/// A stop that is set and not reached yet. Dropped, it is taken back.
#[must_use]
pub struct Stop {
    reached: oneshot::Receiver<Call>,
    hold: Hold,
}

impl Stop {
    pub(super) fn set(shared: &Arc<Shared>, matcher: Matcher, skip: u64, moment: Moment) -> Self {
        let (verdict, receiver) = watch::channel(Verdict::Wait);
        let (tell, reached) = oneshot::channel();
        let stops = &mut shared.state().stops;
        let id = stops.next;
        stops.next += 1;
        let gate = Gate { id, verdict: receiver };
        let point = Point { moment, reached: tell, gate };
        stops.awaited.push(Awaited { matcher, left: skip, point });
        Self { reached, hold: Hold { shared: Arc::downgrade(shared), id, verdict } }
    }

    /// Waits for the call. Fails if that breaks for another reason before it gets to its moment: its sender has
    /// gone, say.
    pub async fn reached(self) -> anyhow::Result<Stopped> {
        let call = self.reached.await.context("the call broke before it could be stopped")?;
        Ok(Stopped { call, hold: self.hold })
    }
}

/// A call that stands still, and all that came after it wait too.
///
/// Dropped, it breaks: a request does not reach the API server, a reply does not reach its sender. All others
/// that wait break as well, and whoever comes later is served again.
#[must_use]
pub struct Stopped {
    call: Call,
    hold: Hold,
}

impl Stopped {
    /// The call.
    #[must_use]
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// Lets it go on as if nothing had been, and those that wait too.
    pub fn go_on(self) {
        self.hold.verdict.send_replace(Verdict::GoOn);
    }
}

struct Hold {
    shared: Weak<Shared>,
    id: u64,
    verdict: watch::Sender<Verdict>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.verdict.send_if_modified(|verdict| {
            let undecided = *verdict == Verdict::Wait;
            if undecided {
                *verdict = Verdict::Cut;
            }
            undecided
        });
        if let Some(shared) = self.shared.upgrade() {
            shared.state().stops.forget(self.id);
        }
    }
}
