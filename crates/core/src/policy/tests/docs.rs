//! docs/policy.md says what the code does.

use super::policy;
use crate::policy::{Policy, defaults};

const PAGE: &str = include_str!("../../../../../docs/policy.md");

fn blocks() -> Vec<&'static str> {
    let after_fence = PAGE.split("```yaml\n").skip(1);
    after_fence.filter_map(|rest| rest.split_once("```").map(|(block, _)| block)).collect()
}

#[test]
fn every_example_is_a_policy() {
    let blocks = blocks();
    assert!(blocks.len() >= 5, "{}", blocks.len());
    for block in blocks {
        policy(block);
    }
}

#[test]
fn the_first_example_shows_the_defaults() {
    assert_eq!(policy(blocks()[0]), Policy::default());
}

#[test]
fn every_entry_of_the_tables_is_told() {
    for (glob, reason) in [
        defaults::NEVER_LABELS,
        defaults::USUAL_LABELS,
        defaults::NEVER_ANNOTATIONS,
        defaults::USUAL_ANNOTATIONS,
        defaults::NEVER_TAINTS,
    ]
    .concat()
    {
        let line = format!("| `{glob}` | {reason} |");
        assert!(PAGE.contains(&line), "docs/policy.md lacks the line\n{line}");
    }
}
