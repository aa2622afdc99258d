//! What is kept of which node, and how it is given back.
//!
//! ```text
//! YAML ──read──> raw (as typed) ──check──> Policy: rules, retention, cap, brake
//!                                              │
//! a node's labels, live and recorded ──rule_for┴─> Rule ──keep──> Kept
//! ```
//! A policy is read whole and checked whole: what comes out of [`Policy::parse`] cannot fail later, and what
//! does not come out is told with every problem in it. The first rule whose selector matches a node speaks for
//! it; a node that no rule matches is not touched. The defaults, each with its reason, are in `defaults.rs`;
//! docs/policy.md explains the file to the people who write it.

mod check;
mod defaults;
mod error;
mod patterns;
mod raw;
mod rule;
mod selector;
pub mod syntax;
#[cfg(test)]
mod tests;
mod verdicts;

use jiff::SignedDuration;
use serde::Serialize;

pub use error::{PolicyError, Problem};
pub use rule::{Identity, Rule, is_privileged};
pub use selector::Selector;

use crate::kept::{Digest, Pairs};
use raw::{RawFilter, RawPolicy, RawRule};

/// A policy beyond this size is a mistake, and reading it would cost more than it is worth.
const MAX_BYTES: usize = 256 * 1024;

/// The rules of the keeper, checked and ready.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    rules: Vec<Rule>,
    retention: SignedDuration,
    empty_retention: SignedDuration,
    max_absent: usize,
    brake: Brake,
    narrow: Narrow,
    digest: Digest,
}

/// How much may shrink or vanish in a day without a person's hand on it: the greater of both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Brake {
    /// So many records in any case.
    pub at_least: u32,
    /// This share of all records, from 0 to 1.
    pub share: f64,
}

impl Brake {
    /// How many of so many records may shrink or vanish in a day.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "records number in the thousands and the share is checked to lie in 0..=1"
    )]
    pub fn limit(&self, records: usize) -> usize {
        let share = (records as f64 * self.share) as usize;
        share.max(usize::try_from(self.at_least).unwrap_or(usize::MAX))
    }
}

/// What becomes of records that hold more than a narrowed policy keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Narrow {
    /// A record shrinks when its node next changes.
    #[default]
    AtNextChange,
    /// All records shrink at once, under the brake.
    Now,
}

impl Policy {
    /// Reads and checks a policy. An empty document is the default policy.
    pub fn parse(yaml: &str) -> Result<Self, PolicyError> {
        if yaml.len() > MAX_BYTES {
            return Err(PolicyError::TooLarge { bytes: yaml.len(), limit: MAX_BYTES });
        }
        // Strict booleans: a label `n` or `yes` is text, as in YAML 1.2, not the truth value of YAML 1.1.
        let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
        let tree: serde_json::Value =
            serde_saphyr::from_str_with_options(yaml, options).map_err(|error| {
                let message = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
                PolicyError::Yaml { line: error.location().map(|at| at.line()), message }
            })?;
        let mut problems = Vec::new();
        let raw = raw::read(&tree, &mut problems);
        check::check(raw, problems)
    }

    /// The policy of an older operator's `PERSIST_LABEL_PREFIX`: all labels that start with one of these
    /// comma-separated prefixes, taken literally, and nothing else.
    pub fn for_label_prefix(prefixes: &str) -> Result<Self, PolicyError> {
        const VARIABLE: &str = "PERSIST_LABEL_PREFIX";
        let refuse = |value: &str, allowed: &str| {
            Err(PolicyError::Values(vec![Problem {
                path: VARIABLE.to_owned(),
                value: value.to_owned(),
                allowed: allowed.to_owned(),
            }]))
        };
        let prefixes: Vec<&str> =
            prefixes.split(',').map(str::trim).filter(|prefix| !prefix.is_empty()).collect();
        if prefixes.is_empty() {
            return refuse(
                "",
                "one or more prefixes of label keys, separated by commas, such as `example.com/`",
            );
        }
        let include = prefixes.iter().map(|prefix| format!("{}*", globset::escape(prefix))).collect();
        let labels = RawFilter { include: Some(include), ..RawFilter::default() };
        let rule = RawRule { name: Some("label-prefix".to_owned()), labels, ..RawRule::default() };
        check::check(RawPolicy { rules: Some(vec![rule]), ..RawPolicy::default() }, Vec::new()).map_err(
            |error| match error {
                PolicyError::Values(problems) => PolicyError::Values(
                    problems
                        .into_iter()
                        .map(|problem| Problem { path: VARIABLE.to_owned(), ..problem })
                        .collect(),
                ),
                other => other,
            },
        )
    }

    fn new(
        rules: Vec<Rule>,
        retention: SignedDuration,
        empty_retention: SignedDuration,
        max_absent: usize,
        brake: Brake,
        narrow: Narrow,
    ) -> Self {
        let digest = digest(&rules);
        Self { rules, retention, empty_retention, max_absent, brake, narrow, digest }
    }

    /// A digest of what the rules mean: who is matched, what is kept, how it is given back. Formatting, comments,
    /// names, the order of patterns, retention, cap and brake do not change it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The first rule that matches a node's live and recorded labels together, where the live value wins.
    /// Without one nothing of this node is managed.
    #[must_use]
    pub fn rule_for(&self, live: &Pairs, recorded: Option<&Pairs>) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.selector.matches(live, recorded))
    }

    /// The rules, in the order in which they are asked.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether some rule keeps taints or cordon, so that the watch must carry whole Nodes.
    #[must_use]
    pub fn needs_spec(&self) -> bool {
        self.rules.iter().any(|rule| rule.keeps_cordon() || rule.keeps_taints())
    }

    /// Whether some rule finds a machine's record under another name.
    #[must_use]
    pub fn finds_by_machine(&self) -> bool {
        self.rules.iter().any(|rule| rule.identity() == Identity::Machine)
    }

    /// Whether some rule keeps annotations.
    #[must_use]
    pub fn keeps_annotations(&self) -> bool {
        self.rules.iter().any(Rule::keeps_annotations)
    }

    /// How long the record of an absent node stays.
    #[must_use]
    pub fn retention(&self) -> SignedDuration {
        self.retention
    }

    /// How long a record with nothing in it stays.
    #[must_use]
    pub fn empty_retention(&self) -> SignedDuration {
        self.empty_retention
    }

    /// How many records of absent nodes may stay; the oldest beyond it are erased.
    #[must_use]
    pub fn max_absent(&self) -> usize {
        self.max_absent
    }

    /// How much may shrink or vanish in a day by itself.
    #[must_use]
    pub fn brake(&self) -> Brake {
        self.brake
    }

    /// What becomes of records that hold more than is kept now.
    #[must_use]
    pub fn narrow(&self) -> Narrow {
        self.narrow
    }
}

impl Default for Policy {
    /// One rule for all nodes: all labels but those that others assert again, no annotations, taints or cordon.
    fn default() -> Self {
        check::check(RawPolicy::default(), Vec::new()).expect("the defaults are allowed, as every test shows")
    }
}

/// Globs that hold whatever a policy says.
#[derive(Clone, Debug, Serialize)]
pub struct BuiltinGlobs {
    /// Of keys that no policy keeps.
    pub never: Vec<&'static str>,
    /// Of keys that `*` leaves out.
    pub usual: Vec<&'static str>,
}

/// These, of labels, annotations and taints: for a fence that judges keys without this code.
#[must_use]
pub fn builtin_globs() -> [(&'static str, BuiltinGlobs); 3] {
    let globs = |table: defaults::Table| table.iter().map(|(glob, _)| *glob).collect();
    let both = |never, usual| BuiltinGlobs { never: globs(never), usual: globs(usual) };
    [
        ("labels", both(defaults::NEVER_LABELS, defaults::USUAL_LABELS)),
        ("annotations", both(defaults::NEVER_ANNOTATIONS, defaults::USUAL_ANNOTATIONS)),
        ("taints", both(defaults::NEVER_TAINTS, &[])),
    ]
}

/// The meaning of rules, in a form in which equal meanings are equal bytes.
fn digest(rules: &[Rule]) -> Digest {
    #[derive(Serialize)]
    struct Keys<'a>(bool, &'a [String], &'a [String], &'a [String], &'a [String]);
    #[derive(Serialize)]
    struct Meaning<'a> {
        selector: String,
        keys: [Keys<'a>; 3],
        cordon: bool,
        overwrite: &'a [String],
        identity: &'static str,
        privileged_without_provider: bool,
    }
    fn keys<'a>(filter: &'a rule::Filter, builtin: &'a defaults::Builtin) -> Keys<'a> {
        let rule::Filter { everything, named, exclude, exclude_usual, verdicts: _ } = filter;
        // A release that changes the tables changes the meaning of a policy that leans on them.
        let usual: &[String] = if *everything && *exclude_usual { builtin.usual.globs() } else { &[] };
        Keys(*everything, named.globs(), exclude.globs(), usual, builtin.never.globs())
    }
    let meanings: Vec<Meaning<'_>> = rules
        .iter()
        .map(|rule| {
            let Rule {
                name: _,
                selector,
                labels,
                annotations,
                taints,
                cordon,
                overwrite,
                identity,
                privileged_without_provider,
            } = rule;
            Meaning {
                selector: selector.to_string(),
                keys: [
                    keys(labels, &defaults::LABELS),
                    keys(annotations, &defaults::ANNOTATIONS),
                    keys(taints, &defaults::TAINTS),
                ],
                cordon: *cordon,
                overwrite: overwrite.globs(),
                identity: identity.as_str(),
                privileged_without_provider: *privileged_without_provider,
            }
        })
        .collect();
    // Plain data: it cannot fail to serialize.
    Digest::of(&serde_json::to_vec(&meanings).unwrap_or_default())
}
