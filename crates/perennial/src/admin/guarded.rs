//! Metrics by HTTPS, for those alone who may read them.
//!
//! ```text
//!              token                  who is it?              may it get /metrics?
//! Prometheus ────────> TokenReview ─────────────> SubjectAccessReview ────────────> metrics, or 401, or 403
//! ```
//! What the API server says of a token is believed for a while: a scrape costs it nothing, as a rule.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::{HeaderMap, StatusCode, header};
use kube::api::PostParams;
use kube::core::request::Request as Resource;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::scrape;
use crate::cluster::{ApiError, Cluster};
use crate::config::TlsConfig;
use crate::listener::{Error, Purpose};
use crate::tls::{TlsListener, Trust};

/// A few Prometheus servers need a handful of connections. Each shows one token at a time: no more than these wait.
const PURPOSE: Purpose = Purpose { serves: "metrics by HTTPS", flag: "--metrics-address", connections: 64 };
const PATH: &str = "/metrics";
/// How long what the API server said of a token is believed: that it may, and that it may not.
const MAY_LASTS: Duration = Duration::from_mins(1);
const MAY_NOT_LASTS: Duration = Duration::from_secs(10);
/// How long it is remembered that a token may, which is asked about again before those of strangers.
const MAY_REMEMBERED: Duration = Duration::from_mins(10);
/// How many tokens are remembered.
const REMEMBERED: usize = 256;
/// How many strangers are asked about at once, and how many who could, and how long all of it may take, the wait for others
/// included: strangers must not keep the API server busy, nor those out who may.
const ASKED: usize = 4;
const ANSWERED: Duration = Duration::from_secs(8);

/// A server of guarded metrics that has its port and waits to serve.
#[derive(Debug)]
pub struct Guarded(TlsListener);

impl Guarded {
    /// Takes the port.
    pub async fn bind(config: TlsConfig) -> Result<Self, Error> {
        TlsListener::bind(config, PURPOSE).await.map(Self)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// Serves until the future is dropped.
    pub async fn serve(self, cluster: Cluster, registry: Arc<Registry>) {
        let guard = Arc::new(Guard::new(cluster.clone(), registry));
        let routes = Router::new().route(PATH, get(guarded)).with_state(guard);
        // Nobody could read of it without a certificate.
        let certificate = Gauge::default();
        self.0.serve(cluster, routes, Trust::Secret, certificate, CancellationToken::new()).await;
    }
}

/// What is said of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// Its owner may read metrics.
    May,
    /// Its owner, who is named, may not.
    MayNot(String),
    /// It is nobody's.
    Stranger,
}

struct Guard {
    cluster: Cluster,
    registry: Arc<Registry>,
    known: Mutex<Known>,
    again: Semaphore,
    strangers: Semaphore,
}

async fn guarded(State(guard): State<Arc<Guard>>, headers: HeaderMap) -> Response {
    let Some(token) = bearer(&headers) else { return unknown("show a token: Authorization: Bearer …\n") };
    match timeout(ANSWERED, guard.judge(token)).await {
        Ok(Ok(Verdict::May)) => scrape(State(guard.registry.clone())).await,
        Ok(Ok(Verdict::MayNot(who))) => {
            let told = format!(
                "{who} may not get {PATH}: bind it to a ClusterRole with nonResourceURLs: [{PATH}], verbs: [get]\n"
            );
            (StatusCode::FORBIDDEN, told).into_response()
        }
        Ok(Ok(Verdict::Stranger)) => unknown("the cluster does not know this token\n"),
        Ok(Err(error)) => {
            debug!(%error, "nobody says who may read metrics");
            unavailable("the API server does not say who you are")
        }
        Err(_) => unavailable("the API server does not say in time who you are"),
    }
}

fn unavailable(why: &str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, format!("{why}; try again\n")).into_response()
}

fn unknown(told: &'static str) -> Response {
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], told).into_response()
}

/// The token that somebody shows.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

impl Guard {
    fn new(cluster: Cluster, registry: Arc<Registry>) -> Self {
        let (again, strangers) = (Semaphore::new(ASKED), Semaphore::new(ASKED));
        Self { cluster, registry, known: Mutex::default(), again, strangers }
    }

    /// What is said of a token.
    async fn judge(&self, token: &str) -> Result<Verdict, ApiError> {
        let digest = Sha256::digest(token).into();
        let could = {
            let known = self.known();
            if let Some(verdict) = known.find(&digest, Instant::now()) {
                return Ok(verdict);
            }
            known.could(&digest)
        };
        // They are never closed.
        let _permit = if could { &self.again } else { &self.strangers }.acquire().await;
        // Somebody else with this token may have asked meanwhile.
        if let Some(verdict) = self.known().find(&digest, Instant::now()) {
            return Ok(verdict);
        }
        let verdict = self.ask(token).await?;
        self.known().learn(digest, verdict.clone(), Instant::now());
        Ok(verdict)
    }

    /// What the API server says of it.
    async fn ask(&self, token: &str) -> Result<Verdict, ApiError> {
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": { "token": token },
        });
        let review = self.create::<Reviewed>("/apis/authentication.k8s.io/v1/tokenreviews", &review);
        let TokenStatus { authenticated, user } = review.await?.status;
        let Some(User { username, uid, groups, extra }) = user.filter(|_| authenticated) else {
            return Ok(Verdict::Stranger);
        };
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {
                "user": username, "uid": uid, "groups": groups, "extra": extra,
                "nonResourceAttributes": { "path": PATH, "verb": "get" },
            },
        });
        let review = self.create::<Allowed>("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review);
        Ok(if review.await?.status.allowed { Verdict::May } else { Verdict::MayNot(username) })
    }

    async fn create<T: DeserializeOwned>(&self, kind: &str, review: &Value) -> Result<T, ApiError> {
        let review = review.to_string().into_bytes();
        self.cluster.call(Resource::new(kind).create(&PostParams::default(), review)).await
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Deserialize)]
struct Reviewed {
    status: TokenStatus,
}

#[derive(Deserialize)]
struct TokenStatus {
    #[serde(default)]
    authenticated: bool,
    user: Option<User>,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    extra: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct Allowed {
    status: AccessStatus,
}

#[derive(Deserialize)]
struct AccessStatus {
    #[serde(default)]
    allowed: bool,
}

/// What was said of tokens, by their digests, and until when it is believed.
#[derive(Default)]
struct Known(BTreeMap<[u8; 32], (Verdict, Instant)>);

impl Known {
    fn find(&self, digest: &[u8; 32], now: Instant) -> Option<Verdict> {
        let (verdict, until) = self.0.get(digest)?;
        (now < *until).then(|| verdict.clone())
    }

    /// Whether its owner could read metrics a while ago.
    fn could(&self, digest: &[u8; 32]) -> bool {
        self.0.get(digest).is_some_and(|(verdict, _)| *verdict == Verdict::May)
    }

    fn learn(&mut self, digest: [u8; 32], verdict: Verdict, now: Instant) {
        self.0.retain(|_, (verdict, until)| match verdict {
            Verdict::May => now < *until + MAY_REMEMBERED,
            Verdict::MayNot(_) | Verdict::Stranger => now < *until,
        });
        // Whoever shows many tokens that are nobody's makes their own forgotten.
        if self.0.len() >= REMEMBERED && !self.0.contains_key(&digest) {
            let least = self.0.iter().min_by_key(|(_, (verdict, until))| (*verdict == Verdict::May, *until));
            if let Some(least) = least.map(|(digest, _)| *digest) {
                self.0.remove(&least);
            }
        }
        let lasts = if verdict == Verdict::May { MAY_LASTS } else { MAY_NOT_LASTS };
        self.0.insert(digest, (verdict, now + lasts));
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn shown(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())])
    }

    #[test]
    fn a_token_is_shown_as_a_bearer_of_it_does() {
        for (value, token) in [
            ("Bearer abc", Some("abc")),
            ("bearer  abc ", Some("abc")),
            ("Basic abc", None),
            ("Bearer ", None),
            ("Bearer", None),
            ("", None),
        ] {
            assert_eq!(bearer(&shown(value)), token, "{value:?}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
        let odd =
            HeaderMap::from_iter([(header::AUTHORIZATION, b"Bearer \xff".as_slice().try_into().unwrap())]);
        assert_eq!(bearer(&odd), None);
    }

    #[test]
    fn what_was_said_is_believed_for_its_time_and_no_longer() {
        let (mut known, now) = (Known::default(), Instant::now());
        known.learn([1; 32], Verdict::May, now);
        known.learn([2; 32], Verdict::Stranger, now);
        let later = now + MAY_NOT_LASTS;
        assert_eq!(known.find(&[1; 32], later), Some(Verdict::May));
        assert_eq!(known.find(&[2; 32], later), None);
        assert_eq!(known.find(&[1; 32], now + MAY_LASTS), None);
        assert_eq!(known.find(&[3; 32], now), None);
        // Whoever could is asked about before strangers, for a while.
        known.learn([3; 32], Verdict::MayNot("x".to_owned()), now + MAY_LASTS);
        assert!(known.could(&[1; 32]) && !known.could(&[2; 32]) && !known.could(&[3; 32]));
        known.learn([4; 32], Verdict::Stranger, now + MAY_LASTS + MAY_REMEMBERED);
        assert_eq!(known.0.len(), 1, "the rest is forgotten");
    }

    #[test]
    fn strangers_displace_each_other_and_nobody_who_may() {
        let (mut known, now) = (Known::default(), Instant::now());
        known.learn([255; 32], Verdict::May, now);
        // By now it is what has to be asked about first, and they are all newer.
        let later = now + MAY_LASTS;
        for number in 0..3 * REMEMBERED {
            let digest = Sha256::digest(number.to_string()).into();
            known.learn(digest, Verdict::Stranger, later);
        }
        assert_eq!(known.0.len(), REMEMBERED);
        assert!(known.could(&[255; 32]));
    }

    #[tokio::test]
    async fn strangers_wait_for_each_other_and_nobody_who_could_waits_for_them() {
        // Nobody answers there, so that whoever is asked about is not answered either.
        let nowhere = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let mut registry = crate::metrics::registry();
        let calls = Arc::new(crate::cluster::Metrics::register(&mut registry));
        let cluster = Cluster::new(nowhere.try_into().unwrap(), calls);
        let guard = Guard::new(cluster, Arc::new(registry));
        let learn = |token: &str, ago: Duration| {
            let then = Instant::now().checked_sub(ago).unwrap();
            guard.known().learn(Sha256::digest(token).into(), Verdict::May, then);
        };
        learn("could", MAY_LASTS);
        learn("may", Duration::ZERO);
        assert!(guard.judge("stranger").await.is_err(), "it is asked about");
        let _others = guard.strangers.try_acquire_many(4).unwrap();
        assert!(guard.judge("stranger").now_or_never().is_none(), "it waits for its turn");
        assert!(guard.judge("could").await.is_err(), "it is asked about");
        let _again = guard.again.try_acquire_many(4).unwrap();
        assert!(guard.judge("could").now_or_never().is_none(), "these wait for each other, too");
        assert_eq!(guard.judge("may").await.unwrap(), Verdict::May);
    }
}
