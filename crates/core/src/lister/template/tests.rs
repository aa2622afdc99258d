//! What templates may do, what they may not, and the pages that are made without one.

mod broken;
mod hostile;
mod language;
mod pages;

use serde_json::json;

use super::*;
use crate::lister::endpoints::{Endpoint, Select, Slice, merge};

/// So many endpoints, all alike.
fn endpoints(count: u32) -> Vec<Endpoint> {
    let endpoint = |number: u32| {
        let [_, b, c, d] = number.to_be_bytes();
        json!({
            "addresses": [format!("10.{b}.{c}.{d}")],
            "targetRef": { "kind": "Pod", "name": format!("web-5d8f9-{number}"), "uid": number.to_string() },
            "nodeName": format!("worker-{}", number % 50),
            "zone": format!("zone-{}", number % 3),
        })
    };
    let slice = json!({
        "endpoints": (0..count).map(endpoint).collect::<Vec<_>>(),
        "ports": [{ "name": "http", "port": 8080 }],
    });
    merge([&serde_json::from_value::<Slice>(slice).unwrap()], Select::Ready)
}

fn facts(endpoints: &[Endpoint]) -> Facts<'_> {
    Facts { service: "web", namespace: "shop", endpoints, history: None }
}

/// The page of a template, for so many endpoints.
fn render(source: &str, format: Format, count: u32) -> Result<String, TemplateError> {
    Template::new(source, format)?.render(&facts(&endpoints(count)))
}

/// The text page of a template, for three endpoints.
fn text(source: &str) -> String {
    render(source, Format::Text, 3).unwrap_or_else(|error| panic!("{source}\n{error}"))
}

/// What is said of a template that gives no page.
fn error(source: &str) -> TemplateError {
    match render(source, Format::Text, 3) {
        Ok(page) => panic!("{source}\n{page}"),
        Err(error) => error,
    }
}
