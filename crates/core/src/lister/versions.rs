//! What a page was made from, as versions that can be compared.

use std::fmt;
use std::str::FromStr;

use crate::record::Version;

/// The versions of everything that a page says: the fence that keeps an older page from replacing a newer one.
///
/// Each part is followed by a stream of its own, and each may lag on its own. So there is no order of all versions:
/// one page is as new as another only if none of its parts is older.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Versions {
    /// The Listing's.
    pub listing: Version,
    /// The template's, where it comes from a ConfigMap.
    pub template: Version,
    /// The endpoints': the highest version seen of any of the Service's slices, or of a list of them.
    pub endpoints: Version,
}

impl Versions {
    /// Whether no part is older than the other's.
    #[must_use]
    pub fn reach(&self, other: &Self) -> bool {
        let Self { listing, template, endpoints } = *self;
        listing >= other.listing && template >= other.template && endpoints >= other.endpoints
    }

    /// The highest of all parts.
    #[must_use]
    pub fn highest(&self) -> Version {
        let Self { listing, template, endpoints } = *self;
        listing.max(template).max(endpoints)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { listing, template, endpoints } = self;
        write!(f, "{listing}-{template}-{endpoints}")
    }
}

/// A text that is no [`Versions`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not three versions such as 12-0-34")]
pub struct VersionsError(String);

impl FromStr for Versions {
    type Err = VersionsError;

    fn from_str(text: &str) -> Result<Self, VersionsError> {
        let mut parts = text.split('-').map(|part| part.parse().ok());
        match [parts.next(), parts.next(), parts.next(), parts.next()] {
            [Some(Some(listing)), Some(Some(template)), Some(Some(endpoints)), None] => {
                Ok(Self { listing, template, endpoints })
            }
            _ => Err(VersionsError(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn versions(listing: Version, template: Version, endpoints: Version) -> Versions {
        Versions { listing, template, endpoints }
    }

    proptest! {
        #[test]
        fn text_and_back(listing: u64, template: u64, endpoints: u64) {
            let versions = versions(listing, template, endpoints);
            prop_assert_eq!(versions.to_string().parse(), Ok(versions));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,40}") {
            let read: Result<Versions, _> = text.parse();
            prop_assert!(read.is_err() || text.split('-').count() == 3);
        }
    }

    #[test]
    fn a_page_is_as_new_only_if_no_part_is_older() {
        assert!(versions(1, 2, 3).reach(&versions(1, 2, 3)));
        assert!(versions(1, 2, 4).reach(&versions(1, 2, 3)));
        for older in [versions(0, 9, 9), versions(9, 1, 9), versions(9, 9, 2)] {
            assert!(!older.reach(&versions(1, 2, 3)), "{older}");
        }
    }

    #[test]
    fn broken_versions_are_refused() {
        for broken in
            ["", "1", "1-2", "1-2-3-4", "a-b-c", "1--3", "-1-2-3", "1-2-99999999999999999999", "1-2-3 "]
        {
            let error = broken.parse::<Versions>().unwrap_err();
            assert!(error.to_string().contains("not three versions"), "{error}");
        }
    }
}
