//! Whether everything that was read may be written: what the API server would refuse later, it is told now.

use std::collections::BTreeMap;

use perennial_core::kept::{Kept, Pairs, Taint};
use perennial_core::policy::syntax::{is_key, is_subdomain, is_value};

use super::read::{Found, goes_to};

/// What the annotations of an object may take, keys and values together.
const ANNOTATIONS: usize = 256 * 1024;
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// All that is worth a record, in the order of their names; or every problem.
pub(super) fn check(found: Vec<Found>) -> Result<Vec<Found>, Vec<String>> {
    let mut problems = Vec::new();
    let mut by_name: BTreeMap<String, Found> = BTreeMap::new();
    for one in found {
        let node = &one.record.node;
        let wrong = |why: String| format!("{}: node {node:?}: {why}", one.place);
        if !is_subdomain(node) {
            problems.push(format!("{}: {node:?} cannot be the name of a node", one.place));
        }
        for past in one.record.states() {
            let labels = past.labels().into_owned();
            problems.extend(kept_problem(&Kept { labels, ..past.kept.clone() }).map(wrong));
        }
        if let Err(too_large) = one.record.clone().fit() {
            problems.push(wrong(too_large.to_string()));
        }
        if let Some(other) = by_name.get(&goes_to(&one.record)) {
            problems.push(wrong(format!("it is in {} as well", other.place)));
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
        .or_else(|| twice(taints))
        .or_else(|| too_much(annotations))
}

/// Key and effect together are a taint: the API server refuses a node with two of them.
fn twice(taints: &[Taint]) -> Option<String> {
    let again = taints
        .iter()
        .enumerate()
        .find(|(at, taint)| taints[..*at].iter().any(|other| other.same_slot(taint)));
    let (_, Taint { key, effect, .. }) = again?;
    Some(format!("the taint {key:?} stands twice with the effect {effect}"))
}

fn too_much(annotations: &Pairs) -> Option<String> {
    let takes = |(key, value): (&String, &String)| key.len() + value.len();
    let bytes: usize = annotations.iter().map(takes).sum();
    let (largest, _) = annotations.iter().max_by_key(|pair| takes(*pair)).filter(|_| bytes > ANNOTATIONS)?;
    Some(format!(
        "its annotations take {bytes} bytes, most of them {largest:?}, and a node may bear {ANNOTATIONS}"
    ))
}

fn label_problem(labels: &Pairs) -> Option<String> {
    let (key, value) = labels.iter().find(|(key, value)| !is_key(key) || !is_value(value))?;
    Some(format!("{key:?}: {value:?} cannot be a label"))
}
