use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Everything that can be said.
fn whole() -> Value {
    json!({
        "service": "web",
        "endpoints": "serving",
        "template": { "format": "text", "inline": "{{ count }}", "contentType": "text/csv" },
        "destinations": [
            {
                "name": "bucket",
                "s3": {
                    "endpoint": "https://s3.example.com",
                    "bucket": "pages",
                    "key": "web/index.csv",
                    "acl": "public-read",
                    "credentials": { "secret": "bucket" },
                    "ca": { "name": "authorities", "key": "ca.pem" },
                    "history": { "keep": 10, "maxAge": "24h" },
                },
            },
            { "name": "map", "configMap": { "name": "out" } },
        ],
        "pace": { "min": "1s", "max": "1m" },
        "guards": { "minEndpoints": 2, "maxShrinkPercent": 50 },
    })
}

/// The same with something else somewhere.
fn with(pointer: &str, value: Value) -> Value {
    let mut spec = whole();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    spec.pointer_mut(parent).unwrap()[key] = value;
    spec
}

#[test]
fn the_least_spec_is_a_page_for_people_that_is_served_alone() {
    let order = Order::from_value(&json!({ "service": "web" })).unwrap();
    assert_eq!((order.service.as_str(), order.select, order.format), ("web", Select::Ready, Format::Html));
    assert_eq!((order.template, order.places), (Source::BuiltIn, vec![]));
    assert_eq!((order.pace.min(), order.pace.max()), (Duration::from_millis(250), Duration::from_secs(1)));
    assert_eq!(order.guards, Guards::default());
    assert_eq!(order.content_type, "text/html; charset=utf-8");
}

#[test]
fn everything_that_can_be_said_is_understood() {
    let order = Order::from_value(&whole()).unwrap();
    assert_eq!((order.select, order.format), (Select::Serving, Format::Text));
    assert_eq!(order.template, Source::Text("{{ count }}".to_owned()));
    assert_eq!(order.content_type, "text/csv");
    assert_eq!(order.guards, Guards { min_endpoints: 2, max_shrink_percent: Some(50) });
    assert_eq!(order.history_link().as_deref(), Some("history/index.html"));
    let [Place { kind: PlaceKind::S3(bucket), .. }, Place { kind: PlaceKind::ConfigMap { name, key }, .. }] =
        order.places.as_slice()
    else {
        panic!("{:?}", order.places)
    };
    assert_eq!(bucket.acl, Some(CannedAcl::PublicRead));
    assert_eq!(bucket.endpoint.as_deref(), Some("https://s3.example.com"));
    assert_eq!((name.as_str(), key.as_str()), ("out", "index.html"));
}

#[test]
fn what_cannot_be_done_is_refused_by_name() {
    for (broken, named) in [
        (with("/pace/min", json!("soon")), "spec.pace.min"),
        (with("/pace/max", json!("10ms")), "spec.pace"),
        (with("/pace/max", json!("-1s")), "spec.pace.max"),
        (with("/pace/max", json!("1000h")), "spec.pace.max"),
        (with("/template/contentType", json!("a\nb")), "spec.template.contentType"),
        (with("/template/configMap", json!({ "name": "a", "key": "b" })), "spec.template"),
        (with("/destinations/1/name", json!("bucket")), "spec.destinations"),
        (with("/destinations/1/s3", whole()["destinations"][0]["s3"].clone()), "spec.destinations[map]"),
        (with("/destinations/1/configMap", Value::Null), "spec.destinations[map]"),
        (
            with("/destinations/0/s3/history/maxAge", json!("long")),
            "spec.destinations[bucket].s3.history.maxAge",
        ),
        (with("/destinations/0/s3/history/prefix", json!("../")), "spec.destinations[bucket].s3.history"),
        (with("/destinations/0/s3/history/keep", json!(0)), "spec.destinations[bucket].s3.history"),
        (with("/destinations/0/s3/acl", json!("everybody")), "spec"),
        (with("/service", json!(7)), "spec"),
        (with("/endpoints", json!("some")), "spec"),
        (json!(null), "spec"),
        (json!({}), "spec"),
        (json!([]), "spec"),
    ] {
        let error = Order::from_value(&broken).expect_err(named).to_string();
        assert!(error.starts_with(&format!("{named}: ")), "{named}: {error}");
    }
}

proptest! {
    #[test]
    fn any_text_for_a_duration_is_read_or_refused(text in ".{0,20}") {
        let read = Order::from_value(&with("/pace/max", json!(text)));
        prop_assert!(read.is_ok() || read.is_err_and(|error| error.to_string().starts_with("spec.pace")));
    }
}
