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
pub(super) struct Selector {
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
    pub(super) fn parse(text: &str) -> Result<Self, String> {
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
    pub(super) fn matches(&self, live: &Pairs, recorded: Option<&Pairs>) -> bool {
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
