//! Whether everything that was read may be written: what the API server would refuse later, it is told now.

use std::collections::BTreeMap;

use perennial_core::kept::{Kept, Pairs};
use perennial_core::policy::syntax::{is_key, is_subdomain, is_value};
use perennial_core::record::MAX_BYTES;

use super::read::{Found, goes_to};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// All that is worth a record, in the order of their names; or every problem.
pub(super) fn check(found: Vec<Found>) -> Result<Vec<Found>, Vec<String>> {
    let mut problems = Vec::new();
    let mut by_name: BTreeMap<String, Found> = BTreeMap::new();
    for one in found {
        let wrong = |why: String| format!("{}: {why}", one.place);
        let node = &one.record.node;
        if !is_subdomain(node) {
            problems.push(wrong(format!("{node:?} cannot be the name of a node")));
        }
        for past in one.record.states() {
            let labels = past.labels().into_owned();
            problems.extend(kept_problem(&Kept { labels, ..past.kept.clone() }).map(wrong));
        }
        let mut alone = one.record.clone();
        alone.previous.clear();
        let bytes = alone.to_json().len();
        if bytes > MAX_BYTES {
            problems.push(wrong(format!("it takes {bytes} bytes, which do not fit into a ConfigMap")));
        }
        if let Some(other) = by_name.get(&goes_to(&one.record)) {
            problems.push(wrong(format!("the node {node:?} is in {} as well", other.place)));
            continue;
        }
        by_name.insert(goes_to(&one.record), one);
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(by_name.into_values().filter(|found| !found.record.is_empty()).collect())
}

fn kept_problem(kept: &Kept) -> Option<String> {
    let Kept { labels, annotations, taints, unschedulable: _ } = kept;
    let annotation = annotations.keys().find(|key| !is_key(&key.to_ascii_lowercase()));
    let taint = taints.iter().find(|taint| {
        !is_key(&taint.key) || !is_value(&taint.value) || !EFFECTS.contains(&taint.effect.as_str())
    });
    label_problem(labels)
        .or_else(|| annotation.map(|key| format!("{key:?} cannot be the key of an annotation")))
        .or_else(|| taint.map(|taint| format!("{taint:?} cannot be a taint")))
}

fn label_problem(labels: &Pairs) -> Option<String> {
    let (key, value) = labels.iter().find(|(key, value)| !is_key(key) || !is_value(value))?;
    Some(format!("{key:?}: {value:?} cannot be a label"))
}
