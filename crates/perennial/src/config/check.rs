//! What each value may be. A check gives the value, or says what is allowed.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use jiff::SignedDuration;
use perennial_core::policy::syntax::is_subdomain;

/// The longest name part of a label or annotation key, and the longest namespace.
const LONGEST_NAME: usize = 63;

/// Any text but none.
pub(super) fn not_empty(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("any text that is not empty".to_owned()) } else { Ok(text.to_owned()) }
}

/// Whether something is there at all.
pub(super) fn on_or_off(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" => Ok(true),
        "off" | "false" => Ok(false),
        _ => Err("on or off".to_owned()),
    }
}

/// A namespace: a DNS label.
pub(super) fn namespace(text: &str) -> Result<String, String> {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    if is_name(text, inner, |c| inner(c) || c == b'-') {
        return Ok(text.to_owned());
    }
    Err(format!(
        "1 to {LONGEST_NAME} lowercase letters, digits and dashes, beginning and ending with a letter or digit"
    ))
}

/// An installation: the name part of an annotation key.
pub(super) fn installation(text: &str) -> Result<String, String> {
    let outer = |c: u8| c.is_ascii_alphanumeric();
    if is_name(text, outer, |c| outer(c) || b"-_.".contains(&c)) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "1 to {LONGEST_NAME} letters, digits, dashes, underscores and dots, beginning and ending with a letter or digit"
    ))
}

/// The longest name of a member: that of its Lease is a DNS subdomain of at most 253.
const LONGEST_MEMBER: usize = 200;

/// A member: the end of a Lease's name.
pub(super) fn member(text: &str) -> Result<String, String> {
    if text == as_member(text) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "1 to {LONGEST_MEMBER} lowercase letters, digits, dashes and dots, beginning and ending with a letter or digit, without `..`, `.-` and `-.`"
    ))
}

/// The nearest name that a member may have.
pub(super) fn as_member(text: &str) -> String {
    let lower = text.to_lowercase();
    let parts = lower.split('.').map(|part| {
        let part: String = part.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        part.trim_matches('-').to_owned()
    });
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    let mut name = parts.join(".");
    name.truncate(LONGEST_MEMBER);
    let name = name.trim_end_matches(['-', '.']);
    if name.is_empty() { "replica".to_owned() } else { name.to_owned() }
}

/// Names by which somebody may be asked for, with commas between.
pub(super) fn hosts(text: &str) -> Result<Vec<String>, String> {
    let one = |name: &str| {
        let name = name.trim().to_ascii_lowercase();
        let known = name == "*" || is_subdomain(name.strip_prefix("*.").unwrap_or(&name));
        known
            .then_some(name)
            .ok_or("names such as perennial.example.com or *.example.com, with commas between")
    };
    text.split(',').map(|name| one(name).map_err(str::to_owned)).collect()
}

fn is_name(text: &str, outer: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let ends = bytes.first().zip(bytes.last());
    bytes.len() <= LONGEST_NAME
        && ends.is_some_and(|(first, last)| outer(*first) && outer(*last))
        && bytes.iter().all(|c| inner(*c))
}

/// Whether nodes are kept, and whether listings are published.
pub(super) fn roles(text: &str) -> Result<(bool, bool), String> {
    let (mut keeps, mut lists) = (false, false);
    for role in text.split(',') {
        match role.trim() {
            "keeper" => keeps = true,
            "lister" => lists = true,
            _ => return Err("keeper, lister, or keeper,lister".to_owned()),
        }
    }
    Ok((keeps, lists))
}

/// Where something is served, without TLS: what is asked there is beside us, in the same cluster.
pub(super) fn address(text: &str) -> Result<Uri, String> {
    let uri: Option<Uri> = text.parse().ok().filter(|uri: &Uri| uri.scheme() == Some(&Scheme::HTTP));
    uri.ok_or_else(|| "an address such as http://web.shop.svc:8080/".to_owned())
}

/// A duration such as `90s`, `5m` or `1h30m`, within a range.
pub(super) fn duration(range: RangeInclusive<Duration>) -> impl Fn(&str) -> Result<Duration, String> {
    move |text| {
        text.parse::<SignedDuration>()
            .ok()
            .and_then(|duration| Duration::try_from(duration).ok())
            .filter(|duration| range.contains(duration))
            .ok_or_else(|| {
                let (least, most) = (spoken(*range.start()), spoken(*range.end()));
                format!("a duration from {least} to {most}, such as 90s, 5m or 1h30m")
            })
    }
}

/// How long a gate may stay closed; `off` is none.
pub(super) fn gate(text: &str) -> Result<Option<Duration>, String> {
    if text.eq_ignore_ascii_case("off") {
        return Ok(None);
    }
    let checked = duration(Duration::from_secs(10)..=Duration::from_hours(1))(text);
    checked.map(Some).map_err(|allowed| format!("{allowed}, or off"))
}

/// Plain seconds, as an older operator had them, within a range.
pub(super) fn seconds(text: &str, range: RangeInclusive<Duration>) -> Result<Duration, String> {
    let duration = text.trim().parse().ok().map(Duration::from_secs);
    duration
        .filter(|duration| range.contains(duration))
        .ok_or_else(|| format!("whole seconds from {} to {}", range.start().as_secs(), range.end().as_secs()))
}

/// A duration in the words it is typed with.
fn spoken(duration: Duration) -> String {
    SignedDuration::try_from(duration)
        .map_or_else(|_| format!("{duration:?}"), |signed| format!("{signed:#}"))
}

/// How many nodes are worked on at once.
pub(super) fn concurrency(text: &str) -> Result<usize, String> {
    let number = text.parse().ok();
    number.filter(|number| (1..=1024).contains(number)).ok_or_else(|| "a number from 1 to 1024".to_owned())
}

/// An address to listen on; a port alone is every address; `off` is none.
pub(super) fn listen(text: &str) -> Result<Option<SocketAddr>, String> {
    if text.eq_ignore_ascii_case("off") {
        return Ok(None);
    }
    let everywhere = text.strip_prefix(':').and_then(|port| port.parse().ok());
    let address = match everywhere {
        Some(port) => Some(SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port)),
        None => text.parse().ok(),
    };
    let allowed =
        "an IP address and port such as 127.0.0.1:8080 or [::1]:8080, :8080 for every address, or off";
    address.map(Some).ok_or_else(|| allowed.to_owned())
}
