//! Whether a page may replace what a destination holds.

use super::page::Stamp;
use super::plan::Write;
use super::versions::Versions;

/// What a destination holds in the page's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// Something that bears no stamp of ours.
    Unstamped,
    /// A page of ours.
    Page(Stamp),
}

/// Decides about one destination. The first row that fits counts.
///
/// `reached` is what the API server itself had reached when it was read for this page, where that was done: a page
/// made from such a read is as new as the server.
///
/// | the destination holds | write |
/// | --- | --- |
/// | nothing | `Create` |
/// | something without a stamp | `Replace` |
/// | the same bytes | `Rest`, whatever they were made from |
/// | a page that is newer in no part | `Replace` |
/// | a page that is newer in some part, and that part is beyond what the API server has reached | `Overrule` |
/// | any other | `Lag` |
#[must_use]
pub fn fence(found: &Found, page: &Stamp, reached: Option<&Versions>) -> Write {
    let stored = match found {
        Found::Nothing => return Write::Create,
        Found::Unstamped => return Write::Replace,
        Found::Page(stored) => stored,
    };
    if stored.digest == page.digest {
        Write::Rest
    } else if page.versions.reach(&stored.versions) {
        Write::Replace
    } else if reached.is_some_and(|reached| !reached.reach(&stored.versions)) {
        Write::Overrule
    } else {
        Write::Lag
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kept::Digest;

    fn versions((listing, template, endpoints): (u64, u64, u64)) -> Versions {
        Versions { listing, template, endpoints }
    }

    fn stamp(body: &str, of: (u64, u64, u64)) -> Stamp {
        Stamp { digest: Digest::of(body.as_bytes()), endpoints: 1, versions: versions(of) }
    }

    #[test]
    fn an_empty_place_is_filled() {
        assert_eq!(fence(&Found::Nothing, &stamp("a", (1, 1, 1)), None), Write::Create);
    }

    #[test]
    fn what_bears_no_stamp_is_replaced() {
        assert_eq!(fence(&Found::Unstamped, &stamp("a", (1, 1, 1)), None), Write::Replace);
    }

    #[test]
    fn equal_pages_are_left_alone() {
        for of in [(1, 1, 1), (5, 5, 5), (1, 9, 1)] {
            assert_eq!(fence(&Found::Page(stamp("a", of)), &stamp("a", (3, 3, 3)), None), Write::Rest);
        }
    }

    #[test]
    fn an_older_page_is_replaced() {
        for of in [(3, 3, 3), (3, 3, 2), (1, 1, 1), (0, 0, 0)] {
            assert_eq!(
                fence(&Found::Page(stamp("b", of)), &stamp("a", (3, 3, 3)), None),
                Write::Replace,
                "{of:?}"
            );
        }
    }

    #[test]
    fn a_page_that_is_newer_in_some_part_is_not() {
        for of in [(4, 3, 3), (3, 4, 3), (3, 3, 4), (4, 1, 1), (1, 1, 4)] {
            let found = Found::Page(stamp("b", of));
            assert_eq!(fence(&found, &stamp("a", (3, 3, 3)), None), Write::Lag, "{of:?}");
            let reached = versions((4, 4, 4));
            assert_eq!(fence(&found, &stamp("a", (3, 3, 3)), Some(&reached)), Write::Lag, "{of:?}");
        }
    }

    #[test]
    fn a_page_beyond_what_the_server_has_reached_comes_from_another_history() {
        let (found, reached) = (Found::Page(stamp("b", (1, 1, 900))), versions((3, 3, 3)));
        assert_eq!(fence(&found, &stamp("a", (3, 3, 3)), Some(&reached)), Write::Overrule);
    }

    #[test]
    fn writes_have_the_names_that_metrics_show() {
        let writes = [Write::Rest, Write::Create, Write::Replace, Write::Overrule, Write::Lag];
        assert_eq!(writes.map(Write::as_str), ["rest", "create", "replace", "overrule", "lag"]);
    }

    proptest! {
        /// Replicas that see parts of one history in any order never put an older page over a newer one, and the
        /// one that has read everything always gets its page there.
        #[test]
        fn older_never_replaces_newer(
            views in proptest::collection::vec((0..4_u64, 0..4_u64, 0..4_u64), 1..20),
        ) {
            let mut held = Found::Nothing;
            for of in views.into_iter().chain([(4, 4, 4)]) {
                let page = stamp(&format!("{of:?}"), of);
                match (fence(&held, &page, Some(&versions((4, 4, 4)))), held) {
                    (Write::Create, Found::Nothing) => held = Found::Page(page),
                    (Write::Replace, Found::Page(stored)) => {
                        prop_assert!(page.versions.reach(&stored.versions));
                        held = Found::Page(page);
                    }
                    (Write::Rest, Found::Page(stored)) => prop_assert_eq!(stored.digest, page.digest),
                    (Write::Lag, Found::Page(stored)) => prop_assert!(!page.versions.reach(&stored.versions)),
                    (write, held) => prop_assert!(false, "{write:?} over {held:?}"),
                }
            }
            prop_assert_eq!(held, Found::Page(stamp("(4, 4, 4)", (4, 4, 4))));
        }
    }
}
