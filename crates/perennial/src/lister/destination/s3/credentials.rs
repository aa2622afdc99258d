//! Who we are at a bucket.

use std::fmt;

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides it.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// An access key with its secret. They come from the Listing's own Secret or from the flags, and from nowhere else: not
/// from the environment, a file or the machine's metadata, where ours are and not the tenant's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Who. It is no secret by itself, and is not shown all the same.
    pub access_key: Secret,
    /// What proves it.
    pub secret_key: Secret,
    /// What goes with temporary ones.
    pub session_token: Option<Secret>,
}

impl Credentials {
    /// Whether each can stand in a header.
    pub(super) fn usable(&self) -> bool {
        let Self { access_key, secret_key, session_token } = self;
        let visible =
            |secret: &Secret| !secret.0.is_empty() && secret.0.bytes().all(|byte| byte.is_ascii_graphic());
        visible(access_key) && visible(secret_key) && session_token.as_ref().is_none_or(visible)
    }

    /// As the signer takes them.
    pub(super) fn to_sign_with(&self) -> aws_credential_types::Credentials {
        let Self { access_key, secret_key, session_token } = self;
        aws_credential_types::Credentials::new(
            access_key.expose(),
            secret_key.expose(),
            session_token.as_ref().map(|token| token.expose().to_owned()),
            None,
            "listing",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(access_key: &str, secret_key: &str, token: Option<&str>) -> Credentials {
        Credentials {
            access_key: Secret::new(access_key),
            secret_key: Secret::new(secret_key),
            session_token: token.map(Secret::new),
        }
    }

    #[test]
    fn nothing_of_them_is_shown() {
        let shown = format!("{:?}", credentials("access-key", "secret-key", Some("session-token")));
        for part in ["access-key", "secret-key", "session-token"] {
            assert!(!shown.contains(part), "{shown}");
        }
    }

    #[test]
    fn a_line_break_at_the_end_is_noticed() {
        assert!(credentials("key", "secret", None).usable());
        assert!(credentials("key", "se/cr+et=", Some("token")).usable());
        for (key, secret, token) in [
            ("", "secret", None),
            ("key", "", None),
            ("key", "secret\n", None),
            ("key ", "secret", None),
            ("key", "secret", Some("")),
            ("key", "sécret", None),
        ] {
            assert!(!credentials(key, secret, token).usable(), "{key:?} {secret:?} {token:?}");
        }
    }
}
