//! From a policy as typed to one that is ready. All problems are collected, so that one round of edits will do.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Span, SpanRelativeTo};

use super::defaults::{self, Builtin};
use super::error::{PolicyError, Problem};
use super::patterns::{self, Patterns};
use super::raw::{RawBrake, RawFilter, RawMerge, RawPolicy, RawRule};
use super::rule::{Filter, Identity, Rule};
use super::selector::{self, Selector};
use super::syntax::is_name;
use super::verdicts::Verdicts;
use super::{Brake, Narrow, Policy};

const MAX_RULES: usize = 256;
const MAX_PATTERNS: usize = 1000;

/// Longer is no retention but a slip, and far more would leave the range of timestamps.
const MAX_DURATION: SignedDuration = SignedDuration::from_hours(100 * 365 * 24);

/// Checks all values. The error holds every problem found, after those that reading has noted already.
pub(super) fn check(raw: RawPolicy, noted: Vec<Problem>) -> Result<Policy, PolicyError> {
    let RawPolicy { rules, retention, empty_retention, max_absent, brake, narrow } = raw;
    let mut check = Check { problems: noted, patterns: 0 };
    let rules = check.rules(rules);
    let retention = check.duration("retention", retention, defaults::RETENTION);
    let empty_retention = check.duration("emptyRetention", empty_retention, defaults::EMPTY_RETENTION);
    let max_absent = check.whole("maxAbsent", max_absent, 1, defaults::MAX_ABSENT);
    let brake = check.brake(brake);
    let narrow = check.word(
        "narrow",
        narrow.as_deref(),
        &[("atNextChange", Narrow::AtNextChange), ("now", Narrow::Now)],
    );
    if check.problems.is_empty() {
        Ok(Policy::new(rules, retention, empty_retention, max_absent, brake, narrow))
    } else {
        Err(PolicyError::Values(check.problems))
    }
}

/// Where a problem is found, the value goes on as its default, and the problem decides in the end.
struct Check {
    problems: Vec<Problem>,
    patterns: usize,
}

impl Check {
    fn refuse(&mut self, path: impl Into<String>, value: impl Into<String>, allowed: impl Into<String>) {
        self.problems.push(Problem { path: path.into(), value: value.into(), allowed: allowed.into() });
    }

    fn rules(&mut self, raw: Option<Vec<RawRule>>) -> Vec<Rule> {
        let raw = raw.unwrap_or_else(|| vec![RawRule { name: Some("default".into()), ..RawRule::default() }]);
        if raw.is_empty() {
            self.refuse(
                "rules",
                "[]",
                "must not be empty, for nothing would be kept; leave `rules` out for the defaults",
            );
        }
        if raw.len() > MAX_RULES {
            self.refuse(
                "rules",
                format!("{} rules", raw.len()),
                format!("must be at most {MAX_RULES} rules"),
            );
            return Vec::new();
        }
        let rules: Vec<Rule> =
            raw.into_iter().enumerate().map(|(index, rule)| self.rule(index, rule)).collect();
        self.unique_names(&rules);
        self.reachable(&rules);
        if self.patterns > MAX_PATTERNS {
            let found = format!("{} patterns", self.patterns);
            self.refuse(
                "rules",
                found,
                format!("must be at most {MAX_PATTERNS} patterns in all rules together"),
            );
        }
        rules
    }

    fn rule(&mut self, index: usize, raw: RawRule) -> Rule {
        let RawRule {
            name,
            selector,
            labels,
            annotations,
            taints,
            cordon,
            merge,
            identity,
            privileged_without_provider,
        } = raw;
        let path = format!("rules[{index}]");
        Rule {
            name: self.name(index, name),
            selector: self.selector(&path, selector),
            labels: self.filter(&format!("{path}.labels"), labels, &["*"], &defaults::LABELS),
            annotations: self.filter(
                &format!("{path}.annotations"),
                annotations,
                &[],
                &defaults::ANNOTATIONS,
            ),
            taints: self.filter(&format!("{path}.taints"), taints, &[], &defaults::TAINTS),
            cordon: cordon.unwrap_or(false),
            overwrite: self.merge(&path, merge),
            identity: self.word(
                &format!("{path}.identity"),
                identity.as_deref(),
                &[Identity::Name, Identity::Provider, Identity::Machine].map(|word| (word.as_str(), word)),
            ),
            privileged_without_provider: privileged_without_provider.unwrap_or(false),
        }
    }

    fn name(&mut self, index: usize, name: Option<String>) -> String {
        let name = name.unwrap_or_else(|| format!("rule-{}", index + 1));
        if !is_name(&name) {
            let allowed =
                "must be 1 to 63 letters, digits, `-`, `_`, `.`, with a letter or digit at both ends";
            self.refuse(format!("rules[{index}].name"), &name, allowed);
        }
        name
    }

    fn selector(&mut self, path: &str, text: Option<String>) -> Selector {
        let text = text.unwrap_or_default();
        Selector::parse(&text).unwrap_or_else(|wrong| {
            self.refuse(
                format!("{path}.selector"),
                text,
                format!("{wrong}; allowed is {}", selector::ALLOWED),
            );
            Selector::default()
        })
    }

    fn filter(&mut self, path: &str, raw: RawFilter, default: &[&str], builtin: &Builtin) -> Filter {
        let RawFilter { include, exclude, exclude_defaults } = raw;
        let include = include.unwrap_or_else(|| default.iter().map(|&glob| glob.to_owned()).collect());
        for (index, glob) in include.iter().enumerate() {
            if patterns::is_plain(glob) && builtin.never.matches(glob) {
                self.refuse(format!("{path}.include[{index}]"), glob, "is never kept, see docs/policy.md");
            }
        }
        let everything = include.iter().any(|glob| patterns::is_everything(glob));
        Filter {
            everything,
            named: self.patterns(&format!("{path}.include"), &include, |glob| !patterns::is_everything(glob)),
            exclude: self.patterns(&format!("{path}.exclude"), &exclude.unwrap_or_default(), |_| true),
            exclude_usual: exclude_defaults.unwrap_or(true),
            verdicts: Verdicts::default(),
        }
    }

    fn merge(&mut self, path: &str, raw: Option<RawMerge>) -> Patterns {
        match raw {
            None => Patterns::default(),
            Some(RawMerge::Overwrite(globs)) => {
                self.patterns(&format!("{path}.merge.overwrite"), &globs, |_| true)
            }
            Some(RawMerge::Word(word)) => {
                let words = [("missing", false), ("overwrite", true)];
                let overwrite = self.word(&format!("{path}.merge"), Some(&word), &words);
                let globs = if overwrite { vec!["*".to_owned()] } else { Vec::new() };
                self.patterns(path, &globs, |_| true)
            }
        }
    }

    /// Checks all globs and compiles the chosen ones.
    fn patterns(&mut self, path: &str, globs: &[String], chosen: fn(&str) -> bool) -> Patterns {
        self.patterns += globs.len();
        let before = self.problems.len();
        for (index, glob) in globs.iter().enumerate() {
            if let Err(wrong) = patterns::check(glob) {
                self.refuse(
                    format!("{path}[{index}]"),
                    glob,
                    format!("{wrong}; allowed is {}", patterns::ALLOWED),
                );
            }
        }
        // Compiling is the dear part: not for more than may be, nor for what is refused anyway.
        if self.patterns > MAX_PATTERNS || self.problems.len() > before {
            return Patterns::default();
        }
        Patterns::compile(globs.iter().map(String::as_str).filter(|glob| chosen(glob))).unwrap_or_else(
            |error| {
                let size = format!("{} patterns", globs.len());
                self.refuse(
                    path,
                    size,
                    format!("are too large together ({error}); use fewer or simpler patterns"),
                );
                Patterns::default()
            },
        )
    }

    fn unique_names(&mut self, rules: &[Rule]) {
        let mut first = BTreeMap::new();
        for (index, rule) in rules.iter().enumerate() {
            let before = *first.entry(rule.name.as_str()).or_insert(index);
            if before != index {
                let allowed = format!("must be a name of its own; rules[{before}] has this one");
                self.refuse(format!("rules[{index}].name"), &rule.name, allowed);
            }
        }
    }

    /// A rule that no node can reach is a mistake in the order of rules, and its author believes it holds.
    fn reachable(&mut self, rules: &[Rule]) {
        for (index, rule) in rules.iter().enumerate() {
            let earlier = &rules[..index];
            let shadow = earlier
                .iter()
                .position(|other| other.selector.is_everything() || other.selector == rule.selector);
            // A selector that could not be read stands here as "everything"; one problem of it is enough.
            let broken = |index: usize| {
                let path = format!("rules[{index}].selector");
                self.problems.iter().any(|problem| problem.path == path)
            };
            if let Some(shadow) = shadow
                && !broken(shadow)
                && !broken(index)
            {
                let allowed = format!(
                    "is never reached: rules[{shadow}] ({:?}) already matches all its nodes and the first match wins; \
                     put it before that rule, or remove it",
                    rules[shadow].name
                );
                self.refuse(format!("rules[{index}].selector"), rule.selector.to_string(), allowed);
            }
        }
    }

    fn brake(&mut self, raw: RawBrake) -> Brake {
        let RawBrake { at_least, share } = raw;
        let at_least = self.whole("brake.atLeast", at_least, 0, defaults::BRAKE_AT_LEAST);
        let share = share.map_or(defaults::BRAKE_SHARE, |text| self.share(text));
        Brake { at_least, share }
    }

    fn share(&mut self, text: String) -> f64 {
        let number = match text.trim().strip_suffix('%') {
            Some(percent) => percent.trim().parse().map(|percent: f64| percent / 100.0),
            None => text.trim().parse(),
        };
        match number {
            Ok(number) if (0.0..=1.0).contains(&number) => number,
            _ => {
                self.refuse(
                    "brake.share",
                    text,
                    "must be a number from 0 to 1, or a percentage from 0% to 100%",
                );
                defaults::BRAKE_SHARE
            }
        }
    }

    fn duration(&mut self, path: &str, text: Option<String>, default: SignedDuration) -> SignedDuration {
        let Some(text) = text else { return default };
        let parsed = text.trim().parse::<Span>().ok();
        let duration = parsed.and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()).ok());
        match duration {
            Some(duration) if duration.is_positive() && duration <= MAX_DURATION => duration,
            _ => {
                let allowed =
                    "must be a duration greater than zero, such as 30d, 12h, 90s or 1h30m, of at most 36500d";
                self.refuse(path, text, allowed);
                default
            }
        }
    }

    fn whole<T: TryFrom<i64>>(&mut self, path: &str, number: Option<i64>, least: i64, default: T) -> T {
        // 2^31 records are beyond any cluster; the bound keeps all sums far from overflow.
        const MOST: i64 = 1 << 31;
        let Some(number) = number else { return default };
        match T::try_from(number) {
            Ok(fitting) if (least..=MOST).contains(&number) => fitting,
            _ => {
                self.refuse(
                    path,
                    number.to_string(),
                    format!("must be a whole number from {least} to {MOST}"),
                );
                default
            }
        }
    }

    fn word<T: Copy>(&mut self, path: &str, word: Option<&str>, words: &[(&str, T)]) -> T {
        let (_, default) = words[0];
        let Some(word) = word else { return default };
        if let Some((_, value)) = words.iter().find(|(known, _)| *known == word) {
            return *value;
        }
        let known = words.iter().map(|(known, _)| format!("`{known}`")).collect::<Vec<_>>().join(", ");
        self.refuse(path, word, format!("must be one of {known}"));
        default
    }
}
