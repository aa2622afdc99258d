//! What a node bears against what its record holds, key by key.

use perennial_core::keeper::compare::{self, How};
use perennial_core::kept::{Kept, Taint};
use perennial_core::policy::Policy;
use serde::Serialize;

use super::error::Error;
use super::fleet::Entry;
use super::screen::{Screen, Style};

/// One kept thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    pub(crate) kind: &'static str,
    pub(crate) key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) recorded: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) live: Option<String>,
    /// What else there is to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<&'static str>,
}

impl From<compare::Row> for Row {
    fn from(row: compare::Row) -> Self {
        let compare::Row { kind, key, recorded, live, how } = row;
        let note = matches!(how, How::Waits | How::NoLongerKept).then_some(how.as_str());
        Self { kind: kind.as_str(), key, recorded, live, note }
    }
}

impl Row {
    /// As `diff` says it.
    pub(crate) fn sign(&self) -> char {
        match (&self.recorded, &self.live) {
            (Some(recorded), Some(live)) if recorded != live => '~',
            (Some(_), None) => '-',
            (None, Some(_)) => '+',
            _ => ' ',
        }
    }

    pub(crate) fn differs(&self) -> bool {
        self.sign() != ' ' && self.note.is_none()
    }

    pub(crate) fn show(&self, screen: &mut Screen, gone: bool) -> Result<(), Error> {
        let sign = if gone { ' ' } else { self.sign() };
        let kind = if self.kind == "label" { String::new() } else { format!("{} ", self.kind) };
        let equals = |value: &str| if self.kind == "cordon" { String::new() } else { format!("={value}") };
        let value = match (&self.recorded, &self.live) {
            (Some(recorded), Some(live)) if recorded != live => format!(": {recorded} -> {live}"),
            (Some(value), _) | (None, Some(value)) => equals(value),
            (None, None) => String::new(),
        };
        let note = self.note.map_or_else(String::new, |note| format!("   ({note})"));
        let line = screen.paint(&format!("{sign} {kind}{}{value}", self.key), style(sign));
        let note = screen.paint(&note, Style::Faint);
        screen.say(format_args!("  {line}{note}"))
    }
}

/// Compares what a name bears with what is recorded of it. What nobody keeps is nobody's business here.
pub(crate) fn compare(entry: &Entry, policy: &Policy) -> Vec<Row> {
    let content = entry.live().and_then(|live| live.content.as_ref());
    let rows = compare::compare(content, entry.record(), policy).into_iter();
    rows.filter(|row| row.how != How::NotKept).map(Row::from).collect()
}

/// What became of one state in the next: `-` went, `+` came, `~` changed.
pub(crate) fn changes(before: &Kept, after: &Kept) -> Vec<(char, String)> {
    let mut changes = Vec::new();
    for (kind, before, after) in
        [("", &before.labels, &after.labels), ("annotation ", &before.annotations, &after.annotations)]
    {
        changes.extend(before.iter().filter_map(|(key, value)| match after.get(key) {
            None => Some(('-', format!("{kind}{key}={value}"))),
            Some(now) if now != value => Some(('~', format!("{kind}{key}:{value}->{now}"))),
            Some(_) => None,
        }));
        let came = after.iter().filter(|(key, _)| !before.contains_key(*key));
        changes.extend(came.map(|(key, value)| ('+', format!("{kind}{key}={value}"))));
    }
    let only = |these: &[Taint], those: &[Taint], sign| {
        let gone = these.iter().filter(|taint| !those.contains(taint));
        gone.map(|taint| (sign, format!("taint {}={}:{}", taint.key, taint.value, taint.effect)))
            .collect::<Vec<_>>()
    };
    changes.extend(only(&before.taints, &after.taints, '-'));
    changes.extend(only(&after.taints, &before.taints, '+'));
    if before.unschedulable != after.unschedulable {
        changes.push((if after.unschedulable { '+' } else { '-' }, "cordon".to_owned()));
    }
    changes
}

/// How a sign is shown.
pub(crate) fn style(sign: char) -> Style {
    match sign {
        '+' => Style::Good,
        '-' => Style::Bad,
        '~' => Style::Notice,
        _ => Style::Plain,
    }
}
