//! Whether a listing's page goes out, from what is known of it.

use std::time::Duration;

use super::guard::Guards;
use super::pace::{Pace, Paced};
use super::page::{Page, Stamp};
use super::plan::{Lack, Plan, Why};
use crate::kept::Digest;

/// What is known of one listing.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    /// Everything that the page says was listed whole and is followed.
    pub synced: bool,
    /// The page; none where the template is missing or broken.
    pub page: Option<&'a Page>,
    /// The Service exists. It only counts where there are no endpoints, so nobody has to look before.
    pub service: bool,
    /// What keeps a page back.
    pub guards: Guards,
    /// A person released this page.
    pub release: Option<Digest>,
    /// The last good page, wherever it was found.
    pub published: Option<Stamp>,
    /// How often pages go out.
    pub pace: Pace,
    /// What went out and what changed since.
    pub paced: Paced,
}

/// Decides about one listing. The first row that fits counts.
///
/// | sight | plan |
/// | --- | --- |
/// | not synced | `Rest`: whatever is missing may only be missing here |
/// | the template is missing or broken | `Keep` |
/// | no endpoints, and no such Service | `Keep` |
/// | the page is published | `Rest` |
/// | a guard speaks against it, and nobody released this very page | `Hold` |
/// | it came too soon after the last one | `Wait` |
/// | otherwise | `Publish` |
#[must_use]
pub fn decide(sight: &Sight<'_>, now: Duration) -> Plan {
    let Sight { synced, page, service, guards, release, published, pace, paced } = *sight;
    if !synced {
        return Plan::Rest(Why::NotSynced);
    }
    let Some(Page { stamp, .. }) = page else { return Plan::Keep(Lack::Template) };
    if stamp.endpoints == 0 && !service {
        return Plan::Keep(Lack::Service);
    }
    if published.is_some_and(|published| published.digest == stamp.digest) {
        return Plan::Rest(Why::Published);
    }
    let held = guards.check(stamp.endpoints, published.map(|published| published.endpoints));
    if let Some(held) = held.filter(|_| release != Some(stamp.digest)) {
        return Plan::Hold(held);
    }
    match paced.due(pace) {
        Some(until) if until > now => Plan::Wait { until },
        _ => Plan::Publish,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::guard::Held;
    use super::super::versions::Versions;
    use super::*;

    const NOW: Duration = Duration::from_mins(1);

    fn page(body: &str, endpoints: usize) -> Page {
        Page::new(body.to_owned(), "text/plain".to_owned(), endpoints, Versions::default())
    }

    /// Everything speaks for this page: nothing else was ever published.
    fn sight(page: &Page) -> Sight<'_> {
        Sight {
            synced: true,
            page: Some(page),
            service: true,
            guards: Guards { min_endpoints: 1, max_shrink_percent: Some(50) },
            release: None,
            published: None,
            pace: Pace::new(Duration::from_secs(1), Duration::from_secs(5)).unwrap(),
            paced: Paced::default(),
        }
    }

    #[test]
    fn before_the_first_lists_are_complete_nothing_goes_out() {
        let (full, empty) = (page("a", 1), page("", 0));
        for page in [Some(&full), Some(&empty), None] {
            for service in [true, false] {
                let sight =
                    Sight { synced: false, page, service, release: Some(empty.stamp.digest), ..sight(&full) };
                assert_eq!(decide(&sight, NOW), Plan::Rest(Why::NotSynced));
            }
        }
    }

    #[test]
    fn without_a_good_template_the_last_good_page_stays() {
        let page = page("a", 1);
        let sight = Sight { page: None, published: Some(page.stamp), ..sight(&page) };
        assert_eq!(decide(&sight, NOW), Plan::Keep(Lack::Template));
    }

    #[test]
    fn without_its_service_the_last_good_page_stays() {
        let (empty, one) = (page("", 0), page("a", 1));
        let gone = |page| Sight {
            service: false,
            guards: Guards { min_endpoints: 0, ..Guards::default() },
            ..sight(page)
        };
        assert_eq!(decide(&gone(&empty), NOW), Plan::Keep(Lack::Service));
        assert_eq!(decide(&gone(&one), NOW), Plan::Publish, "endpoints alone are enough");
    }

    #[test]
    fn a_published_page_is_not_published_again() {
        let page = page("a", 0);
        let sight = Sight { published: Some(page.stamp), ..sight(&page) };
        assert_eq!(decide(&sight, NOW), Plan::Rest(Why::Published), "no guard has a say any more");
    }

    #[test]
    fn a_page_that_a_guard_speaks_against_is_held_until_it_is_released() {
        let (before, empty, few) = (page("many", 10), page("", 0), page("few", 4));
        for (page, held) in [
            (&empty, Held::TooFew { endpoints: 0, min: 1 }),
            (&few, Held::Shrunk { endpoints: 4, before: 10, max_percent: 50 }),
        ] {
            let sight = Sight { published: Some(before.stamp), ..sight(page) };
            assert_eq!(decide(&sight, NOW), Plan::Hold(held));
            let other = Sight { release: Some(before.stamp.digest), ..sight };
            assert_eq!(decide(&other, NOW), Plan::Hold(held), "another page was released");
            let released = Sight { release: Some(page.stamp.digest), ..sight };
            assert_eq!(decide(&released, NOW), Plan::Publish);
        }
    }

    #[test]
    fn a_page_too_soon_after_another_waits() {
        let (before, after) = (page("a", 1), page("b", 1));
        let mut paced = Paced::default();
        paced.publish(before.stamp.digest, NOW);
        paced.see(after.stamp.digest, NOW);
        let sight = Sight { published: Some(before.stamp), paced, ..sight(&after) };
        let until = NOW + Duration::from_secs(1);
        assert_eq!(decide(&sight, NOW), Plan::Wait { until });
        assert_eq!(decide(&sight, until), Plan::Publish);
    }

    #[test]
    fn otherwise_it_goes_out() {
        let page = page("a", 1);
        assert_eq!(decide(&sight(&page), NOW), Plan::Publish);
    }

    #[test]
    fn plans_have_the_names_that_metrics_show() {
        let names = [
            Plan::Rest(Why::Published),
            Plan::Keep(Lack::Template),
            Plan::Hold(Held::TooFew { endpoints: 0, min: 1 }),
            Plan::Wait { until: NOW },
            Plan::Publish,
        ]
        .map(|plan| plan.as_str());
        assert_eq!(names, ["rest", "keep", "hold", "wait", "publish"]);
    }

    proptest! {
        /// No empty page because a watch broke, no page that a guard holds, no page twice.
        #[test]
        fn only_a_page_that_may_go_out_goes_out(
            synced: bool, service: bool, endpoints in 0..4_usize, before in proptest::option::of(0..9_usize),
            same: bool, released: bool, broken: bool,
        ) {
            let page = page("now", endpoints);
            let earlier = before.map(|before| Page::new(
                if same { "now" } else { "before" }.to_owned(), String::new(), before, Versions::default(),
            ).stamp);
            let sight = Sight {
                synced, service, published: earlier, page: (!broken).then_some(&page),
                release: released.then_some(page.stamp.digest), ..sight(&page)
            };
            if decide(&sight, NOW) == Plan::Publish {
                prop_assert!(synced && !broken);
                prop_assert!(earlier.is_none_or(|earlier| earlier.digest != page.stamp.digest));
                prop_assert!(endpoints > 0 || service && released);
                prop_assert!(released || before.is_none_or(|before| endpoints * 2 >= before));
            }
        }
    }
}
