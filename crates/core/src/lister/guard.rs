//! What keeps a page back until a person has looked at it.

/// What a page must have to go out by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Guards {
    /// So many endpoints at least.
    pub min_endpoints: usize,
    /// At most so many hundredths fewer endpoints than the page before; none for any number.
    pub max_shrink_percent: Option<u8>,
}

impl Default for Guards {
    fn default() -> Self {
        Self { min_endpoints: 1, max_shrink_percent: None }
    }
}

/// Why a page is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Held {
    /// Fewer endpoints than the guard asks for.
    #[error("the page would list {endpoints} endpoints; at least {min} are asked for")]
    TooFew {
        /// What it would list.
        endpoints: usize,
        /// What is asked for.
        min: usize,
    },
    /// Too many fewer than the page before.
    #[error(
        "the page would list {endpoints} endpoints after {before}; it may lose at most {max_percent} % at once"
    )]
    Shrunk {
        /// What it would list.
        endpoints: usize,
        /// What the last good page lists.
        before: usize,
        /// What is allowed.
        max_percent: u8,
    },
}

impl Held {
    /// A fixed word for metrics and conditions.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::TooFew { .. } => "TooFew",
            Self::Shrunk { .. } => "Shrunk",
        }
    }
}

impl Guards {
    /// Why a page with so many endpoints is held, where the last good one, if any, lists so many.
    #[must_use]
    pub fn check(&self, endpoints: usize, before: Option<usize>) -> Option<Held> {
        let Self { min_endpoints, max_shrink_percent } = *self;
        if endpoints < min_endpoints {
            return Some(Held::TooFew { endpoints, min: min_endpoints });
        }
        let (before, max_percent) = (before?, max_shrink_percent?);
        let rest = 100_u128.saturating_sub(u128::from(max_percent));
        let shrunk = wide(endpoints) * 100 < wide(before) * rest;
        shrunk.then_some(Held::Shrunk { endpoints, before, max_percent })
    }
}

/// No count of endpoints times a hundred is too large for it.
fn wide(count: usize) -> u128 {
    count as u128
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn guards(min_endpoints: usize, max_shrink_percent: Option<u8>) -> Guards {
        Guards { min_endpoints, max_shrink_percent }
    }

    #[test]
    fn an_empty_page_is_held_by_default() {
        let held = Guards::default().check(0, Some(9)).unwrap();
        assert_eq!(held, Held::TooFew { endpoints: 0, min: 1 });
        assert_eq!(held.to_string(), "the page would list 0 endpoints; at least 1 are asked for");
        assert_eq!(Guards::default().check(0, None), Some(held));
        assert_eq!(Guards::default().check(1, Some(1_000_000)), None);
        assert_eq!(guards(0, None).check(0, Some(9)), None);
    }

    #[test]
    fn a_page_may_shrink_as_far_as_the_guard_says() {
        let half = guards(1, Some(50));
        for (before, endpoints, held) in
            [(10, 5, false), (10, 4, true), (9, 5, false), (9, 4, true), (1, 1, false)]
        {
            assert_eq!(half.check(endpoints, Some(before)).is_some(), held, "{before} to {endpoints}");
        }
        let held = half.check(4, Some(10)).unwrap();
        assert_eq!(held, Held::Shrunk { endpoints: 4, before: 10, max_percent: 50 });
        assert!(held.to_string().contains("4 endpoints after 10") && held.to_string().contains("50 %"));
        assert_eq!(half.check(4, None), None, "there is no page before");
    }

    #[test]
    fn at_the_ends_of_the_scale() {
        assert!(guards(0, Some(0)).check(9, Some(10)).is_some(), "nothing may be lost");
        assert!(guards(0, Some(0)).check(10, Some(10)).is_none());
        for all in [100, 255] {
            assert!(guards(0, Some(all)).check(0, Some(usize::MAX)).is_none(), "all may be lost");
        }
    }

    proptest! {
        #[test]
        fn growth_is_never_held(before: usize, more: usize, percent: u8) {
            let endpoints = before.saturating_add(more);
            prop_assert_eq!(guards(0, Some(percent)).check(endpoints, Some(before)), None);
        }

        #[test]
        fn more_endpoints_are_never_worse(endpoints: usize, more: usize, before: usize, min: usize, percent: u8) {
            let guards = guards(min, Some(percent));
            if guards.check(endpoints, Some(before)).is_none() {
                prop_assert_eq!(guards.check(endpoints.saturating_add(more), Some(before)), None);
            }
        }
    }
}
