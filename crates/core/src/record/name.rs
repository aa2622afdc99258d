//! A node's name and its record's name, in both directions.

use crate::kept::Digest;

const PREFIX: &str = "node-record.";
/// The API server's limit on the name of a ConfigMap.
const MAX_NAME: usize = 253;
/// What a name that does not fit is cut to, before its hashed tail.
const CUT: usize = MAX_NAME - PREFIX.len() - TAIL;
/// `-x` and the 32 digits of a digest.
const TAIL: usize = 34;

/// The name of the ConfigMap that is `node`'s record. A node name too long for it gets a hashed tail.
#[must_use]
pub fn record_name(node: &str) -> String {
    if PREFIX.len() + node.len() <= MAX_NAME {
        return format!("{PREFIX}{node}");
    }
    // Node names are ASCII by the API server's rules; `get` keeps this total for any text.
    let head = node.get(..CUT).unwrap_or_default().trim_end_matches(['.', '-']);
    format!("{PREFIX}{head}-x{}", Digest::of(node.as_bytes()))
}

/// The node whose record a ConfigMap is, or `None` if it is not a record.
///
/// A hashed name cannot be read back, so `annotated` (the record's own annotation) is believed where it
/// leads to this very name.
#[must_use]
pub fn record_node<'a>(config_map: &'a str, annotated: Option<&'a str>) -> Option<&'a str> {
    let tail = config_map.strip_prefix(PREFIX).filter(|tail| !tail.is_empty())?;
    match annotated {
        Some(node) if record_name(node) == config_map => Some(node),
        _ => (config_map.len() < MAX_NAME - TAIL).then_some(tail).or((!is_hashed(tail)).then_some(tail)),
    }
}

fn is_hashed(tail: &str) -> bool {
    tail.rsplit_once("-x").is_some_and(|(_, digits)| Digest::parse(digits).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_fits_is_used_as_it_is() {
        assert_eq!(record_name("worker-1.example.com"), "node-record.worker-1.example.com");
        assert_eq!(record_node("node-record.worker-1", None), Some("worker-1"));
    }

    #[test]
    fn a_name_too_long_gets_a_hashed_tail_and_is_read_back_by_its_annotation() {
        let node = format!("{}.{}", "a".repeat(200), "b".repeat(52));
        let other = format!("{}.{}", "a".repeat(200), "c".repeat(52));
        let name = record_name(&node);
        assert!(name.len() <= MAX_NAME, "{} characters", name.len());
        assert_ne!(name, record_name(&other));
        assert_eq!(record_node(&name, Some(&node)), Some(node.as_str()));
        assert_eq!(record_node(&name, Some(&other)), None);
        assert_eq!(record_node(&name, None), None);
    }

    #[test]
    fn the_longest_name_that_fits_needs_no_tail() {
        let node = "n".repeat(MAX_NAME - PREFIX.len());
        assert_eq!(record_name(&node).len(), MAX_NAME);
        assert_eq!(record_node(&record_name(&node), None), Some(node.as_str()));
    }

    #[test]
    fn what_is_not_a_record_is_nobodys() {
        for name in ["kube-root-ca.crt", "node-record.", "perennial-brake", "record.x"] {
            assert_eq!(record_node(name, None), None, "{name}");
        }
    }

    #[test]
    fn an_annotation_that_leads_elsewhere_is_not_believed() {
        assert_eq!(record_node("node-record.a", Some("b")), Some("a"));
    }
}
