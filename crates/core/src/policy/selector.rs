//! Node selectors, in the syntax of `kubectl -l`, matched here and never sent to the server.
//!
//! The text becomes a set of requirements that must all hold. A bare newborn has lost the very labels a pool
//! is selected by, so a selector looks at two maps: what the node bears now and, for keys it does not bear,
//! what its record remembers.

use std::collections::BTreeSet;
use std::fmt;

use super::syntax::{is_key, is_value};
use crate::kept::Pairs;

/// What is said of a selector that is refused.
pub(super) const ALLOWED: &str = "a label selector as for `kubectl -l`, its terms joined by commas and each one of `key=value`, \
     `key==value`, `key!=value`, `key in (a,b)`, `key notin (a,b)`, `key`, `!key`";

/// All requirements must hold; without any, every node matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// A set, so that equal selectors are equal however they were written.
    requirements: BTreeSet<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Requirement {
    In(String, BTreeSet<String>),
    /// Holds for a node without the key too, as in Kubernetes.
    NotIn(String, BTreeSet<String>),
    Exists(String),
    Absent(String),
}

impl Selector {
    /// Reads a selector; the error says which term is wrong and how.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let requirements = split_terms(text).map(parse_term).collect::<Result<_, _>>()?;
        Ok(Self { requirements })
    }

    /// Whether every node matches.
    pub(super) fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether a node matches by what it bears and, where it lacks a key, by what was recorded.
    #[must_use]
    pub fn matches(&self, live: &Pairs, recorded: Option<&Pairs>) -> bool {
        let value = |key: &str| live.get(key).or_else(|| recorded.and_then(|pairs| pairs.get(key)));
        self.requirements.iter().all(|requirement| match requirement {
            Requirement::In(key, values) => value(key).is_some_and(|value| values.contains(value)),
            Requirement::NotIn(key, values) => value(key).is_none_or(|value| !values.contains(value)),
            Requirement::Exists(key) => value(key).is_some(),
            Requirement::Absent(key) => value(key).is_none(),
        })
    }
}

/// The canonical text: the same for all ways to write the same selector, and read back by `parse`.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for requirement in &self.requirements {
            f.write_str(separator)?;
            separator = ",";
            match requirement {
                Requirement::In(key, values) => write_set(f, key, "=", "in", values)?,
                Requirement::NotIn(key, values) => write_set(f, key, "!=", "notin", values)?,
                Requirement::Exists(key) => f.write_str(key)?,
                Requirement::Absent(key) => write!(f, "!{key}")?,
            }
        }
        Ok(())
    }
}

fn write_set(
    f: &mut fmt::Formatter<'_>,
    key: &str,
    sign: &str,
    word: &str,
    values: &BTreeSet<String>,
) -> fmt::Result {
    if let (1, Some(value)) = (values.len(), values.first()) {
        return write!(f, "{key}{sign}{value}");
    }
    let values = values.iter().map(String::as_str).collect::<Vec<_>>().join(",");
    write!(f, "{key} {word} ({values})")
}

/// Splits at the commas that do not stand inside parentheses.
fn split_terms(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.split(move |c| {
        match c {
            '(' => inside = true,
            ')' => inside = false,
            _ => {}
        }
        c == ',' && !inside
    })
}

fn parse_term(term: &str) -> Result<Requirement, String> {
    let term = term.trim();
    if term.is_empty() {
        return Err("has an empty term: a comma too many".to_owned());
    }
    if term.contains(['<', '>']) {
        return Err(format!("term {term:?}: `<` and `>` are not supported"));
    }
    for sign in ["!=", "==", "="] {
        if let Some((key, value)) = term.split_once(sign) {
            let (key, values) = (checked_key(key, term)?, BTreeSet::from([checked_value(value, term)?]));
            return Ok(if sign == "!=" {
                Requirement::NotIn(key, values)
            } else {
                Requirement::In(key, values)
            });
        }
    }
    if let Some(key) = term.strip_prefix('!') {
        return Ok(Requirement::Absent(checked_key(key, term)?));
    }
    let Some((key, rest)) = term.split_once(char::is_whitespace) else {
        return Ok(Requirement::Exists(checked_key(term, term)?));
    };
    let (key, rest) = (checked_key(key, term)?, rest.trim_start());
    if let Some(set) = rest.strip_prefix("notin") {
        return Ok(Requirement::NotIn(key, parse_set(set, term)?));
    }
    if let Some(set) = rest.strip_prefix("in") {
        return Ok(Requirement::In(key, parse_set(set, term)?));
    }
    Err(format!("term {term:?}: after the key stands neither `in (…)` nor `notin (…)`"))
}

fn parse_set(text: &str, term: &str) -> Result<BTreeSet<String>, String> {
    let values = text
        .trim()
        .strip_prefix('(')
        .and_then(|text| text.strip_suffix(')'))
        .ok_or_else(|| format!("term {term:?}: the values must stand in parentheses"))?;
    // Kubernetes reads `(a,)` as "a or empty"; far more often it is a slip.
    values
        .split(',')
        .map(|value| match checked_value(value, term)? {
            empty if empty.is_empty() => Err(format!("term {term:?}: an empty value in the parentheses")),
            value => Ok(value),
        })
        .collect()
}

fn checked_key(key: &str, term: &str) -> Result<String, String> {
    let key = key.trim();
    if is_key(key) { Ok(key.to_owned()) } else { Err(format!("term {term:?}: {key:?} is no label key")) }
}

fn checked_value(value: &str, term: &str) -> Result<String, String> {
    let value = value.trim();
    if is_value(value) {
        Ok(value.to_owned())
    } else {
        Err(format!("term {term:?}: {value:?} is no label value"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pairs(text: &str) -> Pairs {
        let pair = |pair: &str| pair.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        text.split_whitespace().filter_map(pair).collect()
    }

    #[test]
    fn a_selector_matches_as_it_does_for_kubectl() {
        for (selector, labels, expected) in [
            ("", "", true),
            ("  ", "pool=gpu", true),
            ("pool=gpu", "pool=gpu", true),
            ("pool==gpu", "pool=gpu", true),
            ("pool = gpu", "pool=gpu", true),
            ("pool=gpu", "pool=cpu", false),
            ("pool=gpu", "", false),
            ("pool=", "pool=", true),
            ("pool=", "", false),
            ("pool!=gpu", "pool=gpu", false),
            ("pool!=gpu", "pool=cpu", true),
            ("pool!=gpu", "", true),
            ("pool in (gpu, cpu)", "pool=cpu", true),
            ("pool in (gpu,cpu)", "pool=ssd", false),
            ("pool in (gpu)", "", false),
            ("pool notin (gpu,cpu)", "pool=cpu", false),
            ("pool notin (gpu,cpu)", "pool=ssd", true),
            ("pool notin(gpu)", "", true),
            ("pool", "pool=", true),
            ("pool", "", false),
            ("!pool", "pool=gpu", false),
            ("! pool", "", true),
            ("pool=gpu,tier!=test", "pool=gpu tier=prod", true),
            ("pool=gpu,tier!=test", "pool=gpu tier=test", false),
            ("pool in (gpu,cpu),tier", "pool=cpu tier=x", true),
            ("example.com/pool=gpu", "example.com/pool=gpu", true),
            ("in in (in)", "in=in", true),
        ] {
            let parsed = Selector::parse(selector).unwrap();
            assert_eq!(parsed.matches(&pairs(labels), None), expected, "{selector:?} on {labels:?}");
        }
    }

    #[test]
    fn recorded_labels_count_where_the_node_lacks_the_key_and_live_ones_win() {
        let recorded = pairs("pool=gpu");
        for (selector, live, expected) in [
            ("pool=gpu", "", true),
            ("pool=gpu", "pool=cpu", false),
            ("pool=cpu", "pool=cpu", true),
            ("!pool", "", false),
            ("pool!=gpu", "", false),
            ("pool,tier", "tier=x", true),
        ] {
            let parsed = Selector::parse(selector).unwrap();
            assert_eq!(parsed.matches(&pairs(live), Some(&recorded)), expected, "{selector:?} on {live:?}");
        }
    }

    #[test]
    fn a_broken_selector_is_refused_with_what_is_wrong() {
        for (selector, said) in [
            (",", "empty term"),
            ("a,,b", "empty term"),
            ("a,", "empty term"),
            ("=a", "no label key"),
            ("!", "no label key"),
            ("!=a", "no label key"),
            ("a b", "neither"),
            ("a in", "parentheses"),
            ("a in b", "parentheses"),
            ("a in (b", "parentheses"),
            ("a in ()", "empty value"),
            ("a in (b,)", "empty value"),
            ("a notin b)", "parentheses"),
            ("a>1", "not supported"),
            ("a=b=c", "no label value"),
            ("a=b c", "no label value"),
            ("a/b/c", "no label key"),
            ("(a)", "no label key"),
            ("größe=1", "no label key"),
        ] {
            let error = Selector::parse(selector).unwrap_err();
            assert!(error.contains(said), "{selector:?}: {error}");
        }
    }

    #[test]
    fn selectors_that_mean_the_same_are_equal() {
        for (one, other) in [
            ("a=b", "a in (b)"),
            ("a!=b", "a notin ( b )"),
            ("a,b", "b , a"),
            ("a in (x,y)", "a in (y,x,x)"),
            ("a,a", "a"),
        ] {
            assert_eq!(Selector::parse(one), Selector::parse(other), "{one} and {other}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in "\\PC*") {
            let _ = Selector::parse(&text);
        }

        #[test]
        fn what_is_read_reads_the_same_from_its_own_text(text in "[ab!=,() inot]{0,24}") {
            if let Ok(selector) = Selector::parse(&text) {
                prop_assert_eq!(Selector::parse(&selector.to_string()), Ok(selector));
            }
        }
    }
}
