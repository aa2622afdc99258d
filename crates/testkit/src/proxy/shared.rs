//! What the test's hand and the calls share.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
};

use bytes::Bytes;
use http::{Method, Uri};
use kube::Client;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    Call, Matcher,
    answer::Broken,
    journal::Journal,
    plan::Plan,
    rules::Rules,
    stop::{Point, Stops},
};

/// How many events of a resource are remembered, to come again.
const REMEMBERED: usize = 512;

pub(super) struct State {
    pub(super) rules: Rules,
    pub(super) journal: Journal,
    pub(super) stops: Stops,
    /// Calls that came after one that stands still.
    pub(super) waiting: usize,
    in_flight: HashMap<u64, (Call, CancellationToken)>,
    past: HashMap<String, VecDeque<Bytes>>,
    /// Streams that are past their list, by their call.
    following: HashMap<u64, String>,
}

impl State {
    /// A stream is past its list: from here on it tells what changes.
    pub(super) fn begin_following(&mut self, call: &Call) {
        self.following.insert(call.index, call.resource.clone());
    }

    /// A stream is over.
    pub(super) fn end_following(&mut self, call: &Call) {
        self.following.remove(&call.index);
    }

    /// Whether a stream tells what changes in a resource.
    pub(super) fn follows(&self, resource: &str) -> bool {
        self.following.values().any(|followed| followed == resource)
    }

    /// Remembers an event of a resource.
    pub(super) fn remember(&mut self, resource: &str, line: &Bytes) {
        if !self.past.contains_key(resource) {
            self.past.insert(resource.to_owned(), VecDeque::new());
        }
        if let Some(past) = self.past.get_mut(resource) {
            past.push_back(line.clone());
            if past.len() > REMEMBERED {
                past.pop_front();
            }
        }
    }

    /// The events of a resource that are remembered, oldest first.
    pub(super) fn past(&self, resource: &str) -> impl Iterator<Item = &Bytes> {
        self.past.get(resource).into_iter().flatten()
    }
}

pub(super) struct Shared {
    /// The way to the API server.
    pub(super) client: Client,
    /// Cancelled when the proxy is dropped.
    pub(super) ended: CancellationToken,
    /// Told when a fault is injected or lifted, for streams that are open.
    pub(super) changed: watch::Sender<()>,
    /// Streams may pass in protobuf.
    pub(super) protobuf: AtomicBool,
    state: Mutex<State>,
}

impl Shared {
    pub(super) fn new(client: Client, seed: u64) -> Self {
        let state = State {
            rules: Rules::new(seed),
            journal: Journal::default(),
            stops: Stops::default(),
            waiting: 0,
            in_flight: HashMap::new(),
            past: HashMap::new(),
            following: HashMap::new(),
        };
        let (changed, _) = watch::channel(());
        let protobuf = AtomicBool::new(false);
        Self { client, ended: CancellationToken::new(), changed, protobuf, state: Mutex::new(state) }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a call in: it gets its index, and what will happen to it is decided.
    pub(super) async fn admit(self: &Arc<Self>, method: &Method, uri: &Uri) -> Result<Admitted, Broken> {
        loop {
            let frozen = {
                let mut state = self.state();
                match state.stops.frozen() {
                    Some(gate) => gate,
                    None => return Ok(self.enter(&mut state, method, uri)),
                }
            };
            let waiting = Waiting::new(self);
            frozen.pass().await?;
            drop(waiting);
            // The hand that opened the gate takes it away right after.
            tokio::task::yield_now().await;
        }
    }

    fn enter(self: &Arc<Self>, state: &mut State, method: &Method, uri: &Uri) -> Admitted {
        let call = Call::of(state.journal.next(), method, uri);
        state.journal.begin(call.clone());
        let point = state.stops.meet(&call);
        let plan = Plan::of(state.rules.strike_call(&call));
        let cut = self.ended.child_token();
        state.in_flight.insert(call.index, (call.clone(), cut.clone()));
        Admitted { in_flight: InFlight { shared: Arc::clone(self), call, cut }, plan, point }
    }

    /// Breaks what is under way.
    pub(super) fn cut(&self, matcher: &Matcher) {
        let state = self.state();
        let met = state.in_flight.values().filter(|(call, _)| matcher.takes(call));
        met.for_each(|(_, cut)| cut.cancel());
    }
}

/// A call that was taken in.
pub(super) struct Admitted {
    pub(super) in_flight: InFlight,
    pub(super) plan: Plan,
    pub(super) point: Option<Point>,
}

/// A call that is under way: until its answer has been sent, or its stream has ended.
pub(super) struct InFlight {
    pub(super) shared: Arc<Shared>,
    pub(super) call: Call,
    cut: CancellationToken,
}

impl InFlight {
    /// Returns when the call is cut.
    pub(super) async fn cut(&self) {
        self.cut.cancelled().await;
    }

    pub(super) fn server_said(&self, status: u16) {
        if let Some(entry) = self.shared.state().journal.entry(self.call.index) {
            entry.server = Some(status);
        }
    }

    pub(super) fn sender_is_told(&self, status: u16) {
        if let Some(entry) = self.shared.state().journal.entry(self.call.index) {
            entry.sender = Some(status);
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.shared.state().in_flight.remove(&self.call.index);
    }
}

/// Counts a call that waits, whatever becomes of it.
struct Waiting<'a>(&'a Shared);

impl<'a> Waiting<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.state().waiting += 1;
        Self(shared)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state().waiting -= 1;
    }
}
