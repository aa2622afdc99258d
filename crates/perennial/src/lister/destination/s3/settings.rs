//! What may be chosen about a bucket, as given and as checked.

use std::str::FromStr;
use std::time::{Duration, SystemTime};

use http::Uri;
use http::uri::{Authority, Scheme};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::credentials::Credentials;

/// Where a bucket is, and how to write to it. It is checked when the destination is made.
#[derive(Clone, Debug)]
pub struct S3Settings {
    /// The server, e.g. `https://fra1.digitaloceanspaces.com`; without a scheme it is `https`. Amazon's if none is given.
    pub endpoint: Option<String>,
    /// The bucket.
    pub bucket: String,
    /// The page's key.
    pub key: String,
    /// The region; servers other than Amazon's mostly do not care.
    pub region: String,
    /// Whether the bucket stands in the path instead of the host name. By default so for any endpoint that is given,
    /// unless it names the bucket itself.
    pub path_style: Option<bool>,
    /// Who may read the page.
    pub acl: Option<CannedAcl>,
    /// How long others may keep a copy of the current page.
    pub cache_control: Option<String>,
    /// Who we are.
    pub credentials: Credentials,
    /// Certificates of the authorities to trust instead of the system's, in PEM.
    pub authorities: Option<String>,
    /// Whether uploads are compare and swap. Off is for servers that do not know conditions and do not say so, and for
    /// credentials that may only write.
    pub conditions: bool,
    /// How long one request may take, with all that belongs to it.
    pub deadline: Duration,
    /// What time it is: signatures depend on it.
    pub clock: fn() -> SystemTime,
}

impl S3Settings {
    /// The region that servers without regions know.
    pub const REGION: &str = "us-east-1";
    /// How long a request may take unless told otherwise.
    pub const DEADLINE: Duration = Duration::from_secs(30);

    /// With everything else as it mostly is.
    #[must_use]
    pub fn new(bucket: impl Into<String>, key: impl Into<String>, credentials: Credentials) -> Self {
        Self {
            endpoint: None,
            bucket: bucket.into(),
            key: key.into(),
            region: Self::REGION.to_owned(),
            path_style: None,
            acl: None,
            cache_control: None,
            credentials,
            authorities: None,
            conditions: true,
            deadline: Self::DEADLINE,
            clock: SystemTime::now,
        }
    }
}

/// Who may read an object, as S3 has it ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CannedAcl {
    /// The owner.
    Private,
    /// Anybody.
    PublicRead,
    /// Anybody, who may write as well where a server knows such a thing.
    PublicReadWrite,
    /// Anybody with an account at that server.
    AuthenticatedRead,
    /// The owner of the bucket, too.
    BucketOwnerRead,
    /// The owner of the bucket, as if it were theirs.
    BucketOwnerFullControl,
    /// The owner, and Amazon's own machines.
    AwsExecRead,
}

impl CannedAcl {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Private,
        Self::PublicRead,
        Self::PublicReadWrite,
        Self::AuthenticatedRead,
        Self::BucketOwnerRead,
        Self::BucketOwnerFullControl,
        Self::AwsExecRead,
    ];

    /// As S3 spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::PublicRead => "public-read",
            Self::PublicReadWrite => "public-read-write",
            Self::AuthenticatedRead => "authenticated-read",
            Self::BucketOwnerRead => "bucket-owner-read",
            Self::BucketOwnerFullControl => "bucket-owner-full-control",
            Self::AwsExecRead => "aws-exec-read",
        }
    }
}

impl FromStr for CannedAcl {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, SettingsError> {
        let known = || Self::ALL.map(Self::as_str).join(", ");
        Self::ALL
            .into_iter()
            .find(|acl| acl.as_str() == text)
            .ok_or_else(|| SettingsError::Acl { given: text.to_owned(), known: known() })
    }
}

/// A setting that cannot be right, whatever the server says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// It is no address of a server.
    #[error("the endpoint {0:?} is not an address such as https://s3.example.com: {1}")]
    Endpoint(String, &'static str),
    /// No server takes it.
    #[error("the bucket name {0:?} is not one: 1 to 255 letters, digits, dots, dashes and underscores")]
    Bucket(String),
    /// No server takes it, or somebody on the way would change it.
    #[error("the key {0:?} is not one: {1}")]
    Key(String, &'static str),
    /// No server has it.
    #[error("the region {0:?} is not one: letters, digits and dashes, e.g. us-east-1")]
    Region(String),
    /// S3 does not know it.
    #[error("the ACL {given:?} is not one of {known}")]
    Acl {
        /// What was asked for.
        given: String,
        /// What there is.
        known: String,
    },
    /// They cannot stand in a header.
    #[error("the credentials are empty, or have spaces or line breaks in them: check the Secret")]
    Credentials,
    /// It cannot stand in a header.
    #[error("the cache-control {0:?} has letters that a header may not have")]
    CacheControl(String),
    /// There is no certificate in it, or a broken one.
    #[error("the authorities' certificates cannot be used: {0}")]
    Authorities(&'static str),
}

/// Where requests go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) scheme: Scheme,
    pub(super) authority: Authority,
    /// What stands before a key: `/bucket/`, or `/` alone.
    pub(super) path: String,
}

impl Address {
    pub(super) fn of(settings: &S3Settings) -> Result<Self, SettingsError> {
        let S3Settings { endpoint, bucket, region, path_style, .. } = settings;
        check_bucket(bucket)?;
        check_region(region)?;
        let amazon = format!("https://s3.{region}.amazonaws.com");
        let (scheme, authority) = parse(endpoint.as_deref().unwrap_or(&amazon))?;
        let names_it =
            authority.host().strip_prefix(bucket.as_str()).is_some_and(|rest| rest.starts_with('.'));
        // A certificate for all buckets of a host is good for no name with a dot in it.
        let path_style = path_style.unwrap_or(bucket.contains('.') || endpoint.is_some() && !names_it);
        if path_style {
            return Ok(Self { scheme, authority, path: format!("/{bucket}/") });
        }
        if names_it {
            return Ok(Self { scheme, authority, path: "/".to_owned() });
        }
        let wrong = |_| SettingsError::Bucket(bucket.clone());
        let authority = format!("{bucket}.{authority}").parse().map_err(wrong)?;
        Ok(Self { scheme, authority, path: "/".to_owned() })
    }
}

fn parse(endpoint: &str) -> Result<(Scheme, Authority), SettingsError> {
    // What is wrong may have credentials in it: they are not shown.
    let shown = endpoint.rsplit('@').next().unwrap_or_default();
    let wrong = |why| SettingsError::Endpoint(shown.to_owned(), why);
    if endpoint.contains('@') {
        return Err(wrong("credentials do not belong there"));
    }
    let whole = if endpoint.contains("://") { endpoint.to_owned() } else { format!("https://{endpoint}") };
    let parts = whole.parse::<Uri>().map_err(|_| wrong("it cannot be read"))?.into_parts();
    let scheme = match parts.scheme {
        Some(scheme) if scheme == Scheme::HTTP || scheme == Scheme::HTTPS => scheme,
        _ => return Err(wrong("it begins with neither https:// nor http://")),
    };
    let authority = parts.authority.filter(|authority| !authority.host().is_empty());
    let authority = authority.ok_or_else(|| wrong("it names no host"))?;
    if parts.path_and_query.is_some_and(|path| path.as_str() != "/") {
        return Err(wrong("bucket, path and query do not belong there"));
    }
    let standard = if scheme == Scheme::HTTPS { 443 } else { 80 };
    let host = authority.host();
    // Servers check the signature of the name without a port that goes without saying.
    let authority = if authority.port_u16() == Some(standard) { host.parse() } else { Ok(authority) };
    Ok((scheme, authority.map_err(|_| wrong("it names no host"))?))
}

fn check_bucket(bucket: &str) -> Result<(), SettingsError> {
    let fits = (1..=255).contains(&bucket.len())
        && bucket.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
        && !bucket.starts_with('.');
    if fits { Ok(()) } else { Err(SettingsError::Bucket(bucket.to_owned())) }
}

fn check_region(region: &str) -> Result<(), SettingsError> {
    let fits = (1..=64).contains(&region.len())
        && region.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if fits { Ok(()) } else { Err(SettingsError::Region(region.to_owned())) }
}

/// Checks a key: what it names must be the same for us, the server, and everybody between and after.
pub(super) fn check_key(key: &str) -> Result<(), SettingsError> {
    let wrong = |why| Err(SettingsError::Key(key.to_owned(), why));
    if key.is_empty() || key.len() > 900 {
        return wrong("it has 1 to 900 bytes");
    }
    if key.starts_with('/') || key.ends_with('/') {
        return wrong("it neither begins nor ends with a slash");
    }
    if key.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return wrong("no part of it is empty, . or ..");
    }
    if key.chars().any(char::is_control) {
        return wrong("it has control characters");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
