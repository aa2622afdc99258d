//! What the lister reads of an EndpointSlice.

use serde::{Deserialize, Deserializer};

use super::{Address, Endpoint, Port};

/// A `discovery.k8s.io/v1` EndpointSlice, without its metadata. `null` is absent, as everywhere in Kubernetes, and
/// what is not read is ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Slice {
    #[serde(default, deserialize_with = "null_is_absent")]
    endpoints: Vec<RawEndpoint>,
    #[serde(default, deserialize_with = "null_is_absent")]
    ports: Vec<RawPort>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEndpoint {
    #[serde(default, deserialize_with = "null_is_absent")]
    addresses: Vec<String>,
    #[serde(default, deserialize_with = "null_is_absent")]
    conditions: Conditions,
    target_ref: Option<Target>,
    node_name: Option<String>,
    zone: Option<String>,
    hostname: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
struct Conditions {
    ready: Option<bool>,
    serving: Option<bool>,
    terminating: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Target {
    kind: Option<String>,
    name: Option<String>,
    uid: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPort {
    name: Option<String>,
    port: Option<i64>,
    protocol: Option<String>,
    app_protocol: Option<String>,
}

impl Slice {
    /// What it says, endpoint by endpoint.
    pub(super) fn endpoints(&self) -> impl Iterator<Item = Endpoint> {
        let ports: Vec<Port> = self.ports.iter().filter_map(RawPort::port).collect();
        self.endpoints.iter().filter_map(move |endpoint| {
            let mut said = endpoint.endpoint()?;
            said.ports = ports.iter().cloned().collect();
            Some(said)
        })
    }
}

impl RawEndpoint {
    /// Without its ports, which are the slice's.
    fn endpoint(&self) -> Option<Endpoint> {
        let Self { addresses, conditions, target_ref, node_name, zone, hostname } = self;
        let ready = conditions.ready.unwrap_or(true);
        let pod = target_ref.as_ref().filter(|target| target.kind.as_deref() == Some("Pod"));
        Some(Endpoint {
            address: Address::new(addresses.first().filter(|address| !address.is_empty())?),
            uid: target_ref.as_ref().and_then(|target| filled(target.uid.as_ref())),
            pod: pod.and_then(|target| filled(target.name.as_ref())),
            node: filled(node_name.as_ref()),
            zone: filled(zone.as_ref()),
            hostname: filled(hostname.as_ref()),
            ports: std::collections::BTreeSet::new(),
            ready,
            serving: conditions.serving.unwrap_or(ready),
            terminating: conditions.terminating.unwrap_or(false),
        })
    }
}

impl RawPort {
    /// None where the number is no port: the endpoint is there all the same.
    fn port(&self) -> Option<Port> {
        let Self { name, port, protocol, app_protocol } = self;
        Some(Port {
            port: match port {
                Some(number) => Some(u16::try_from(*number).ok().filter(|port| *port > 0)?),
                None => None,
            },
            name: filled(name.as_ref()),
            protocol: filled(protocol.as_ref()).unwrap_or_else(|| "TCP".to_owned()),
            app_protocol: filled(app_protocol.as_ref()),
        })
    }
}

/// Go writes an absent text as an empty one where the field is no pointer.
fn filled(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

fn null_is_absent<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}
