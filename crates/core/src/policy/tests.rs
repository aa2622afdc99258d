//! The policy as a whole. Tests of one part alone stand beside that part.

mod broken;
mod defaults;
mod docs;
mod meaning;
mod properties;
mod rules;

use super::{Policy, Rule};
use crate::kept::Pairs;

fn policy(yaml: &str) -> Policy {
    Policy::parse(yaml).unwrap_or_else(|error| panic!("{yaml}\n{error}"))
}

/// The rule that a policy with one rule has for any node.
fn rule(yaml: &str) -> Rule {
    policy(yaml).rule_for(&Pairs::new(), None).expect("a rule without selector").clone()
}

fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> Pairs {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}
