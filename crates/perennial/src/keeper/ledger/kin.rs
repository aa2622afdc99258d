//! Finds a machine's record under another name.

use std::collections::BTreeMap;

use perennial_core::keeper::{Body, Kin, Seen};
use perennial_core::kept::Digest;
use perennial_core::record::State;

use super::{Ledger, Name};

impl Ledger {
    /// Builds the index of machines, where the policy finds records by them.
    pub(crate) fn index_machines(&mut self, wanted: bool) {
        self.machines = wanted.then(BTreeMap::new);
        for name in self.names() {
            self.index_machine(&name);
        }
    }

    /// Enters a record into the index. It is never taken out: whoever looks compares again.
    pub(super) fn index_machine(&mut self, name: &Name) {
        let Some(machines) = &mut self.machines else { return };
        let record = self.lines.get(name).and_then(|entry| entry.seen().and_then(Seen::summary));
        if let Some(provider) = record.and_then(|record| record.provider) {
            machines.entry(provider).or_default().insert(name.clone());
        }
    }

    /// Finds the newest record of the same machine under another name.
    pub(super) fn meet_kin(&mut self, name: &Name) {
        let Some(machines) = &self.machines else { return };
        let Some(entry) = self.lines.get(name) else { return };
        let id = entry.line.live().and_then(|live| live.provider.id());
        let Some(machine) = id.map(|id| Digest::of(id.as_bytes())) else { return };
        let Some(names) = machines.get(&machine) else { return };
        let mut kin: Option<Kin> = None;
        let mut awaited = Vec::new();
        for other in names.iter().filter(|other| *other != name) {
            let Some(entry) = self.lines.get(other) else { continue };
            let line = &entry.line;
            let summary = line.seen().and_then(Seen::summary);
            let Some(summary) = summary.filter(|record| record.provider == Some(machine)) else { continue };
            let found = match line.seen().map(|seen| &seen.body) {
                Some(Body::Whole(record)) if record.state == State::Closed => Kin::Closed(record.clone()),
                _ if line.live().is_some() => continue,
                _ => {
                    awaited.push(other.clone());
                    Kin::Open(summary.version)
                }
            };
            if kin.as_ref().is_none_or(|kin| kin.version() < found.version()) {
                kin = Some(found);
            }
        }
        if let Some(entry) = self.lines.wake(name) {
            entry.line.kin = kin.map(Box::new);
        }
        for other in awaited {
            if let Some(entry) = self.lines.wake(&other) {
                entry.line.awaited = true;
            }
        }
    }
}
