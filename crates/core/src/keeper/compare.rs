//! What a node bears against what its record holds, key by key, for whoever looks at it.

use std::collections::BTreeSet;

use crate::kept::{Content, Kept, Pairs, Taint};
use crate::policy::{Policy, Rule};
use crate::record::Record;

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A label.
    Label,
    /// An annotation.
    Annotation,
    /// A taint, whose key is `KEY:EFFECT`.
    Taint,
    /// Whether the node is cordoned.
    Cordon,
}

impl Kind {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Label => "label",
            Self::Annotation => "annotation",
            Self::Taint => "taint",
            Self::Cordon => "cordon",
        }
    }
}

/// How node and record compare in one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Both say the same.
    Same,
    /// Each says something else.
    Differs,
    /// It is recorded, and the node lacks it.
    Missing,
    /// The node bears it, and the record does not hold it yet.
    Unrecorded,
    /// It is recorded, and the node is away.
    Remembered,
    /// A privileged label waits in the record until its machine is known.
    Waits,
    /// It is recorded, and the policy does not keep it any more.
    NoLongerKept,
    /// The node bears it, and the policy does not keep it.
    NotKept,
}

impl How {
    /// The words for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Differs => "differs",
            Self::Missing => "missing on the node",
            Self::Unrecorded => "not recorded yet",
            Self::Remembered => "remembered",
            Self::Waits => "waits for the machine's identity",
            Self::NoLongerKept => "not kept any more",
            Self::NotKept => "not kept",
        }
    }
}

/// One thing that the node bears or its record holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it is.
    pub kind: Kind,
    /// What it is called.
    pub key: String,
    /// What is recorded of it.
    pub recorded: Option<String>,
    /// What the node bears.
    pub live: Option<String>,
    /// How the two compare.
    pub how: How,
}

/// Compares a node with its record, either of which may not be there: labels, then annotations, taints and cordon, each by
/// key. What the node bears and nobody keeps is in it as well.
#[must_use]
pub fn compare(live: Option<&Content>, record: Option<&Record>, policy: &Policy) -> Vec<Row> {
    let nothing = Content::default();
    let content = live.unwrap_or(&nothing);
    let labels = record.map(Record::labels);
    let nothing = Kept::default();
    let kept = record.map_or(&nothing, |record| &record.kept);
    let empty = Pairs::new();
    let compared = Compared {
        away: live.is_none(),
        record,
        rule: match live {
            Some(content) => policy.rule_for(&content.labels, labels.as_deref()),
            None => labels.as_deref().and_then(|labels| policy.rule_for(labels, None)),
        },
    };
    let mut rows = compared.pairs(Kind::Label, labels.as_deref().unwrap_or(&empty), &content.labels);
    rows.extend(compared.pairs(Kind::Annotation, &kept.annotations, &content.annotations));
    rows.extend(compared.pairs(Kind::Taint, &slots(&kept.taints), &slots(&content.taints)));
    rows.extend(compared.pairs(Kind::Cordon, &cordon(kept.unschedulable), &cordon(content.unschedulable)));
    rows
}

/// Taints by key and effect, which together name one.
fn slots(taints: &[Taint]) -> Pairs {
    taints.iter().map(|taint| (format!("{}:{}", taint.key, taint.effect), taint.value.clone())).collect()
}

fn cordon(set: bool) -> Pairs {
    set.then(|| ("unschedulable".to_owned(), "cordoned".to_owned())).into_iter().collect()
}

struct Compared<'a> {
    away: bool,
    record: Option<&'a Record>,
    /// The rule that speaks for the node, if any does.
    rule: Option<&'a Rule>,
}

impl Compared<'_> {
    fn pairs(&self, kind: Kind, recorded: &Pairs, live: &Pairs) -> Vec<Row> {
        let keys: BTreeSet<&String> = recorded.keys().chain(live.keys()).collect();
        let row = |key: &String| {
            let (recorded, live) = (recorded.get(key).cloned(), live.get(key).cloned());
            let how = self.how(kind, key, recorded.as_deref(), live.as_deref());
            Row { kind, key: key.clone(), recorded, live, how }
        };
        keys.into_iter().map(row).collect()
    }

    fn how(&self, kind: Kind, key: &str, recorded: Option<&str>, live: Option<&str>) -> How {
        let waits = || self.record.is_some_and(|record| record.waiting.contains_key(key));
        match (recorded, live) {
            (Some(_), _) if kind == Kind::Label && waits() => How::Waits,
            (Some(_), _) if !self.keeps(kind, key) => How::NoLongerKept,
            (Some(recorded), Some(live)) if recorded == live => How::Same,
            (Some(_), Some(_)) => How::Differs,
            (Some(_), None) if self.away => How::Remembered,
            (Some(_), None) => How::Missing,
            (None, _) if self.keeps(kind, key) => How::Unrecorded,
            (None, _) => How::NotKept,
        }
    }

    fn keeps(&self, kind: Kind, key: &str) -> bool {
        self.rule.is_some_and(|rule| match kind {
            Kind::Label => rule.keeps_label(key),
            Kind::Annotation => rule.keeps_annotation(key),
            Kind::Taint => rule.keeps_taint(key.rsplit_once(':').map_or(key, |(key, _)| key)),
            Kind::Cordon => rule.keeps_cordon(),
        })
    }
}

#[cfg(test)]
mod tests;
