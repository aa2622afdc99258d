//! A policy as it is typed. Shapes alone are settled here; what values mean is checked in [`super::check`].

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor, value::MapAccessDeserializer};

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct RawPolicy {
    pub(super) rules: Option<Vec<RawRule>>,
    pub(super) retention: Option<String>,
    pub(super) empty_retention: Option<String>,
    pub(super) max_absent: Option<i64>,
    pub(super) brake: Option<RawBrake>,
    pub(super) narrow: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct RawRule {
    pub(super) name: Option<String>,
    pub(super) selector: Option<String>,
    pub(super) labels: Option<RawFilter>,
    pub(super) annotations: Option<RawFilter>,
    pub(super) taints: Option<RawTaints>,
    pub(super) cordon: Option<bool>,
    pub(super) merge: Option<RawMerge>,
    pub(super) identity: Option<String>,
    pub(super) privileged: Option<RawPrivileged>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct RawFilter {
    pub(super) include: Option<Vec<String>>,
    pub(super) exclude: Option<Vec<String>>,
    pub(super) exclude_defaults: Option<bool>,
}

/// Like [`RawFilter`], without defaults to exclude: of taints there are none.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct RawTaints {
    pub(super) include: Option<Vec<String>>,
    pub(super) exclude: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct RawPrivileged {
    #[serde(rename = "withoutProviderID")]
    pub(super) without_provider_id: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct RawBrake {
    pub(super) at_least: Option<i64>,
    pub(super) share: Option<RawShare>,
}

/// `merge`: a word, or patterns to overwrite. By hand, since serde's untagged enums cannot say what they expected.
#[derive(Debug)]
pub(super) enum RawMerge {
    Word(String),
    Overwrite(Vec<String>),
}

/// `share`: a number, or text such as `10%`.
#[derive(Debug)]
pub(super) enum RawShare {
    Number(f64),
    Text(String),
}

impl<'de> Deserialize<'de> for RawMerge {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Shape;
        impl<'de> Visitor<'de> for Shape {
            type Value = RawMerge;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`missing`, `overwrite` or `{overwrite: [patterns]}`")
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<RawMerge, E> {
                Ok(RawMerge::Word(word.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawMerge, A::Error> {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Chosen {
                    overwrite: Vec<String>,
                }
                let Chosen { overwrite } = Chosen::deserialize(MapAccessDeserializer::new(map))?;
                Ok(RawMerge::Overwrite(overwrite))
            }
        }
        deserializer.deserialize_any(Shape)
    }
}

impl<'de> Deserialize<'de> for RawShare {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Shape;
        impl Visitor<'_> for Shape {
            type Value = RawShare;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number from 0 to 1, or a percentage such as `10%`")
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<RawShare, E> {
                Ok(RawShare::Number(number))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<RawShare, E> {
                // Whole shares are 0 and 1; whatever else it was, it is refused with its own digits.
                Ok(RawShare::Text(number.to_string()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<RawShare, E> {
                Ok(RawShare::Text(number.to_string()))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<RawShare, E> {
                Ok(RawShare::Text(text.to_owned()))
            }
        }
        deserializer.deserialize_any(Shape)
    }
}
