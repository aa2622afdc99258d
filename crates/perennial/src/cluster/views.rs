//! What the streams know, and how old that is.
//!
//! An API server that freezes with a watch on it leaves the connection open and tells nothing, while others tell of changes.
//! So no watch is asked for longer than [`Views::watch_for`]. Right before it ends, the API server says in a bookmark how
//! far it got; the next watch goes on from there, on a connection of its own, which a balancer may lead to another server.
//! A watch that does not end in time is left.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use perennial_core::record::Version;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use tokio::time::Instant;

use super::stream::{Identity, Target};

/// How long a watch is asked for at least, and at most.
const SHORTEST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_mins(1);
/// A process with many streams asks for two watches a second, unless they would be longer than [`LONGEST`].
const SPACING: Duration = Duration::from_millis(500);
/// How much later than two watches in a row something may have been told last.
const GRACE: Duration = Duration::from_secs(10);

/// The streams of this process.
#[derive(Debug, Default)]
pub(crate) struct Views(Mutex<Vec<Weak<View>>>);

/// What one stream knows.
#[derive(Debug)]
pub(crate) struct View {
    target: Target,
    told: Mutex<Told>,
}

#[derive(Debug)]
struct Told {
    /// When it last told how far it got.
    at: Instant,
    last: Option<Last>,
}

/// The object that changed last, as far as a stream has told.
#[derive(Clone, Debug)]
pub(crate) struct Last {
    pub(crate) identity: Identity,
    pub(crate) version: Version,
    pub(crate) gone: bool,
}

impl Last {
    /// The version that the object had, unless it was gone.
    pub(crate) fn there(&self) -> Option<Version> {
        (!self.gone).then_some(self.version)
    }
}

impl Views {
    /// The view of a stream that begins now.
    pub(crate) fn begin(&self, target: Target) -> Arc<View> {
        let view = Arc::new(View { target, told: Mutex::new(Told { at: Instant::now(), last: None }) });
        let mut all = lock(&self.0);
        all.retain(|view| view.strong_count() > 0);
        all.push(Arc::downgrade(&view));
        view
    }

    fn all(&self) -> Vec<Arc<View>> {
        lock(&self.0).iter().filter_map(Weak::upgrade).collect()
    }

    /// For how long a watch is asked.
    pub(crate) fn watch_for(&self) -> Duration {
        let streams = u32::try_from(self.all().len()).unwrap_or(u32::MAX);
        SPACING.saturating_mul(streams).clamp(SHORTEST, LONGEST)
    }

    /// Whether every stream has told how far it got since a watch before the present one.
    pub(crate) fn are_fresh(&self) -> bool {
        let most = 2 * self.watch_for() + GRACE;
        self.all().iter().all(|view| view.told_at().elapsed() < most)
    }

    /// The object that changed last of all that are followed.
    pub(crate) fn newest(&self) -> Option<(Target, Last)> {
        let all = self.all().into_iter();
        all.filter_map(|view| Some((view.target.clone(), view.last()?))).max_by_key(|(_, last)| last.version)
    }
}

impl View {
    fn told(&self) -> MutexGuard<'_, Told> {
        lock(&self.told)
    }

    /// It tells how far it got.
    pub(crate) fn tells(&self) {
        self.told().at = Instant::now();
    }

    pub(crate) fn told_at(&self) -> Instant {
        self.told().at
    }

    pub(crate) fn last(&self) -> Option<Last> {
        self.told().last.clone()
    }

    /// Everything is listed anew.
    pub(crate) fn forget_last(&self) {
        self.told().last = None;
    }

    /// This object changed. In a list they come in any order.
    pub(crate) fn changed(&self, namespace: Option<&str>, name: &str, version: Version, gone: bool) {
        match &mut self.told().last {
            Some(last) if last.version > version => {}
            Some(last) if last.identity.name == name && last.identity.namespace.as_deref() == namespace => {
                (last.version, last.gone) = (version, gone);
            }
            last => {
                let (namespace, name) = (namespace.map(str::to_owned), name.to_owned());
                *last = Some(Last { identity: Identity { namespace, name }, version, gone });
            }
        }
    }
}

/// Registered by the handle that the streams share.
#[derive(Debug)]
pub(crate) struct Ages(pub(crate) Arc<Views>);

impl Collector for Ages {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut ages = BTreeMap::<_, f64>::new();
        for view in self.0.all() {
            let age = ages.entry(view.target.what).or_default();
            *age = age.max(view.told_at().elapsed().as_secs_f64());
        }
        let help = "Seconds since a stream of this kind last told how far it got: of the one that did so longest ago";
        let mut family = encoder.encode_descriptor("view_age_seconds", help, None, MetricType::Gauge)?;
        for (kind, age) in ages {
            ConstGauge::new(age).encode(family.encode_family(&[("kind", kind)])?)?;
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use kube::core::request::Request as Resource;
    use prometheus_client::registry::Registry;

    use super::*;
    use crate::cluster::Chosen;

    fn view(views: &Views, what: &'static str) -> Arc<View> {
        let resource = Resource::new("/api/v1/nodes");
        views.begin(Target { what, resource, chosen: Chosen::All, whole: false })
    }

    #[tokio::test(start_paused = true)]
    async fn a_view_is_fresh_until_two_watches_in_a_row_have_told_nothing() {
        let views = Views::default();
        assert!(views.are_fresh(), "nothing is followed");
        let (nodes, records) = (view(&views, "nodes"), view(&views, "records"));
        tokio::time::advance(Duration::from_secs(29)).await;
        nodes.tells();
        assert!(views.are_fresh());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!views.are_fresh());
        records.tells();
        assert!(views.are_fresh());
        tokio::time::advance(Duration::from_mins(1)).await;
        drop((nodes, records));
        assert!(views.are_fresh(), "they are not followed any more");
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_of_a_kind_is_measured() {
        let views = Arc::new(Views::default());
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Ages(views.clone())));
        let streams = ["nodes", "templates", "templates"].map(|what| view(&views, what));
        tokio::time::advance(Duration::from_secs(7)).await;
        streams[1].tells();
        tokio::time::advance(Duration::from_secs(1)).await;
        streams[0].tells();
        let text = crate::metrics::encode(&registry);
        for line in ["view_age_seconds{kind=\"nodes\"} 0", "view_age_seconds{kind=\"templates\"} 8"] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn many_streams_ask_for_longer_watches() {
        let views = Views::default();
        let streams: Vec<_> = (0..40).map(|_| view(&views, "templates")).collect();
        assert_eq!(views.watch_for(), Duration::from_secs(20));
        let more: Vec<_> = (0..400).map(|_| view(&views, "templates")).collect();
        assert_eq!(views.watch_for(), LONGEST);
        drop((streams, more));
        assert_eq!(views.watch_for(), SHORTEST);
    }

    #[test]
    fn the_object_that_changed_last_is_known_in_whatever_order_a_list_has_it() {
        let views = Views::default();
        let (nodes, maps) = (view(&views, "nodes"), view(&views, "records"));
        for (name, version) in [("a", 3), ("b", 7), ("c", 5)] {
            nodes.changed(None, name, version, false);
        }
        maps.changed(Some("default"), "d", 6, true);
        let (target, last) = views.newest().unwrap();
        assert_eq!((target.what, &*last.identity.name, last.there()), ("nodes", "b", Some(7)));
        maps.changed(Some("default"), "d", 8, true);
        let (target, last) = views.newest().unwrap();
        assert_eq!((target.what, &*last.identity.name, last.there()), ("records", "d", None));
    }
}
