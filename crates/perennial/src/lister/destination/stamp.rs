//! The stamp of a page, as the texts that stand beside it: metadata of an object, annotations of a ConfigMap.

use perennial_core::kept::Digest;
use perennial_core::lister::Stamp;

const DIGEST: &str = "digest";
const ENDPOINTS: &str = "endpoints";
const VERSIONS: &str = "versions";

/// The names, each with its text.
pub(super) fn pairs(stamp: &Stamp) -> [(&'static str, String); 3] {
    let Stamp { digest, endpoints, versions } = stamp;
    [(DIGEST, digest.to_string()), (ENDPOINTS, endpoints.to_string()), (VERSIONS, versions.to_string())]
}

/// Reads it back. Anything missing or broken is no stamp.
pub(super) fn read<'a>(value: impl Fn(&str) -> Option<&'a str>) -> Option<Stamp> {
    Some(Stamp {
        digest: Digest::parse(value(DIGEST)?)?,
        endpoints: value(ENDPOINTS)?.parse().ok()?,
        versions: value(VERSIONS)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use perennial_core::lister::Versions;
    use proptest::prelude::*;

    use super::*;

    fn texts(stamp: &Stamp) -> BTreeMap<&'static str, String> {
        pairs(stamp).into()
    }

    fn read_from(texts: &BTreeMap<&'static str, String>) -> Option<Stamp> {
        read(|name| texts.get(name).map(String::as_str))
    }

    fn stamp(body: &[u8], endpoints: usize, listing: u64, template: u64, slices: u64) -> Stamp {
        let versions = Versions { listing, template, endpoints: slices };
        Stamp { digest: Digest::of(body), endpoints, versions }
    }

    proptest! {
        #[test]
        fn text_and_back(body: Vec<u8>, endpoints: usize, listing: u64, template: u64, slices: u64) {
            let stamp = stamp(&body, endpoints, listing, template, slices);
            prop_assert_eq!(read_from(&texts(&stamp)), Some(stamp));
        }

        #[test]
        fn broken_text_is_no_stamp(name in 0usize..3, broken in ".{0,40}") {
            // Numbers that no text happens to be.
            let stamp = stamp(b"page", usize::MAX - 4, u64::MAX - 1, u64::MAX - 2, u64::MAX - 3);
            let mut texts = texts(&stamp);
            let name = [DIGEST, ENDPOINTS, VERSIONS][name];
            texts.insert(name, broken);
            prop_assert!(read_from(&texts).is_none_or(|read| read != stamp));
            texts.remove(name);
            prop_assert_eq!(read_from(&texts), None);
        }
    }
}
