//! Instants for a process's own memory.

use std::sync::LazyLock;

use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
use std::time::Duration;
use tokio::time::Instant;

/// Any moment will do.
static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Nanoseconds since then, or before.
fn number(at: Instant) -> i64 {
    let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    nanos(at.saturating_duration_since(*BEGAN)) - nanos(BEGAN.saturating_duration_since(at))
}

fn instant(number: i64) -> Instant {
    let time = Duration::from_nanos(number.unsigned_abs());
    if number < 0 { *BEGAN - time } else { *BEGAN + time }
}

pub(super) fn serialize<S: Serializer>(at: &Instant, to: S) -> Result<S::Ok, S::Error> {
    number(*at).serialize(to)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Instant, D::Error> {
    i64::deserialize(from).map(instant)
}

pub(super) mod optional {
    use super::{Deserializer, Instant, Serializer, instant, number};
    use serde::{Deserialize as _, Serialize as _};

    #[expect(clippy::ref_option, reason = "serde passes every field by reference")]
    pub(in super::super) fn serialize<S: Serializer>(at: &Option<Instant>, to: S) -> Result<S::Ok, S::Error> {
        at.map(number).serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Instant>, D::Error> {
        Ok(Option::<i64>::deserialize(from)?.map(instant))
    }
}
