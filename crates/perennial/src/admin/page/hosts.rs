//! By which names a browser may ask for the page.
//!
//! There is no login, so the only thing between a stranger's page and ours, in one browser, is that they are of different
//! names. Whoever owns a name can have it point here (DNS rebinding), and his page then reads ours as if it were its own. So
//! the page answers only to names that no stranger can own: addresses, names without a dot, those of a cluster's Services,
//! the machine's own, and those that were named.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::uri::Authority;
use http::{HeaderMap, StatusCode, header};

use super::refuse;

/// What only a cluster's own resolver, or the machine itself, gives out.
const OURS: [&str; 3] = [".localhost", ".svc", ".svc.cluster.local"];

const REFUSED: &str =
    "the status page does not go by this name: allow it with --page-hosts (statusPage.hosts in the chart)";

/// The names that the page goes by.
#[derive(Clone, Debug)]
pub(crate) struct Hosts(Arc<[String]>);

impl Hosts {
    /// These, and all that no stranger can own. `*.` before a name is all below it, `*` alone is any.
    pub(super) fn new(named: &[String]) -> Self {
        Self(named.iter().map(|name| name.to_ascii_lowercase()).collect())
    }

    /// What to answer instead, where the page was asked for by a name of somebody else.
    pub(super) fn refuse(&self, headers: &HeaderMap) -> Option<Response> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host = host.and_then(|host| host.parse::<Authority>().ok());
        let known = host.is_some_and(|host| self.know(host.host()));
        (!known).then(|| refuse(StatusCode::MISDIRECTED_REQUEST, REFUSED))
    }

    fn know(&self, host: &str) -> bool {
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let named = |name: &String| match name.strip_prefix('*') {
            Some(below) => host.ends_with(below),
            None => host == *name,
        };
        address.parse::<IpAddr>().is_ok()
            || !host.contains('.')
            || OURS.iter().any(|ours| host.ends_with(ours))
            || self.0.iter().any(named)
    }
}

/// Lets through who asks by a name of ours.
pub(super) async fn guard(State(hosts): State<Hosts>, request: Request, next: Next) -> Response {
    match hosts.refuse(request.headers()) {
        Some(refused) => refused,
        None => next.run(request).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_no_stranger_can_own_are_ours() {
        let hosts = Hosts::new(&["Perennial.example.com".to_owned(), "*.corp.example".to_owned()]);
        for ours in [
            "127.0.0.1",
            "[::1]",
            "[fd00::7]",
            "localhost",
            "LOCALHOST",
            "localhost.",
            "perennial",
            "web.localhost",
            "perennial.perennial.svc",
            "perennial.perennial.svc.cluster.local",
            "perennial.example.com",
            "a.b.corp.example",
        ] {
            assert!(hosts.know(ours), "{ours}");
        }
        for other in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "svc.evil.example",
            "xsvc.dev",
            "perennial.perennial.svc.evil.example",
            "www.perennial.example.com",
            "corp.example",
            "evilcorp.example",
        ] {
            assert!(!hosts.know(other), "{other}");
        }
        assert!(Hosts::new(&["*".to_owned()]).know("evil.example"));
    }

    #[test]
    fn what_is_no_name_at_all_is_refused() {
        let asked = |host: Option<&'static str>| {
            let headers = host.map(|host| (header::HOST, http::HeaderValue::from_static(host)));
            Hosts::new(&[]).refuse(&headers.into_iter().collect()).is_none()
        };
        assert!(asked(Some("localhost:8080")) && asked(Some("[::1]:8080")) && asked(Some("10.0.0.7")));
        assert!(!asked(None) && !asked(Some("")) && !asked(Some("evil.example:8080")) && !asked(Some("a b")));
    }
}
