//! What went wrong, in the words of kubectl.

use std::path::PathBuf;

use crate::cluster::ApiError;
use crate::{client, config};

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A flag, a variable or the policy file.
    #[error("error: {0}")]
    Config(#[from] config::Error),
    /// No client can be made.
    #[error("error: {0}")]
    Client(#[from] client::Error),
    /// The API server said no, or nothing.
    #[error("{}", said(.url, .error))]
    Api {
        /// Whom we asked.
        url: String,
        /// What came back.
        error: ApiError,
    },
    /// There is no such thing.
    #[error("Error from server (NotFound): {0} not found")]
    NotFound(String),
    /// A file.
    #[error("error: {path:?}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Nobody listens any more.
    #[error("error: cannot write: {0}")]
    Output(std::io::Error),
    /// Anything else, in plain words.
    #[error("error: {0}")]
    Said(String),
}

impl Error {
    pub(crate) fn said(words: impl Into<String>) -> Self {
        Self::Said(words.into())
    }

    /// Whether whoever read what was written has gone, as `head` does.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe)
    }

    /// Whether somebody was faster: what is there now decides.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Api { error: ApiError::Conflict(_) | ApiError::NotFound, .. })
    }

    /// Whether a permission is missing.
    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self, Self::Api { error: ApiError::Forbidden(_), .. })
    }
}

fn said(url: &str, error: &ApiError) -> String {
    let server = |reason: &str, words: &str| format!("Error from server ({reason}): {words}");
    let url = url.trim_end_matches('/');
    match error {
        ApiError::Forbidden(words) => server("Forbidden", words),
        ApiError::Conflict(words) => server("Conflict", words),
        ApiError::Invalid(words) => server("Invalid", words),
        ApiError::NotFound => server("NotFound", "the server could not find the requested resource"),
        ApiError::Expired => server("Expired", "history does not reach back that far"),
        ApiError::Throttled(_) => server("TooManyRequests", "the server asks to wait: try again later"),
        ApiError::Unauthorized(words) => {
            format!("error: You must be logged in to the server ({words})")
        }
        ApiError::Server(code, words) => server(&format!("HTTP {code}"), words),
        ApiError::Transport(words) if words.contains("refused") => format!(
            "The connection to the server {url} was refused - did you specify the right host or port? \
             (--kubeconfig and --context choose the cluster)"
        ),
        ApiError::Transport(words) => format!("Unable to connect to the server {url}: {words}"),
        ApiError::Timeout => format!("Unable to connect to the server {url}: no answer in time"),
        ApiError::Malformed(words) => format!("error: the answer of {url} is malformed: {words}"),
    }
}
