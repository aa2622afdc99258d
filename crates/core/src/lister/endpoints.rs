//! A Service's endpoints, as one list.
//!
//! The API server tells of them in any number of EndpointSlices: one endpoint may stand in several while it moves
//! from one to another, and slices come in no order. [`merge`] makes one list of them that depends on nothing but
//! what they say, so that equal state gives equal pages.

mod slice;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

pub use slice::Slice;

/// Which endpoints are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Select {
    /// Those that want traffic.
    #[default]
    Ready,
    /// Those that can answer, also while they terminate.
    Serving,
    /// All of them.
    All,
}

/// Where an endpoint is reached. The order is that of pages: by family, and numbers as numbers.
///
/// The text alone decides what it is, not the slice's `addressType`: so the same text is the same address, whatever
/// slice it stands in, and what is no IP address stays as it was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// An IPv6 address.
    V6(Ipv6Addr),
    /// A name, or whatever else was written.
    Name(String),
}

impl Address {
    /// What a text is. Spellings of one IP address are one address.
    #[must_use]
    pub fn new(text: &str) -> Self {
        match text.parse() {
            Ok(IpAddr::V4(address)) => Self::V4(address),
            Ok(IpAddr::V6(address)) => Self::V6(address),
            Err(_) => Self::Name(text.to_owned()),
        }
    }

    /// The family, as templates see it.
    #[must_use]
    pub fn family(&self) -> &'static str {
        match self {
            Self::V4(_) => "ipv4",
            Self::V6(_) => "ipv6",
            Self::Name(_) => "fqdn",
        }
    }

    /// As it stands before a port: an IPv6 address in brackets.
    #[must_use]
    pub fn host(&self) -> String {
        match self {
            Self::V6(address) => format!("[{address}]"),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(address) => address.fmt(f),
            Self::V6(address) => address.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

/// A port of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port {
    /// The number; none stands for every port.
    pub port: Option<u16>,
    /// The name, where it has one.
    pub name: Option<String>,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// What is spoken there, where the Service says so.
    pub app_protocol: Option<String>,
}

/// One endpoint of a Service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// Where it is reached.
    pub address: Address,
    /// The uid of the object behind it.
    pub uid: Option<String>,
    /// The Pod's name, where a Pod is behind it.
    pub pod: Option<String>,
    /// The node it runs on.
    pub node: Option<String>,
    /// The zone of that node.
    pub zone: Option<String>,
    /// Its host name, where the Pod sets one.
    pub hostname: Option<String>,
    /// Its ports, in order.
    pub ports: BTreeSet<Port>,
    /// It wants traffic.
    pub ready: bool,
    /// It can answer.
    pub serving: bool,
    /// It is about to go.
    pub terminating: bool,
}

impl Endpoint {
    /// Takes in what another slice says of the same endpoint. The order does not matter.
    fn unite(&mut self, other: Self) {
        let Self { address: _, uid: _, pod, node, zone, hostname, ports, ready, serving, terminating } =
            other;
        for (mine, theirs) in [
            (&mut self.pod, pod),
            (&mut self.node, node),
            (&mut self.zone, zone),
            (&mut self.hostname, hostname),
        ] {
            // Slices of one endpoint agree on these. Where they do not, one is chosen by nothing but its text.
            *mine = match (mine.take(), theirs) {
                (Some(mine), Some(theirs)) => Some(mine.min(theirs)),
                (mine, theirs) => mine.or(theirs),
            };
        }
        self.ports.extend(ports);
        self.ready |= ready;
        self.serving |= serving;
        self.terminating &= terminating;
    }
}

/// Makes one list of all slices of a Service, each endpoint once, in order.
///
/// | in the slices | in the list |
/// | --- | --- |
/// | several addresses for one endpoint | the first alone, as kube-proxy has it |
/// | no address, or an empty one | left out |
/// | no `ready` | ready |
/// | no `serving` | as `ready` |
/// | no `terminating` | not terminating |
/// | the same address and target uid again | one endpoint: ready or serving if any says so, terminating if all do, with the ports of all |
#[must_use]
pub fn merge<'a>(slices: impl IntoIterator<Item = &'a Slice>, select: Select) -> Vec<Endpoint> {
    let mut merged: BTreeMap<(Address, Option<String>), Endpoint> = BTreeMap::new();
    for endpoint in slices.into_iter().flat_map(Slice::endpoints) {
        let key = (endpoint.address.clone(), endpoint.uid.clone());
        match merged.get_mut(&key) {
            Some(known) => known.unite(endpoint),
            None => {
                merged.insert(key, endpoint);
            }
        }
    }
    let selected = |endpoint: &Endpoint| match select {
        Select::Ready => endpoint.ready,
        Select::Serving => endpoint.serving,
        Select::All => true,
    };
    merged.into_values().filter(selected).collect()
}

#[cfg(test)]
mod tests;
