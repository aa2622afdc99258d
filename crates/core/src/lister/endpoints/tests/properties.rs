//! What must hold for any slices.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

fn endpoint() -> impl Strategy<Value = Value> {
    let address = prop_oneof!["10\\.0\\.0\\.[1-4]", "2001:(db8|DB8)::[1-3]", "[ab]"];
    let conditions = (option::of(any::<bool>()), option::of(any::<bool>()), option::of(any::<bool>()));
    let target = option::of(("Pod|Node", "[ab]", "[uv]"));
    (vec(address, 0..3), conditions, target, option::of("[mn]"), option::of("[yz]")).prop_map(
        |(addresses, (ready, serving, terminating), target, node, zone)| {
            let target = target.map(|(kind, name, uid)| json!({ "kind": kind, "name": name, "uid": uid }));
            json!({
                "addresses": addresses,
                "conditions": { "ready": ready, "serving": serving, "terminating": terminating },
                "targetRef": target, "nodeName": node, "zone": zone,
            })
        },
    )
}

fn slices() -> impl Strategy<Value = Vec<Value>> {
    let port = (option::of("http|dns"), option::of(79..82), option::of("TCP|UDP"))
        .prop_map(|(name, port, protocol)| json!({ "name": name, "port": port, "protocol": protocol }));
    let slice = (vec(endpoint(), 0..5), vec(port, 0..3))
        .prop_map(|(endpoints, ports)| json!({ "endpoints": endpoints, "ports": ports }));
    vec(slice, 0..5)
}

fn select() -> impl Strategy<Value = Select> {
    prop_oneof![Just(Select::Ready), Just(Select::Serving), Just(Select::All)]
}

fn read(slices: &[Value]) -> Vec<Slice> {
    slices.iter().map(slice).collect()
}

proptest! {
    #[test]
    fn neither_order_of_slices_nor_of_endpoints_matters(
        (whole, shuffled) in slices().prop_flat_map(|slices| (Just(slices.clone()), Just(slices).prop_shuffle())),
        select in select(),
    ) {
        let mut turned = shuffled;
        for slice in &mut turned {
            for list in ["endpoints", "ports"] {
                slice[list].as_array_mut().unwrap().reverse();
            }
        }
        prop_assert_eq!(merge(&read(&whole), select), merge(&read(&turned), select));
    }

    #[test]
    fn what_is_said_twice_is_said_once(slices in slices(), select in select()) {
        let slices = read(&slices);
        prop_assert_eq!(merge(&slices, select), merge(slices.iter().chain(&slices), select));
    }

    #[test]
    fn how_endpoints_are_cut_into_slices_does_not_matter(slices in slices(), select in select()) {
        let mut cut = Vec::new();
        for slice in &slices {
            for endpoint in slice["endpoints"].as_array().unwrap() {
                cut.push(json!({ "endpoints": [endpoint], "ports": slice["ports"] }));
            }
        }
        prop_assert_eq!(merge(&read(&slices), select), merge(&read(&cut), select));
    }

    #[test]
    fn each_endpoint_stands_there_once_and_in_order(slices in slices(), select in select()) {
        let found = merge(&read(&slices), select);
        let keys = |endpoint: &Endpoint| (endpoint.address.clone(), endpoint.uid.clone());
        prop_assert!(found.windows(2).all(|pair| keys(&pair[0]) < keys(&pair[1])));
    }

    #[test]
    fn fewer_are_chosen_of_the_same(slices in slices()) {
        let slices = read(&slices);
        let all = merge(&slices, Select::All);
        for select in [Select::Ready, Select::Serving] {
            prop_assert!(merge(&slices, select).iter().all(|endpoint| all.contains(endpoint)));
        }
    }

    #[test]
    fn any_text_is_an_address_that_reads_back(text in "\\PC{1,30}") {
        let address = Address::new(&text);
        prop_assert_eq!(Address::new(&address.to_string()), address);
    }
}
