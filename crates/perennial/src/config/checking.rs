//! The configuration of `perennial check`: that of `perennial run`, and where a replica may be asked.

use http::Uri;

use super::source::Sources;
use super::{Config, Error, Surroundings, check};
use crate::args::{CheckArgs, settings as names};

/// Everything `perennial check` needs to know.
#[derive(Debug)]
pub struct CheckConfig {
    /// What is checked.
    pub config: Config,
    /// Where a running replica says whether it is ready.
    pub ready: Option<Uri>,
}

impl CheckConfig {
    /// Checks what was typed against what surrounds the process.
    pub fn check(args: &CheckArgs, around: &Surroundings) -> Result<Self, Error> {
        let CheckArgs { run, url } = args;
        let config = Config::check(run, around)?;
        let ready = Sources::new(around).checked(&names::URL, url.as_deref(), ready)?;
        Ok(Self { config, ready })
    }
}

/// The address of `/readyz` below an address.
fn ready(text: &str) -> Result<Uri, String> {
    let uri = check::address(&format!("{}/readyz", text.trim_end_matches('/')))?;
    let allowed = "the address of a replica, such as http://perennial.perennial.svc:8080";
    if uri.path() == "/readyz" { Ok(uri) } else { Err(allowed.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::ready;

    #[test]
    fn an_address_is_that_of_a_replica_with_or_without_a_slash() {
        for given in ["http://perennial:8080", "http://perennial:8080/"] {
            assert_eq!(ready(given).unwrap(), "http://perennial:8080/readyz");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for given in [
            "",
            "perennial:8080",
            "https://perennial:8080",
            "http://",
            "http://perennial/metrics",
            "http://a b",
        ] {
            assert!(ready(given).is_err(), "{given}");
        }
    }
}
