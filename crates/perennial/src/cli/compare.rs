//! What a node bears against what its record holds, key by key.

use std::collections::BTreeSet;

use perennial_core::kept::{Content, Kept, Pairs, Taint};
use perennial_core::policy::{Policy, Rule};
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

/// Compares what a name bears with what is recorded of it.
pub(crate) fn compare(entry: &Entry, policy: &Policy) -> Vec<Row> {
    let nothing = Kept::default();
    let recorded = entry.record().map_or(&nothing, |record| &record.kept);
    let all = entry.record().map(perennial_core::record::Record::labels);
    let content = entry.live().and_then(|live| live.content.as_ref());
    let rule = match content {
        Some(content) => policy.rule_for(&content.labels, all.as_deref()),
        None => all.as_deref().and_then(|labels| policy.rule_for(labels, None)),
    };
    let live = content.zip(rule).map(|(content, rule)| (content, rule.keep(content)));
    let mut rows = Vec::new();
    let pairs =
        |kind, recorded: &Pairs, live: Option<(&Pairs, &Pairs)>, keeps: &dyn Fn(&Rule, &str) -> bool| {
            let (bears, kept) = live.unzip();
            let keys: BTreeSet<&String> =
                recorded.keys().chain(kept.into_iter().flatten().map(|(key, _)| key)).collect();
            keys.into_iter()
                .map(|key| Row {
                    kind,
                    key: key.clone(),
                    recorded: recorded.get(key).cloned(),
                    live: bears.and_then(|bears| bears.get(key)).cloned(),
                    note: rule.is_some_and(|rule| !keeps(rule, key)).then_some("not kept any more"),
                })
                .collect::<Vec<Row>>()
        };
    let parts = live.as_ref().map(|(content, kept)| (&content.labels, &kept.labels));
    rows.extend(pairs("label", &recorded.labels, parts, &|rule, key| rule.keeps_label(key)));
    let parts = live.as_ref().map(|(content, kept)| (&content.annotations, &kept.annotations));
    rows.extend(pairs("annotation", &recorded.annotations, parts, &|rule, key| rule.keeps_annotation(key)));
    rows.extend(taints(recorded, live.as_ref().map(|(content, kept)| (*content, kept)), rule));
    if recorded.unschedulable || live.as_ref().is_some_and(|(_, kept)| kept.unschedulable) {
        let word = |set: bool| set.then(|| "cordoned".to_owned());
        rows.push(Row {
            kind: "cordon",
            key: "unschedulable".to_owned(),
            recorded: word(recorded.unschedulable),
            live: word(content.is_some_and(|content| content.unschedulable)),
            note: rule.is_some_and(|rule| !rule.keeps_cordon()).then_some("not kept any more"),
        });
    }
    for (key, waiting) in entry.record().into_iter().flat_map(|record| &record.waiting) {
        rows.push(Row {
            kind: "label",
            key: key.clone(),
            recorded: Some(waiting.value.clone()),
            live: content.and_then(|content| content.labels.get(key)).cloned(),
            note: Some("waits for the machine's identity"),
        });
    }
    rows
}

fn taints(recorded: &Kept, live: Option<(&Content, &Kept)>, rule: Option<&Rule>) -> Vec<Row> {
    let name = |taint: &Taint| format!("{}:{}", taint.key, taint.effect);
    let known = recorded.taints.iter().chain(live.into_iter().flat_map(|(_, kept)| &kept.taints));
    let keys: BTreeSet<(String, &str)> = known.map(|taint| (name(taint), taint.key.as_str())).collect();
    let find = |taints: &[Taint], wanted: &str| {
        taints.iter().find(|taint| name(taint) == wanted).map(|taint| taint.value.clone())
    };
    keys.into_iter()
        .map(|(slot, key)| Row {
            kind: "taint",
            recorded: find(&recorded.taints, &slot),
            live: live.and_then(|(content, _)| find(&content.taints, &slot)),
            note: rule.is_some_and(|rule| !rule.keeps_taint(key)).then_some("not kept any more"),
            key: slot,
        })
        .collect()
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
