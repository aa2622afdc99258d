//! Times as people read and type them.

use jiff::{SignedDuration, Timestamp};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// How long ago something was, as kubectl says it.
pub(crate) fn age(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(then).as_secs().max(0);
    let (minutes, hours, days) = (seconds / MINUTE, seconds / HOUR, seconds / DAY);
    let both = |large: i64, unit: char, small: i64, part: char| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{part}"),
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => both(minutes, 'm', seconds % MINUTE, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => both(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => both(days, 'd', hours % 24, 'h'),
        _ => format!("{days}d"),
    }
}

/// The same where there may be no time.
pub(crate) fn age_of(then: Option<Timestamp>, now: Timestamp) -> String {
    then.map_or_else(|| "-".to_owned(), |then| age(then, now))
}

/// A time that was typed: as RFC 3339, or how long ago. The error says what is allowed.
pub(crate) fn read(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let allowed = || {
        format!("{text:?} is no time: give one such as 2026-05-01T12:00:00Z, or 10m, 2h, 1d for so long ago")
    };
    if let Ok(time) = text.parse::<Timestamp>() {
        return if time > now { Err(format!("{text} lies in the future")) } else { Ok(time) };
    }
    // Days are not of one length everywhere, so that the parser leaves them out; here they are 24 hours.
    let ago = match text.strip_suffix('d').map(str::parse::<i64>) {
        Some(Ok(days)) if days < 100_000 => SignedDuration::from_hours(24 * days),
        _ => text.parse::<SignedDuration>().map_err(|_| allowed())?,
    };
    if ago.is_negative() {
        return Err(allowed());
    }
    now.checked_sub(ago).map_err(|_| allowed())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

    #[test]
    fn ages_are_said_as_kubectl_says_them() {
        for (seconds, said) in [
            (-5, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (150, "2m30s"),
            (700, "11m"),
            (3 * HOUR + 120, "3h2m"),
            (9 * HOUR, "9h"),
            (2 * DAY + HOUR, "2d1h"),
            (30 * DAY, "30d"),
        ] {
            assert_eq!(age(NOW - SignedDuration::from_secs(seconds), NOW), said, "{seconds}");
        }
    }

    #[test]
    fn a_time_is_typed_as_such_or_as_how_long_ago() {
        let ago = |seconds| Ok(NOW - SignedDuration::from_secs(seconds));
        assert_eq!(read("10m", NOW), ago(600));
        assert_eq!(read("1h30m", NOW), ago(5400));
        assert_eq!(read("2d", NOW), ago(2 * DAY));
        assert_eq!(read("2027-01-15T07:00:00Z", NOW), ago(3600));
        assert_eq!(read("2027-01-15T08:00:00+01:00", NOW), ago(3600));
        for wrong in ["", "yesterday", "-5m", "10", "2028-01-01T00:00:00Z", "d", "99999999999d"] {
            assert!(read(wrong, NOW).is_err(), "{wrong:?}");
        }
    }
}
