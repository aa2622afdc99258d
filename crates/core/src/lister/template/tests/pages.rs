//! The pages that are made where no template is named, against files that show them whole.

use serde_json::Value;

use super::*;

/// A Service that has everything a page can show.
fn mixed() -> Vec<Endpoint> {
    let slice = |value: Value| serde_json::from_value::<Slice>(value).unwrap();
    let slices = [
        slice(json!({
            "endpoints": [
                {
                    "addresses": ["10.0.0.10"], "nodeName": "worker-2", "zone": "fra1",
                    "targetRef": { "kind": "Pod", "name": "web-5d8f9c7b6-x2x8k", "uid": "u2" },
                },
                {
                    "addresses": ["10.0.0.9"], "nodeName": "worker-1", "zone": "ams3", "hostname": "web-0",
                    "conditions": { "ready": false, "serving": true, "terminating": true },
                    "targetRef": { "kind": "Pod", "name": "web-5d8f9c7b6-7k2lq", "uid": "u1" },
                },
                { "addresses": ["10.0.0.11"], "conditions": { "ready": false } },
                { "addresses": ["10.0.0.12"], "conditions": { "ready": false, "serving": true } },
            ],
            "ports": [
                { "name": "http", "port": 8080, "appProtocol": "kubernetes.io/h2c" },
                { "name": "quic", "port": 8443, "protocol": "UDP" },
            ],
        })),
        slice(
            json!({ "endpoints": [{ "addresses": ["2001:db8::9"], "nodeName": "worker-1", "zone": "ams3" }], "ports": [{ "port": null }] }),
        ),
        slice(
            json!({ "endpoints": [{ "addresses": ["<script>alert(1)</script>"], "nodeName": "a \"quoted\" & node" }] }),
        ),
    ];
    merge(&slices, Select::All)
}

fn shown(format: Format, endpoints: &[Endpoint], history: Option<&str>) -> String {
    let facts = Facts { service: "web", namespace: "shop", endpoints, history };
    Template::standard(format).render(&facts).unwrap()
}

/// Where a page should look otherwise now, put the text that this shows into the file.
fn same(page: &str, expected: &str, file: &str) {
    assert!(page == expected, "{file} should be:\n{page}");
}

#[test]
fn the_pages_of_a_mixed_service() {
    let (mixed, history) = (mixed(), Some("history/index.html"));
    same(&shown(Format::Html, &mixed, history), include_str!("expected/mixed.html"), "mixed.html");
    same(&shown(Format::Json, &mixed, history), include_str!("expected/mixed.json"), "mixed.json");
    same(&shown(Format::Text, &mixed, history), include_str!("expected/mixed.txt"), "mixed.txt");
}

#[test]
fn the_pages_of_an_empty_service() {
    same(&shown(Format::Html, &[], None), include_str!("expected/empty.html"), "empty.html");
    same(&shown(Format::Json, &[], None), include_str!("expected/empty.json"), "empty.json");
    same(&shown(Format::Text, &[], None), "", "the text page");
}

/// The templates that come with the binary pass the same check as everybody's.
#[test]
fn they_are_sound() {
    for format in [Format::Html, Format::Json, Format::Text] {
        let standard = Template::standard(format);
        assert_eq!(Template::new(standard.source(), format), Ok(standard));
    }
    assert!(Template::standard(Format::Html).source().len() < 6 * 1024);
}

#[test]
fn the_json_page_is_json_with_every_name_there() {
    let page: Value = serde_json::from_str(&shown(Format::Json, &mixed(), None)).unwrap();
    assert_eq!((&page["count"], &page["history"]), (&json!(6), &Value::Null));
    let endpoints = page["endpoints"].as_array().unwrap();
    assert_eq!(
        endpoints[1],
        json!({
            "address": "10.0.0.10", "host": "10.0.0.10", "family": "ipv4", "hostname": null,
            "pod": "web-5d8f9c7b6-x2x8k", "node": "worker-2", "zone": "fra1",
            "ready": true, "serving": true, "terminating": false,
            "ports": [
                { "port": 8080, "name": "http", "protocol": "TCP", "app_protocol": "kubernetes.io/h2c" },
                { "port": 8443, "name": "quic", "protocol": "UDP", "app_protocol": null },
            ],
        })
    );
    assert!(endpoints.iter().all(|endpoint| endpoint.as_object().unwrap().len() == 11));
    assert_eq!(endpoints[5]["address"], "<script>alert(1)</script>");
}

#[test]
fn values_are_escaped_for_what_the_page_is_written_in() {
    let html = shown(Format::Html, &mixed(), Some("\"><script>"));
    assert!(!html.contains("<script"), "{html}");
    assert!(html.contains("&lt;script&gt;alert(1)") && html.contains("a &quot;quoted&quot; &amp; node"));
    assert!(shown(Format::Text, &mixed(), None).contains("<script>alert(1)</script>\n"));
}

#[test]
fn the_html_page_needs_nothing_from_elsewhere() {
    let html = shown(Format::Html, &mixed(), Some("history/"));
    for outside in ["http://", "https://", "url(", "@import", "<script", "<link", "<img", " src="] {
        assert!(!html.contains(outside), "{outside}");
    }
    for part in [
        "<html lang=",
        "<title>web: 6 endpoints</title>",
        "<main>",
        "<header>",
        "<footer>",
        "scope=\"col\"",
        "scope=\"row\"",
        "prefers-color-scheme: dark",
    ] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn one_address_of_two_pods_is_one_line_of_text() {
    let endpoint =
        |uid: &str| json!({ "addresses": ["10.0.0.1"], "targetRef": { "kind": "Pod", "uid": uid } });
    let slice: Slice =
        serde_json::from_value(json!({ "endpoints": [endpoint("u1"), endpoint("u2")] })).unwrap();
    assert_eq!(shown(Format::Text, &merge([&slice], Select::All), None), "10.0.0.1\n");
}

#[test]
fn a_page_of_ten_thousand_rows_is_well_within_the_limits() {
    let many = endpoints(10_000);
    for (format, line) in [(Format::Html, "<tr>"), (Format::Json, "\"host\""), (Format::Text, "\n")] {
        let page = shown(format, &many, None);
        let rows = page.matches(line).count() - usize::from(format == Format::Html);
        assert_eq!(rows, 10_000);
        assert!(page.len() < MAX_PAGE / 3, "{} bytes", page.len());
    }
}
