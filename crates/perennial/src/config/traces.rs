//! Where traces are sent, if anywhere.

use http::Uri;

use super::Error;
use super::source::Sources;
use crate::args::settings as names;

/// The path of traces below a collector's address.
const PATH: &str = "/v1/traces";

/// Where traces are sent.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceConfig {
    /// The collector, with the path that takes traces.
    pub endpoint: Uri,
    /// The share of traces that are sent.
    pub share: f64,
}

pub(super) fn find(
    sources: &mut Sources<'_>,
    endpoint: Option<&str>,
    share: Option<&str>,
) -> Result<Option<TraceConfig>, Error> {
    let endpoint = sources.checked(&names::OTLP_ENDPOINT, endpoint, collector)?;
    let share = sources.checked(&names::OTLP_SAMPLE, share, part)?.unwrap_or(1.0);
    Ok(endpoint.map(|endpoint| TraceConfig { endpoint, share }))
}

fn collector(text: &str) -> Result<Uri, String> {
    let base = text.trim_end_matches('/');
    let base = base.strip_suffix(PATH).unwrap_or(base);
    let uri: Option<Uri> = format!("{base}{PATH}").parse().ok();
    let known = |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.query().is_none();
    let whole = |uri: &Uri| uri.host().is_some_and(|host| !host.is_empty());
    uri.filter(|uri| known(uri) && whole(uri))
        .ok_or_else(|| "the address of a collector, such as http://otel-collector:4318".to_owned())
}

fn part(text: &str) -> Result<f64, String> {
    let share: Option<f64> = text.trim().parse().ok();
    share.filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| "a number from 0 to 1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_traces_is_added_once() {
        for given in
            ["http://c:4318", "http://c:4318/", "http://c:4318/v1/traces", "http://c:4318/v1/traces/"]
        {
            assert_eq!(collector(given).unwrap(), "http://c:4318/v1/traces", "{given}");
        }
        assert_eq!(collector("https://c/otlp").unwrap(), "https://c/otlp/v1/traces");
    }

    #[test]
    fn anything_else_is_refused_with_what_is_allowed() {
        for given in ["", "c:4318", "grpc://c:4317", "http://", "http://c?x=1", "http://a b"] {
            assert!(collector(given).unwrap_err().contains("http://otel-collector:4318"), "{given}");
        }
        for given in ["", "2", "-1", "NaN", "half"] {
            assert!(part(given).is_err(), "{given}");
        }
        assert_eq!(part(" 0.5 "), Ok(0.5));
    }
}
