//! What can go wrong at a destination, sorted by what to do about it.
//!
//! These texts reach people by logs, Events and the status of a Listing, and whoever writes a Listing chooses the
//! endpoint: what a server says must not come through, or it would be a way to read what only we can reach. So they
//! carry nothing of an answer but its status and the S3 error code, and no credentials ever.

use std::fmt;
use std::time::Duration;

/// A word of somebody else's, made harmless: short, and without anything that could break a line or a page.
#[derive(Clone, PartialEq, Eq)]
pub struct Said(String);

impl Said {
    /// An S3 error code such as `AccessDenied`; `None` if it does not look like one.
    pub(crate) fn code(text: &str) -> Option<Self> {
        let fits = (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        fits.then(|| Self(text.to_owned()))
    }

    /// A sentence of somebody we trust: the operating system, the API server.
    pub(crate) fn text(text: &str) -> Self {
        Self(text.chars().filter(|char| !char.is_control()).take(300).collect())
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// A destination that could not be looked at or written to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Whoever we say we are is not known, or cannot prove it.
    #[error("the credentials are refused ({0}): check access key, secret key and session token")]
    Auth(Said),
    /// We are known, and may not do this.
    #[error(
        "access is denied ({0}): the credentials need the rights to read, write and list there (s3:GetObject, \
         s3:PutObject, s3:ListBucket; without the last a page that is not there yet looks forbidden)"
    )]
    Denied(Said),
    /// The API server knows us, and we may not do this.
    #[error("{0}: let a Role give us that right in that namespace")]
    Forbidden(Said),
    /// No such bucket.
    #[error("there is no such bucket: create it, or correct its name, the endpoint or the region")]
    NoBucket,
    /// The bucket is elsewhere.
    #[error("the bucket is not served here ({0}): correct the endpoint or the region")]
    Elsewhere(Said),
    /// Objects cannot have ACLs here.
    #[error("the bucket takes no ACLs ({0}): leave the ACL out, and open the bucket by its policy instead")]
    Acl(Said),
    /// Signatures of our time are not valid at theirs.
    #[error("the clock here and the server's differ too much ({0}): set them right")]
    ClockSkew(Said),
    /// The server is not who it should be.
    #[error(
        "TLS fails: {0}; give the certificate of the authority that signed the server's, or correct the endpoint"
    )]
    Tls(&'static str),
    /// Nobody is there.
    #[error("the server cannot be reached: {0}; check the endpoint, and whether the network lets us through")]
    Unreachable(&'static str),
    /// No answer in time. A write may have happened.
    #[error("no answer in time")]
    Timeout,
    /// The connection broke before the answer was here. A write may have happened.
    #[error("the connection broke")]
    Lost,
    /// Asked to slow down.
    #[error("the server asks to wait")]
    Throttled(Option<Duration>),
    /// The page does not fit.
    #[error("the page is too large ({0}): let the template say less, or choose another destination")]
    TooLarge(Said),
    /// There is no space left.
    #[error("there is no space left there ({0})")]
    Full(Said),
    /// Some other no.
    #[error("the server refuses with {0}{maybe}", maybe = in_parentheses(.1.as_ref()))]
    Refused(u16, Option<Said>),
    /// The server failed. A write may have happened.
    #[error("the server failed with {0}{maybe}", maybe = in_parentheses(.1.as_ref()))]
    Server(u16, Option<Said>),
    /// Whoever answered is no S3 server.
    #[error("what answers there is no S3 server{maybe}: correct the endpoint", maybe = status(*.0))]
    NotS3(Option<u16>),
    /// No such request can be made.
    #[error("the page cannot be sent: its content type has letters that a header may not have")]
    Unsendable,
    /// Others write at the same place faster than we can.
    #[error("others write the index of the history all the time")]
    Conflict,
    /// Something is there already, and it is not ours.
    #[error("{0}")]
    Foreign(Said),
    /// The file cannot be written or read.
    #[error("{0}")]
    File(Said),
    /// The API server failed, or cannot be reached. A write may have happened.
    #[error("the API server: {0}")]
    Cluster(Said),
}

impl Error {
    /// All kinds.
    pub(crate) const KINDS: [&'static str; 22] = [
        "auth",
        "denied",
        "forbidden",
        "not_found_bucket",
        "elsewhere",
        "acl",
        "clock_skew",
        "tls",
        "unreachable",
        "timeout",
        "lost",
        "throttled",
        "too_large",
        "full",
        "refused",
        "server",
        "not_s3",
        "unsendable",
        "conflict",
        "foreign",
        "file",
        "cluster",
    ];

    /// The kind, as metrics, conditions and logs spell it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Auth(_) => "auth",
            Self::Denied(_) => "denied",
            Self::Forbidden(_) => "forbidden",
            Self::NoBucket => "not_found_bucket",
            Self::Elsewhere(_) => "elsewhere",
            Self::Acl(_) => "acl",
            Self::ClockSkew(_) => "clock_skew",
            Self::Tls(_) => "tls",
            Self::Unreachable(_) => "unreachable",
            Self::Timeout => "timeout",
            Self::Lost => "lost",
            Self::Throttled(_) => "throttled",
            Self::TooLarge(_) => "too_large",
            Self::Full(_) => "full",
            Self::Refused(..) => "refused",
            Self::Server(..) => "server",
            Self::NotS3(_) => "not_s3",
            Self::Unsendable => "unsendable",
            Self::Conflict => "conflict",
            Self::Foreign(_) => "foreign",
            Self::File(_) => "file",
            Self::Cluster(_) => "cluster",
        }
    }

    /// Whether it passes by itself. Everything else waits for a person, and may be tried again at leisure.
    #[must_use]
    pub fn retryable(&self) -> bool {
        match self {
            Self::Unreachable(_)
            | Self::Timeout
            | Self::Lost
            | Self::Throttled(_)
            | Self::Full(_)
            | Self::Server(..)
            | Self::Conflict
            | Self::Cluster(_) => true,
            Self::Auth(_)
            | Self::Denied(_)
            | Self::Forbidden(_)
            | Self::NoBucket
            | Self::Elsewhere(_)
            | Self::Acl(_)
            | Self::ClockSkew(_)
            | Self::Tls(_)
            | Self::TooLarge(_)
            | Self::Refused(..)
            | Self::NotS3(_)
            | Self::Unsendable
            | Self::Foreign(_)
            | Self::File(_) => false,
        }
    }

    /// How long the server asks us to wait.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        match self {
            Self::Throttled(wait) => *wait,
            _ => None,
        }
    }

    /// Whether a write that ended like this may have happened all the same.
    #[must_use]
    pub fn may_have_happened(&self) -> bool {
        matches!(self, Self::Timeout | Self::Lost | Self::Server(..) | Self::Cluster(_))
    }
}

fn in_parentheses(said: Option<&Said>) -> String {
    said.map(|said| format!(" ({said})")).unwrap_or_default()
}

fn status(status: Option<u16>) -> String {
    status.map(|status| format!(" (it says {status})")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_looks_like_a_code_is_taken_for_one() {
        assert_eq!(Said::code("AccessDenied").unwrap().to_string(), "AccessDenied");
        let long = "A".repeat(65);
        for broken in ["", "a b", "<script>", "line\nbreak", "root:x:0:0", "ключ", long.as_str()] {
            assert!(Said::code(broken).is_none(), "{broken:?}");
        }
    }

    #[test]
    fn a_sentence_stays_short_and_on_one_line() {
        let said = Said::text(&format!("a\nb\r\u{1b}[31m{}", "x".repeat(1_000))).to_string();
        assert!(said.starts_with("ab[31m") && said.chars().count() == 300, "{said:?}");
    }

    #[test]
    fn texts_say_what_to_do() {
        assert_eq!(
            Error::NotS3(Some(200)).to_string(),
            "what answers there is no S3 server (it says 200): correct the endpoint"
        );
        assert_eq!(
            Error::Refused(400, Said::code("InvalidArgument")).to_string(),
            "the server refuses with 400 (InvalidArgument)"
        );
        assert_eq!(Error::Server(500, None).to_string(), "the server failed with 500");
    }
}
