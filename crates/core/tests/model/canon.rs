//! States that differ in nothing that matters are made equal, so that each is visited once.
//!
//! Versions and sequences of records only matter by their order; which of two replicas of one policy is which does
//! not matter; and what the oracle knows of lives that are in a record already is of no more use.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use perennial_core::keeper::{Body, Plan, RecordSight, Sight};

use super::state::{RECORDS, Replica, State};

impl State {
    pub(crate) fn normalise(&mut self) {
        self.pass_over_echoes();
        self.forget_what_all_heard();
        self.forget_the_past();
        self.forget_looks();
        self.rank(RECORDS, |state, visit| state.each_version(visit));
        self.rank(0, |state, visit| state.each_sequence(visit));
        self.replicas.sort_by_cached_key(|replica| (replica.policy, print(replica)));
    }

    /// What a stream says of a version that is known already changes nothing, but for an end.
    fn pass_over_echoes(&mut self) {
        let epoch = self.epoch;
        for replica in self.replicas.iter_mut().filter(|replica| replica.up && replica.epoch == epoch) {
            let known = replica.line.seen().map_or(0, |seen| seen.version);
            let removed =
                |(version, stored): &&(u64, Result<_, _>)| *version > replica.records && stored.is_err();
            let removal = self.server.records.iter().find(removed).map_or(u64::MAX, |(version, _)| *version);
            if known < removal {
                replica.records = replica.records.max(known);
                replica.line.record_reported(known);
            }
            let known = match &replica.line.sight {
                Sight::Live(live) => live.version,
                Sight::Absent { at, .. } => *at,
                Sight::Unlisted | Sight::Missing => 0,
            };
            while replica.nodes < known && self.server.node_at(replica.nodes + 1).is_some() {
                replica.nodes += 1;
            }
        }
    }

    /// Lets go of versions of the record that nobody will hear of any more.
    fn forget_what_all_heard(&mut self) {
        let streams = self.replicas.iter().filter(|replica| replica.up && replica.epoch == self.epoch);
        let heard = streams.map(|replica| replica.records).min().unwrap_or(u64::MAX);
        let now = self.server.record_head();
        self.server.records.retain(|(version, _)| *version > heard || *version == now);
    }

    /// When a node was read directly matters to erasing alone.
    fn forget_looks(&mut self) {
        if self.late || self.budget.late + self.budget.over_cap > 0 {
            return;
        }
        for replica in &mut self.replicas {
            if let Sight::Absent { looked, .. } = &mut replica.line.sight {
                *looked = None;
            }
        }
    }

    /// Puts places in order, from `first` on, for the numbers that `each` visits.
    fn rank(&mut self, first: u64, each: impl Fn(&mut Self, &mut dyn FnMut(&mut u64))) {
        let mut numbers = Vec::new();
        each(self, &mut |number| numbers.push(*number));
        numbers.push(first);
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.iter().zip(first..).any(|(number, place)| *number != place) {
            each(self, &mut |number| {
                *number = first + numbers.partition_point(|other| *other < *number) as u64;
            });
        }
    }

    fn each_version(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        let snapshot = self.snapshot.iter_mut().flat_map(|snapshot| &mut snapshot.0.records);
        for (version, _) in self.server.records.iter_mut().chain(snapshot) {
            visit(version);
        }
        self.truth.each_version(visit);
        for replica in self.replicas.iter_mut().filter(|replica| replica.up) {
            visit(&mut replica.records);
            if let RecordSight::Seen(seen) = &mut replica.line.record {
                visit(&mut seen.version);
            }
            if let Some(plan) = &mut replica.plan {
                plan.1.over.iter_mut().for_each(|(_, version)| visit(version));
                visit_known(&mut plan.1.removal, visit);
            }
            replica.line.removal.iter_mut().for_each(|removal| visit(&mut removal.at));
            if let Some(created) = &mut replica.line.created {
                visit(&mut created.version);
                visit_known(&mut created.knew, visit);
            }
        }
    }

    fn each_sequence(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        let snapshot = self.snapshot.iter_mut().flat_map(|snapshot| &mut snapshot.0.records);
        for (_, stored) in self.server.records.iter_mut().chain(snapshot) {
            if let Ok(stored) = stored {
                let mut sequence = stored.record.sequence;
                visit(&mut sequence);
                if sequence != stored.record.sequence {
                    Arc::make_mut(&mut stored.record).sequence = sequence;
                }
            }
        }
        for replica in self.replicas.iter_mut().filter(|replica| replica.up) {
            if let RecordSight::Seen(seen) = &mut replica.line.record {
                match &mut seen.body {
                    Body::Summary(summary) => visit(&mut summary.sequence),
                    Body::Whole(record) => visit(&mut record.sequence),
                    Body::Unread { .. } | Body::Unreadable { .. } | Body::Newer => {}
                }
            }
            if let Some((_, sequence)) = &mut replica.line.agreed {
                visit(sequence);
            }
            if let Some(Plan::Save(write) | Plan::Close(write) | Plan::Give(write)) =
                replica.plan.as_mut().map(|plan| &mut plan.0)
            {
                visit(&mut write.record.sequence);
            }
        }
    }
}

/// Visits a version unless it is none.
fn visit_known(version: &mut u64, visit: &mut dyn FnMut(&mut u64)) {
    if *version > 0 {
        visit(version);
    }
}

fn print(replica: &Replica) -> u64 {
    let mut hasher = DefaultHasher::new();
    replica.hash(&mut hasher);
    hasher.finish()
}
