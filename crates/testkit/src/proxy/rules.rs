//! The faults that are on, and whom they strike.

use std::collections::HashSet;

use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio_util::sync::CancellationToken;

use super::{Call, Dose, Fault, Matcher, event::Event};

/// A fault that is on. Each has its own dice, so that what it does depends only on what it could meet.
struct Rule {
    id: u64,
    matcher: Matcher,
    fault: Fault,
    left: Option<u64>,
    skip: u64,
    chance: f64,
    dice: StdRng,
    met: u64,
    lifted: CancellationToken,
}

/// A fault that met something.
#[derive(Clone)]
pub(super) struct Strike {
    pub(super) fault: Fault,
    pub(super) matcher: Matcher,
    /// Cancelled when the fault is lifted.
    pub(super) lifted: CancellationToken,
    /// For whatever else is left to chance.
    pub(super) seed: u64,
}

impl Rule {
    fn roll(&mut self) -> Option<Strike> {
        if self.left == Some(0) {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        // Two throws, whatever comes of them: the next one's luck does not depend on this one's.
        let (throw, seed) = (self.dice.random::<f64>(), self.dice.random());
        if throw >= self.chance {
            return None;
        }
        self.left = self.left.map(|left| left - 1);
        self.met += 1;
        let (fault, matcher) = (self.fault.clone(), self.matcher.clone());
        Some(Strike { fault, matcher, lifted: self.lifted.clone(), seed })
    }
}

pub(super) struct Rules {
    seed: u64,
    next: u64,
    on: Vec<Rule>,
}

impl Rules {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, next: 0, on: Vec::new() }
    }

    pub(super) fn inject(&mut self, matcher: Matcher, dose: Dose, lifted: CancellationToken) -> u64 {
        let Dose { fault, times: left, skip, chance } = dose;
        let id = self.next;
        self.next += 1;
        let dice = StdRng::seed_from_u64(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(id));
        self.on.push(Rule { id, matcher, fault, left, skip, chance, dice, met: 0, lifted });
        id
    }

    pub(super) fn lift(&mut self, id: u64) {
        self.on.retain(|rule| rule.id != id);
    }

    pub(super) fn met(&self, id: u64) -> u64 {
        self.on.iter().find(|rule| rule.id == id).map_or(0, |rule| rule.met)
    }

    /// What strikes a call as it comes.
    pub(super) fn strike_call(&mut self, call: &Call) -> Vec<Strike> {
        let streams = call.verb.streams();
        let meant = |rule: &&mut Rule| rule.fault.meets_calls(streams) && rule.matcher.takes(call);
        self.on.iter_mut().filter(meant).filter_map(Rule::roll).collect()
    }

    /// What strikes an event.
    pub(super) fn strike_event(&mut self, call: &Call, event: &Event) -> Vec<Strike> {
        let meant = |rule: &&mut Rule| {
            let possible = match rule.fault {
                Fault::Expire => false,
                Fault::Edit(_) | Fault::Hold | Fault::Lag(_) => true,
                _ => event.is_change() && !rule.fault.meets_calls(true),
            };
            possible && rule.matcher.takes_stream(call) && rule.matcher.takes_event(event)
        };
        self.on.iter_mut().filter(meant).filter_map(Rule::roll).collect()
    }

    /// Whether a stream's history expires now. Each fault gets one throw at each stream.
    pub(super) fn expires(&mut self, call: &Call, thrown: &mut HashSet<u64>) -> bool {
        let meant = |rule: &&mut Rule| {
            matches!(rule.fault, Fault::Expire) && rule.matcher.takes(call) && thrown.insert(rule.id)
        };
        self.on.iter_mut().filter(meant).find_map(Rule::roll).is_some()
    }
}
