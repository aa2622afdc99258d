//! What a request asks for, in the words of the Kubernetes API.

use std::fmt;

use http::{Method, Uri};

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// One object.
    Get,
    /// Many objects, in one answer.
    List,
    /// Changes from a version on, as a stream.
    Watch,
    /// Many objects as a stream of events up to a bookmark, and the watch that follows in the same stream.
    ListWatch,
    /// A new object.
    Create,
    /// A whole object in the place of another.
    Update,
    /// A change to an object.
    Patch,
    /// An object's end.
    Delete,
    /// The end of many.
    DeleteCollection,
    /// Anything else.
    Other,
}

impl Verb {
    /// Whether the answer is a stream of events.
    #[must_use]
    pub fn streams(self) -> bool {
        matches!(self, Self::Watch | Self::ListWatch)
    }

    /// Whether it changes something.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Patch | Self::Delete | Self::DeleteCollection)
    }
}

/// A call that came through the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its place among all calls, from 0.
    pub index: u64,
    /// What is done.
    pub verb: Verb,
    /// To what: the plural, as in the address (`nodes`); empty for addresses that are no resource.
    pub resource: String,
    /// In which namespace.
    pub namespace: Option<String>,
    /// To which object: by its address, or by a field selector that names it.
    pub name: Option<String>,
    /// E.g. `status`.
    pub subresource: Option<String>,
    /// The path of the address.
    pub path: String,
    /// The query, as it was sent.
    pub query: String,
}

impl Call {
    pub(super) fn of(index: u64, method: &Method, uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        let place = Place::of(uri.path());
        let verb = place.verb(method, query);
        let name = place.name.or_else(|| selected(query));
        Self {
            index,
            verb,
            resource: place.resource.to_owned(),
            namespace: place.namespace.map(str::to_owned),
            name: name.map(str::to_owned),
            subresource: place.subresource.map(str::to_owned),
            path: uri.path().to_owned(),
            query: query.to_owned(),
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, verb, path, query, .. } = self;
        write!(out, "{index}: {verb:?} {path}")?;
        if query.is_empty() { Ok(()) } else { write!(out, "?{query}") }
    }
}

/// What a path names.
#[derive(Default)]
struct Place<'a> {
    resource: &'a str,
    namespace: Option<&'a str>,
    name: Option<&'a str>,
    subresource: Option<&'a str>,
}

impl<'a> Place<'a> {
    fn of(path: &'a str) -> Self {
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        let rest: Vec<&str> = match (parts.next(), parts.next()) {
            (Some("api"), Some(_version)) => parts.collect(),
            (Some("apis"), Some(_group)) => parts.skip(1).collect(),
            _ => return Self::default(),
        };
        let place = |resource, namespace, rest: &[&'a str]| Self {
            resource,
            namespace,
            name: rest.first().copied(),
            subresource: rest.get(1).copied(),
        };
        match rest.as_slice() {
            ["namespaces", namespace, resource, rest @ ..] if !matches!(*resource, "status" | "finalize") => {
                place(resource, Some(namespace), rest)
            }
            [resource, rest @ ..] => place(resource, None, rest),
            [] => Self::default(),
        }
    }

    fn verb(&self, method: &Method, query: &str) -> Verb {
        let yes = |key| value(query, key).is_some_and(|value| matches!(value, "true" | "1"));
        match (method, self.name.is_some()) {
            _ if self.resource.is_empty() => Verb::Other,
            (&Method::GET, _) if yes("watch") && yes("sendInitialEvents") => Verb::ListWatch,
            (&Method::GET, _) if yes("watch") => Verb::Watch,
            (&Method::GET, true) => Verb::Get,
            (&Method::GET, false) => Verb::List,
            (&Method::POST, _) => Verb::Create,
            (&Method::PUT, _) => Verb::Update,
            (&Method::PATCH, _) => Verb::Patch,
            (&Method::DELETE, true) => Verb::Delete,
            (&Method::DELETE, false) => Verb::DeleteCollection,
            _ => Verb::Other,
        }
    }
}

/// A query's value for a key, as it was sent.
pub(super) fn value<'a>(query: &'a str, key: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
}

/// The query without some keys, and with other pairs.
pub(super) fn altered(query: &str, without: &[&str], with: &[(&str, &str)]) -> String {
    let stays = |pair: &&str| {
        let key = pair.split('=').next().unwrap_or_default();
        !pair.is_empty() && !without.contains(&key) && !with.iter().any(|(other, _)| *other == key)
    };
    let stay = query.split('&').filter(stays).map(str::to_owned);
    let pairs: Vec<String> = stay.chain(with.iter().map(|(key, value)| format!("{key}={value}"))).collect();
    pairs.join("&")
}

/// The one object that a field selector names.
fn selected(query: &str) -> Option<&str> {
    let selector = value(query, "fieldSelector")?.strip_prefix("metadata.name")?;
    let name = selector.strip_prefix("%3D").or_else(|| selector.strip_prefix('='))?;
    name.split(['%', ',']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: &Method, uri: &str) -> (Verb, String, Option<String>, Option<String>) {
        let Call { verb, resource, namespace, name, .. } = Call::of(0, method, &uri.parse().unwrap());
        (verb, resource, namespace, name)
    }

    #[test]
    fn requests_are_told_apart() {
        let some = |text: &str| Some(text.to_owned());
        let get = |uri| call(&Method::GET, uri);
        assert_eq!(get("/api/v1/nodes"), (Verb::List, "nodes".into(), None, None));
        assert_eq!(get("/api/v1/nodes/a"), (Verb::Get, "nodes".into(), None, some("a")));
        assert_eq!(get("/api/v1/nodes?&watch=true"), (Verb::Watch, "nodes".into(), None, None));
        assert_eq!(
            get("/api/v1/nodes?&watch=true&sendInitialEvents=true"),
            (Verb::ListWatch, "nodes".into(), None, None)
        );
        assert_eq!(
            get("/api/v1/nodes?fieldSelector=metadata.name%3Da&resourceVersion=1"),
            (Verb::List, "nodes".into(), None, some("a"))
        );
        assert_eq!(get("/api/v1/namespaces/p"), (Verb::Get, "namespaces".into(), None, some("p")));
        assert_eq!(get("/version").0, Verb::Other);
        assert_eq!(get("/apis").0, Verb::Other);
        assert_eq!(
            call(&Method::PUT, "/apis/coordination.k8s.io/v1/namespaces/p/leases/a"),
            (Verb::Update, "leases".into(), some("p"), some("a"))
        );
        assert_eq!(
            call(&Method::POST, "/api/v1/namespaces/p/configmaps"),
            (Verb::Create, "configmaps".into(), some("p"), None)
        );
        assert_eq!(
            call(&Method::PATCH, "/api/v1/nodes/a/status"),
            (Verb::Patch, "nodes".into(), None, some("a"))
        );
        assert_eq!(call(&Method::DELETE, "/api/v1/nodes").0, Verb::DeleteCollection);
        assert_eq!(call(&Method::DELETE, "/api/v1/nodes/a").0, Verb::Delete);
    }

    #[test]
    fn queries_are_altered() {
        let query = "&watch=true&resourceVersion=5&labelSelector=a";
        assert_eq!(
            altered(query, &["watch"], &[("resourceVersion", "3")]),
            "labelSelector=a&resourceVersion=3"
        );
    }
}
