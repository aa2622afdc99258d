//! What every object and every list of the API server has.

use jiff::Timestamp;
use perennial_core::kept::Pairs;
use perennial_core::record::Version;
use serde::Deserialize;
use uuid::Uuid;

/// Metadata of any object. Absent and null are the same to the API server.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Meta {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) namespace: Option<String>,
    pub(crate) uid: Uuid,
    #[serde(deserialize_with = "version")]
    pub(crate) resource_version: Version,
    #[serde(default)]
    pub(crate) generation: Option<i64>,
    #[serde(default)]
    pub(crate) creation_timestamp: Option<Timestamp>,
    #[serde(default)]
    pub(crate) deletion_timestamp: Option<Timestamp>,
    #[serde(default)]
    pub(crate) labels: Option<Pairs>,
    #[serde(default)]
    pub(crate) annotations: Option<Pairs>,
}

/// A resource version, which is a number in a string.
pub(crate) fn version<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Version, D::Error> {
    let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
    text.parse().map_err(|_| serde::de::Error::custom(format!("{text:?} is not a resource version")))
}

/// A list of objects, with the version at which it was true.
#[derive(Debug, Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
pub(crate) struct List<T> {
    pub(crate) metadata: ListMeta,
    #[serde(default = "Vec::new", deserialize_with = "null_as_none")]
    pub(crate) items: Vec<T>,
}

/// An empty list of metadata has `"items": null`.
fn null_as_none<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Metadata of a list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListMeta {
    #[serde(deserialize_with = "version")]
    pub(crate) resource_version: Version,
    #[serde(rename = "continue", default)]
    pub(crate) next: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_without_items_is_empty_however_the_server_says_so() {
        for items in [r#","items":null"#, r#","items":[]"#, ""] {
            let text = format!(r#"{{"metadata":{{"resourceVersion":"7"}}{items}}}"#);
            let list: List<serde_json::Value> = serde_json::from_str(&text).unwrap();
            assert!(list.items.is_empty(), "{text}");
        }
    }
}
