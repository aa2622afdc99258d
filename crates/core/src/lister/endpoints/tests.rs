//! The rules of the merge, row by row, and what must hold for any slices.

mod broken;
mod properties;

use serde_json::{Value, json};

use super::*;

fn slice(value: &Value) -> Slice {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{value}\n{error}"))
}

/// The merge of some slices.
fn merged<const N: usize>(slices: [Value; N], select: Select) -> Vec<Endpoint> {
    merge(&slices.map(|value| slice(&value)), select)
}

/// A slice with these endpoints and port 80.
fn of<const N: usize>(endpoints: [Value; N]) -> Value {
    let endpoints = Vec::from(endpoints);
    json!({ "addressType": "IPv4", "endpoints": endpoints, "ports": [{ "name": "http", "port": 80, "protocol": "TCP" }] })
}

fn addresses(endpoints: &[Endpoint]) -> Vec<String> {
    endpoints.iter().map(|endpoint| endpoint.address.to_string()).collect()
}

#[test]
fn an_endpoint_is_read_whole() {
    let whole = json!({
        "addresses": ["10.0.0.7"],
        "conditions": { "ready": true, "serving": true, "terminating": false },
        "targetRef": { "kind": "Pod", "namespace": "web", "name": "nginx-7", "uid": "u7" },
        "nodeName": "worker-1",
        "zone": "fra1",
        "hostname": "nginx-7",
        "hints": { "forZones": [{ "name": "fra1" }] },
        "deprecatedTopology": { "a": "b" },
    });
    let mut of_one = of([whole]);
    of_one["ports"][0]["appProtocol"] = json!("kubernetes.io/h2c");
    let port = Port {
        port: Some(80),
        name: Some("http".into()),
        protocol: "TCP".into(),
        app_protocol: Some("kubernetes.io/h2c".into()),
    };
    let expected = Endpoint {
        address: Address::V4(Ipv4Addr::new(10, 0, 0, 7)),
        uid: Some("u7".into()),
        pod: Some("nginx-7".into()),
        node: Some("worker-1".into()),
        zone: Some("fra1".into()),
        hostname: Some("nginx-7".into()),
        ports: [port].into(),
        ready: true,
        serving: true,
        terminating: false,
    };
    assert_eq!(merged([of_one], Select::Ready), [expected]);
}

#[test]
fn the_first_address_alone_counts() {
    let several = json!({ "addresses": ["10.0.0.2", "10.0.0.1"] });
    let found = merged([of([several, json!({ "addresses": [] }), json!({})])], Select::All);
    assert_eq!(addresses(&found), ["10.0.0.2"]);
}

#[test]
fn absent_conditions_have_their_meaning() {
    let conditions = |conditions: Value| {
        let found =
            merged([of([json!({ "addresses": ["10.0.0.1"], "conditions": conditions })])], Select::All);
        (found[0].ready, found[0].serving, found[0].terminating)
    };
    assert_eq!(conditions(json!({})), (true, true, false));
    assert_eq!(conditions(Value::Null), (true, true, false));
    assert_eq!(conditions(json!({ "ready": null, "serving": null })), (true, true, false));
    assert_eq!(conditions(json!({ "ready": false })), (false, false, false));
    assert_eq!(
        conditions(json!({ "ready": false, "serving": true, "terminating": true })),
        (false, true, true)
    );
}

#[test]
fn what_is_listed_is_a_choice() {
    let endpoint = |address: &str, ready: bool, serving: bool| json!({ "addresses": [address], "conditions": { "ready": ready, "serving": serving, "terminating": !ready } });
    let slices = || {
        [of([
            endpoint("10.0.0.1", true, true),
            endpoint("10.0.0.2", false, true),
            endpoint("10.0.0.3", false, false),
        ])]
    };
    assert_eq!(addresses(&merged(slices(), Select::Ready)), ["10.0.0.1"]);
    assert_eq!(addresses(&merged(slices(), Select::Serving)), ["10.0.0.1", "10.0.0.2"]);
    assert_eq!(addresses(&merged(slices(), Select::All)), ["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
}

#[test]
fn one_endpoint_in_two_slices_is_one() {
    let said = |ready: bool, terminating: bool, port: u16| {
        json!({
            "endpoints": [{
                "addresses": ["10.0.0.1"],
                "targetRef": { "kind": "Pod", "uid": "u1" },
                "conditions": { "ready": ready, "terminating": terminating },
            }],
            "ports": [{ "port": port }],
        })
    };
    for slices in
        [[said(true, false, 80), said(false, true, 443)], [said(false, true, 443), said(true, false, 80)]]
    {
        let found = merged(slices, Select::Ready);
        let ports: Vec<_> = found[0].ports.iter().map(|port| port.port).collect();
        assert_eq!((found.len(), ports), (1, vec![Some(80), Some(443)]));
        assert!(found[0].ready && !found[0].terminating);
    }
    let gone = merged([said(false, true, 80), said(false, true, 80)], Select::All);
    assert!(gone.len() == 1 && gone[0].terminating && !gone[0].ready);
}

#[test]
fn one_address_of_two_pods_is_two_endpoints() {
    let of_pod = |uid: &str| json!({ "addresses": ["10.0.0.1"], "targetRef": { "kind": "Pod", "uid": uid } });
    let found = merged([of([of_pod("u2")]), of([of_pod("u1")])], Select::All);
    let uids: Vec<_> = found.iter().map(|endpoint| endpoint.uid.as_deref()).collect();
    assert_eq!(uids, [Some("u1"), Some("u2")]);
}

#[test]
fn both_families_are_listed_and_numbers_are_sorted_as_numbers() {
    let at = |address: &str| json!({ "addresses": [address] });
    let found = merged(
        [
            of([at("10.0.0.10"), at("10.0.0.9"), at("9.0.0.1")]),
            of([at("2001:db8::10"), at("2001:DB8:0:0::9"), at("2001:db8::9")]),
            of([at("b.example.org"), at("a.example.org")]),
        ],
        Select::All,
    );
    let expected =
        ["9.0.0.1", "10.0.0.9", "10.0.0.10", "2001:db8::9", "2001:db8::10", "a.example.org", "b.example.org"];
    assert_eq!(addresses(&found), expected);
    let families: Vec<_> = found.iter().map(|endpoint| endpoint.address.family()).collect();
    assert_eq!(families, ["ipv4", "ipv4", "ipv4", "ipv6", "ipv6", "fqdn", "fqdn"]);
    assert_eq!(
        (found[0].address.host(), found[3].address.host()),
        ("9.0.0.1".into(), "[2001:db8::9]".into())
    );
}

#[test]
fn only_a_pod_has_a_pods_name() {
    let of_kind = |kind: &str| {
        let target = json!({ "kind": kind, "name": "x", "uid": "u" });
        merged([of([json!({ "addresses": ["10.0.0.1"], "targetRef": target })])], Select::All)[0].pod.clone()
    };
    assert_eq!((of_kind("Pod"), of_kind("VirtualMachine")), (Some("x".into()), None));
}
