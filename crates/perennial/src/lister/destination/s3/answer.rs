//! What an S3 server answers, sorted by what to do about it.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::RETRY_AFTER;
use serde::Deserialize;

use super::super::error::{Error, Said};

/// An answer that is a no.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: u16,
    /// The code that S3 gives as the reason.
    pub(super) code: Option<Said>,
    wait: Option<Duration>,
}

impl Refusal {
    pub(super) fn read(status: u16, headers: &HeaderMap, body: &Bytes) -> Self {
        let wait = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        Self { status, code: code(body), wait: wait.map(Duration::from_secs) }
    }

    pub(super) fn is(&self, code: &str) -> bool {
        self.code.as_ref().is_some_and(|said| said.to_string() == code)
    }

    /// Nothing is under this key. A server without such a bucket says something else, and so does one that is no S3
    /// server.
    pub(super) fn no_such_key(&self) -> bool {
        self.status == 404 && self.is("NoSuchKey")
    }

    /// Something else is there than what was to be replaced.
    pub(super) fn conflict(&self) -> bool {
        // 409 is Amazon's when two conditional writes meet. 304 is what some servers say to `If-None-Match`.
        matches!(self.status, 304 | 412) || self.status == 409 && self.code.is_some() || self.no_such_key()
    }

    /// The server does not know conditions.
    pub(super) fn unsupported(&self) -> bool {
        self.status == 501 || self.is("NotImplemented")
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let Refusal { status, code, wait } = refusal;
        let Some(said) = code else {
            return match status {
                429 => Self::Throttled(wait),
                503 if wait.is_some() => Self::Throttled(wait),
                413 => Self::TooLarge(Said::text("413")),
                507 => Self::Full(Said::text("507")),
                500.. => Self::Server(status, None),
                301 | 302 | 303 | 307 | 308 => Self::Elsewhere(Said::text("a redirect")),
                _ => Self::NotS3(Some(status)),
            };
        };
        match said.to_string().as_str() {
            "InvalidAccessKeyId"
            | "SignatureDoesNotMatch"
            | "InvalidToken"
            | "ExpiredToken"
            | "TokenRefreshRequired"
            | "InvalidSecurity"
            | "NotSignedUp" => Self::Auth(said),
            "AccessDenied" | "AllAccessDisabled" | "AccountProblem" => Self::Denied(said),
            "NoSuchBucket" => Self::NoBucket,
            "RequestTimeTooSkewed" | "RequestExpired" => Self::ClockSkew(said),
            "AuthorizationHeaderMalformed"
            | "PermanentRedirect"
            | "TemporaryRedirect"
            | "Redirect"
            | "IllegalLocationConstraintException" => Self::Elsewhere(said),
            "AccessControlListNotSupported" => Self::Acl(said),
            "SlowDown"
            | "SlowDownRead"
            | "SlowDownWrite"
            | "TooManyRequests"
            | "Throttling"
            | "ThrottlingException"
            | "RequestLimitExceeded"
            | "BandwidthLimitExceeded" => Self::Throttled(wait),
            "EntityTooLarge" | "MaxMessageLengthExceeded" => Self::TooLarge(said),
            "QuotaExceeded"
            | "InsufficientStorage"
            | "InsufficientCapacity"
            | "XMinioStorageFull"
            | "XMinioAdminBucketQuotaExceeded"
            | "StorageFull" => Self::Full(said),
            _ => match status {
                401 => Self::Auth(said),
                403 => Self::Denied(said),
                413 => Self::TooLarge(said),
                429 => Self::Throttled(wait),
                503 if wait.is_some() => Self::Throttled(wait),
                507 => Self::Full(said),
                500.. => Self::Server(status, Some(said)),
                _ => Self::Refused(status, Some(said)),
            },
        }
    }
}

#[derive(Deserialize)]
struct Reason {
    #[serde(rename = "Code")]
    code: String,
}

/// The code in an error's body; nothing else of it is ever used.
fn code(body: &Bytes) -> Option<Said> {
    let reason: Reason = quick_xml::de::from_reader(body.as_ref()).ok()?;
    Said::code(&reason.code)
}

/// One page of a list of keys.
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
pub(super) struct Keys {
    #[serde(rename = "Contents", default)]
    contents: Vec<Content>,
    #[serde(rename = "IsTruncated", default)]
    truncated: bool,
    #[serde(rename = "NextContinuationToken")]
    next: Option<String>,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
struct Content {
    #[serde(rename = "Key")]
    key: String,
}

impl Keys {
    pub(super) fn read(body: &Bytes) -> Option<Self> {
        quick_xml::de::from_reader(body.as_ref()).ok()
    }

    /// The keys, and where the next page begins.
    pub(super) fn into_parts(self) -> (Vec<String>, Option<String>) {
        let Self { contents, truncated, next } = self;
        (contents.into_iter().map(|content| content.key).collect(), next.filter(|_| truncated))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refusal(status: u16, body: &str) -> Refusal {
        Refusal::read(status, &HeaderMap::new(), &Bytes::copy_from_slice(body.as_bytes()))
    }

    fn of_code(status: u16, code: &str) -> Error {
        let xml = format!(
            r#"<?xml version="1.0" encoding="UTF-8"?>
            <Error><Code>{code}</Code><Message>secret inside</Message><Resource>/b/k</Resource></Error>"#
        );
        refusal(status, &xml).into()
    }

    #[test]
    fn answers_are_sorted_by_what_to_do_about_them() {
        for (status, code, kind) in [
            (403, "SignatureDoesNotMatch", "auth"),
            (403, "InvalidAccessKeyId", "auth"),
            (400, "ExpiredToken", "auth"),
            (403, "AccessDenied", "denied"),
            (403, "SomethingNew", "denied"),
            (404, "NoSuchBucket", "not_found_bucket"),
            (403, "RequestTimeTooSkewed", "clock_skew"),
            (400, "AuthorizationHeaderMalformed", "elsewhere"),
            (301, "PermanentRedirect", "elsewhere"),
            (400, "AccessControlListNotSupported", "acl"),
            (503, "SlowDown", "throttled"),
            (429, "SomethingNew", "throttled"),
            (400, "EntityTooLarge", "too_large"),
            (507, "XMinioStorageFull", "full"),
            (403, "QuotaExceeded", "full"),
            (500, "InternalError", "server"),
            (400, "InvalidArgument", "refused"),
        ] {
            let error = of_code(status, code);
            assert_eq!(error.kind(), kind, "{status} {code}");
            assert!(!error.to_string().contains("secret inside"), "{error}");
        }
    }

    #[test]
    fn an_answer_without_a_code_is_of_no_s3_server() {
        for (status, kind) in [
            (200, "not_s3"),
            (403, "not_s3"),
            (404, "not_s3"),
            (302, "elsewhere"),
            (429, "throttled"),
            (502, "server"),
            (507, "full"),
        ] {
            let error = Error::from(refusal(status, "<html>root:x:0:0</html>"));
            assert_eq!(error.kind(), kind, "{status}");
            assert!(!error.to_string().contains("root"), "{error}");
        }
    }

    #[test]
    fn a_wait_is_heard() {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, "7".parse().unwrap());
        for status in [429, 503] {
            let error = Error::from(Refusal::read(status, &headers, &Bytes::new()));
            assert_eq!(error.wait(), Some(Duration::from_secs(7)), "{status}");
        }
    }

    #[test]
    fn a_list_is_read_page_by_page() {
        let page = |more: &str| {
            let xml = format!(
                r#"<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name>{more}
                <Contents><Key>a &amp; b</Key><Size>1</Size></Contents><Contents><Key>c</Key></Contents></ListBucketResult>"#
            );
            Keys::read(&xml.into()).unwrap().into_parts()
        };
        let keys = vec!["a & b".to_owned(), "c".to_owned()];
        assert_eq!(page("<IsTruncated>false</IsTruncated>"), (keys.clone(), None));
        let more = "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>";
        assert_eq!(page(more), (keys, Some("t".to_owned())));
        let empty =
            Keys::read(&"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>".into());
        assert_eq!(empty, Some(Keys::default()));
    }

    proptest! {
        #[test]
        fn no_body_breaks_anything(body: Vec<u8>, status in 100u16..600) {
            let refusal = Refusal::read(status, &HeaderMap::new(), &body.clone().into());
            let _ = Error::from(refusal).to_string();
            let _ = Keys::read(&body.into());
        }

        #[test]
        fn nothing_of_a_body_but_a_code_comes_through(inside in "[a-z ]{20,40}") {
            for body in [inside.clone(), format!("<Error><Code>{inside} </Code></Error>")] {
                let error = Error::from(refusal(403, &body));
                let shown = format!("{error} {error:?}");
                prop_assert!(!shown.contains(&inside));
            }
        }
    }
}
