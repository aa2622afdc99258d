//! A policy as it is typed: the fields found, of the types that they must have.
//!
//! The YAML is read into a tree first and the fields are taken out of it by hand. serde would stop at the first
//! wrong type and tell a line; this way all of them are told, each with its key, and the values are checked in
//! the same round by [`super::check`].

use serde_json::{Map, Value};

use super::error::Problem;

#[derive(Debug, Default)]
pub(super) struct RawPolicy {
    pub(super) rules: Option<Vec<RawRule>>,
    pub(super) retention: Option<String>,
    pub(super) empty_retention: Option<String>,
    pub(super) max_absent: Option<i64>,
    pub(super) brake: RawBrake,
    pub(super) narrow: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct RawRule {
    pub(super) name: Option<String>,
    pub(super) selector: Option<String>,
    pub(super) labels: RawFilter,
    pub(super) annotations: RawFilter,
    pub(super) taints: RawFilter,
    pub(super) cordon: Option<bool>,
    pub(super) merge: Option<RawMerge>,
    pub(super) identity: Option<String>,
    pub(super) privileged_without_provider: Option<bool>,
}

#[derive(Debug, Default)]
pub(super) struct RawFilter {
    pub(super) include: Option<Vec<String>>,
    pub(super) exclude: Option<Vec<String>>,
    pub(super) exclude_defaults: Option<bool>,
}

#[derive(Debug)]
pub(super) enum RawMerge {
    Word(String),
    Overwrite(Vec<String>),
}

#[derive(Debug, Default)]
pub(super) struct RawBrake {
    pub(super) at_least: Option<i64>,
    /// As written: `0.1` or `10%`.
    pub(super) share: Option<String>,
}

/// Takes the fields out of the tree, and notes what has a wrong type or an unknown key.
pub(super) fn read(tree: &Value, problems: &mut Vec<Problem>) -> RawPolicy {
    let mut reader = Reader { problems };
    let keys = ["rules", "retention", "emptyRetention", "maxAbsent", "brake", "narrow"];
    let at = reader.fields(tree, "", &keys);
    let brake = at.child("brake");
    let brake = reader.fields(brake.value, &brake.path, &["atLeast", "share"]);
    RawPolicy {
        rules: reader.list(&at.child("rules"), Reader::rule),
        retention: reader.text(&at.child("retention")),
        empty_retention: reader.text(&at.child("emptyRetention")),
        max_absent: reader.whole(&at.child("maxAbsent")),
        brake: RawBrake {
            at_least: reader.whole(&brake.child("atLeast")),
            share: reader.share(&brake.child("share")),
        },
        narrow: reader.text(&at.child("narrow")),
    }
}

/// A value and where it stands. What is left out and what is null are the same.
struct At<'a> {
    path: String,
    value: &'a Value,
}

/// The fields of a mapping, and where it stands.
struct Fields<'a> {
    path: String,
    map: Option<&'a Map<String, Value>>,
}

impl<'a> Fields<'a> {
    fn child(&self, key: &str) -> At<'a> {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        At { path, value: self.map.and_then(|map| map.get(key)).unwrap_or(&Value::Null) }
    }
}

struct Reader<'p> {
    problems: &'p mut Vec<Problem>,
}

impl Reader<'_> {
    fn refuse(&mut self, path: &str, value: &Value, allowed: impl Into<String>) {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.problems.push(Problem { path: path.to_owned(), value, allowed: allowed.into() });
    }

    fn rule(&mut self, at: &At<'_>) -> RawRule {
        let keys = [
            "name",
            "selector",
            "labels",
            "annotations",
            "taints",
            "cordon",
            "merge",
            "identity",
            "privileged",
        ];
        if at.value.is_null() {
            self.refuse(&at.path, at.value, "must be a rule; `{}` is one with all defaults");
        }
        let at = self.fields(at.value, &at.path, &keys);
        let privileged = at.child("privileged");
        let privileged = self.fields(privileged.value, &privileged.path, &["withoutProviderID"]);
        let filter = ["include", "exclude", "excludeDefaults"];
        RawRule {
            name: self.text(&at.child("name")),
            selector: self.text(&at.child("selector")),
            labels: self.filter(&at.child("labels"), &filter),
            annotations: self.filter(&at.child("annotations"), &filter),
            // Of taints there are no defaults to exclude.
            taints: self.filter(&at.child("taints"), &filter[..2]),
            cordon: self.flag(&at.child("cordon")),
            merge: self.merge(&at.child("merge")),
            identity: self.text(&at.child("identity")),
            privileged_without_provider: self.flag(&privileged.child("withoutProviderID")),
        }
    }

    fn filter(&mut self, at: &At<'_>, keys: &[&str]) -> RawFilter {
        let at = self.fields(at.value, &at.path, keys);
        RawFilter {
            include: self.list(&at.child("include"), Self::item),
            exclude: self.list(&at.child("exclude"), Self::item),
            exclude_defaults: self.flag(&at.child("excludeDefaults")),
        }
    }

    fn merge(&mut self, at: &At<'_>) -> Option<RawMerge> {
        match at.value {
            Value::Null => None,
            Value::String(word) => Some(RawMerge::Word(word.clone())),
            Value::Object(_) => {
                let at = self.fields(at.value, &at.path, &["overwrite"]);
                self.list(&at.child("overwrite"), Self::item).map(RawMerge::Overwrite)
            }
            other => {
                self.refuse(&at.path, other, "must be `missing`, `overwrite` or `{overwrite: [patterns]}`");
                None
            }
        }
    }

    fn fields<'a>(&mut self, value: &'a Value, path: &str, keys: &[&str]) -> Fields<'a> {
        let known = || keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
        let fields = Fields { path: path.to_owned(), map: value.as_object() };
        match value {
            Value::Null => {}
            Value::Object(map) => {
                for (key, value) in map.iter().filter(|(key, _)| !keys.contains(&key.as_str())) {
                    let path = fields.child(key).path;
                    self.refuse(&path, value, format!("is an unknown key; known are {}", known()));
                }
            }
            other => {
                let path = if path.is_empty() { "the policy" } else { path };
                self.refuse(path, other, format!("must be a mapping with keys out of {}", known()));
            }
        }
        fields
    }

    fn list<T>(&mut self, at: &At<'_>, read: impl Fn(&mut Self, &At<'_>) -> T) -> Option<Vec<T>> {
        match at.value {
            Value::Null => None,
            Value::Array(items) => {
                let read = |(index, value)| read(self, &At { path: format!("{}[{index}]", at.path), value });
                Some(items.iter().enumerate().map(read).collect())
            }
            other => {
                self.refuse(&at.path, other, "must be a list");
                None
            }
        }
    }

    /// A pattern of a list: unlike a field, it cannot be null. One that cannot be read leaves another in its
    /// place, so that those after it are told by their own index; the policy is refused anyway.
    fn item(&mut self, at: &At<'_>) -> String {
        if at.value.is_null() {
            self.refuse(&at.path, at.value, "must be text");
        }
        self.text(at).unwrap_or_else(|| "*".to_owned())
    }

    fn text(&mut self, at: &At<'_>) -> Option<String> {
        match at.value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            // Not taken as text: YAML has changed it already (`010` is 8 or 10, `1.10` is 1.1).
            Value::Bool(_) | Value::Number(_) => {
                self.refuse(
                    &at.path,
                    at.value,
                    "must be text: put it in quotes (a duration also needs a unit, as in `30d`)",
                );
                None
            }
            other => {
                self.refuse(&at.path, other, "must be text");
                None
            }
        }
    }

    fn flag(&mut self, at: &At<'_>) -> Option<bool> {
        if !at.value.is_null() && !at.value.is_boolean() {
            self.refuse(&at.path, at.value, "must be true or false");
        }
        at.value.as_bool()
    }

    fn whole(&mut self, at: &At<'_>) -> Option<i64> {
        if !at.value.is_null() && !at.value.is_i64() {
            self.refuse(&at.path, at.value, "must be a whole number");
        }
        at.value.as_i64()
    }

    fn share(&mut self, at: &At<'_>) -> Option<String> {
        match at.value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            other => {
                self.refuse(&at.path, other, "must be a number from 0 to 1, or a percentage such as `10%`");
                None
            }
        }
    }
}
