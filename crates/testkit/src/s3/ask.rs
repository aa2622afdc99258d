//! Requests to an S3 server, as anybody makes them.

use std::{fmt, time::SystemTime};

use anyhow::{Context as _, bail};
use aws_sigv4::{
    http_request::{
        PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings, sign,
    },
    sign::v4::SigningParams,
};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use kube::client::Body;

use crate::endpoint::{Endpoint, anonymous};

/// The region of every server here.
const REGION: &str = "us-east-1";

/// An access key and its secret, made up for one server.
#[derive(Clone)]
pub struct Credentials {
    /// Who.
    pub access_key: String,
    /// What only they know.
    pub secret_key: String,
}

impl Credentials {
    /// A pair that nobody else has.
    pub(super) fn make_up() -> Self {
        Self {
            access_key: format!("AK{:016X}", rand::random::<u64>()),
            secret_key: format!("secret-{:032x}", rand::random::<u128>()),
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("access_key", &self.access_key).finish_non_exhaustive()
    }
}

/// What the server answered, good or bad.
#[derive(Debug)]
pub struct S3Reply {
    /// 200, or why not.
    pub status: StatusCode,
    /// What it says about the object.
    pub headers: HeaderMap,
    /// The object, or the error in XML.
    pub body: Bytes,
}

impl S3Reply {
    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// One header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Itself, if the answer is a good one.
    pub fn good(self) -> anyhow::Result<Self> {
        if !self.status.is_success() {
            bail!("the S3 server answered {}: {}", self.status, self.text());
        }
        Ok(self)
    }
}

/// Asks once. Without credentials it is a stranger who asks.
pub(super) async fn ask(
    endpoint: &Endpoint,
    credentials: Option<&Credentials>,
    method: Method,
    path: &str,
    body: Vec<u8>,
) -> anyhow::Result<S3Reply> {
    let url = format!("{}{path}", endpoint.url());
    let mut request =
        Request::builder().method(method.clone()).uri(path.parse::<Uri>()?).body(Body::from(body.clone()))?;
    if let Some(Credentials { access_key, secret_key }) = credentials {
        let mut settings = SigningSettings::default();
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        let identity =
            aws_credential_types::Credentials::new(access_key, secret_key, None, None, "testkit").into();
        let params = SigningParams::builder()
            .identity(&identity)
            .region(REGION)
            .name("s3")
            .time(SystemTime::now())
            .settings(settings)
            .build()?
            .into();
        let signable =
            SignableRequest::new(method.as_str(), &url, std::iter::empty(), SignableBody::Bytes(&body))?;
        sign(signable, &params)?.into_parts().0.apply_to_request_http1x(&mut request);
    }
    let reply = endpoint.client(&anonymous())?.send(request).await;
    let (parts, body) = reply.with_context(|| format!("asking {url}"))?.into_parts();
    Ok(S3Reply { status: parts.status, headers: parts.headers, body: body.collect_bytes().await? })
}
