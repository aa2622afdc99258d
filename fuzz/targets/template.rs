//! Anything at all for a template: it is refused, stopped, or makes a page; never for long, and never a large one.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use perennial_core::lister::{Endpoint, Facts, Format, MAX_PAGE, Select, Slice, Template, merge};
use serde_json::json;

static ENDPOINTS: LazyLock<Vec<Endpoint>> = LazyLock::new(|| {
    let endpoint =
        |number: u8| json!({ "addresses": [format!("10.0.0.{number}")], "targetRef": { "name": "<&>" } });
    let slice = json!({
        "addressType": "IPv4",
        "ports": [{ "name": "http", "port": 80, "protocol": "TCP" }],
        "endpoints": (1..=9).map(endpoint).collect::<Vec<_>>(),
    });
    let slice: Slice = serde_json::from_value(slice).expect("a slice");
    merge([&slice], Select::All)
});

fuzz_target!(|text: &str| {
    for format in [Format::Html, Format::Json, Format::Text] {
        let Ok(template) = Template::new(text, format) else { continue };
        let facts =
            Facts { service: "shop", namespace: "default", endpoints: &ENDPOINTS, history: Some("history/") };
        let made = template.render(&facts);
        assert!(made.as_ref().is_ok_and(|page| page.len() <= MAX_PAGE) || made.is_err());
        assert_eq!(made.ok(), template.render(&facts).ok(), "equal facts give equal pages");
    }
});
