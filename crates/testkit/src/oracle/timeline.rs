//! What happened to one node, as a person reads it.

use std::collections::VecDeque;

use perennial_core::{
    keeper::Hand,
    kept::Pairs,
    record::{Record, State},
};
use uuid::Uuid;

use super::history::{Sighting, flat};

/// So many lines of one node are remembered.
const MOST: usize = 60;

/// The last lines of one node.
#[derive(Clone, Debug, Default)]
pub(super) struct Timeline {
    lines: VecDeque<(u64, String)>,
}

impl Timeline {
    pub(super) fn add(&mut self, version: u64, line: String) {
        if self.lines.len() == MOST {
            self.lines.pop_front();
        }
        self.lines.push_back((version, line));
    }

    /// Its lines among those that are about everybody, by version.
    pub(super) fn with(&self, everybody: &Self) -> Vec<String> {
        let first = self.lines.front().map_or(0, |(version, _)| *version);
        let since = everybody.lines.iter().filter(|(version, _)| *version >= first);
        let mut all: Vec<&(u64, String)> = self.lines.iter().chain(since).collect();
        all.sort_by_key(|(version, _)| *version);
        all.iter().map(|(version, line)| format!("{version:>7}  {line}")).collect()
    }

    pub(super) fn clear(&mut self) {
        self.lines.clear();
    }
}

/// The last digits of a uid are enough to tell lives apart.
pub(super) fn short(uid: Uuid) -> String {
    uid.simple().to_string()[26..].to_owned()
}

/// `{a=1, b=2}`.
pub(super) fn pairs(pairs: &Pairs) -> String {
    let all: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("{{{}}}", all.join(", "))
}

/// What changed from one set of pairs to the next: `+a=1 b=2→3 -c`.
pub(super) fn changes(before: &Pairs, after: &Pairs) -> String {
    let mut all = Vec::new();
    for (key, value) in after {
        match before.get(key) {
            None => all.push(format!("+{key}={value}")),
            Some(was) if was != value => all.push(format!("{key}={was}→{value}")),
            Some(_) => {}
        }
    }
    all.extend(before.keys().filter(|key| !after.contains_key(*key)).map(|key| format!("-{key}")));
    all.join(" ")
}

/// A Node's change; nothing for a heartbeat.
pub(super) fn node(who: &str, before: Option<&Sighting>, after: &Sighting, kept: &Pairs) -> Option<String> {
    let Some(before) = before else {
        let asked = match after.asked() {
            Hand { forget: true, .. } => ", to be forgotten",
            Hand { pause: Some(true), .. } => ", paused",
            Hand { .. } => "",
        };
        return Some(format!("{who}: node {} is born, kept {}{asked}", short(after.uid), pairs(kept)));
    };
    let changed = changes(&before.pairs(), &after.pairs());
    let dying = if after.terminating && !before.terminating { "is being deleted" } else { "" };
    let rest = if who == "keeper" && before.rest != after.rest { "and more" } else { "" };
    let told: Vec<&str> = [&*changed, dying, rest].into_iter().filter(|t| !t.is_empty()).collect();
    (!told.is_empty() || who == "keeper")
        .then(|| format!("{who}: node {} {}", short(after.uid), told.join(" ")))
}

/// A record as it was written.
pub(super) fn record(record: &Record) -> String {
    let Record { state, incarnation, version, kept, sequence, unproved, given, paused, .. } = record;
    let mut text = format!(
        "keeper: record {}({})@{version} #{sequence} {}",
        state.as_str(),
        short(incarnation.uid),
        pairs(&flat(kept))
    );
    if let Some(doubt) = unproved {
        text.extend([" unproved(", &short(doubt.uid), " from ", doubt.from.as_str(), ")"]);
    }
    if *given && *state == State::Open {
        text.push_str(" given");
    }
    if *paused {
        text.push_str(" paused");
    }
    text
}
