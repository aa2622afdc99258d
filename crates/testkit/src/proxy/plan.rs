//! What the faults that met a call make of it, all together.

use std::time::Duration;

use rand::{SeedableRng, rngs::StdRng};
use tokio_util::sync::CancellationToken;

use super::{Edit, Fault, answer::Refusal, rules::Strike};

/// Some time to wait, or for as long as it takes, until the fault is lifted.
#[derive(Clone)]
pub(super) struct Wait {
    time: Option<Duration>,
    lifted: CancellationToken,
}

impl Wait {
    pub(super) async fn over(&self) {
        match self.time {
            Some(time) => drop(tokio::time::timeout(time, self.lifted.cancelled()).await),
            None => self.lifted.cancelled().await,
        }
    }
}

/// What happens to a call, from top to bottom.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) before: Vec<Wait>,
    pub(super) cut: bool,
    pub(super) refusal: Option<Refusal>,
    pub(super) stale: Option<u64>,
    pub(super) after: Vec<Wait>,
    pub(super) lose: bool,
    pub(super) items: Items,
    pub(super) breaks: bool,
    pub(super) dribble: Option<(usize, Wait)>,
}

/// What happens to a list's items.
#[derive(Default)]
pub(super) struct Items {
    pub(super) empty: bool,
    pub(super) thin: Vec<(f64, StdRng)>,
    pub(super) edits: Vec<Edit>,
}

impl Items {
    pub(super) fn untouched(&self) -> bool {
        !self.empty && self.thin.is_empty() && self.edits.is_empty()
    }
}

impl Plan {
    pub(super) fn of(strikes: Vec<Strike>) -> Self {
        let mut plan = Self::default();
        for Strike { fault, lifted, seed, matcher: _ } in strikes {
            match fault {
                Fault::DelayRequest(by) => plan.before.push(Wait { time: Some(by), lifted }),
                Fault::Hang => plan.before.push(Wait { time: None, lifted }),
                Fault::Cut => plan.cut = true,
                Fault::Refuse(code) => plan.refuse(Refusal::Status(code)),
                Fault::Throttle(code, seconds) => plan.refuse(Refusal::Throttle(code, seconds)),
                Fault::Dumb(code) => plan.refuse(Refusal::Dumb(code)),
                Fault::DelayReply(by) => plan.after.push(Wait { time: Some(by), lifted }),
                Fault::HangReply => plan.after.push(Wait { time: None, lifted }),
                Fault::LoseReply => plan.lose = true,
                Fault::Dribble(bytes, pause) => {
                    plan.dribble = Some((bytes, Wait { time: Some(pause), lifted }));
                }
                Fault::Break => plan.breaks = true,
                Fault::Stale(version) => plan.stale = Some(version),
                Fault::Empty => plan.items.empty = true,
                Fault::Thin(share) => plan.items.thin.push((share, StdRng::seed_from_u64(seed))),
                Fault::Edit(edit) => plan.items.edits.push(edit),
                // These meet events, when they come.
                Fault::Drop
                | Fault::Duplicate
                | Fault::Swap
                | Fault::Replay
                | Fault::Hold
                | Fault::Lag(_)
                | Fault::Expire => {}
            }
        }
        plan
    }

    /// The first one counts.
    fn refuse(&mut self, refusal: Refusal) {
        self.refusal.get_or_insert(refusal);
    }
}
