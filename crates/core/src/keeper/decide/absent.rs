//! The node is away: its end is recorded, and its record is collected in time.

use jiff::Timestamp;

use super::{Case, whole};
use crate::keeper::fold::{Memory, fold};
use crate::keeper::line::Seen;
use crate::keeper::plan::{Plan, Why};
use crate::keeper::write::still;
use crate::record::{Summary, Version};

/// How recent a direct read must be for a record to be erased on its word.
const LOOKED: jiff::SignedDuration = jiff::SignedDuration::from_mins(1);

impl Case<'_> {
    /// Absent, and the record is open or giving.
    pub(super) fn absent_named(&self, seen: &Seen, summary: &Summary, at: Version, missing: bool) -> Plan {
        if summary.paused && self.on_hold(Some(summary)) {
            return Plan::Rest(Why::Paused);
        }
        if at <= summary.version {
            // The watch is going to tell of that life, unless a list took its place.
            return if missing { Plan::ReadNode } else { Plan::Rest(Why::Lagging) };
        }
        if !self.cx.capture {
            return Plan::Rest(Why::CaptureOff);
        }
        let end = self.line.ends.iter().find(|end| end.uid == summary.uid);
        if end.is_some_and(|end| self.line.is_forgotten(end.uid, end.version)) {
            // The replica that created the record late removes it again.
            return Plan::Rest(Why::Lagging);
        }
        if let Some(end) = end {
            let quick = still(end.seen_at, self.cx.close_after, self.cx.now);
            if let Some(until) = quick.filter(|_| !self.line.awaited) {
                return Plan::Wait { until };
            }
        } else if self.line.lost != Some(summary.uid) {
            return self.prove(summary, at);
        }
        let Some(record) = whole(seen) else { return Plan::ReadRecord };
        match self.ended(seen, record) {
            Some(memory) => self.doubt(record, Plan::Close(self.close(Some(record), memory))),
            None => Plan::Rest(Why::Unmanaged),
        }
    }

    /// Absent, and the record is closed.
    pub(super) fn absent_closed(&self, seen: &Seen, summary: &Summary, looked: Option<Timestamp>) -> Plan {
        let paused = summary.paused && self.on_hold(Some(summary));
        if !self.line.ends.is_empty() && self.cx.capture && !paused {
            let Some(record) = whole(seen) else { return Plan::ReadRecord };
            let before = Memory::of(record, summary.version);
            let memory = fold(Some((record, summary.version)), &self.line.ends, self.cx);
            if let Some(memory) = memory.filter(|memory| *memory != before) {
                return Plan::Close(self.close(Some(record), memory));
            }
        }
        let Some(why) = self.erasure(summary) else { return Plan::Rest(Why::Away) };
        match looked {
            Some(looked) if still(looked, LOOKED, self.cx.now).is_some() => self.capture(|| Plan::Erase(why)),
            _ => self.capture(|| Plan::ReadNode),
        }
    }
}
