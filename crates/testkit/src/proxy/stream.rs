//! A stream of events on its way to whoever watches.
//!
//! Faults may be injected and lifted while it is open: each event meets those that are on when it comes.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use futures::{StreamExt, stream};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    Call, Fault, Matcher, Verb,
    answer::{Broken, Pieces, breaking},
    event::Event,
    plan::Items,
    rules::Strike,
    shared::{InFlight, Shared},
    source::Source,
};

/// What waits for its time.
struct Held {
    event: Event,
    until: Until,
    lifted: CancellationToken,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// The fault is lifted.
    Lifted,
    /// Some time, or the fault is lifted.
    Time(Instant),
    /// Another change has been sent, or the fault is lifted.
    Next,
}

/// The stream is over.
struct Over;

/// Carries the events of one stream, in a task of its own.
pub(super) struct Pump {
    shared: Arc<Shared>,
    call: Call,
    source: Source,
    out: mpsc::Sender<Pieces>,
    changed: watch::Receiver<()>,
    held: VecDeque<Held>,
    /// The faults that have had their throw at this stream.
    thrown: HashSet<u64>,
    items: Items,
    breaks: bool,
    /// Before the bookmark that ends a streamed list.
    in_list: bool,
    /// The source has no more.
    ended: bool,
}

impl Pump {
    /// Starts it. It ends when nobody reads any more, or with the proxy.
    pub(super) fn start(in_flight: &InFlight, source: Source, items: Items, breaks: bool) -> Pieces {
        let shared = Arc::clone(&in_flight.shared);
        let (out, pieces) = mpsc::channel(16);
        let mut changed = shared.changed.subscribe();
        // What is on already is looked at before the first event.
        changed.mark_changed();
        let ended = shared.ended.clone();
        let in_list = in_flight.call.verb == Verb::ListWatch;
        if !in_list {
            shared.state().begin_following(&in_flight.call);
        }
        let pump = Self {
            shared,
            call: in_flight.call.clone(),
            source,
            out,
            changed,
            held: VecDeque::new(),
            thrown: HashSet::new(),
            items,
            breaks,
            in_list,
            ended: false,
        };
        tokio::spawn(async move { ended.run_until_cancelled(pump.run()).await });
        let pieces = stream::unfold(pieces, |mut pieces| async { Some((pieces.recv().await?, pieces)) });
        pieces.flatten().boxed()
    }

    async fn run(mut self) {
        while let Ok(()) = self.step().await {}
    }

    async fn step(&mut self) -> Result<(), Over> {
        self.release().await?;
        if self.ended && self.held.is_empty() {
            return Err(Over);
        }
        let next = self.held.iter().filter_map(|held| match held.until {
            Until::Time(at) => Some(at),
            _ => None,
        });
        let next = next.min();
        tokio::select! {
            biased;
            () = self.out.closed() => Err(Over),
            changed = self.changed.changed() => {
                changed.map_err(|_| Over)?;
                self.expire().await
            }
            () = async { tokio::time::sleep_until(next.unwrap_or_else(Instant::now)).await }, if next.is_some() => Ok(()),
            line = self.source.next(), if !self.ended => match line {
                Some(Ok(line)) => self.take(Event::read(line)).await,
                Some(Err(Broken)) => self.break_off(Bytes::new()).await,
                None => {
                    self.ended = true;
                    Ok(())
                }
            },
        }
    }

    async fn expire(&mut self) -> Result<(), Over> {
        let expires = self.shared.state().rules.expires(&self.call, &mut self.thrown);
        if !expires {
            return Ok(());
        }
        self.send(Event::expired().line).await?;
        Err(Over)
    }

    /// One event from the API server.
    async fn take(&mut self, mut event: Event) -> Result<(), Over> {
        self.release().await?;
        event.initial = self.in_list;
        if self.in_list && event.is_change() && self.is_missing() {
            return Ok(());
        }
        if self.breaks && (event.ends_list || !self.in_list) {
            let half = if event.ends_list { 0 } else { event.line.len() / 2 };
            return self.break_off(event.line.slice(..half)).await;
        }
        if event.ends_list {
            self.in_list = false;
            self.shared.state().begin_following(&self.call);
        }
        let strikes = {
            let mut state = self.shared.state();
            if event.is_change() {
                state.remember(&self.call.resource, &event.line);
            }
            state.rules.strike_event(&self.call, &event)
        };
        self.strike(event, strikes).await
    }

    /// Whether a streamed list's item is to be left out.
    fn is_missing(&mut self) -> bool {
        // Every throw is made, so that each depends on its own item alone.
        let thrown: Vec<bool> =
            self.items.thin.iter_mut().map(|(share, dice)| dice.random::<f64>() < *share).collect();
        self.items.empty || thrown.contains(&true)
    }

    async fn strike(&mut self, event: Event, strikes: Vec<Strike>) -> Result<(), Over> {
        let mut events = vec![event];
        let mut held = None;
        for Strike { fault, matcher, lifted, seed } in strikes {
            match fault {
                Fault::Drop => events.clear(),
                Fault::Duplicate => {
                    events = events.into_iter().flat_map(|event| [event.clone(), event]).collect();
                }
                Fault::Swap => held = held.or(Some((Until::Next, lifted))),
                Fault::Hold => held = Some((Until::Lifted, lifted)),
                Fault::Lag(by) => held = held.or(Some((Until::Time(Instant::now() + by), lifted))),
                Fault::Replay => events.extend(self.earlier(&matcher, seed)),
                Fault::Edit(edit) => {
                    let mut edited = Vec::new();
                    for event in events {
                        let Ok(value) = serde_json::from_slice(&event.line) else { continue };
                        edited.extend(edit(value).ok_or(Over)?.iter().map(Event::of));
                    }
                    events = edited;
                }
                _ => {}
            }
        }
        for event in events {
            match &held {
                Some((until, lifted)) => {
                    self.held.push_back(Held { event, until: *until, lifted: lifted.clone() });
                }
                None => self.emit(event).await?,
            }
        }
        Ok(())
    }

    /// An earlier event that the fault meets.
    fn earlier(&self, matcher: &Matcher, seed: u64) -> Option<Event> {
        let state = self.shared.state();
        let mut past: Vec<Event> = state.past(&self.call.resource).cloned().map(Event::read).collect();
        // The last one is the one that comes now.
        past.pop();
        past.retain(|event| matcher.takes_event(event));
        past.choose(&mut StdRng::seed_from_u64(seed)).cloned()
    }

    /// Sends what has waited long enough.
    async fn release(&mut self) -> Result<(), Over> {
        let now = Instant::now();
        let ended = self.ended;
        self.release_if(|held| {
            held.lifted.is_cancelled()
                || match held.until {
                    Until::Lifted => false,
                    Until::Time(at) => at <= now,
                    // Nothing follows any more.
                    Until::Next => ended,
                }
        })
        .await
    }

    async fn release_if(&mut self, ready: impl Fn(&Held) -> bool) -> Result<(), Over> {
        if !self.held.iter().any(&ready) {
            return Ok(());
        }
        let (now, later): (VecDeque<Held>, VecDeque<Held>) =
            std::mem::take(&mut self.held).into_iter().partition(|held| ready(held));
        self.held = later;
        for held in now {
            self.send(held.event.line).await?;
        }
        Ok(())
    }

    /// Sends an event, and what waited for it.
    async fn emit(&mut self, event: Event) -> Result<(), Over> {
        let swapped = |held: &Held| held.until == Until::Next;
        if event.is_change() {
            self.send(event.line).await?;
            self.release_if(swapped).await
        } else {
            self.release_if(swapped).await?;
            self.send(event.line).await
        }
    }

    async fn send(&mut self, line: Bytes) -> Result<(), Over> {
        self.out.send(stream::iter([Ok(line)]).boxed()).await.map_err(|_| Over)
    }

    async fn break_off(&mut self, last: Bytes) -> Result<(), Over> {
        // Whether anybody still reads makes no difference: it is over.
        let _ = self.out.send(breaking(last)).await;
        Err(Over)
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.shared.state().end_following(&self.call);
    }
}
