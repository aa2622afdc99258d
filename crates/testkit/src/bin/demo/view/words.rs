//! Numbers and times as a person reads them, and the last lines.

use std::{
    io::{self, Write as _},
    time::Duration,
};

/// A line on stdout that bears our name. If nobody reads it, there is nobody to tell.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stdout(), "demo: {line}");
}

/// `1 node`, `1,200 nodes`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{} {noun}{}", thousands(number), if number == 1 { "" } else { "s" })
}

/// `12,345`.
pub(crate) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let mut text = digits[..first].to_owned();
    for start in (first..digits.len()).step_by(3) {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&digits[start..start + 3]);
    }
    text
}

/// `34 %`, or `-` where nothing is known.
pub(crate) fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

/// `12 ms`, `1.4 s`.
pub(crate) fn duration(duration: Duration) -> String {
    match duration.as_millis() {
        millis @ 0..1_000 => format!("{millis} ms"),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}

/// `1:05`.
pub(crate) fn clock(duration: Duration) -> String {
    let seconds = duration.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_readable() {
        assert_eq!([0, 7, 999, 1_000, 1_234_567].map(thousands), ["0", "7", "999", "1,000", "1,234,567"]);
        assert_eq!((count(1, "node"), count(2, "node")), ("1 node".to_owned(), "2 nodes".to_owned()));
        let times = [3, 999, 1_000, 12_340].map(|millis| duration(Duration::from_millis(millis)));
        assert_eq!(times, ["3 ms", "999 ms", "1.0 s", "12.3 s"]);
        assert_eq!([None, Some(0.336), Some(1.0)].map(percent), ["-", "34 %", "100 %"]);
        assert_eq!(clock(Duration::from_secs(65)), "1:05");
    }
}
