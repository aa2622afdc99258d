//! Anything at all in a policy file: it is refused with its problems, or it is a policy that can judge any node.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perennial_core::kept::{Content, Pairs};
use perennial_core::policy::Policy;

fuzz_target!(|text: &str| {
    let policy = match Policy::parse(text) {
        Ok(policy) => policy,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert_eq!(Policy::parse(text).map(|again| again.digest()).ok(), Some(policy.digest()));
    let keys = [
        "team",
        "example.com/team",
        "kubernetes.io/hostname",
        "node-role.kubernetes.io/db",
        "perennial.dev/state",
    ];
    let labels: Pairs = keys.iter().map(|key| ((*key).to_owned(), "x".to_owned())).collect();
    let content = Content { annotations: labels.clone(), labels, ..Content::default() };
    if let Some(rule) = policy.rule_for(&content.labels, None) {
        let kept = rule.keep(&content);
        // Whatever a policy says, these are never kept.
        for never in ["kubernetes.io/hostname", "perennial.dev/state"] {
            assert!(!kept.labels.contains_key(never), "{never}");
        }
    }
});
