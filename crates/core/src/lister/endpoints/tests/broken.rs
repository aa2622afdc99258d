//! Slices as the API server would never send them: each is read or refused, and nothing panics.

use super::*;

#[test]
fn wrong_types_are_refused() {
    for broken in [
        json!(null),
        json!("slice"),
        json!(1),
        json!({ "endpoints": {} }),
        json!({ "endpoints": "none" }),
        json!({ "endpoints": [null] }),
        json!({ "endpoints": [{ "addresses": "10.0.0.1" }] }),
        json!({ "endpoints": [{ "addresses": [1] }] }),
        json!({ "endpoints": [{ "addresses": [null] }] }),
        json!({ "endpoints": [{ "conditions": { "ready": "yes" } }] }),
        json!({ "endpoints": [{ "targetRef": "pod" }] }),
        json!({ "endpoints": [{ "nodeName": 7 }] }),
        json!({ "ports": [null] }),
        json!({ "ports": [{ "port": "80" }] }),
        json!({ "ports": [{ "port": 80.5 }] }),
        json!({ "ports": [{ "name": 80 }] }),
    ] {
        assert!(serde_json::from_value::<Slice>(broken.clone()).is_err(), "{broken}");
    }
    for text in ["", "{", "{\"ports\": [{\"port\": 99999999999999999999}]}"] {
        assert!(serde_json::from_str::<Slice>(text).is_err(), "{text}");
    }
}

#[test]
fn nulls_and_missing_fields_are_absent() {
    for empty in [json!({}), json!({ "endpoints": null, "ports": null }), json!({ "unheard": [{ "of": 1 }] })]
    {
        assert_eq!(slice(&empty), Slice::default());
    }
    let nulls = json!({
        "endpoints": [
            { "addresses": null },
            {
                "addresses": ["10.0.0.1"], "conditions": null, "targetRef": null, "nodeName": null, "zone": null,
                "hostname": null,
            },
            { "addresses": ["10.0.0.2"], "targetRef": { "kind": null, "name": null, "uid": null } },
        ],
        "ports": [{ "name": null, "port": null, "protocol": null, "appProtocol": null }],
    });
    let found = merged([nulls], Select::Ready);
    assert_eq!(addresses(&found), ["10.0.0.1", "10.0.0.2"]);
    let any = Port { port: None, name: None, protocol: "TCP".into(), app_protocol: None };
    for Endpoint { uid, pod, node, zone, hostname, ports, .. } in found {
        assert_eq!([uid, pod, node, zone, hostname], [const { None }; 5]);
        assert_eq!(ports, [any.clone()].into());
    }
}

#[test]
fn addresses_that_are_none_stay_as_they_are() {
    let odd = ["010.0.0.1", "10.0.0.256", "fe80::1%eth0", "<b>", "a b", "..", "Ünïcode", "10.0.0.1:80"];
    let endpoints: Vec<_> = odd.iter().map(|text| json!({ "addresses": [text] })).collect();
    let found = merged([json!({ "addressType": "IPv9", "endpoints": endpoints })], Select::All);
    let mut expected = odd.map(String::from);
    expected.sort();
    assert_eq!(addresses(&found), expected);
    assert!(found.iter().all(|endpoint| endpoint.address.family() == "fqdn"));
}

#[test]
fn an_empty_address_is_none() {
    assert_eq!(merged([of([json!({ "addresses": [""] })])], Select::All), []);
}

#[test]
fn absurd_ports_are_left_out_and_the_endpoint_stays() {
    let ports: Vec<_> =
        [0, -1, 65_536, i64::MAX, i64::MIN, 65_535].map(|port| json!({ "port": port })).into();
    let found =
        merged([json!({ "endpoints": [{ "addresses": ["10.0.0.1"] }], "ports": ports })], Select::All);
    let ports: Vec<_> = found[0].ports.iter().map(|port| port.port).collect();
    assert_eq!(ports, [Some(65_535)]);
}
