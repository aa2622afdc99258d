//! A bucket of any S3-compatible server.
//!
//! Five kinds of requests, made once each: whoever asked tries again. Requests are signed with all their headers, the ACL
//! and the conditions among them.
//!
//! A look is a read of one byte, not a HEAD: the answer to a HEAD has no body, so a wrong key, a missing bucket and a clock
//! that is off would look the same.

mod answer;
mod credentials;
mod http;
mod settings;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use ::http::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, HOST, HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH, RANGE,
    USER_AGENT,
};
use ::http::{HeaderMap, Method, Request};
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4::SigningParams;
use bytes::Bytes;
use http_body_util::Full;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::store::{Object, Over};
use super::{Error, Found, Put, Tag, stamp};

use answer::{Keys, Refusal};
use http::{Answer, Http};
use settings::Address;

pub use credentials::{Credentials, Secret};
pub use settings::{CannedAcl, S3Settings, SettingsError};

/// What stands for itself in an address; everything else is escaped, as signatures want it.
const IN_A_QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const IN_A_PATH: &AsciiSet = &IN_A_QUERY.remove(b'/');
/// Names of metadata: `x-amz-meta-perennial-digest`, …
const META: &str = "x-amz-meta-perennial-";
/// The most that is read of an answer where its head is what matters, or an error.
const LITTLE: usize = 64 << 10;
/// The most that is read of an index, or of a page of a list.
const MUCH: usize = 8 << 20;
/// The most pages of a list that are read, of a thousand keys each: a server that never ends must not keep us.
const PAGES: usize = 1_000;
/// The longest tag that is believed. Most are 34 letters.
const LONGEST_TAG: usize = 256;

/// A bucket, and who we are there.
pub(super) struct Bucket {
    http: Http,
    address: Address,
    name: String,
    region: String,
    credentials: aws_credential_types::Credentials,
    acl: Option<CannedAcl>,
    /// Whether writes are conditional; it goes off when the server says that it does not know that.
    conditions: AtomicBool,
    clock: fn() -> SystemTime,
}

/// A request before it is signed.
struct Order<'a> {
    method: Method,
    key: &'a str,
    query: String,
    headers: HeaderMap,
    body: Bytes,
    /// How much of the answer is wanted.
    most: usize,
}

impl<'a> Order<'a> {
    fn new(method: Method, key: &'a str) -> Self {
        Self {
            method,
            key,
            query: String::new(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            most: LITTLE,
        }
    }
}

impl Bucket {
    pub(super) fn new(settings: S3Settings) -> Result<Self, SettingsError> {
        let address = Address::of(&settings)?;
        settings::check_key(&settings.key)?;
        if !settings.credentials.usable() {
            return Err(SettingsError::Credentials);
        }
        if let Some(cache) = settings.cache_control.filter(|cache| HeaderValue::from_str(cache).is_err()) {
            return Err(SettingsError::CacheControl(cache));
        }
        Ok(Self {
            http: Http::new(settings.authorities.as_deref(), settings.deadline)?,
            address,
            name: settings.bucket,
            region: settings.region,
            credentials: settings.credentials.to_sign_with(),
            acl: settings.acl,
            conditions: AtomicBool::new(settings.conditions),
            clock: settings.clock,
        })
    }

    pub(super) async fn look(&self, key: &str) -> Result<Option<Found>, Error> {
        let mut order = Order::new(Method::GET, key);
        order.headers.insert(RANGE, HeaderValue::from_static("bytes=0-0"));
        let answer = match self.ask(order).await? {
            // An empty object has no first byte.
            Err(refusal) if refusal.status == 416 => self.ask(Order::new(Method::GET, key)).await?,
            answer => answer,
        };
        match answer {
            Ok(answer) => {
                let stamp = stamp::read(|name| answer.headers.get(format!("{META}{name}"))?.to_str().ok());
                Ok(Some(Found::new(tag(&answer)?, stamp)))
            }
            Err(refusal) if refusal.no_such_key() => Ok(None),
            // Who may only write cannot see what is there, and without conditions need not.
            Err(refusal) if refusal.is("AccessDenied") && !self.conditional() => Ok(None),
            Err(refusal) => Err(refusal.into()),
        }
    }

    pub(super) async fn read(&self, key: &str) -> Result<Option<(Tag, Bytes)>, Error> {
        let order = Order { most: MUCH, ..Order::new(Method::GET, key) };
        match self.ask(order).await? {
            Ok(answer) => Ok(Some((tag(&answer)?, answer.body))),
            Err(refusal) if refusal.no_such_key() => Ok(None),
            Err(refusal) => Err(refusal.into()),
        }
    }

    pub(super) async fn write(&self, key: &str, object: Object, over: Over<'_>) -> Result<Put, Error> {
        let conditional = self.conditional();
        let refusal = match self.ask(self.upload(key, &object, conditional.then_some(over))?).await? {
            Ok(answer) => return Ok(Put::Written(tag(&answer)?)),
            Err(refusal) => refusal,
        };
        if conditional && refusal.conflict() {
            return Ok(Put::Conflict);
        }
        if !conditional || !refusal.unsupported() {
            return Err(refusal.into());
        }
        self.conditions.store(false, Ordering::Relaxed);
        tracing::warn!(
            bucket = %self,
            "the S3 server knows no conditional uploads: from now on they are unconditional, and two replicas may overwrite \
             each other's page"
        );
        match self.ask(self.upload(key, &object, None)?).await? {
            Ok(answer) => Ok(Put::Written(tag(&answer)?)),
            Err(refusal) => Err(refusal.into()),
        }
    }

    pub(super) async fn remove(&self, key: &str) -> Result<(), Error> {
        match self.ask(Order::new(Method::DELETE, key)).await? {
            Ok(_) => Ok(()),
            Err(refusal) if refusal.no_such_key() => Ok(()),
            Err(refusal) => Err(refusal.into()),
        }
    }

    pub(super) async fn list(&self, prefix: &str) -> Result<Vec<String>, Error> {
        let (mut keys, mut next) = (Vec::new(), None::<String>);
        for _ in 0..PAGES {
            let from = next.map(|next| format!("continuation-token={}&", escape(&next))).unwrap_or_default();
            let query = format!("?{from}list-type=2&prefix={}", escape(prefix));
            let order = Order { query, most: MUCH, ..Order::new(Method::GET, "") };
            let answer = self.ask(order).await?.map_err(Error::from)?;
            let page = Keys::read(&answer.body).ok_or(Error::NotS3(Some(answer.status)))?;
            let (more, following) = page.into_parts();
            keys.extend(more);
            next = following;
            if next.is_none() {
                break;
            }
        }
        Ok(keys)
    }

    fn conditional(&self) -> bool {
        self.conditions.load(Ordering::Relaxed)
    }

    fn upload<'a>(&self, key: &'a str, object: &Object, over: Option<Over<'_>>) -> Result<Order<'a>, Error> {
        let Object { body, content_type, cache_control, stamp } = object;
        let mut order = Order::new(Method::PUT, key);
        order.body = body.clone();
        let mut set = |name: HeaderName, value: &str| {
            let value = HeaderValue::from_str(value).map_err(|_| Error::Unsendable)?;
            order.headers.insert(name, value);
            Ok::<(), Error>(())
        };
        set(CONTENT_TYPE, content_type)?;
        set(CACHE_CONTROL, cache_control)?;
        if let Some(acl) = self.acl {
            set(HeaderName::from_static("x-amz-acl"), acl.as_str())?;
        }
        match over {
            Some(Over::Nothing) => set(IF_NONE_MATCH, "*")?,
            Some(Over::This(tag)) => set(IF_MATCH, tag.as_str())?,
            None => {}
        }
        for (name, value) in stamp.iter().flat_map(stamp::pairs) {
            if let Ok(name) = HeaderName::try_from(format!("{META}{name}")) {
                set(name, &value)?;
            }
        }
        Ok(order)
    }

    /// Signs, sends, and tells a yes from a no.
    async fn ask(&self, order: Order<'_>) -> Result<Result<Answer, Refusal>, Error> {
        let most = order.most;
        let request = self.sign(order).ok_or(Error::Unsendable)?;
        let answer = self.http.send(request, most).await?;
        if (200..300).contains(&answer.status) {
            return Ok(Ok(answer));
        }
        Ok(Err(Refusal::read(answer.status, &answer.headers, &answer.body)))
    }

    /// A request that proves who made it, and when. `None` is for what the settings' checks have ruled out.
    fn sign(&self, order: Order<'_>) -> Option<Request<Full<Bytes>>> {
        let Order { method, key, query, headers, body, most: _ } = order;
        let Address { scheme, authority, path } = &self.address;
        let url = format!("{scheme}://{authority}{path}{}{query}", utf8_percent_encode(key, IN_A_PATH));
        let mut request = Request::builder().method(method).uri(&url).body(Full::new(body.clone())).ok()?;
        *request.headers_mut() = headers;
        request.headers_mut().insert(HOST, HeaderValue::from_str(authority.as_str()).ok()?);

        let mut settings = SigningSettings::default();
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        let identity = self.credentials.clone().into();
        let params = SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name("s3")
            .time((self.clock)())
            .settings(settings)
            .build()
            .ok()?
            .into();
        let headers =
            request.headers().iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap_or_default()));
        let signable =
            SignableRequest::new(request.method().as_str(), &url, headers, SignableBody::Bytes(&body))
                .ok()?;
        // It would log whose access key it signs with.
        let signed =
            tracing::dispatcher::with_default(&tracing::Dispatch::none(), || sign(signable, &params));
        let (instructions, _) = signed.ok()?.into_parts();
        instructions.apply_to_request_http1x(&mut request);
        // Not signed: whoever is between may add to it.
        let agent = HeaderValue::from_static(concat!("perennial/", env!("CARGO_PKG_VERSION")));
        request.headers_mut().insert(USER_AGENT, agent);
        Some(request)
    }
}

fn escape(value: &str) -> String {
    utf8_percent_encode(value, IN_A_QUERY).to_string()
}

/// The tag of an object. Whoever says yes without one is no S3 server.
fn tag(answer: &Answer) -> Result<Tag, Error> {
    let text = answer.headers.get(ETAG).and_then(|tag| tag.to_str().ok());
    // A proxy that compresses calls it weak; the server that we write to does not know it by that name.
    let text = text.map(|tag| tag.trim_start_matches("W/"));
    let text = text.filter(|tag| (1..=LONGEST_TAG).contains(&tag.len()));
    text.map(|tag| Tag::new(tag.to_owned())).ok_or(Error::NotS3(Some(answer.status)))
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bucket {} at {}", self.name, self.address.authority)
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket")
            .field("name", &self.name)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
