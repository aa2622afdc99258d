//! The `EndpointSlices` of one Service, as the watch tells of them.
//!
//! What was seen stays until something newer says otherwise: a watch that breaks, or a list under way, takes nothing.

use std::collections::BTreeMap;

use perennial_core::lister::Slice;
use perennial_core::record::Version;
use serde::Deserialize;

use crate::cluster::{Followed, Meta};

/// An `EndpointSlice`, as the API server sends it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct SliceObject {
    metadata: Meta,
    #[serde(flatten)]
    slice: Slice,
}

impl Followed for SliceObject {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// The slices of one Service.
#[derive(Debug, Default)]
pub(crate) struct Slices {
    known: BTreeMap<String, Slice>,
    /// A list under way: it counts when it is complete.
    coming: BTreeMap<String, Slice>,
    listing: bool,
    /// A list was complete.
    complete: bool,
    /// The state is true as of this version.
    version: Version,
}

impl Slices {
    /// Whether a list was ever complete. Until then nothing may be said of the Service.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    /// As of when it is true.
    pub(crate) fn version(&self) -> Version {
        self.version
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Slice> {
        self.known.values()
    }

    pub(crate) fn listing(&mut self) {
        self.listing = true;
        self.coming.clear();
    }

    /// A slice as it is now. Says whether anything changed.
    pub(crate) fn applied(&mut self, object: SliceObject) -> bool {
        let SliceObject { metadata, slice } = object;
        if self.listing {
            self.coming.insert(metadata.name, slice);
            return false;
        }
        self.reach(metadata.resource_version) && {
            let before = self.known.insert(metadata.name, slice.clone());
            before != Some(slice)
        }
    }

    /// A slice is gone. Says whether anything changed.
    pub(crate) fn deleted(&mut self, object: &SliceObject) -> bool {
        self.reach(object.metadata.resource_version) && self.known.remove(&object.metadata.name).is_some()
    }

    /// The list under way is complete, as of this version. Says whether anything changed.
    pub(crate) fn listed(&mut self, version: Version) -> bool {
        self.listing = false;
        let coming = std::mem::take(&mut self.coming);
        self.replace(coming, version)
    }

    /// They were all read directly. Says whether anything changed.
    pub(crate) fn read(&mut self, objects: Vec<SliceObject>, version: Version) -> bool {
        let read = objects.into_iter().map(|object| (object.metadata.name, object.slice));
        self.replace(read.collect(), version)
    }

    /// Another history: what was seen stays until it is listed anew, and versions say nothing.
    pub(crate) fn begin_anew(&mut self) {
        self.version = 0;
        self.listing = false;
    }

    fn replace(&mut self, slices: BTreeMap<String, Slice>, version: Version) -> bool {
        // An older list knows nothing that is not known already.
        if self.complete && version < self.version {
            return false;
        }
        let first = !std::mem::replace(&mut self.complete, true);
        self.version = version;
        let changed = self.known != slices;
        self.known = slices;
        first || changed
    }

    /// Whether an event tells of something newer. Versions of one resource are in order in a watch, so that what is
    /// not newer was in what was read meanwhile.
    fn reach(&mut self, version: Version) -> bool {
        let newer = version > self.version;
        self.version = self.version.max(version);
        newer
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn slice(name: &str, version: Version, address: &str) -> SliceObject {
        serde_json::from_value(json!({
            "metadata": { "name": name, "uid": uuid::Uuid::nil(), "resourceVersion": version.to_string() },
            "addressType": "IPv4",
            "endpoints": [{ "addresses": [address] }],
            "ports": [],
        }))
        .unwrap()
    }

    fn listed(objects: Vec<SliceObject>, version: Version) -> Slices {
        let mut slices = Slices::default();
        slices.listing();
        for object in objects {
            assert!(!slices.applied(object));
        }
        assert!(slices.listed(version));
        slices
    }

    fn names(slices: &Slices) -> Vec<&str> {
        slices.known.keys().map(String::as_str).collect()
    }

    #[test]
    fn nothing_counts_before_the_list_is_complete() {
        let mut slices = Slices::default();
        slices.listing();
        assert!(!slices.applied(slice("a", 1, "10.0.0.1")));
        assert!(!slices.is_complete() && slices.iter().next().is_none());
        assert!(slices.listed(5));
        assert!(slices.is_complete());
        assert_eq!((names(&slices), slices.version()), (vec!["a"], 5));
    }

    #[test]
    fn an_empty_service_is_news_once() {
        let mut slices = listed(vec![], 5);
        slices.listing();
        assert!(!slices.listed(6));
    }

    #[test]
    fn a_list_under_way_takes_nothing() {
        let mut slices = listed(vec![slice("a", 1, "10.0.0.1"), slice("b", 2, "10.0.0.2")], 5);
        slices.listing();
        assert!(!slices.applied(slice("a", 1, "10.0.0.1")));
        assert_eq!(names(&slices), ["a", "b"]);
        // It breaks, and another one begins.
        slices.listing();
        assert!(!slices.applied(slice("b", 2, "10.0.0.2")));
        assert!(slices.listed(9));
        assert_eq!(names(&slices), ["b"]);
    }

    #[test]
    fn changes_are_told_and_repetitions_are_not() {
        let mut slices = listed(vec![slice("a", 1, "10.0.0.1")], 5);
        assert!(slices.applied(slice("a", 6, "10.0.0.9")));
        assert!(!slices.applied(slice("a", 7, "10.0.0.9")), "metadata alone");
        assert!(!slices.applied(slice("a", 6, "10.0.0.1")), "old");
        assert!(slices.deleted(&slice("a", 8, "10.0.0.9")));
        assert!(!slices.deleted(&slice("a", 8, "10.0.0.9")));
        assert_eq!(slices.version(), 8);
    }

    #[test]
    fn what_was_read_is_not_undone_by_events_from_before() {
        let mut slices = listed(vec![slice("a", 1, "10.0.0.1")], 5);
        assert!(slices.read(vec![], 20));
        assert!(!slices.applied(slice("a", 10, "10.0.0.2")));
        assert!(!slices.deleted(&slice("a", 15, "10.0.0.2")));
        assert!(slices.applied(slice("b", 21, "10.0.0.3")));
        assert!(!slices.read(vec![], 20), "an older list");
        assert_eq!(names(&slices), ["b"]);
    }
}
