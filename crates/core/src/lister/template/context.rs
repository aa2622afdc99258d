//! What a template sees.

use minijinja::context;
use minijinja::value::Value;

use crate::lister::endpoints::{Endpoint, Port};

/// What a page is made of.
///
/// In a template:
///
/// | name | what it is |
/// | --- | --- |
/// | `service`, `namespace` | of the Service |
/// | `count` | how many endpoints there are |
/// | `addresses` | every address once, in order |
/// | `endpoints` | the endpoints, in order, see below |
/// | `history` | a relative link to earlier pages, or none |
///
/// and of each endpoint:
///
/// | name | what it is |
/// | --- | --- |
/// | `address` | such as `10.0.0.7`, `2001:db8::7`, `www.example.org` |
/// | `host` | the same as it stands before a port: IPv6 in brackets |
/// | `family` | `ipv4`, `ipv6` or `fqdn` |
/// | `ports` | each with `port`, `name`, `protocol`, `app_protocol` |
/// | `pod`, `node`, `zone`, `hostname` | names, or none |
/// | `ready`, `serving`, `terminating` | true or false |
///
/// Every name is always there: what is absent is none, so that only a name that is misspelt is undefined. There is
/// no clock and no chance in it: equal facts give equal bytes. The JSON page that is made without a template has
/// exactly these names.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The Service's name.
    pub service: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its endpoints, as [`merge`](crate::lister::merge) gave them.
    pub endpoints: &'a [Endpoint],
    /// A relative link to earlier pages, where they are kept.
    pub history: Option<&'a str>,
}

impl Facts<'_> {
    pub(super) fn value(&self) -> Value {
        let Self { service, namespace, endpoints, history } = *self;
        // They are sorted by address, so equal ones stand together.
        let mut addresses: Vec<_> = endpoints.iter().map(|endpoint| &endpoint.address).collect();
        addresses.dedup();
        context! {
            service,
            namespace,
            count => endpoints.len(),
            addresses => addresses.into_iter().map(|address| Value::from(address.to_string())).collect::<Value>(),
            endpoints => endpoints.iter().map(endpoint).collect::<Value>(),
            history => text(history),
        }
    }
}

fn endpoint(endpoint: &Endpoint) -> Value {
    let Endpoint { address, uid: _, pod, node, zone, hostname, ports, ready, serving, terminating } =
        endpoint;
    context! {
        address => address.to_string(),
        host => address.host(),
        family => address.family(),
        ports => ports.iter().map(port).collect::<Value>(),
        pod => text(pod.as_deref()),
        node => text(node.as_deref()),
        zone => text(zone.as_deref()),
        hostname => text(hostname.as_deref()),
        ready => *ready,
        serving => *serving,
        terminating => *terminating,
    }
}

fn port(port: &Port) -> Value {
    let Port { port, name, protocol, app_protocol } = port;
    context! {
        port => port.map_or_else(none, Value::from),
        name => text(name.as_deref()),
        protocol => protocol.as_str(),
        app_protocol => text(app_protocol.as_deref()),
    }
}

fn text(text: Option<&str>) -> Value {
    text.map_or_else(none, Value::from)
}

fn none() -> Value {
    Value::from(())
}
