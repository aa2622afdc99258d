//! What can go wrong with a call, sorted by what to do about it.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::response::Parts;
use kube::core::Status;

use super::proto;

/// A call to the API server that did not do what it should.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// 409: the object changed, or exists already. Read it and decide again.
    #[error("it changed meanwhile: {0}")]
    Conflict(String),
    /// 404.
    #[error("not found")]
    NotFound,
    /// 410: history does not reach back that far.
    #[error("history does not reach back that far")]
    Expired,
    /// 429, or 503 with a Retry-After.
    #[error("the API server asks to wait")]
    Throttled(Option<Duration>),
    /// 401.
    #[error("the credentials are refused: {0}")]
    Unauthorized(String),
    /// 403. The message names the verb and the resource.
    #[error("{0}")]
    Forbidden(String),
    /// 400, 422: the request itself is refused.
    #[error("the API server refuses it: {0}")]
    Invalid(String),
    /// Any other answer.
    #[error("the API server failed with {0}: {1}")]
    Server(u16, String),
    /// No answer in time. A write may have happened.
    #[error("no answer in time")]
    Timeout,
    /// The connection failed. A write may have happened.
    #[error("the connection failed: {0}")]
    Transport(String),
    /// The answer is not what it should be.
    #[error("the answer is malformed: {0}")]
    Malformed(String),
}

impl ApiError {
    /// All kinds.
    pub(crate) const KINDS: [&'static str; 11] = [
        "conflict",
        "not_found",
        "expired",
        "throttled",
        "unauthorized",
        "forbidden",
        "invalid",
        "server",
        "timeout",
        "transport",
        "malformed",
    ];

    /// The kind, as metrics and logs spell it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Conflict(_) => "conflict",
            Self::NotFound => "not_found",
            Self::Expired => "expired",
            Self::Throttled(_) => "throttled",
            Self::Unauthorized(_) => "unauthorized",
            Self::Forbidden(_) => "forbidden",
            Self::Invalid(_) => "invalid",
            Self::Server(..) => "server",
            Self::Timeout => "timeout",
            Self::Transport(_) => "transport",
            Self::Malformed(_) => "malformed",
        }
    }

    /// Whether a write that ended like this may have happened all the same.
    pub(crate) fn may_have_happened(&self) -> bool {
        match self {
            Self::Server(..) | Self::Timeout | Self::Transport(_) | Self::Malformed(_) => true,
            Self::Conflict(_)
            | Self::NotFound
            | Self::Expired
            | Self::Throttled(_)
            | Self::Unauthorized(_)
            | Self::Forbidden(_)
            | Self::Invalid(_) => false,
        }
    }
}

impl From<kube::Error> for ApiError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::from_status(*status, None),
            kube::Error::SerdeError(error) => Self::Malformed(error.to_string()),
            kube::Error::FromUtf8(error) => Self::Malformed(error.to_string()),
            other => Self::Transport(crate::log::chain(&other)),
        }
    }
}

impl ApiError {
    /// Sorts an answer that is not a good one, whoever gave it.
    pub(crate) fn of_answer(parts: &Parts, body: &[u8]) -> Self {
        let status = proto::status(body).or_else(|| serde_json::from_slice(body).ok());
        let status = status.unwrap_or_else(|| Status::failure(String::from_utf8_lossy(body).trim(), ""));
        let wait = parts.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        Self::from_status(status.with_code(parts.status.as_u16()), wait.map(Duration::from_secs))
    }

    /// Sorts the API server's own words. `wait` is its Retry-After, which may stand in its words as well.
    pub(crate) fn from_status(status: Status, wait: Option<Duration>) -> Self {
        let said = status.details.map_or(0, |details| details.retry_after_seconds);
        let wait = wait.or((said > 0).then(|| Duration::from_secs(u64::from(said))));
        match status.code {
            409 => Self::Conflict(status.message),
            // Whoever else says so, a proxy or a server that is just starting, says nothing about an object.
            404 if status.reason == "NotFound" => Self::NotFound,
            410 => Self::Expired,
            429 => Self::Throttled(wait),
            503 if wait.is_some() => Self::Throttled(wait),
            401 => Self::Unauthorized(status.message),
            403 => Self::Forbidden(status.message),
            400 | 413 | 422 => Self::Invalid(status.message),
            code => Self::Server(code, status.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use kube::core::response::StatusDetails;

    use super::*;

    fn status(code: u16, wait: u32) -> Status {
        let details = StatusDetails {
            name: String::new(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            causes: Vec::new(),
            retry_after_seconds: wait,
        };
        let reason = if code == 404 { "NotFound" } else { "" }.to_owned();
        Status { code, reason, details: Some(details), ..Status::success() }
    }

    #[test]
    fn answers_are_sorted_by_what_to_do_about_them() {
        let kinds = [
            (409, "conflict"),
            (404, "not_found"),
            (410, "expired"),
            (429, "throttled"),
            (401, "unauthorized"),
            (403, "forbidden"),
            (422, "invalid"),
            (400, "invalid"),
            (500, "server"),
            (503, "server"),
            (504, "server"),
        ];
        for (code, kind) in kinds {
            assert_eq!(ApiError::from_status(status(code, 0), None).kind(), kind, "{code}");
        }
    }

    #[test]
    fn retry_after_is_heard() {
        for code in [429, 503] {
            for (said, header) in [(7, None), (0, Some(Duration::from_secs(7)))] {
                let error = ApiError::from_status(status(code, said), header);
                assert!(matches!(error, ApiError::Throttled(Some(wait)) if wait.as_secs() == 7), "{error:?}");
            }
        }
    }

    #[test]
    fn a_proxy_that_finds_no_page_says_nothing_about_an_object() {
        let page = Status { code: 404, ..Status::failure("404 page not found", "no reason of ours") };
        let error = ApiError::from_status(page, None);
        assert!(matches!(error, ApiError::Server(404, _)), "{error:?}");
    }

    #[test]
    fn a_refusal_is_understood_however_it_is_written() {
        let answer = |code: u16, body: &[u8]| {
            let (parts, ()) = http::Response::builder().status(code).body(()).unwrap().into_parts();
            ApiError::of_answer(&parts, body)
        };
        let json = br#"{"kind":"Status","code":403,"message":"no such right"}"#;
        for body in [&json[..], &proto::tests::refusal(403, "no such right"), b"no such right\n"] {
            let error = answer(403, body);
            assert!(matches!(&error, ApiError::Forbidden(why) if why == "no such right"), "{error:?}");
        }
        assert!(matches!(answer(404, &proto::tests::refusal(404, "")), ApiError::NotFound));
    }

    #[test]
    fn only_an_answer_that_says_no_proves_that_nothing_was_written() {
        assert!(ApiError::Timeout.may_have_happened());
        assert!(ApiError::from_status(status(500, 0), None).may_have_happened());
        assert!(!ApiError::from_status(status(429, 1), None).may_have_happened());
        assert!(!ApiError::from_status(status(409, 0), None).may_have_happened());
    }
}
